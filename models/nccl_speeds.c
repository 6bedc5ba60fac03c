/* nccl_speeds - speedArray* of NCCL's src/graph/search.cc, as they changed. */
#include "models/nccl_speeds.h"

#define V TT_NCCL_VERSION

static const double intra[] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 };
static const double inter[] = { 48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                7,  6,  5,  4,  3,  2.4, 1.2, .24, .12 };

static const double hopper_intra_2_18[] = { 60, 40, 30, 24, 20, 15, 12, 6, 3 };
static const double hopper_intra_2_19[] = { 60, 50, 40, 30, 24, 20, 15, 12, 6, 3 };
static const double hopper_intra[] = { 60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3 };
static const double hopper_inter_2_18[] = { 48, 45, 42, 40, 30,  24,  20,  17.5,
                                            15, 12, 6,  3,  2.4, 1.2, .24, .12 };
static const double hopper_inter[] = { 48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                       15, 12, 6,  3,  2.4, 1.2, .24, .12 };

static const double blackwell_intra_2_25[] = { 90, 80, 70, 60, 50, 40, 30, 24, 20, 19 };
static const double blackwell_intra_2_27[] = { 90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18 };
static const double blackwell_intra[] = { 90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18 };
static const double blackwell_inter_2_27[] = { 96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                               17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12 };
static const double blackwell_inter[] = { 96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                          20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12 };

/* The last row that fits counts. */
static const struct {
    gboolean inter;
    guint cc, since;
    const double *speeds;
    guint n;
} tables[] = {
#define ROW(inter_, cc_, since_, table)                                                            \
    {                                                                                              \
        inter_, cc_, since_, table, G_N_ELEMENTS(table)                                            \
    }
    ROW(FALSE, 0, 0, intra),
    ROW(TRUE, 0, 0, inter),
    ROW(FALSE, 90, 0, hopper_intra_2_18),
    ROW(FALSE, 90, V(2, 19, 0), hopper_intra_2_19),
    ROW(FALSE, 90, V(2, 20, 0), hopper_intra),
    ROW(TRUE, 90, 0, hopper_inter_2_18),
    ROW(TRUE, 90, V(2, 19, 0), hopper_inter),
    ROW(FALSE, 100, V(2, 25, 0), blackwell_intra_2_25),
    ROW(FALSE, 100, V(2, 27, 0), blackwell_intra_2_27),
    ROW(FALSE, 100, V(2, 29, 0), blackwell_intra),
    ROW(TRUE, 100, V(2, 27, 0), blackwell_inter_2_27),
    ROW(TRUE, 100, V(2, 29, 0), blackwell_inter),
#undef ROW
};

const double *
tt_nccl_speeds(guint version, guint min_cc, gboolean between_nodes, guint *n)
{
    const double *speeds = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        if (tables[i].inter == between_nodes && tables[i].cc <= min_cc &&
            tables[i].since <= version) {
            speeds = tables[i].speeds;
            *n = tables[i].n;
        }
    return speeds;
}
