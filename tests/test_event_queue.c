/* Events come in order of time, and in the order they were pushed where times are equal. */
#include "sim/event_queue.h"
#include "tests/check.h"

static void
equal_times_keep_their_order(void)
{
    TtEventQueue queue;
    TtSimEvent event;
    static const TtTime times[] = { 5, 3, 5, 3, 0, 5 };
    static const guint32 want[] = { 4, 1, 3, 0, 2, 5 }; /* by (time, place in the list) */

    tt_event_queue_init(&queue);
    for (guint32 i = 0; i < G_N_ELEMENTS(times); i++)
        tt_event_queue_push(&queue, times[i], 7, i);
    for (guint32 i = 0; i < G_N_ELEMENTS(want); i++) {
        CU_ASSERT_TRUE(tt_event_queue_pop(&queue, &event));
        CHECK(event.index == want[i] && event.time_ps == times[want[i]] && event.kind == 7,
              "event %u is %u at %ld", i, event.index, (long)event.time_ps);
        CU_ASSERT_EQUAL(queue.now_ps, event.time_ps);
    }
    CU_ASSERT_FALSE(tt_event_queue_pop(&queue, &event));
    tt_event_queue_clear(&queue);
}

/* What is scheduled for now while now is handled comes after what was already due. */
static void
now_is_first_in_first_out(void)
{
    TtEventQueue queue;
    TtSimEvent event;

    tt_event_queue_init(&queue);
    tt_event_queue_push(&queue, 10, 0, 0);
    tt_event_queue_push(&queue, 10, 0, 1);
    tt_event_queue_pop(&queue, &event);
    tt_event_queue_push(&queue, 10, 0, 2);
    CU_ASSERT_TRUE(tt_event_queue_has_now(&queue));
    tt_event_queue_pop(&queue, &event);
    CU_ASSERT_EQUAL(event.index, 1);
    tt_event_queue_pop(&queue, &event);
    CU_ASSERT_EQUAL(event.index, 2);
    CU_ASSERT_FALSE(tt_event_queue_has_now(&queue));
    tt_event_queue_clear(&queue);
}

/* Against the plainest queue there is: scan for the least (time, sequence). */
static void
random_mixes_agree_with_a_scan(void)
{
    enum { N = 4000 };
    guint32 seed = g_random_int();
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autofree TtTime *time = g_new(TtTime, N);
    TtEventQueue queue;
    guint32 n_pushed = 0, n_popped = 0;

    tt_event_queue_init(&queue);
    while (n_popped < N) {
        TtSimEvent event;
        guint32 best = N;

        if (n_pushed < N && (n_pushed == n_popped || g_rand_boolean(random))) {
            /* near and far, with many ties */
            TtTime step = (TtTime)g_rand_int_range(random, 0, 4) << g_rand_int_range(random, 0, 40);

            time[n_pushed] = queue.now_ps + step;
            tt_event_queue_push(&queue, time[n_pushed], 0, n_pushed);
            n_pushed++;
            continue;
        }
        for (guint32 i = 0; i < n_pushed; i++)
            if (time[i] >= 0 && (best == N || time[i] < time[best]))
                best = i;
        CU_ASSERT_TRUE_FATAL(tt_event_queue_pop(&queue, &event));
        CHECK(event.index == best && event.time_ps == time[best], "seed %u: got %u, wanted %u",
              seed, event.index, best);
        time[best] = -1;
        n_popped++;
    }
    tt_event_queue_clear(&queue);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "equal times keep their order", equal_times_keep_their_order },
                            { "now is first in, first out", now_is_first_in_first_out },
                            { "random mixes agree with a scan", random_mixes_agree_with_a_scan },
                            CU_TEST_INFO_NULL };

    return check_main("event queue", tests);
}
