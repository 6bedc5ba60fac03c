/* test_nccl_flow - NCCL's plans by the simulator: against the closed form its constants were fitted with,
 * and, where that counts otherwise, against arithmetic.
 */
#include "algos/algo.h"
#include "algos/verify.h"
#include "check.h"
#include "models/nccl_machine.h"
#include "sim/nccl_flow.h"
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>

#define VERSION TT_NCCL_VERSION(2, 27, 7)
#define KIB     G_GUINT64_CONSTANT(1024)
#define MIB     (1024 * KIB)
#define GIB     (1024 * MIB)

typedef struct {
    TtTopology *topo;
    TtNcclXml *node;
    TtNcclComm *comm;
    TtNcclEnv env;
    TtNcclMachine machine;
    TtNcclTable table;
    TtNcclFunc func;
} Setup;

static gboolean
setup_open(Setup *self, const char *text, const char *const *settings, TtNcclFunc func)
{
    g_autoptr(GError) error = NULL;

    *self = (Setup){ .topo = tt_topology_open(text, settings, &error), .func = func };
    CHECK_NO_ERROR(error);
    if (!self->topo)
        return FALSE;
    self->node = tt_nccl_xml_of_topology(self->topo, &error);
    self->comm = g_new0(TtNcclComm, 1);
    tt_nccl_env_init(&self->env);
    if (tt_nccl_comm_init(self->comm, self->node, tt_topology_n_nodes(self->topo), VERSION,
                          &self->env, NULL, &error)) {
        tt_nccl_machine_of_node(&self->machine, self->node, self->comm);
        tt_nccl_table(self->comm, func, &self->env, &self->table, &error);
    }
    CHECK_NO_ERROR(error);
    return TRUE;
}

static void
setup_clear(Setup *self)
{
    tt_topology_free(self->topo);
    tt_nccl_xml_free(self->node);
    tt_nccl_env_clear(&self->env);
    g_free(self->comm);
}

static TtNcclPlace
place_of(const Setup *s)
{
    return (TtNcclPlace){ s->topo,        s->comm, &s->machine, tt_nccl_costs_built_in()->value,
                          &tt_no_effects, s->node };
}

/* A float sum of @bytes, as NCCL chooses. */
static TtNcclCall
chosen(const Setup *s, guint64 bytes)
{
    TtNcclCall call = { .op = { .func = s->func,
                                .bytes = bytes,
                                .type_bytes = 4,
                                .is_float = TRUE,
                                .op_is_sum = TRUE },
                        .type = TT_FLOAT32,
                        .redop = TT_SUM };
    g_autoptr(GError) error = NULL;

    tt_nccl_choose(s->comm, &s->table, &s->env, &call.op, &call.choice, &error);
    CHECK_NO_ERROR(error);
    return call;
}

/* The same by a given pair. */
static TtNcclCall
forced(const Setup *s, guint64 bytes, TtNcclAlgo algo, TtNcclProto proto)
{
    TtNcclCall call = chosen(s, bytes);

    tt_nccl_shape(s->comm, &s->table, &s->env, &call.op, algo, proto, &call.choice);
    return call;
}

static double
flow_us(const Setup *s, const TtNcclCall *call, gboolean record)
{
    TtNcclPlace place = place_of(s);
    g_autoptr(GError) error = NULL;
    double us = NAN;

    tt_nccl_flow_us(&place, call, record, &us, NULL, &error);
    CHECK_NO_ERROR(error);
    return us;
}

static double
closed_us(const Setup *s, const TtNcclCall *call)
{
    return tt_nccl_model_us(tt_nccl_costs_built_in()->value, &tt_no_effects, &s->machine, &call->op,
                            &call->choice);
}

/* --- against the closed form ------------------------------------------------------------------- */

static int
by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return x < y ? -1 : x > y;
}

static void
compare_sizes(const char *text, GArray *errors)
{
    gboolean talk = g_getenv("TT_SHOW") != NULL;
    Setup s;

    if (!setup_open(&s, text, NULL, TT_NCCL_ALLREDUCE))
        return;
    for (guint64 bytes = 8; bytes <= GIB; bytes *= 2) {
        TtNcclCall call = chosen(&s, bytes);
        double closed = closed_us(&s, &call), flow = flow_us(&s, &call, FALSE);
        double error = flow / closed - 1;

        if (talk)
            printf("%-12s %10lu %-8s %-6s %4u loops  closed %10.2f  flow %10.2f  %+6.1f %%\n", text,
                   (gulong)bytes, tt_nccl_algo_name(call.choice.algo),
                   tt_nccl_proto_name(call.choice.proto), call.choice.n_loops, closed, flow,
                   100 * error);
        g_array_append_val(errors, error);
    }
    setup_clear(&s);
}

static void
close_to_the_closed_form(void)
{
    static const char *const topologies[] = { "dgx-h100:1",  "dgx-h100:2",  "dgx-h100:4",
                                              "dgx-h100:16", "dgx-a100:1",  "dgx-a100:2",
                                              "dgx-a100:8",  "dgx1-v100:1", "v100-4:8",
                                              "a100-4:8" };
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    double median, p95, most;

    for (guint t = 0; t < G_N_ELEMENTS(topologies); t++)
        compare_sizes(topologies[t], errors);
    qsort(errors->data, errors->len, sizeof(double), by_size);
    median = fabs(g_array_index(errors, double, errors->len / 2));
    p95 = fabs(g_array_index(errors, double, errors->len * 95 / 100));
    most = fabs(g_array_index(errors, double, errors->len - 1));
    if (g_getenv("TT_SHOW"))
        printf("%u: median %.2f %%, p95 %.2f %%, most %.2f %%\n", errors->len, 100 * median,
               100 * p95, 100 * most);
    CHECK(median <= 0.005, "median %.2f %%", 100 * median);
    CHECK(p95 <= 0.05, "p95 %.2f %%", 100 * p95);
    CHECK(most <= 0.25, "most %.2f %%", 100 * most);
}

/* --- against arithmetic -------------------------------------------------------------------------- */

static double
with_start_us(const Setup *s, const TtNcclCall *call, double steps_us)
{
    const double *v = tt_nccl_costs_built_in()->value;

    return tt_nccl_join_us(tt_nccl_call_us(v, &tt_no_effects, &s->machine),
                           tt_nccl_start_us(v, &s->machine) +
                               v[tt_cost_proto(TT_COST_BEGIN, call->choice.proto)] + steps_us);
}

/* 2 (P - 1) hops around a ring of M nodes: the longest way misses two hops of two laps, inside a node. */
static void
a_ring_crosses_twice_as_often_as_there_are_nodes(void)
{
    static const char *const topologies[] = { "dgx-h100:2", "dgx-h100:4", "dgx-a100:8" };

    for (guint t = 0; t < G_N_ELEMENTS(topologies); t++) {
        Setup s;

        if (!setup_open(&s, topologies[t], NULL, TT_NCCL_ALLREDUCE))
            continue;
        for (guint proto = 0; proto < TT_NCCL_N_PROTOS; proto++) {
            TtNcclCall call = forced(&s, 64, TT_NCCL_RING, proto);
            TtNcclStepCost step = tt_nccl_step_cost(tt_nccl_costs_built_in()->value, &tt_no_effects,
                                                    &s.machine, &call.choice, 8);
            double P = s.machine.n_ranks, M = s.machine.n_nodes;
            double want = with_start_us(
                &s, &call, (2 * (P - 1) - 2 * M) * step.hop_us + 2 * M * step.hop_net_us);
            double got = flow_us(&s, &call, FALSE);

            CHECK(fabs(got / want - 1) < 0.03, "%s, %s: %.2f us, wanted %.2f", topologies[t],
                  tt_nccl_proto_name(proto), got, want);
        }
        setup_clear(&s);
    }
}

/* Up and down: a chain, ceil(log2 M) hops between nodes; where trees are balanced, a child's message goes in at
 * the second GPU of the chain on all levels but the root's. */
static void
trees_have_their_depth(void)
{
    static const struct {
        const char *topology;
        guint levels, more; /* between nodes; inside on the way, one way */
    } rows[] = { { "dgx-h100:2", 1, 0 }, { "dgx-h100:3", 2, 0 }, { "dgx-h100:16", 4, 0 },
                 { "dgx-a100:2", 1, 0 }, { "dgx-a100:8", 3, 2 }, { "dgx-a100:6", 3, 2 } };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtNcclStepCost step;
        TtNcclCall call;
        double want, got;
        Setup s;

        if (!setup_open(&s, rows[r].topology, NULL, TT_NCCL_ALLREDUCE))
            continue;
        call = forced(&s, 16, TT_NCCL_TREE, TT_NCCL_LL);
        step = tt_nccl_step_cost(tt_nccl_costs_built_in()->value, &tt_no_effects, &s.machine,
                                 &call.choice, 16);
        want = with_start_us(&s, &call,
                             2 * (s.machine.ranks_per_node - 1 + rows[r].more) * step.hop_us +
                                 2 * rows[r].levels * step.hop_net_us);
        got = flow_us(&s, &call, FALSE);
        CHECK(fabs(got / want - 1) < 0.03, "%s: %.2f us, wanted %.2f", rows[r].topology, got, want);
        setup_clear(&s);
    }
}

/* --- what only the simulator knows -------------------------------------------------------------- */

static double
time_with(const char *text, const char *setting, guint64 bytes, TtNcclAlgo algo)
{
    const char *settings[] = { setting, NULL };
    double us = NAN;
    Setup s;

    if (setup_open(&s, text, setting ? settings : NULL, TT_NCCL_ALLREDUCE)) {
        TtNcclCall call = forced(&s, bytes, algo, TT_NCCL_SIMPLE);

        us = flow_us(&s, &call, FALSE);
    }
    setup_clear(&s);
    return us;
}

static void
fabrics_and_nics_count(void)
{
    double full = time_with("dgx-h100:64", NULL, GIB, TT_NCCL_NVLS_TREE);
    double few_uplinks =
        time_with("dgx-h100:64", "fabric.oversubscription=64", GIB, TT_NCCL_NVLS_TREE);
    double all_nics = time_with("dgx-h100:4", NULL, GIB, TT_NCCL_RING);
    double half = time_with("dgx-h100:4", "node.nics=4", GIB, TT_NCCL_RING);

    CHECK(few_uplinks > 1.1 * full, "oversubscribed %.0f us, else %.0f", few_uplinks, full);
    CHECK(half > 1.4 * all_nics && half < 2.1 * all_nics, "4 NICs %.0f us, 8 %.0f", half, all_nics);
}

/* A NIC at a quarter of its speed: NCCL does without it if it knows, and waits for it if not. */
static void
slow_nics_are_avoided_or_waited_for(void)
{
    static const TtNcclAlgo algos[] = { TT_NCCL_RING, TT_NCCL_NVLS_TREE };

    for (guint i = 0; i < G_N_ELEMENTS(algos); i++) {
        double healthy = time_with("dgx-h100:4", NULL, GIB, algos[i]);
        double known = time_with("dgx-h100:4", "nic.slower=3: 100 Gbit/s", GIB, algos[i]);
        double unknown = time_with("dgx-h100:4", "nic.degraded=3: 100 Gbit/s", GIB, algos[i]);

        CHECK(known > healthy && known < 8.0 / 7 * 1.1 * healthy, "%s: known %.0f us, healthy %.0f",
              tt_nccl_algo_name(algos[i]), known, healthy);
        CHECK(unknown > 2.5 * healthy && unknown < 4.2 * healthy,
              "%s: unknown %.0f us, healthy %.0f", tt_nccl_algo_name(algos[i]), unknown, healthy);
    }
}

/* Two GPUs with a NIC each, and what NIC 1's part of the file says instead. "DIR/nics.xml:2"; the directory is the
 * caller's. */
static char *
write_two_nics(const char *dir, const char *from, const char *to)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "tests/data/nccl_two_nics.xml", NULL);
    g_autofree char *text = NULL, *changed = g_build_filename(dir, "nics.xml", NULL);
    g_autoptr(GString) edited = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    char *second;

    if (g_file_get_contents(path, &text, NULL, &error)) {
        second = strstr(text, "0000:22:00.0");
        g_string_append_len(edited, text, second - text);
        if (strstr(second, from)) {
            g_string_append_len(edited, second, strstr(second, from) - second);
            g_string_append_printf(edited, "%s%s", to, strstr(second, from) + strlen(from));
        }
        g_file_set_contents(changed, edited->str, -1, &error);
    }
    CHECK_NO_ERROR(error);
    return g_strdup_printf("%s:2", changed);
}

/* NICs of two speeds are both NCCL's to use, whatever our own routes would do; the bound has the sum of them. */
static void
bounds_sum_unequal_nics(void)
{
    static const struct {
        const char *from, *to;
        double gbytes_per_s; /* of NIC 1 */
    } rows[] = {
        { "200000", "200000", 25 * 0.97 },
        { "200000", "100000", 12.5 * 0.97 },
        { "32.0 GT/s PCIe\" link_width=\"16", "8.0 GT/s PCIe\" link_width=\"8", 7.877 * 0.762 },
    };
    g_autofree char *dir = g_dir_make_tmp("tutti-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "nics.xml", NULL);

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autofree char *text = write_two_nics(dir, rows[r].from, rows[r].to);
        Setup s;

        if (!setup_open(&s, text, NULL, TT_NCCL_ALLREDUCE))
            continue;
        for (guint64 bytes = 8; bytes <= GIB; bytes *= 2048)
            for (guint pair = 0; pair < TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS; pair++) {
                guint algo = pair / TT_NCCL_N_PROTOS, proto = pair % TT_NCCL_N_PROTOS;
                TtNcclPlace place = place_of(&s);
                g_autoptr(TtPlan) plan = NULL;
                TtNcclCall call;
                double least_us;

                if (!s.table.cell[algo][proto].enabled)
                    continue;
                call = forced(&s, bytes, algo, proto);
                plan = tt_nccl_plan(s.comm, &call, NULL);
                least_us = tt_nccl_bound_ps(&place, &call, plan, NULL) / 1e6;
                CHECK(flow_us(&s, &call, FALSE) >= least_us, "row %u, %lu B: under %.1f us", r,
                      (gulong)bytes, least_us);
                if (bytes > GIB / 2048) /* two nodes: each must send all of it */
                    CHECK(fabs(least_us * 1e-6 * (24.25 + rows[r].gbytes_per_s) * 1e9 / bytes - 1) <
                              1e-3,
                          "row %u: %.1f us", r, least_us);
            }
        setup_clear(&s);
    }
    g_unlink(file);
    g_rmdir(dir);
}

/* Folded, leapt over, like channels as one: the same as every rank and channel by itself. */
static void
short_cuts_change_nothing(void)
{
    static const char *const topologies[] = { "dgx-h100:1", "dgx-h100:2", "dgx-a100:3",
                                              "gh200-4:4" };

    for (guint t = 0; t < G_N_ELEMENTS(topologies); t++) {
        Setup s;

        if (!setup_open(&s, topologies[t], NULL, TT_NCCL_ALLREDUCE))
            continue;
        for (guint64 bytes = 64; bytes <= 256 * MIB; bytes *= 64) {
            TtNcclCall call = chosen(&s, bytes);
            double quick = flow_us(&s, &call, FALSE), whole = flow_us(&s, &call, TRUE);

            CHECK(fabs(quick / whole - 1) < 2e-3, "%s, %lu B: %.3f us, in full %.3f", topologies[t],
                  (gulong)bytes, quick, whole);
        }
        setup_clear(&s);
    }
}

/* Trees whose connections pace them are told from 16 rounds: within a hundredth of all rounds. */
static void
few_rounds_tell_of_many(void)
{
    static const struct {
        const char *topology;
        guint64 bytes;
        TtNcclProto proto;
    } rows[] = { { "dgx-a100:3", 256 * MIB, TT_NCCL_LL128 },
                 { "dgx-a100:4", 512 * MIB, TT_NCCL_SIMPLE },
                 { "dgx1-v100:4", 64 * MIB, TT_NCCL_LL128 },
                 { "dgx1-v100:4", 512 * MIB, TT_NCCL_SIMPLE },
                 { "gh200-4:8", 512 * MIB, TT_NCCL_SIMPLE } };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtNcclCall call;
        Setup s;

        if (!setup_open(&s, rows[r].topology, NULL, TT_NCCL_ALLREDUCE))
            continue;
        call = forced(&s, rows[r].bytes, TT_NCCL_TREE, rows[r].proto);
        double quick = flow_us(&s, &call, FALSE), whole = flow_us(&s, &call, TRUE);

        if (g_getenv("TT_SHOW"))
            printf("%s: %.2f us, in full %.2f (%+.3f %%)\n", rows[r].topology, quick, whole,
                   100 * (quick / whole - 1));
        CHECK(fabs(quick / whole - 1) < 1e-2, "%s, %lu B: %.3f us, in full %.3f", rows[r].topology,
              (gulong)rows[r].bytes, quick, whole);
        setup_clear(&s);
    }
}

/* --- plans --------------------------------------------------------------------------------------- */

static void
check_plan(const Setup *s, const TtNcclCall *call, const char *topology)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_nccl_plan(s->comm, call, &error);

    CHECK_NO_ERROR(error);
    if (!plan)
        return;
    CHECK(plan->spec.n_channels == call->choice.used_channels, "%s: %u channels", topology,
          plan->spec.n_channels);
    CHECK(plan->n_rounds <= call->choice.n_loops, "%s, %s: %lu rounds, %u loops", topology,
          plan->name, (gulong)plan->n_rounds, call->choice.n_loops);
    tt_verify(plan, FALSE, NULL, &error);
    CHECK_NO_ERROR(error);
}

/* Every pair that is on, every collective: right, and shaped as NCCL shapes it. */
static void
plans_are_right(void)
{
    static const char *const topologies[] = { "dgx-h100:1", "dgx-h100:3", "dgx1-v100:2",
                                              "gh200-4:2" };

    for (guint t = 0; t < G_N_ELEMENTS(topologies); t++)
        for (guint func = 0; func < TT_NCCL_N_FUNCS; func++) {
            Setup s;

            if (!setup_open(&s, topologies[t], NULL, func))
                continue;
            for (guint pair = 0; pair < TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS; pair++)
                for (guint64 bytes = 96; bytes <= 96 * MIB; bytes *= 1024) {
                    guint algo = pair / TT_NCCL_N_PROTOS, proto = pair % TT_NCCL_N_PROTOS;

                    if (s.table.cell[algo][proto].enabled) {
                        TtNcclCall call = forced(&s, bytes, algo, proto);

                        check_plan(&s, &call, topologies[t]);
                    }
                }
            setup_clear(&s);
        }
}

/* What NCCL cannot have a plan for is refused in words. */
static void
what_has_no_plan_is_refused(void)
{
    g_autoptr(GError) error = NULL;
    TtNcclCall call;
    Setup s;

    if (!setup_open(&s, "dgx-h100:2", NULL, TT_NCCL_ALLGATHER))
        return;
    call = forced(&s, MIB, TT_NCCL_NVLS, TT_NCCL_SIMPLE);
    CU_ASSERT_PTR_NULL(tt_nccl_plan(s.comm, &call, &error));
    CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "across groups");
    setup_clear(&s);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "close to the closed form", close_to_the_closed_form },
        { "a ring crosses nodes twice a lap", a_ring_crosses_twice_as_often_as_there_are_nodes },
        { "trees have their depth", trees_have_their_depth },
        { "fabrics and NICs count", fabrics_and_nics_count },
        { "slow NICs", slow_nics_are_avoided_or_waited_for },
        { "bounds sum unequal NICs", bounds_sum_unequal_nics },
        { "short cuts change nothing", short_cuts_change_nothing },
        { "few rounds tell of many", few_rounds_tell_of_many },
        { "plans are right", plans_are_right },
        { "what has no plan is refused", what_has_no_plan_is_refused },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_flow", tests);
}
