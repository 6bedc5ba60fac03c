/* Rates are fair at every instant, though only a region is solved after each change. */
#include "sim/flows_private.h"
#include "tests/check.h"
#include "tests/hand_network.h"

#include <math.h>

#define MAX_RANKS 80
#define MAX_LINKS (4 * MAX_RANKS)

typedef struct {
    TtNetwork net;
    TtEventQueue queue;
    GArray *log;
    TtFlows *flows;
    guint32 n_flows;
    double *rate;    /* [flow] as the log tells; 0: not flowing */
    double *started; /* [flow] bytes */
    double *carried; /* [flow] integral of its rate */
    TtTime *since_ps;
    guint seen; /* log entries read */
    const char *shape;
    guint32 seed;
} Traffic;

/* Brings rate[] up to date. */
static void
read_log(Traffic *t)
{
    for (; t->seen < t->log->len; t->seen++) {
        const TtRateChange *change = &g_array_index(t->log, TtRateChange, t->seen);

        t->carried[change->flow] +=
            t->rate[change->flow] * tt_ps_to_seconds(change->time_ps - t->since_ps[change->flow]);
        t->since_ps[change->flow] = change->time_ps;
        t->rate[change->flow] = change->rate_bytes_per_s;
    }
}

static void
check_fair(const Traffic *t)
{
    double load[MAX_LINKS] = { 0 }, fastest[MAX_LINKS] = { 0 };
    TtLink links[TT_MAX_ROUTE];

    for (guint32 f = 0; f < t->n_flows; f++)
        for (guint i = tt_flows_links(t->flows, f, links); i-- > 0;) {
            load[links[i]] += t->rate[f];
            fastest[links[i]] = MAX(fastest[links[i]], t->rate[f]);
        }
    for (TtLink l = 0; l < t->net.n_links; l++)
        CHECK(load[l] <= t->net.link(t->net.context, l).capacity_bytes_per_s * (1 + 1e-8),
              "%s, seed %u: link %u carries %g", t->shape, t->seed, l, load[l]);
    for (guint32 f = 0; f < t->n_flows; f++) {
        gboolean limited = t->rate[f] == 0;

        for (guint i = tt_flows_links(t->flows, f, links); i-- > 0;)
            limited |=
                load[links[i]] >=
                    t->net.link(t->net.context, links[i]).capacity_bytes_per_s * (1 - 1e-8) &&
                t->rate[f] >= fastest[links[i]] * (1 - 1e-8);
        CHECK(limited, "%s, seed %u: nothing limits flow %u to %g at %ld", t->shape, t->seed, f,
              t->rate[f], (long)t->queue.now_ps);
    }
}

/* A flow that ended carried what it was given, to the rounding of its end. */
static void
ended(Traffic *t, guint32 flow)
{
    double before_rate = t->rate[flow];

    read_log(t);
    CHECK(fabs(t->carried[flow] - t->started[flow]) <=
              before_rate * 2e-12 + 1e-6 * t->started[flow],
          "%s, seed %u: flow %u carried %g of %g", t->shape, t->seed, flow, t->carried[flow],
          t->started[flow]);
    CU_ASSERT_EQUAL(t->rate[flow], 0);
    t->started[flow] = 0;
    t->carried[flow] = 0;
}

/* Kinds of events: 2 = start flow `index`. */
static void
drive(Traffic *t, GRand *random, guint n_events)
{
    TtSimEvent event;

    for (guint i = 0; i < n_events; i++) {
        TtTime at_ps = g_rand_int_range(random, 0, 40) * G_GINT64_CONSTANT(25000000);

        tt_event_queue_push(&t->queue, at_ps, TT_FLOW_N_KINDS,
                            (guint32)g_rand_int_range(random, 0, (gint32)t->n_flows));
    }
    while (tt_event_queue_pop(&t->queue, &event)) {
        guint kind = event.kind & ((1u << TT_KIND_BITS) - 1);
        guint32 flow = event.index;

        if (kind == TT_FLOW_ENDS && tt_flows_take(t->flows, &event)) {
            ended(t, flow);
        } else if (kind == TT_FLOWS_SHARED_END) {
            while ((flow = tt_flows_take_shared(t->flows)) != TT_NO_FLOW)
                ended(t, flow);
        } else if (kind == TT_FLOW_N_KINDS && t->started[flow] == 0) {
            guint64 bytes = (guint64)g_rand_int_range(random, 1, 8) * 100000;

            t->started[flow] = (double)bytes;
            tt_flows_start(t->flows, flow, bytes);
        }
        if (tt_event_queue_has_now(&t->queue))
            continue;
        tt_flows_settle(t->flows);
        read_log(t);
        check_fair(t);
    }
    for (guint32 f = 0; f < t->n_flows; f++)
        CHECK(t->rate[f] == 0 && t->started[f] == 0, "%s, seed %u: flow %u never ends", t->shape,
              t->seed, f);
}

static void
run_traffic(HandWires wires, const char *shape, guint32 seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    Traffic t = {
        .net = hand_network(&wires), .shape = shape, .seed = seed, .n_flows = 5 * wires.n_ranks
    };

    t.log = g_array_new(FALSE, FALSE, sizeof(TtRateChange));
    t.rate = g_new0(double, t.n_flows);
    t.started = g_new0(double, t.n_flows);
    t.carried = g_new0(double, t.n_flows);
    t.since_ps = g_new0(TtTime, t.n_flows);
    tt_event_queue_init(&t.queue);
    t.flows = tt_flows_new(&t.net, &t.queue, t.log);
    for (guint32 f = 0; f < t.n_flows; f++) {
        guint src = f % wires.n_ranks;

        tt_flows_add(t.flows, src,
                     (src + 1 + (guint)g_rand_int_range(random, 0, (gint32)wires.n_ranks - 1)) %
                         wires.n_ranks);
    }
    drive(&t, random, 15 * wires.n_ranks);
    tt_flows_free(t.flows);
    tt_event_queue_clear(&t.queue);
    g_array_unref(t.log);
    g_free(t.rate);
    g_free(t.started);
    g_free(t.carried);
    g_free(t.since_ps);
}

static void
random_traffic_is_fair_at_every_instant(void)
{
    static const struct {
        const char *name;
        HandWires wires;
    } rows[] = {
        { "crossbar", { .shape = HAND_CROSSBAR, .n_ranks = 12, .rank_bytes_per_s = 10e9 } },
        { "bus", { .shape = HAND_BUS, .n_ranks = 6, .rank_bytes_per_s = 10e9 } },
        { "line", { .shape = HAND_LINE, .n_ranks = 10, .rank_bytes_per_s = 10e9 } },
        { "nodes behind thin NICs",
          { .shape = HAND_TWO_LEVEL,
            .n_ranks = 24,
            .per_node = 4,
            .rank_bytes_per_s = 10e9,
            .node_bytes_per_s = 7e9 } },
        { "nodes behind fat NICs",
          { .shape = HAND_TWO_LEVEL,
            .n_ranks = 24,
            .per_node = 8,
            .rank_bytes_per_s = 10e9,
            .node_bytes_per_s = 35e9 } },
        { "many small regions", { .shape = HAND_CROSSBAR, .n_ranks = 80, .rank_bytes_per_s = 1e9 } },
        { "a long line", { .shape = HAND_LINE, .n_ranks = 16, .rank_bytes_per_s = 5e9 } },
        { "backplane",
          { .shape = HAND_BACKPLANE,
            .n_ranks = 12,
            .rank_bytes_per_s = 10e9,
            .node_bytes_per_s = 44e9 } },
    };
    guint32 seed = g_random_int();

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++)
        for (guint i = 0; i < 10; i++)
            run_traffic(rows[r].wires, rows[r].name, seed + i);
}

/* Few or many ends move at once, earlier and later: the earliest is on top all the same. */
static void
ends_stay_in_order(void)
{
    enum { N = 500 };
    HandWires wires = { .n_ranks = N, .rank_bytes_per_s = 1e9 };
    TtNetwork net = hand_network(&wires);
    guint32 seed = g_random_int(), changed[N];
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    TtEventQueue queue;
    TtFlows *flows;

    tt_event_queue_init(&queue);
    flows = tt_flows_new(&net, &queue, NULL);
    for (guint32 f = 0; f < N; f++)
        tt_flows_add(flows, f, (f + 1) % N);
    for (guint round = 0; round < 2000; round++) {
        guint32 n = (guint32)g_rand_int_range(random, 1, round % 10 ? 20 : N), n_wrong = 0;
        guint32 from = (guint32)g_rand_int_range(random, 0, N - (gint32)n + 1);

        for (guint32 i = 0; i < n; i++) {
            changed[i] = from + i;
            flows->flows[from + i].end_ps = g_rand_int_range(random, 0, 100);
        }
        tt_flows_heap_update(flows, changed, n);
        if (g_rand_boolean(random))
            tt_flows_heap_pop(flows);
        for (guint32 i = 0; i < flows->heap_n; i++) {
            const Flow *f = &flows->flows[flows->heap[i].flow];

            n_wrong += f->heap_pos != i || f->end_ps != flows->heap[i].end_ps ||
                       flows->heap[(i > 0 ? i - 1 : 0) / 4].end_ps > f->end_ps;
        }
        CHECK(n_wrong == 0, "seed %u, round %u: %u out of place", seed, round, n_wrong);
    }
    tt_flows_free(flows);
    tt_event_queue_clear(&queue);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "random traffic is fair at every instant",
                              random_traffic_is_fair_at_every_instant },
                            { "ends stay in order", ends_stay_in_order },
                            CU_TEST_INFO_NULL };

    return check_main("flows", tests);
}
