/* Constants of NCCL's time: names, text form, refusals; and fitting them on rows whose truth is known. */
#include "models/nccl_fit.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

static void
names(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < TT_N_COSTS; i++) {
        char *name = tt_cost_name(i);

        CHECK(tt_cost_prior(i) > 0 && tt_cost_sigma(i) > 0, "%s", name);
        CHECK(!g_hash_table_contains(seen, name), "%s twice", name);
        g_hash_table_add(seen, name);
    }
}

static void
text(void)
{
    const TtNcclCosts *built_in = tt_nccl_costs_built_in();
    g_autofree char *once = tt_nccl_costs_to_text(built_in), *twice = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(TtNcclCosts) read = tt_nccl_costs_parse("again", once, &error);

    CHECK_NO_ERROR(error);
    twice = tt_nccl_costs_to_text(read);
    CHECK(!strcmp(once, twice), "a constant changed on the way through text");
    for (guint i = 0; i < TT_N_COSTS; i++) {
        g_autofree char *name = tt_cost_name(i);

        CHECK(built_in->low[i] <= built_in->value[i] && built_in->value[i] <= built_in->high[i],
              "%s is outside its interval", name);
        CHECK(built_in->from[i] && (built_in->high[i] > built_in->low[i]
                                        ? strstr(built_in->from[i], " rows of ") != NULL
                                        : g_str_has_prefix(built_in->from[i], "prior")),
              "%s does not say where it is from", name);
        CHECK(built_in->high[i] > built_in->low[i] ||
                  fabs(built_in->value[i] / tt_cost_prior(i) - 1) < 0.05,
              "%s has moved, and hardly a measurement depends on it", name);
    }
}

static void
refusals(void)
{
    static const struct {
        const char *name, *text, *words;
    } rows[] = {
        { "nothing", "", "no [nccl-constants]" },
        { "not an .ini", "start = 5 us", "x: file: " },
        { "unknown name", "[nccl-constants]\nstrat = 5 us", "x: strat: no such constant" },
        { "no figure", "[nccl-constants]\nstart = us", "must be a number above 0" },
        { "negative", "[nccl-constants]\nstart = -5 us", "must be a number above 0" },
        { "not finite", "[nccl-constants]\nstart = inf us", "must be a number above 0" },
        { "no unit", "[nccl-constants]\nstart = 5", "the unit must be \"us\"" },
        { "other unit", "[nccl-constants]\nstart = 5 ms", "not \"ms\"" },
        { "unit where none is", "[nccl-constants]\nnvls.share = 0.7 us", "the unit must be \"\"" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;

        CHECK_ROW(&rows[i], !tt_nccl_costs_parse("x", rows[i].text, &error));
        CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_FILE, rows[i].words);
    }
    CHECK(!tt_nccl_costs_load("/", NULL), "a folder");
    CHECK(!tt_nccl_costs_load("/no/such/file", NULL), "no file");
}

enum { N_SITES = 12, N_SIZES = 20, N_ROWS = N_SITES * N_SIZES };

/* Machines of 4 to 8 GPUs, half of them on two nodes; sizes 1 KiB ... 512 MiB; Ring by LL and Simple. */
static void
make_rows(TtFitRow *rows, TtNcclMachine *machines, const double *truth, double odd)
{
    for (guint s = 0; s < N_SITES; s++) {
        guint nodes = s % 2 + 1, per_node = s % 3 ? 8 : 4;
        TtMachineEffects effects = tt_no_effects;

        machines[s] = (TtNcclMachine){ .n_ranks = nodes * per_node,
                                       .n_nodes = nodes,
                                       .ranks_per_node = per_node,
                                       .gen = TT_GEN_AMPERE,
                                       .way = TT_WAY_NVLINK,
                                       .nvlink_gbps = 300,
                                       .pcie_gbps = 24,
                                       .nic = TT_NIC_IB,
                                       .nics_gbps = 100 };
        if (s == N_SITES - 1) /* the last machine's network is odd */
            effects.nics = odd;
        for (guint k = 0; k < N_SIZES; k++) {
            TtFitRow *r = &rows[s * N_SIZES + k];
            guint64 bytes = 1024ull << k;
            gboolean small = k < 10;

            *r = (TtFitRow){ .site = s, .machine = &machines[s] };
            r->op = (TtNcclOp){ .func = TT_NCCL_ALLREDUCE, .bytes = bytes, .type_bytes = 4 };
            r->choice = (TtNcclChoice){ .algo = TT_NCCL_RING,
                                        .proto = small ? TT_NCCL_LL : TT_NCCL_SIMPLE,
                                        .used_channels = 16,
                                        .channel_bytes = bytes / 16,
                                        .chunk_bytes = small ? 32768 : 2 << 20 };
            r->measured_us = tt_nccl_model_us(truth, &effects, r->machine, &r->op, &r->choice);
        }
    }
}

static void
fitting(void)
{
    g_autoptr(TtNcclCosts) truth = tt_nccl_costs_new();
    g_autoptr(TtNcclCosts) fitted = tt_nccl_costs_new();
    g_autoptr(TtNcclCosts) again = tt_nccl_costs_new();
    g_autofree TtFitRow *rows = g_new0(TtFitRow, N_ROWS);
    TtNcclMachine machines[N_SITES];
    guint hop = tt_cost_proto(TT_COST_HOP_NVLINK, TT_NCCL_LL);
    guint net = tt_cost_proto(TT_COST_HOP_NET, TT_NCCL_LL);
    g_autoptr(GError) error = NULL;
    double worst = 0;

    truth->value[hop] *= 1.5;
    truth->value[net] *= 0.6;
    truth->value[tt_cost_nic_share(TT_NIC_IB)] = 0.85;
    make_rows(rows, machines, truth->value, 0.7);
    if (!tt_nccl_fit(fitted, rows, N_ROWS, N_SITES, &error)) {
        CHECK(error && strstr(error->message, "GSL"), "built without: it says so");
        return;
    }
    for (guint i = 0; i < N_ROWS - N_SIZES; i++) {
        const TtFitRow *r = &rows[i];
        double us = tt_nccl_model_us(fitted->value, &tt_no_effects, r->machine, &r->op, &r->choice);

        worst = MAX(worst, fabs(us / r->measured_us - 1));
    }
    CHECK(worst < 0.06, "%.1f %% off on rows without noise", 100 * worst);
    CHECK(fitted->low[hop] < fitted->value[hop] && fitted->value[hop] < fitted->high[hop],
          "an interval");
    CHECK(fabs(fitted->value[tt_cost_nic_share(TT_NIC_IB)] / 0.85 - 1) < 0.05,
          "one odd machine does not bend what is common: %g",
          fitted->value[tt_cost_nic_share(TT_NIC_IB)]);
    CHECK(tt_nccl_fit(again, rows, N_ROWS, N_SITES, NULL) &&
              !memcmp(again->value, fitted->value, sizeof again->value),
          "the same rows give the same constants");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "names", names },
                            { "text and back", text },
                            { "bad text", refusals },
                            { "fitting finds the truth", fitting },
                            CU_TEST_INFO_NULL };

    return check_main("nccl_costs", tests);
}
