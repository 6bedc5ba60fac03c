/* The tuning model against NCCL's own figures: every latency, bandwidth, choice and time of
 * tests/data/nccl-golden.tsv. The graphs come from the same file, so the search is not tested here. */
#include "tests/golden_nccl.h"

#include <math.h>

#define TOLERANCE 0.002 /* the printed precision of bandwidths and times */

static gboolean
near(double got, double want)
{
    return fabs(got - want) <= TOLERANCE * fabs(want);
}

/* --- golden rows ------------------------------------------------------------------------------- */

typedef struct {
    TtNcclComm comm;
    TtNcclTable table[TT_NCCL_N_FUNCS];
    guint n_enabled, n_listed; /* cells we have on, cells the file lists */
    guint cells, choices, sizes, off;
} Golden;

static void
begin(Golden *g)
{
    g->n_enabled = g->n_listed = 0;
    for (guint f = 0; f < TT_NCCL_N_FUNCS; f++) {
        GError *error = NULL;

        CHECK(tt_nccl_table(&g->comm, f, NULL, &g->table[f], &error), "%s", error->message);
        for (guint a = 0; a < TT_NCCL_N_ALGOS; a++)
            for (guint p = 0; p < TT_NCCL_N_PROTOS; p++)
                g->n_enabled += g->table[f].cell[a][p].enabled;
    }
}

static void
check_cell(Golden *g, char **row)
{
    guint func = golden_name(tt_nccl_func_name, TT_NCCL_N_FUNCS, row[5]);
    guint algo = golden_name(tt_nccl_algo_name, TT_NCCL_N_ALGOS, row[6]);
    guint proto = golden_name(tt_nccl_proto_name, TT_NCCL_N_PROTOS, row[7]);
    const TtNcclCell *cell = &g->table[func].cell[algo][proto];
    gboolean good = cell->enabled && near(cell->latency_us, g_ascii_strtod(row[8], NULL)) &&
                    near(cell->bw_gbps, g_ascii_strtod(row[9], NULL));

    g->n_listed++;
    g->cells += good;
    g->off += !good;
    if (!good && g->off < 20)
        fprintf(stderr, "%s %s %s x %s %s %s %s: %g / %g, want %s / %s (%s)\n", row[1], row[2],
                row[3], row[4], row[5], row[6], row[7], cell->latency_us, cell->bw_gbps, row[8],
                row[9], cell->why_not ? cell->why_not : "on");
}

/* The row's pair holds from its size up to the next row's of the collective, or to 2^34; the time is that
 * of the first. */
static void
check_choice(Golden *g, char **row, char **next)
{
    guint func = golden_name(tt_nccl_func_name, TT_NCCL_N_FUNCS, row[5]);
    guint first = (guint)atoi(row[6]), last = 34;
    gboolean good = TRUE;

    if (next && next[0][0] == 'S' && strcmp(next[5], row[5]) == 0)
        last = (guint)atoi(next[6]) - 1;
    for (guint k = first; k <= last; k++) {
        TtNcclOp op = float_sum(func, G_GUINT64_CONSTANT(1) << k);
        TtNcclChoice choice = { 0 };
        gboolean same = tt_nccl_choose(&g->comm, &g->table[func], NULL, &op, &choice, NULL) &&
                        strcmp(tt_nccl_algo_name(choice.algo), row[7]) == 0 &&
                        strcmp(tt_nccl_proto_name(choice.proto), row[8]) == 0 &&
                        (k > first || near(choice.time_us, g_ascii_strtod(row[9], NULL)));

        g->sizes += same;
        good = good && same;
        if (!same && g->off < 20)
            fprintf(stderr, "%s %s %s x %s %s 2^%u: %s %s %.3f, want %s %s %s from 2^%u\n", row[1],
                    row[2], row[3], row[4], row[5], k, tt_nccl_algo_name(choice.algo),
                    tt_nccl_proto_name(choice.proto), choice.time_us, row[7], row[8], row[9],
                    first);
    }
    g->choices += good;
    g->off += !good;
}

static void
test_golden(void)
{
    g_autoptr(GPtrArray) rows = golden_lines();
    Golden g = { 0 };
    guint systems = 0, i = 0;

    while (i < rows->len) {
        char **row = rows->pdata[i], **next = i + 1 < rows->len ? rows->pdata[i + 1] : NULL;

        if (row[0][0] == 'Y') {
            CHECK(g.n_enabled == g.n_listed, "%u cells on before row %u, %u listed", g.n_enabled, i,
                  g.n_listed);
            i = golden_comm(rows, i, &g.comm);
            begin(&g);
            systems++;
            continue;
        }
        if (row[0][0] == 'T')
            check_cell(&g, row);
        else
            check_choice(&g, row, next);
        i++;
    }
    fprintf(stderr, "golden: %u systems, %u of 6784 cells, %u of 5481 choices (%u sizes)\n",
            systems, g.cells, g.choices, g.sizes);
    CHECK(g.cells == 6784, "%u cells", g.cells);
    CHECK(g.choices == 5481, "%u choices", g.choices);
    CHECK(g.off == 0, "%u rows off", g.off);
    CHECK(g.sizes == systems * TT_NCCL_N_FUNCS * 32, "%u sizes", g.sizes);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "golden rows", test_golden },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_tuner", tests);
}
