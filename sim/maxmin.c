#include "sim/maxmin.h"

#include <math.h>

/* Levels this close are one level: symmetric flows then get the same rate to the last bit, whatever
 * the order in which rounding errors piled up. */
#define SAME_LEVEL 1e-12

/* A link waiting to fill, by the rate at which it would. Levels only rise while others freeze, so a
 * key that has become too low is corrected when it comes to the top. */
typedef struct {
    double level;
    guint32 link;
} Filling;

struct TtMaxmin {
    guint32 links_room, flows_room, crossings_room;
    double *left;      /* [link] capacity not taken by frozen flows */
    guint32 *n_rising; /* [link] shares of flows not frozen */
    guint32 *first;    /* [link + 1] into crossing */
    guint32 *crossing; /* flows by link */
    Filling *heap;     /* [link] binary, smallest level on top */
    guint8 *frozen;    /* [flow] */
    guint32 heap_n;
};

TtMaxmin *
tt_maxmin_new(void)
{
    return g_new0(TtMaxmin, 1);
}

void
tt_maxmin_free(TtMaxmin *self)
{
    if (!self)
        return;
    g_free(self->left);
    g_free(self->n_rising);
    g_free(self->first);
    g_free(self->crossing);
    g_free(self->heap);
    g_free(self->frozen);
    g_free(self);
}

static void
make_room(TtMaxmin *self, guint32 n_links, guint32 n_flows, guint32 n_crossings)
{
    if (n_links + 1 > self->links_room) {
        self->links_room = 2 * n_links + 1;
        self->left = g_renew(double, self->left, self->links_room);
        self->n_rising = g_renew(guint32, self->n_rising, self->links_room);
        self->first = g_renew(guint32, self->first, self->links_room + 1);
        self->heap = g_renew(Filling, self->heap, self->links_room);
    }
    if (n_flows > self->flows_room) {
        self->flows_room = 2 * n_flows;
        self->frozen = g_renew(guint8, self->frozen, self->flows_room);
    }
    if (n_crossings > self->crossings_room) {
        self->crossings_room = 2 * n_crossings;
        self->crossing = g_renew(guint32, self->crossing, self->crossings_room);
    }
}

/* Lists the flows of every link, by counting. */
static void
transpose(TtMaxmin *self, guint32 n_links, const double *capacity, const TtFlowRoutes *routes)
{
    guint32 n_crossings = routes->first[routes->n_flows], sum = 0;

    for (guint32 l = 0; l < n_links; l++) {
        self->n_rising[l] = 0;
        self->left[l] = capacity[l];
    }
    for (guint32 c = 0; c < n_crossings; c++) {
        g_assert(routes->link[c] < n_links);
        self->n_rising[routes->link[c]]++;
    }
    for (guint32 l = 0; l < n_links; l++) {
        self->first[l] = sum;
        sum += self->n_rising[l];
    }
    for (guint32 c = 0; routes->weight && c < n_crossings; c++)
        self->n_rising[routes->link[c]] += routes->weight[c] - 1;
    for (guint32 f = 0; f < routes->n_flows; f++) {
        self->frozen[f] = FALSE;
        for (guint32 c = routes->first[f]; c < routes->first[f + 1]; c++)
            self->crossing[self->first[routes->link[c]]++] = f;
    }
    for (guint32 l = n_links; l > 0; l--) /* the loop above moved each start to its end */
        self->first[l] = self->first[l - 1];
    self->first[0] = 0;
}

static void
sift_down(TtMaxmin *self, guint32 i)
{
    Filling moving = self->heap[i];

    for (;;) {
        guint32 child = 2 * i + 1;

        if (child >= self->heap_n)
            break;
        if (child + 1 < self->heap_n && self->heap[child + 1].level < self->heap[child].level)
            child++;
        if (self->heap[child].level >= moving.level)
            break;
        self->heap[i] = self->heap[child];
        i = child;
    }
    self->heap[i] = moving;
}

static void
build_heap(TtMaxmin *self, guint32 n_links)
{
    self->heap_n = 0;
    for (guint32 l = 0; l < n_links; l++)
        if (self->n_rising[l] > 0 && !isinf(self->left[l]))
            self->heap[self->heap_n++] = (Filling){ self->left[l] / self->n_rising[l], l };
    for (guint32 i = self->heap_n / 2; i-- > 0;)
        sift_down(self, i);
}

static void
drop_top(TtMaxmin *self)
{
    self->heap[0] = self->heap[--self->heap_n];
    if (self->heap_n > 0)
        sift_down(self, 0);
}

static void
freeze_flows(TtMaxmin *self, guint32 link, double level, const TtFlowRoutes *routes, double *rate,
             guint32 *limit)
{
    for (guint32 i = self->first[link]; i < self->first[link + 1]; i++) {
        guint32 f = self->crossing[i];

        if (self->frozen[f])
            continue;
        self->frozen[f] = TRUE;
        rate[f] = level;
        if (limit)
            limit[f] = link;
        for (guint32 c = routes->first[f]; c < routes->first[f + 1]; c++) {
            guint32 weight = routes->weight ? routes->weight[c] : 1;

            self->left[routes->link[c]] -= level * weight;
            self->n_rising[routes->link[c]] -= weight;
        }
    }
}

void
tt_maxmin_share(TtMaxmin *self, guint32 n_links, const double *capacity, const TtFlowRoutes *routes,
                double *rate, guint32 *limit)
{
    double level = 0;

    make_room(self, n_links, routes->n_flows, routes->first[routes->n_flows]);
    transpose(self, n_links, capacity, routes);
    build_heap(self, n_links);
    for (guint32 f = 0; f < routes->n_flows; f++) {
        rate[f] = INFINITY;
        if (limit)
            limit[f] = G_MAXUINT32;
    }

    while (self->heap_n > 0) {
        guint32 link = self->heap[0].link;
        double fills_at;

        if (self->n_rising[link] == 0) {
            drop_top(self);
            continue;
        }
        fills_at = self->left[link] / self->n_rising[link];
        if (fills_at > self->heap[0].level * (1 + SAME_LEVEL)) {
            self->heap[0].level = fills_at;
            sift_down(self, 0);
            continue;
        }
        if (fills_at > level * (1 + SAME_LEVEL))
            level = fills_at;
        freeze_flows(self, link, level, routes, rate, limit);
        drop_top(self);
    }
}
