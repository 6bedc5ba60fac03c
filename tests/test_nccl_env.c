/* NCCL's environment: values, the lists of NCCL_ALGO and NCCL_PROTO by version, and what they leave. */
#include "tests/golden_nccl.h"

#include <math.h>

static TtNcclOp
op_of(TtNcclFunc func, guint64 bytes)
{
    return (TtNcclOp){
        .func = func, .bytes = bytes, .type_bytes = 4, .is_float = TRUE, .op_is_sum = TRUE
    };
}

/* --- values ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *variable, *value;
    gsize offset;
    int want;
} numbers[] = {
    { "with the prefix", "NCCL_NTHREADS", "256", offsetof(TtNcclEnv, n_threads), 256 },
    { "without it", "NTHREADS", "256", offsetof(TtNcclEnv, n_threads), 256 },
    { "C syntax, as NCCL reads numbers", "NCCL_NTHREADS", "0x40", offsetof(TtNcclEnv, n_threads),
      64 },
    { "CTAs are channels", "NCCL_MAX_CTAS", "4", offsetof(TtNcclEnv, max_channels), 4 },
    { "a level by name", "NCCL_P2P_LEVEL", "sys", offsetof(TtNcclEnv, p2p_level), TT_PATH_SYS },
    { "a level by its old number", "NCCL_P2P_LEVEL", "2", offsetof(TtNcclEnv, p2p_level),
      TT_PATH_PXB },
    { "no peer access is the level LOC", "NCCL_P2P_DISABLE", "1", offsetof(TtNcclEnv, p2p_level),
      TT_PATH_LOC },
    { "not disabled says nothing", "NCCL_P2P_DISABLE", "0", offsetof(TtNcclEnv, p2p_level),
      TT_NCCL_UNSET },
    { "rings that change rails", "NCCL_CROSS_NIC", "2", offsetof(TtNcclEnv, cross_nic), 2 },
};

static void
test_numbers(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        GError *error = NULL;
        TtNcclEnv env;
        gboolean used = FALSE;

        tt_nccl_env_init(&env);
        CHECK_ROW(&numbers[i],
                  tt_nccl_env_set(&env, numbers[i].variable, numbers[i].value, &used, &error));
        CHECK_NO_ERROR(error);
        CHECK_ROW(&numbers[i], used);
        CHECK_ROW(&numbers[i], *(int *)((char *)&env + numbers[i].offset) == numbers[i].want);
        tt_nccl_env_clear(&env);
    }
}

static const struct {
    const char *name, *variable, *value, *words;
} refused[] = {
    { "no number", "NCCL_NTHREADS", "many", "NCCL_NTHREADS=many: must be" },
    { "a unit", "NCCL_BUFFSIZE", "4M", "bytes" },
    { "nothing", "NCCL_BUFFSIZE", "", "bytes" },
    { "too large", "NCCL_CROSS_NIC", "3", "0, 1 or 2" },
    { "negative", "NCCL_NVLS_ENABLE", "-1", "0, 1 or 2" },
    { "a path that is none", "NCCL_P2P_LEVEL", "NEAR", "LOC, NVL, PIX" },
    { "beyond 64 bits", "NCCL_BUFFSIZE", "99999999999999999999", "bytes" },
};

static void
test_refused(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        GError *error = NULL;
        TtNcclEnv env;

        tt_nccl_env_init(&env);
        CHECK_ROW(&refused[i],
                  !tt_nccl_env_set(&env, refused[i].variable, refused[i].value, NULL, &error));
        CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, refused[i].words);
        tt_nccl_env_clear(&env);
    }
}

static void
test_unknown(void)
{
    GError *error = NULL;
    TtNcclEnv env;
    gboolean used = TRUE;

    tt_nccl_env_init(&env);
    CHECK(tt_nccl_env_set(&env, "NCCL_DEBUG", "INFO", &used, &error), "no error");
    CHECK(!used, "and no use");
    for (guint i = 0; tt_nccl_env_name(i); i++)
        CHECK(tt_nccl_env_values(tt_nccl_env_name(i)), "%s", tt_nccl_env_name(i));
    CHECK(!tt_nccl_env_values("NCCL_DEBUG"), "values of nothing");
    tt_nccl_env_clear(&env);
}

/* --- lists ------------------------------------------------------------------------------------- */

#define AR TT_NCCL_ALLREDUCE
#define AG TT_NCCL_ALLGATHER
#define BC TT_NCCL_BROADCAST

/* Algorithms and protocols left, by initials of their order: T R D C N V P, and L 1 S. */
static const struct {
    const char *name, *version, *algo, *proto;
    TtNcclFunc func;
    const char *left;
    gboolean forced;
} lists[] = {
    { "nothing set", "2.27.7", NULL, NULL, AR, "TRDCNVP L1S", FALSE },
    { "one name", "2.18.5", "Ring", NULL, AR, "R L1S", FALSE },
    { "any case", "2.27.7", "rInG,TREE", NULL, AR, "TR L1S", FALSE },
    { "without one", "2.23.4", "^Ring", NULL, AR, "TDCNVP L1S", FALSE },
    { "an exclusion is of the whole list", "2.27.7", "^Ring,Tree", NULL, AR, "DCNVP L1S", FALSE },
    { "unknown names count for nothing before 2.24", "2.23.4", "Ringg", NULL, AR, " L1S", FALSE },
    { "PAT is unknown before 2.23", "2.22.3", "PAT", NULL, AR, " L1S", FALSE },
    { "functions are unknown before 2.24", "2.23.4", "allreduce:Ring", NULL, AR, " L1S", FALSE },
    { "a function's list", "2.24.3", "Ring;allreduce:Tree,NVLS", NULL, AR, "TN L1S", FALSE },
    { "the others keep the first", "2.24.3", "Ring;allreduce:Tree,NVLS", NULL, AG, "R L1S", FALSE },
    { "no first list: others keep all", "2.30.7", "allreduce:Tree", NULL, AG, "TRDCNVP L1S",
      FALSE },
    { "a function's exclusion", "2.27.7", NULL, "LL,Simple;AllReduce:^LL", AR, "TRDCNVP 1S", TRUE },
    { "LL128 by name is forced", "2.27.7", NULL, "LL128", AR, "TRDCNVP 1", TRUE },
    { "an exclusion that spares LL128 forces it too", "2.21.5", NULL, "^LL", AR, "TRDCNV 1S",
      TRUE },
    { "no list said a word of LL128", "2.27.7", NULL, "broadcast:LL128", AR, "TRDCNVP L1S", FALSE },
    { "and here one did", "2.27.7", NULL, "broadcast:LL128", BC, "TRDCNVP 1", TRUE },
    { "an empty text says nothing since 2.24", "2.27.7", "", NULL, AR, "TRDCNVP L1S", FALSE },
};

static char *
what_is_left(const TtNcclFilter *f)
{
    GString *text = g_string_new(NULL);

    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++)
        if (f->algo[a])
            g_string_append_c(text, "TRDCNVP"[a]);
    g_string_append_c(text, ' ');
    for (guint p = 0; p < TT_NCCL_N_PROTOS; p++)
        if (f->proto[p])
            g_string_append_c(text, "L1S"[p]);
    return g_string_free(text, FALSE);
}

static void
test_lists(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        guint version = tt_nccl_version_parse(lists[i].version, NULL, NULL);
        TtNcclEnv env = { .algo = (char *)lists[i].algo, .proto = (char *)lists[i].proto };
        g_autofree char *left = NULL;
        GError *error = NULL;
        TtNcclFilter filter;

        CHECK_ROW(&lists[i], tt_nccl_env_filter(&env, version, lists[i].func, &filter, &error));
        CHECK_NO_ERROR(error);
        left = what_is_left(&filter);
        CHECK(strcmp(left, lists[i].left) == 0, "%s: %s, want %s", lists[i].name, left,
              lists[i].left);
        CHECK_ROW(&lists[i], filter.ll128_forced == lists[i].forced);
    }
}

static const struct {
    const char *name, *algo, *proto, *words;
} bad_lists[] = {
    { "no algorithm", "Ringg", NULL, "\"Ringg\" is no algorithm" },
    { "no protocol", NULL, "LL64", "\"LL64\" is no protocol" },
    { "no collective", "allreducee:Ring", NULL, "\"allreducee\" is no collective" },
    { "a second list without its collective", "Ring;Tree", NULL, "must name its collective" },
    { "a collective without its list", "allreduce:", NULL, "nothing after" },
    { "an error in another collective's list", "broadcast:Rong", NULL, "\"Rong\"" },
};

static void
test_bad_lists(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);

    for (guint i = 0; i < G_N_ELEMENTS(bad_lists); i++) {
        TtNcclEnv env;
        TtNcclTable table;
        GError *error = NULL;

        tt_nccl_env_init(&env);
        env.algo = g_strdup(bad_lists[i].algo), env.proto = g_strdup(bad_lists[i].proto);
        comm.version = 22403;
        CHECK_ROW(&bad_lists[i], !tt_nccl_table(&comm, AR, &env, &table, &error));
        CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, bad_lists[i].words);
        comm.version = 22304;
        CHECK_ROW(&bad_lists[i], tt_nccl_table(&comm, AR, &env, &table, &error));
        tt_nccl_env_clear(&env);
    }
}

/* --- what they leave to choose from ------------------------------------------------------------ */

static const struct {
    const char *name, *version, *system;
    guint n_nodes;
    TtNcclFunc func;
    const char *algo, *proto;
    guint64 bytes;
    const char *want; /* NULL: it fails */
} choices[] = {
    { "free to choose", "2.27.7", "dgxh100", 2, AR, NULL, NULL, 1 << 20, "NVLSTree Simple" },
    { "Ring only", "2.27.7", "dgxh100", 2, AR, "Ring", NULL, 1 << 20, "Ring LL128" },
    { "Ring and Simple only", "2.27.7", "dgxh100", 2, AR, "Ring", "Simple", 1 << 20,
      "Ring Simple" },
    { "2.24 fails where nothing is left", "2.24.3", "dgxa100", 1, AR, "NVLS", NULL, 1 << 20, NULL },
    { "2.23 goes back to Ring", "2.23.4", "dgxa100", 1, AR, "NVLS", NULL, 1 << 20, "Ring LL" },
    { "2.23 goes back to Ring by the protocols left", "2.23.4", "dgxa100", 1, AR, "NVLS", "Simple",
      1 << 20, "Ring Simple" },
    { "no protocol left cannot be made good", "2.23.4", "dgxa100", 1, AR, NULL, "nothing", 1 << 20,
      NULL },
    { "2.18 fails for allreduce", "2.18.5", "dgxa100", 1, AR, "NVLS", NULL, 1 << 20, NULL },
    { "2.18 filters allreduce only", "2.18.5", "dgxa100", 1, BC, "Tree", NULL, 8, "Ring LL" },
    { "2.21 forgets a list of CollNet alone", "2.21.5", "dgxa100", 1, AR, "CollNetDirect", NULL, 8,
      "Ring LL" },
    { "a broadcast by Tree is none since 2.24", "2.24.3", "dgxa100", 1, BC, "Tree", NULL, 8, NULL },
};

static void
test_choices(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(choices); i++) {
        TtNcclComm comm = golden_find(choices[i].version, choices[i].system, choices[i].n_nodes);
        TtNcclEnv env;
        TtNcclTable table;
        TtNcclOp op = op_of(choices[i].func, choices[i].bytes);
        TtNcclChoice c = { 0 };
        GError *error = NULL;
        g_autofree char *got = NULL;

        tt_nccl_env_init(&env);
        env.algo = g_strdup(choices[i].algo), env.proto = g_strdup(choices[i].proto);
        CHECK_ROW(&choices[i], tt_nccl_table(&comm, choices[i].func, &env, &table, &error));
        if (tt_nccl_choose(&comm, &table, &env, &op, &c, &error))
            got = g_strdup_printf("%s %s", tt_nccl_algo_name(c.algo), tt_nccl_proto_name(c.proto));
        CHECK(g_strcmp0(got, choices[i].want) == 0, "%s: %s, want %s", choices[i].name,
              got ? got : error->message, choices[i].want ? choices[i].want : "a failure");
        if (!got)
            CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        comm.version >= 22400 ? "ncclInvalidUsage" : "no algorithm and protocol");
        tt_nccl_env_clear(&env);
    }
}

/* Overhead of the network: 28 hops inside a node take what posting takes, 1 us, or what is said. */
static void
test_net_overhead(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);
    TtNcclEnv env;
    TtNcclTable table;

    tt_nccl_env_init(&env);
    env.net_overhead_ns = 3000;
    CHECK(tt_nccl_table(&comm, AR, &env, &table, NULL), "table");
    CHECK(fabs(table.cell[TT_NCCL_RING][TT_NCCL_LL].latency_us - (6.6 + 28 * 3.0 + 2 * 2.7)) < 1e-9,
          "%g", table.cell[TT_NCCL_RING][TT_NCCL_LL].latency_us);
}

/* --- whatever is written ----------------------------------------------------------------------- */

static void
test_noise(void)
{
    static const char letters[] = "ring,tree^:;allreduceLL128simple =\t%\xc3";
    guint32 seed = 20240611;
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);

    fprintf(stderr, "noise: seed %u\n", seed);
    for (guint i = 0; i < 20000; i++) {
        char text[24];
        guint n = (guint)g_rand_int_range(random, 0, sizeof text - 1);
        TtNcclEnv env;
        TtNcclTable table;
        TtNcclOp op = op_of(AR, 1 << 20);
        TtNcclChoice choice;
        g_autoptr(GError) error = NULL;

        for (guint c = 0; c < n; c++)
            text[c] = letters[g_rand_int_range(random, 0, sizeof letters - 1)];
        text[n] = '\0';
        tt_nccl_env_init(&env);
        comm.version = i % 2 ? 22304 : 22707;
        if (tt_nccl_env_set(&env, i % 3 ? "ALGO" : "PROTO", text, NULL, &error) &&
            tt_nccl_table(&comm, AR, &env, &table, &error) &&
            tt_nccl_choose(&comm, &table, &env, &op, &choice, &error))
            CHECK(isfinite(choice.time_us), "\"%s\"", text);
        else
            CHECK(error && !strchr(error->message, '\n'), "\"%s\"", text);
        g_clear_error(&error);
        for (guint v = 2; tt_nccl_env_name(v); v++, g_clear_error(&error))
            tt_nccl_env_set(&env, tt_nccl_env_name(v), text, NULL, &error);
        tt_nccl_env_clear(&env);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "values", test_numbers },
        { "values that are none", test_refused },
        { "variables that are none of ours", test_unknown },
        { "lists", test_lists },
        { "lists that are refused", test_bad_lists },
        { "what is left to choose", test_choices },
        { "network overhead", test_net_overhead },
        { "noise", test_noise },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_env", tests);
}
