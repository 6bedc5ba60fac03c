/* Fair shares worked out by hand, and the property that defines them on random networks. */
#include "sim/maxmin.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* Rows list, per flow, the links it crosses; -1 ends a flow, -2 the list. */
static const struct {
    const char *name;
    guint32 n_links;
    double capacity[4];
    int crossings[24];
    double want[8];
} rows[] = {
    { "alone: the narrowest link", 2, { 10, 4 }, { 0, 1, -1, -2 }, { 4 } },
    { "two on one link: halves", 1, { 10 }, { 0, -1, 0, -1, -2 }, { 5, 5 } },
    /* link 0 fills at 10/2 = 5 and freezes flows 0, 1; link 1 then has 20 - 5 for flow 2 */
    { "what one cannot use, another gets",
      2,
      { 10, 20 },
      { 0, -1, 0, 1, -1, 1, -1, -2 },
      { 5, 5, 15 } },
    /* the parking lot: a long flow over both links of 10, a short one on each */
    { "three flows over two links: 5, 5, 5",
      2,
      { 10, 10 },
      { 0, 1, -1, 0, -1, 1, -1, -2 },
      { 5, 5, 5 } },
    /* link 1 (capacity 3, flows 1, 2, 3) fills at 1; link 0 has 10 - 1 = 9 left for flow 0 */
    { "the narrow link freezes first",
      2,
      { 10, 3 },
      { 0, -1, 0, 1, -1, 1, -1, 1, -1, -2 },
      { 9, 1, 1, 1 } },
    /* three levels: link 0 fills at 1 (2/2: flows 0 1), link 1 at (9-1)/2 = 4 (flows 2 3),
     * link 2 at 20-4 = 16 (flow 4) */
    { "levels follow from levels",
      3,
      { 2, 9, 20 },
      { 0, -1, 0, 1, -1, 1, -1, 1, 2, -1, 2, -1, -2 },
      { 1, 1, 4, 4, 16 } },
    { "no link: no limit", 1, { 10 }, { -1, 0, -1, -2 }, { INFINITY, 10 } },
    { "an infinite link never fills",
      2,
      { INFINITY, 6 },
      { 0, -1, 0, 1, -1, -2 },
      { INFINITY, 6 } },
};

static void
shares_are_those_worked_out(void)
{
    g_autoptr(TtMaxmin) solver = tt_maxmin_new();

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        guint32 first[9] = { 0 }, link[24], n_flows = 0, n = 0;
        double rate[8];

        for (const int *c = rows[r].crossings; *c != -2; c++) {
            if (*c == -1)
                first[++n_flows] = n;
            else
                link[n++] = (guint32)*c;
        }
        TtFlowRoutes routes = { n_flows, first, link };

        tt_maxmin_share(solver, rows[r].n_links, rows[r].capacity, &routes, rate, NULL);
        for (guint32 f = 0; f < n_flows; f++)
            CHECK(rate[f] == rows[r].want[f] || fabs(rate[f] - rows[r].want[f]) < 1e-12,
                  "%s: flow %u gets %g, not %g", rows[r].name, f, rate[f], rows[r].want[f]);
    }
}

#define MAX_LINKS 40
#define MAX_FLOWS 120

typedef struct {
    guint32 n_links, n_flows, first[MAX_FLOWS + 1], link[MAX_FLOWS * 4];
    double capacity[MAX_LINKS], rate[MAX_FLOWS];
    guint32 limit[MAX_FLOWS];
} Case;

static void
make_case(Case *c, GRand *random)
{
    guint32 n = 0;

    c->n_links = (guint32)g_rand_int_range(random, 1, MAX_LINKS);
    c->n_flows = (guint32)g_rand_int_range(random, 1, MAX_FLOWS);
    for (guint32 l = 0; l < c->n_links; l++) /* few different values, so that levels tie */
        c->capacity[l] =
            1e9 * g_rand_int_range(random, 1, 5) * (g_rand_boolean(random) ? 1 : 1.0 / 3);
    for (guint32 f = 0; f < c->n_flows; f++) {
        c->first[f] = n;
        for (int i = g_rand_int_range(random, 1, 5); i > 0; i--) {
            guint32 l = (guint32)g_rand_int_range(random, 0, (gint32)c->n_links);
            gboolean known = FALSE;

            for (guint32 k = c->first[f]; k < n; k++)
                known |= c->link[k] == l;
            if (!known)
                c->link[n++] = l;
        }
    }
    c->first[c->n_flows] = n;
}

/* The definition: no link is over its capacity, and every flow crosses a full link on which nobody
 * is faster than it. */
static void
check_fair(const Case *c, guint32 seed)
{
    double load[MAX_LINKS] = { 0 }, fastest[MAX_LINKS] = { 0 };

    for (guint32 f = 0; f < c->n_flows; f++)
        for (guint32 k = c->first[f]; k < c->first[f + 1]; k++) {
            load[c->link[k]] += c->rate[f];
            fastest[c->link[k]] = MAX(fastest[c->link[k]], c->rate[f]);
        }
    for (guint32 l = 0; l < c->n_links; l++)
        CHECK(load[l] <= c->capacity[l] * (1 + 1e-9), "seed %u: link %u carries %g of %g", seed, l,
              load[l], c->capacity[l]);
    for (guint32 f = 0; f < c->n_flows; f++) {
        gboolean limited = FALSE;

        for (guint32 k = c->first[f]; k < c->first[f + 1]; k++) {
            guint32 l = c->link[k];

            limited |= l == c->limit[f] && load[l] >= c->capacity[l] * (1 - 1e-9) &&
                       c->rate[f] >= fastest[l] * (1 - 1e-9);
        }
        CHECK(limited, "seed %u: nothing limits flow %u to %g", seed, f, c->rate[f]);
    }
}

static void
random_networks_are_fair(void)
{
    guint32 seed = g_random_int();
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autoptr(TtMaxmin) solver = tt_maxmin_new();
    Case c;

    for (guint i = 0; i < 500; i++) {
        TtFlowRoutes routes = { 0, c.first, c.link };

        make_case(&c, random);
        routes.n_flows = c.n_flows;
        tt_maxmin_share(solver, c.n_links, c.capacity, &routes, c.rate, c.limit);
        check_fair(&c, seed);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "shares are those worked out", shares_are_those_worked_out },
                            { "random networks are fair", random_networks_are_fair },
                            CU_TEST_INFO_NULL };

    return check_main("max-min", tests);
}
