/* Lanes: what a step waits for, what a profile makes it cost, what the record says about it. */
#include "algos/algo.h"
#include "tests/hand_plan.h"

static const HandWires free_wires = {
    .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = 1 * US, .unbounded = TRUE
};
#define HOP (2 * US + 100 * US) /* up and down, 1 MB at 10 GB/s */

/* --- waiting -----------------------------------------------------------------------------------
 */

/* Rank 1 sends on lane 1 only what lane 0 has received: two hops, not one. */
static void
dependencies_cross_lanes(void)
{
    for (guint depends = 0; depends < 2; depends++) {
        HandPlan hand = hand_plan(3, 2, 1, MB);
        TtStep send = tt_send(2, TT_INPUT, 0);
        g_autoptr(TtPlan) plan = NULL;

        hand_message(&hand, 0, 1, 0, 1);
        hand_step(&hand, 1, 1, depends ? tt_after(send, 0, 0) : send);
        hand_step(&hand, 2, 1, tt_recv(1, TT_OUTPUT, 0));
        plan = hand_plan_done(&hand);
        CU_ASSERT_EQUAL(hand_run(plan, free_wires, NULL), depends ? 2 * HOP : HOP);
    }
}

/* A chain of waiting through a step that moves nothing: lane 1's NOP waits for lane 0, lane 2 for
 * it. */
static void
empty_steps_pass_dependencies_on(void)
{
    HandPlan hand = hand_plan(3, 3, 1, MB);
    g_autoptr(TtPlan) plan = NULL;

    hand_message(&hand, 0, 1, 0, 1);
    hand_step(&hand, 1, 1, tt_after(tt_nop(), 0, 0));
    hand_step(&hand, 1, 2, tt_after(tt_send(2, TT_INPUT, 0), 1, 0));
    hand_step(&hand, 2, 2, tt_recv(1, TT_OUTPUT, 0));
    plan = hand_plan_done(&hand);
    CU_ASSERT_EQUAL(hand_run(plan, free_wires, NULL), 2 * HOP);
}

/* Messages of one connection follow each other: three of 1 MB take 3 transfers and one latency if
 * there are slots for them, whoever reads at once or late. */
static void
messages_queue_on_a_connection(void)
{
    static const struct {
        const char *name;
        guint slots;
        TtTime want_ps;
    } rows[] = {
        { "slots enough: back to back", 3, 300 * US + 2 * US },
        /* message 2 is posted when 0 was read, at 102 us: the wire was idle from 100 us on only
         * with one slot; with two, message 1 flows from 100 to 200 us, message 2 follows at once */
        { "two slots: the wire stays busy", 2, 300 * US + 2 * US },
        { "one slot: a latency each", 1, 3 * HOP },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandPlan hand = hand_plan(2, 1, 1, MB);
        g_autoptr(TtPlan) plan = NULL;
        HandWires wires = free_wires;

        wires.n_ranks = 2;
        hand.spec.n_slots = rows[r].slots;
        for (guint i = 0; i < 3; i++)
            hand_message(&hand, 0, 1, 0, 1);
        plan = hand_plan_done(&hand);
        CHECK_ROW(&rows[r], hand_run(plan, wires, NULL) == rows[r].want_ps);
    }
}

static void
deadlock_names_who_waits_for_whom(void)
{
    HandPlan hand = hand_plan(2, 1, 1, MB);
    HandWires wires = free_wires;
    TtNetwork net;
    TtSimOptions options = { .level = TT_LEVEL_FLOW };
    TtSimResult result = { .time_ps = -1 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = NULL;

    wires.n_ranks = 2;
    net = hand_network(&wires);
    hand_step(&hand, 0, 0, tt_recv(1, TT_OUTPUT, 0)); /* both listen before they speak */
    hand_step(&hand, 0, 0, tt_send(1, TT_INPUT, 0));
    hand_step(&hand, 1, 0, tt_recv(0, TT_OUTPUT, 0));
    hand_step(&hand, 1, 0, tt_send(0, TT_INPUT, 0));
    plan = hand_plan_done(&hand);
    CU_ASSERT_FALSE(tt_sim_run_on(plan, &net, &options, &result, &error));
    CHECK(error &&
              strstr(error->message, "rank 1 lane 0 step 0 (recv) waits for a message from rank 0"),
          "%s", error ? error->message : "none");
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_DEADLOCK,
                "rank 0 lane 0 step 0 (recv) waits for a message from rank 1");
    CU_ASSERT_EQUAL(result.time_ps, -1); /* outputs only on success */
}

/* --- profiles ----------------------------------------------------------------------------------
 */

/* Rank 0 sends two messages of 1 MB, a step costs 30 us (10 us + 1e6 * 20 ps), plus HOP:
 *
 *   posting   work 0..30, 30..60; wire 30..130, 130..230; read 232..262 (the first from 132)
 *   pushing   work 0..30, push ..130, work ..160, push ..260; there 262, read ..292 */
static void
lanes_post_or_push(void)
{
    for (guint pushes = 0; pushes < 2; pushes++) {
        HandPlan hand = hand_plan(2, 1, 1, MB);
        g_autoptr(TtProfile) profile = tt_profile_ideal();
        g_autoptr(TtPlan) plan = NULL;
        HandWires wires = free_wires;

        wires.n_ranks = 2;
        profile->lane_pushes = pushes;
        hand_costs(profile, 10e-6, 20e-12);
        hand_message(&hand, 0, 1, 0, 1);
        hand_message(&hand, 0, 1, 0, 1);
        plan = hand_plan_done(&hand);
        CU_ASSERT_EQUAL(hand_run(plan, wires, profile), (pushes ? 292 : 262) * US);
    }
}

/* One slot, two messages, no step costs: the second leaves when the first is read and the sender
 * knows: start 5, wire ..105, there 107 + 3 (latency), known 114 (credit 4), wire ..214, there 219
 * = 214+2+3. */
static void
fixed_times_add_up(void)
{
    HandPlan hand = hand_plan(2, 1, 1, MB);
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    g_autoptr(TtPlan) plan = NULL;
    HandWires wires = free_wires;

    wires.n_ranks = 2;
    profile->start_s = 5e-6;
    profile->latency_s = 3e-6;
    profile->credit_s = 4e-6;
    hand.spec.n_slots = 1;
    hand_message(&hand, 0, 1, 0, 1);
    hand_message(&hand, 0, 1, 0, 1);
    plan = hand_plan_done(&hand);
    CU_ASSERT_EQUAL(hand_run(plan, wires, profile), 219 * US);
}

/* Copies of 10 us each, two a lane. */
static void
workers_and_cores_are_shared(void)
{
    static const struct {
        const char *name;
        guint ranks, lanes, workers, cores;
        TtTime want_ps;
    } rows[] = {
        { "all at once", 2, 3, 0, 0, 20 * US },
        { "one worker: lanes take turns", 2, 3, 1, 0, 60 * US },
        { "two workers for three lanes", 2, 3, 2, 0, 30 * US },
        { "a core for every rank", 2, 1, 1, 2, 20 * US },
        /* r0 0..10, r1 10..23 (3 us to switch), r0 23..36, r1 36..49 */
        { "two ranks on one core", 2, 1, 1, 1, 49 * US },
        /* core 0 has ranks 0 and 2, core 1 rank 1 alone */
        { "three ranks on two cores", 3, 1, 1, 2, 49 * US },
        /* without a limit of workers both lanes of r0 come first: r0 0..10..20, r1 20..33..43; the
         * second steps queue behind: r0's at 10 and 20, before r1's at 33 and 43. In all: r0a 0-10,
         * r0b 10-20, r1a 20-33, r1b 33-43, r0a 43-56, r0b 56-66, r1a 66-79, r1b 79-89 */
        { "four lanes on one core", 2, 2, 0, 1, 89 * US },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandPlan hand = hand_plan(rows[r].ranks, rows[r].lanes, 1, MB);
        g_autoptr(TtProfile) profile = tt_profile_ideal();
        g_autoptr(TtPlan) plan = NULL;
        HandWires wires = free_wires;

        wires.n_ranks = rows[r].ranks;
        wires.latency_ps = 0; /* copies alone do not make the broadcast it says it is */
        profile->workers_per_rank = rows[r].workers;
        profile->cores = rows[r].cores;
        profile->switch_s = 3e-6;
        hand_costs(profile, 10e-6, 0);
        for (guint rank = 0; rank < rows[r].ranks; rank++)
            for (guint lane = 0; lane < rows[r].lanes; lane++)
                for (guint i = 0; i < 2; i++)
                    hand_step(&hand, rank, lane, tt_copy(TT_INPUT, TT_OUTPUT, 0));
        plan = hand_plan_done(&hand);
        CHECK(hand_run(plan, wires, profile) == rows[r].want_ps, "%s: %ld us", rows[r].name,
              (long)(hand_run(plan, wires, profile) / US));
    }
}

/* A lane that only waits leaves the core to others: rank 0 waits for rank 1's message, which needs
 * the only core to be sent. Work 10 us, HOP, work 13 us (switch). */
static void
who_waits_holds_no_core(void)
{
    HandPlan hand = hand_plan(2, 1, 1, MB);
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    g_autoptr(TtPlan) plan = NULL;
    HandWires wires = free_wires;

    wires.n_ranks = 2;
    profile->workers_per_rank = 1;
    profile->cores = 1;
    profile->switch_s = 3e-6;
    hand_costs(profile, 10e-6, 0);
    hand_message(&hand, 1, 0, 0, 1);
    plan = hand_plan_done(&hand);
    CU_ASSERT_EQUAL(hand_run(plan, wires, profile), 10 * US + HOP + 13 * US);
}

/* Costs follow the footprint: allreduce of 1 MB touches 2 MB, in place 1 MB. */
static void
footprint_decides_the_cost(void)
{
    TtPlanSpec spec = { .n_ranks = 1, .count = MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL); /* one copy */
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    HandWires wires = { .n_ranks = 1, .rank_bytes_per_s = 1e9 };

    profile->op[TT_OP_COPY] = (TtOpCost){ .n = 2,
                                          .footprint_bytes = { 1e6, 2e6 },
                                          .fixed_s = { 1e-6, 2e-6 },
                                          .per_byte_s = { 10e-12, 30e-12 } };
    for (guint in_place = 0; in_place < 2; in_place++) {
        TtSimOptions options = { .level = TT_LEVEL_FLOW, .profile = profile, .in_place = in_place };
        TtSimResult result = hand_run_with(plan, wires, &options);

        CU_ASSERT_EQUAL(result.time_ps, (in_place ? 1 + 10 : 2 + 30) * US);
        tt_sim_result_clear(&result);
    }
}

/* Links of kind memory cost nothing under a profile that covers them. */
static void
memory_is_not_counted_twice(void)
{
    HandWires wires = {
        .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US, .kind = "memory"
    };
    TtPlanSpec spec = { .n_ranks = 4, .count = 4 * MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    g_autoptr(TtProfile) profile = tt_profile_ideal();

    hand_costs(profile, 5e-6, 0);
    CU_ASSERT_EQUAL(hand_run(plan, wires, profile), 7 * 5 * US + 6 * HOP);
    profile->covers_memory = TRUE;
    CU_ASSERT_EQUAL(hand_run(plan, wires, profile), 7 * 5 * US);
    wires.kind = "ib";
    CU_ASSERT_EQUAL(hand_run(plan, wires, profile), 7 * 5 * US + 6 * HOP);
}

/* --- messages that need no slot ----------------------------------------------------------------
 *
 * Rank 1 sends 1000 bytes, which rank 0 reads where they are; rank 0 then writes as many into rank 1's output. A
 * step takes 10 ns and 1 ns a byte, a message 105 ns, an acknowledgement 7 ns.
 */

static TtTime
run_there_and_back(double direct_bytes, gboolean back, guint n_iterations)
{
    HandPlan hand = hand_plan(2, 1, 2, 1000);
    HandWires wires = { .n_ranks = 2, .rank_bytes_per_s = 10e9, .unbounded = TRUE };
    TtProfile profile = { .latency_s = 5e-9, .credit_s = 7e-9, .direct_bytes = direct_bytes };
    TtSimOptions options = { .level = TT_LEVEL_FLOW,
                             .profile = &profile,
                             .iterations = n_iterations };
    g_autoptr(TtPlan) plan = NULL;
    TtSimResult result;
    TtTime time_ps;

    hand_step(&hand, 1, 0, tt_send(0, TT_INPUT, 1));
    hand_step(&hand, 0, 0, tt_recv(1, TT_SCRATCH, 1));
    if (back) {
        hand_step(&hand, 0, 0, tt_send(1, TT_SCRATCH, 0));
        hand_step(&hand, 1, 0, tt_recv(0, TT_OUTPUT, 0));
    }
    plan = hand_plan_done(&hand);
    hand_costs(&profile, 10e-9, 1e-9);
    result = hand_run_with(plan, wires, &options);
    time_ps = result.time_ps;
    tt_sim_result_clear(&result);
    return time_ps;
}

static void
what_is_lent_or_placed_is_not_copied(void)
{
    static const struct {
        const char *name;
        double direct_bytes;
        gboolean back;
        TtTime want_ps;
    } rows[] = {
        { "slots: send, recv, send, recv", 0, TRUE, 2 * (1010 + 105 + 1010) * NS },
        { "too short: slots", 1001, TRUE, 2 * (1010 + 105 + 1010) * NS },
        { "lent; copied; placed; there already", 1000, TRUE,
          (10 + 105 + 1010 + 1010 + 105 + 10) * NS },
        { "the sender waits for what it lent", 1000, FALSE, (10 + 105 + 1010 + 7) * NS },
        { "nothing lent, nothing to wait for", 0, FALSE, (1010 + 105 + 1010) * NS },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtTime got_ps = run_there_and_back(rows[r].direct_bytes, rows[r].back, 1);

        CHECK(got_ps == rows[r].want_ps, "%s: %.3f ns", rows[r].name, (double)got_ps / NS);
    }
    /* the next iteration begins when what was lent has come back: no overlap */
    CU_ASSERT_EQUAL(run_there_and_back(1000, FALSE, 3), (10 + 105 + 1010 + 7) * NS);
}

/* --- iterations and the record -----------------------------------------------------------------
 */

/* The second collective of a chain follows one transfer behind the first if slots allow; a ring of
 * an allreduce starts again when it is done. */
static void
iterations_overlap_where_they_can(void)
{
    static const struct {
        const char *name;
        TtCollective collective;
        guint slots;
        TtTime want_ps;
    } rows[] = {
        { "broadcast, two slots: a transfer apart", TT_BROADCAST, 2, 100 * US },
        { "broadcast, one slot: a hop apart", TT_BROADCAST, 1, HOP },
        { "allreduce: 2(P-1) hops of a quarter", TT_ALLREDUCE, 2, 6 * (2 * US + 25 * US) },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        for (guint iterations = 2; iterations <= 9; iterations += 7) {
            TtPlanSpec spec = { .collective = rows[r].collective,
                                .n_ranks = 4,
                                .count = MB,
                                .type = TT_INT8,
                                .n_slots = rows[r].slots };
            g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
            TtSimOptions options = { .level = TT_LEVEL_FLOW, .iterations = iterations };
            HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US };
            TtSimResult result = hand_run_with(plan, wires, &options);

            CHECK(result.time_ps == rows[r].want_ps, "%s, %u iterations: %ld", rows[r].name,
                  iterations, (long)result.time_ps);
            tt_sim_result_clear(&result);
        }
    }
}

/* One message, step costs of 10 us: who waited how long and for whom. */
static void
record_tells_waits_and_loads(void)
{
    HandPlan hand = hand_plan(2, 1, 1, MB);
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    g_autoptr(TtPlan) plan = NULL;
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .profile = profile, .record = TRUE };
    HandWires wires = free_wires;
    TtSimResult result;
    g_autofree char *csv = NULL;
    const TtCounter *load;

    wires.n_ranks = 2;
    hand_costs(profile, 10e-6, 0);
    hand_message(&hand, 0, 1, 0, 1);
    plan = hand_plan_done(&hand);
    result = hand_run_with(plan, wires, &options);
    csv = tt_timeline_to_csv(result.timeline);
    CU_ASSERT_STRING_EQUAL(csv, "rank,lane,round,step,op,recv_peer,send_peer,bytes,begin_ps,end_ps,"
                                "wait_ps,wait_for\n"
                                "0,0,0,0,send,,1,1000000,0,10000000,0,\n"
                                "1,0,0,0,recv,0,,1000000,0,122000000,112000000,0\n");

    /* the wires up and down carry 1 from 10 to 110 us */
    CU_ASSERT_EQUAL_FATAL(result.timeline->counters->len, 2);
    load = g_ptr_array_index(result.timeline->counters, 0);
    CU_ASSERT_STRING_EQUAL(load->name, "wire 0");
    CU_ASSERT_EQUAL_FATAL(load->value->len, 2);
    CU_ASSERT_EQUAL(g_array_index(load->time_ps, gint64, 0), 10 * US);
    CU_ASSERT_EQUAL(g_array_index(load->value, double, 0), 1);
    CU_ASSERT_EQUAL(g_array_index(load->time_ps, gint64, 1), 110 * US);
    CU_ASSERT_EQUAL(g_array_index(load->value, double, 1), 0);
    tt_sim_result_clear(&result);
}

/* Only the last iteration is recorded, from its own beginning. */
static void
record_is_of_the_last_iteration(void)
{
    TtPlanSpec spec = { .n_ranks = 4, .count = MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US };
    char *csv[2] = { NULL, NULL };

    for (guint i = 0; i < 2; i++) {
        TtSimOptions options = { .level = TT_LEVEL_FLOW, .record = TRUE, .iterations = i ? 5 : 1 };
        TtSimResult result = hand_run_with(plan, wires, &options);

        CU_ASSERT_EQUAL(result.timeline->events->len, 4 * 7);
        csv[i] = tt_timeline_to_csv(result.timeline);
        tt_sim_result_clear(&result);
    }
    CU_ASSERT_STRING_EQUAL(csv[0], csv[1]); /* nothing of this ring overlaps the iteration before */
    g_free(csv[0]);
    g_free(csv[1]);
}

/* Contended, uneven, costly: the same bytes out twice. */
static void
same_input_same_timeline(void)
{
    g_autoptr(TtProfile) profile = tt_profile_open("tutti", NULL);
    HandWires wires = { .shape = HAND_TWO_LEVEL,
                        .n_ranks = 12,
                        .per_node = 4,
                        .rank_bytes_per_s = 10e9,
                        .node_bytes_per_s = 7e9,
                        .latency_ps = US };

    for (guint a = 0; tt_algos[a]; a++) {
        TtPlanSpec spec = { .n_ranks = 12,
                            .count = 100003,
                            .type = TT_FLOAT32,
                            .n_channels = 3,
                            .slot_bytes = 5000,
                            .group_size = 4 };
        g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
        g_autofree char *first = NULL;

        for (guint i = 0; plan && i < 2; i++) {
            TtSimOptions options = { .level = TT_LEVEL_FLOW, .profile = profile, .record = TRUE };
            TtSimResult result = hand_run_with(plan, wires, &options);
            g_autofree char *csv = tt_timeline_to_csv(result.timeline);

            CHECK(result.time_ps >= result.bound_ps, "%s", plan->name);
            CHECK(!first || strcmp(first, csv) == 0, "%s", plan->name);
            if (!first)
                first = g_steal_pointer(&csv);
            tt_sim_result_clear(&result);
        }
    }
}

static void
bottleneck_is_named(void)
{
    static const struct {
        const char *name;
        guint64 count;
        const char *words;
    } rows[] = {
        { "large: a link", 100 * MB, "link wire 0, 100 % busy" }, /* 33 ms a hop, 2 us latency */
        { "small: latency", 4, "latency: lanes waited 100 % of the time" },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US };
        TtPlanSpec spec = { .n_ranks = 4, .count = rows[r].count, .type = TT_INT8 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
        TtSimOptions options = { .level = TT_LEVEL_FLOW };
        TtSimResult result = hand_run_with(plan, wires, &options);

        CHECK(g_strcmp0(result.bottleneck, rows[r].words) == 0, "%s: %s", rows[r].name,
              result.bottleneck);
        tt_sim_result_clear(&result);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "dependencies cross lanes", dependencies_cross_lanes },
        { "empty steps pass dependencies on", empty_steps_pass_dependencies_on },
        { "messages queue on a connection", messages_queue_on_a_connection },
        { "deadlock names who waits for whom", deadlock_names_who_waits_for_whom },
        { "lanes post or push", lanes_post_or_push },
        { "fixed times add up", fixed_times_add_up },
        { "what is lent or placed is not copied", what_is_lent_or_placed_is_not_copied },
        { "workers and cores are shared", workers_and_cores_are_shared },
        { "who waits holds no core", who_waits_holds_no_core },
        { "footprint decides the cost", footprint_decides_the_cost },
        { "memory is not counted twice", memory_is_not_counted_twice },
        { "iterations overlap where they can", iterations_overlap_where_they_can },
        { "record tells waits and loads", record_tells_waits_and_loads },
        { "record is of the last iteration", record_is_of_the_last_iteration },
        { "same input, same timeline", same_input_same_timeline },
        { "bottleneck is named", bottleneck_is_named },
        CU_TEST_INFO_NULL
    };

    return check_main("sim lanes", tests);
}
