/* Links shaped by a token bucket: hand-computed times. R = 1 GB/s, b = 1000 bytes, no latency. */
#include "sim/flows.h"
#include "sim/sim.h"
#include "tests/check.h"

#define NS 1000 /* picoseconds */

static TtLinkInfo
link_info(gconstpointer context, TtLink link)
{
    (void)context;
    (void)link;
    return (TtLinkInfo){ 1e9, 0, "ethernet", 1000 };
}

static guint
route(gconstpointer context, guint src, guint dst, TtLink *links)
{
    (void)context;
    (void)dst;
    links[0] = src; /* rank 0: link 0; rank 1: link 1, then 0 */
    links[1] = 0;
    return src == 0 ? 1 : 2;
}

typedef struct {
    TtNetwork net;
    TtEventQueue queue;
    TtFlows *flows;
} Wire;

static void
wire_init(Wire *w, guint n_flows)
{
    *w = (Wire){ .net = { .n_ranks = 2, .n_links = 2, .link = link_info, .route = route } };
    tt_event_queue_init(&w->queue);
    w->flows = tt_flows_new(&w->net, &w->queue, NULL);
    for (guint f = 0; f < n_flows; f++)
        tt_flows_add(w->flows, f % 2, 0);
}

static void
wire_clear(Wire *w)
{
    tt_flows_free(w->flows);
    tt_event_queue_clear(&w->queue);
}

/* Sends at @begin_ps, alone; when it has arrived. */
static TtTime
send(Wire *w, guint32 flow, TtTime begin_ps, guint64 bytes)
{
    TtSimEvent event;

    w->queue.now_ps = begin_ps;
    tt_flows_start(w->flows, flow, bytes);
    tt_flows_settle(w->flows);
    while (tt_event_queue_pop(&w->queue, &event))
        if (tt_flows_take(w->flows, &event))
            break;
    return w->queue.now_ps;
}

static void
test_one_link(void)
{
    /* Sent one after the other over one link. */
    static const struct {
        const char *name;
        TtTime begin_ns;
        guint64 bytes;
        TtTime want_ns;
    } rows[] = {
        { "1000 of 5000 bytes pass at once", 0, 5000, 4000 },
        { "the bucket is empty right after", 4000, 5000, 9000 },
        { "a pause of 300 ns brings 300 bytes", 9300, 500, 9500 },
        { "what fits the bucket costs nothing", 20000, 800, 20000 },
        { "200 are left, 100 ns bring 100 more", 20100, 400, 20200 },
        { "never more than it holds", 90000, 2000, 91000 },
    };
    Wire w;

    wire_init(&w, 1);
    CU_ASSERT_EQUAL(tt_flows_bucket_ps(w.flows), 1000 * NS);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTime end_ps = send(&w, 0, rows[i].begin_ns * NS, rows[i].bytes);

        CHECK(end_ps == rows[i].want_ns * NS, "%s: at %ld ps", rows[i].name, (long)end_ps);
    }
    wire_clear(&w);
}

/* Only what every bucket on the way lets pass does. */
static void
test_two_links(void)
{
    Wire w;

    wire_init(&w, 2);
    CU_ASSERT_EQUAL(send(&w, 0, 0, 1600), 600 * NS);         /* empties link 0's */
    CU_ASSERT_EQUAL(send(&w, 1, 800 * NS, 1000), 1600 * NS); /* 200 of it are back */
    wire_clear(&w);
}

/* A ring, which would be folded to one rank and leapt over: messages that fit every bucket cost their
 * latencies only, and longer ones save a bucket. */
static void
test_ring(void)
{
    static const char *const settings[] = { "nic.bandwidth=10 MB/s", "nic.efficiency=100 %",
                                            "nic.burst=30000 B", NULL };
    static const struct {
        guint64 count;
        double want_us, within;
    } rows[] = { { 4096, 14 * 12.5, 0.001 }, { 131072, 14 * 6553.6 + 14 * 12.5 - 3000, 0.02 } };
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "tests/labs/one-switch.ini", NULL);
    g_autoptr(TtTopology) topo = tt_topology_open(path, settings, NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtPlanSpec spec = { .n_ranks = 8, .count = rows[i].count, .type = TT_FLOAT32 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
        TtSimOptions options = { .level = TT_LEVEL_FLOW };
        TtSimResult result = { 0 };
        double us;

        CU_ASSERT_TRUE_FATAL(tt_sim_run(plan, topo, &options, &result, NULL));
        us = (double)result.time_ps * 1e-6;
        CHECK(fabs(us - rows[i].want_us) < rows[i].within * rows[i].want_us, "%ld elements: %g us",
              (long)rows[i].count, us);
        tt_sim_result_clear(&result);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "one link", test_one_link },
                            { "two links", test_two_links },
                            { "ring of buckets", test_ring },
                            CU_TEST_INFO_NULL };

    return check_main("token buckets", tests);
}
