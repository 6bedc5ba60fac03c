/* The verifier against hand-made plans: what is right passes, each kind of wrong is named. */
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

#include <string.h>

/* One line of a hand-made plan: a step of a lane, in order. Roles are ranks. */
typedef struct {
    guint rank, sub_lane;
    TtStep step;
    gboolean waits; /* for step dep_step of lane dep_lane */
    guint dep_lane, dep_step;
    gboolean spans; /* n_chunks instead of one */
    guint n_chunks;
} Line;

#define END { .rank = TT_NO_RANK }

typedef struct {
    const char *name;
    TtPlanSpec spec;
    guint n_chunks, n_sub_lanes;
    gboolean in_place;
    const char *words[4]; /* the error says all of them; none: the plan is right */
    const Line *lines;
} Row;

static TtPlan *
plan_of(const Row *row)
{
    TtTable *table = tt_table_new(row->spec.n_ranks, row->n_chunks, MAX(1, row->n_sub_lanes));
    g_autoptr(GError) error = NULL;
    TtPlan *plan;

    for (const Line *l = row->lines; l->rank != TT_NO_RANK; l++) {
        TtStep step = l->waits ? tt_after(l->step, l->dep_lane, l->dep_step) : l->step;

        if (l->spans)
            step.n_chunks = l->n_chunks;
        g_array_append_val(tt_table_steps(table, l->rank, l->sub_lane), step);
    }
    plan = tt_table_to_plan(table, "by hand", &row->spec, &error);
    CHECK_NO_ERROR(error);
    return plan;
}

static void
check_rows(const Row *rows, guint n)
{
    for (guint r = 0; r < n; r++) {
        g_autoptr(TtPlan) plan = plan_of(&rows[r]);
        g_autoptr(GError) error = NULL;
        gboolean good = tt_verify(plan, rows[r].in_place, NULL, &error);

        CHECK(good == (rows[r].words[0] == NULL), "%s: %s", rows[r].name,
              error ? error->message : "accepted");
        if (good)
            continue;
        CHECK(g_error_matches(error, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID), "%s", rows[r].name);
        for (guint w = 0; w < G_N_ELEMENTS(rows[r].words) && rows[r].words[w]; w++)
            CHECK(strstr(error->message, rows[r].words[w]) != NULL, "%s: no \"%s\" in: %s", rows[r].name,
                  rows[r].words[w], error->message);
    }
}

#define STEP(op_, from, to, src_, dst_, chunk_)                                                      \
    {                                                                                              \
        .op = (op_), .recv_role = (from), .send_role = (to), .src = (src_), .dst = (dst_),         \
        .chunk = (chunk_), .n_chunks = 1, .dep_lane = TT_NO_LANE                                   \
    }
#define NO TT_NO_ROLE
#define SEND(to, src, c)         STEP(TT_OP_SEND, NO, to, src, src, c)
#define RECV(from, dst, c)       STEP(TT_OP_RECV, from, NO, dst, dst, c)
#define COPY(src, dst, c)        STEP(TT_OP_COPY, NO, NO, src, dst, c)
#define REDUCE(src, dst, c)      STEP(TT_OP_REDUCE, NO, NO, src, dst, c)
#define RR(from, src, dst, c)    STEP(TT_OP_RECV_REDUCE, from, NO, src, dst, c)
#define AFTER(lane, i)           .waits = TRUE, .dep_lane = (lane), .dep_step = (i)
#define SPAN(n)                  .spans = TRUE, .n_chunks = (n)
#define IN  TT_INPUT
#define OUT TT_OUTPUT
#define SCR TT_SCRATCH

#define ALL2   { .n_ranks = 2, .count = 10 }
#define ALL2_S1 { .n_ranks = 2, .count = 10, .n_slots = 1 }

/* The plan most wrong ones are made from: both send all they have, both add what they got. */
static const Line exchange[] = {
    { 0, 0, SEND(1, IN, 0) }, { 0, 0, RR(1, IN, OUT, 0) },
    { 1, 0, SEND(0, IN, 0) }, { 1, 0, RR(0, IN, OUT, 0) }, END,
};

/* Two messages each way before the first receive: two slots do, one does not. */
static const Line two_ahead[] = {
    { 0, 0, SEND(1, IN, 0) }, { 0, 0, SEND(1, IN, 1) },
    { 0, 0, RR(1, IN, OUT, 0) }, { 0, 0, RR(1, IN, OUT, 1) },
    { 1, 0, SEND(0, IN, 0) }, { 1, 0, SEND(0, IN, 1) },
    { 1, 0, RR(0, IN, OUT, 0) }, { 1, 0, RR(0, IN, OUT, 1) }, END,
};

/* Lane 1 of each rank adds; lane 0 copies the input first. Right if lane 1 waits for lane 0. */
#define TWO_LANES(dep0, dep1)                                                                      \
    (const Line[])                                                                                 \
    {                                                                                              \
        { 0, 0, COPY(IN, OUT, 0) }, { 0, 1, SEND(1, IN, 0) }, { 0, 1, RR(1, OUT, OUT, 0), dep0 },  \
        { 1, 0, COPY(IN, OUT, 0) }, { 1, 1, SEND(0, IN, 0) }, { 1, 1, RR(0, OUT, OUT, 0), dep1 },  \
        END                                                                                        \
    }

static void
right_plans_pass(void)
{
    static const Line alone[] = { { 0, 0, COPY(IN, OUT, 0) }, END };
    static const Line nothing[] = { END };
    /* reduce to rank 1 by way of its scratch */
    static const Line reduce[] = { { 0, 0, SEND(1, IN, 0) }, { 1, 0, RECV(0, SCR, 0) },
                                   { 1, 0, COPY(IN, OUT, 0) }, { 1, 0, REDUCE(SCR, OUT, 0) }, END };
    static const Line gather[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 0, SEND(1, OUT, 0) },
                                   { 0, 0, RECV(1, OUT, 1) }, { 1, 0, COPY(IN, OUT, 1) },
                                   { 1, 0, SEND(0, IN, 1) }, { 1, 0, RECV(0, OUT, 0) }, END };
    /* through a third lane: 2 waits for 1, which waited for 0 */
    static const Line chain[] = { { 0, 0, COPY(IN, SCR, 0) },
                                  { 0, 1, STEP(TT_OP_NOP, NO, NO, IN, IN, 0), AFTER(0, 0) },
                                  { 0, 2, COPY(SCR, OUT, 0), AFTER(1, 0) }, END };
    const Row rows[] = {
        { "one rank copies", { .n_ranks = 1, .count = 3 }, 1, 1, FALSE, { NULL }, alone },
        { "one rank in place does nothing", { .n_ranks = 1 }, 1, 1, TRUE, { NULL }, nothing },
        { "two exchange", ALL2_S1, 1, 1, FALSE, { NULL }, exchange },
        { "two exchange in place", ALL2_S1, 1, 1, TRUE, { NULL }, exchange },
        { "three channels, rounds", { .n_ranks = 2, .count = 10000, .n_channels = 3, .slot_bytes = 256 },
          1, 1, FALSE, { NULL }, exchange },
        { "two ahead with two slots", ALL2, 2, 1, FALSE, { NULL }, two_ahead },
        { "reduce through scratch", { .n_ranks = 2, .collective = TT_REDUCE, .root = 1 }, 1, 1, FALSE,
          { NULL }, reduce },
        { "allgather", { .n_ranks = 2, .collective = TT_ALLGATHER }, 2, 1, TRUE, { NULL }, gather },
        { "two lanes, ordered", ALL2, 1, 2, FALSE, { NULL }, TWO_LANES(AFTER(0, 0), AFTER(0, 0)) },
        { "order passed on", { .n_ranks = 1 }, 1, 3, FALSE, { NULL }, chain },
    };

    check_rows(rows, G_N_ELEMENTS(rows));
}

static void
wrong_data_is_named(void)
{
    static const Line overwritten[] = { { 0, 0, SEND(1, IN, 0) }, { 0, 0, RECV(1, OUT, 0) },
                                        { 1, 0, SEND(0, IN, 0) }, { 1, 0, RR(0, IN, OUT, 0) }, END };
    static const Line twice[] = { { 0, 0, SEND(1, IN, 0) }, { 0, 0, SEND(1, IN, 0) },
                                  { 0, 0, COPY(IN, OUT, 0) }, { 1, 0, RR(0, IN, OUT, 0) },
                                  { 1, 0, RR(0, OUT, OUT, 0) }, END };
    static const Line local_twice[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 0, REDUCE(IN, OUT, 0) }, END };
    static const Line undefined[] = { { 0, 0, SEND(1, OUT, 0) }, { 1, 0, RECV(0, OUT, 0) }, END };
    static const Line unwritten[] = { { 0, 0, SEND(1, IN, 0) }, { 1, 0, RR(0, IN, OUT, 0) }, END };
    static const Line chunk[] = { { 0, 0, SEND(1, IN, 1) }, { 1, 0, RECV(0, OUT, 0) }, END };
    static const Line touched[] = { { 0, 0, SEND(1, IN, 0) }, { 0, 0, RR(1, IN, IN, 0) },
                                    { 0, 0, COPY(IN, OUT, 0) }, { 1, 0, SEND(0, IN, 0) },
                                    { 1, 0, RR(0, IN, OUT, 0) }, END };
    static const Line stranger[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 0, SEND(1, IN, 0) },
                                     { 1, 0, RR(0, IN, OUT, 0) }, END };
    const Row rows[] = {
        { "received over the sum", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 1 (recv, chunk 0)", "lacks the contribution of rank 0" }, overwritten },
        { "added twice", ALL2, 1, 1, FALSE,
          { "rank 1, lane 0, step 1 (recv-reduce, chunk 0)", "rank 0 counted twice" }, twice },
        { "added to itself", { .n_ranks = 1 }, 1, 1, FALSE,
          { "rank 0, lane 0, step 1 (reduce, chunk 0)", "rank 0 counted twice" }, local_twice },
        { "sent before stored", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 0 (send, chunk 0)", "reads output chunk 0", "nothing was stored" },
          undefined },
        { "never stored", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 0 (", "output chunk 0 of rank 0 lacks", "rank 0" }, unwritten },
        { "received as another chunk", ALL2, 2, 1, FALSE,
          { "rank 1, lane 0, step 0 (recv, chunk 0)", "rank 0 sent in step 0 holds chunk 1" }, chunk },
        { "input changed", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 1 (recv-reduce, chunk 0)", "writes to the input" }, touched },
        { "a stranger's data", { .n_ranks = 2, .collective = TT_BROADCAST, .root = 0 }, 1, 1, FALSE,
          { "rank 1, lane 0, step 0", "this rank has no input buffer" }, stranger },
    };

    check_rows(rows, G_N_ELEMENTS(rows));
}

static void
blocked_plans_are_explained(void)
{
    static const Line both_wait[] = { { 0, 0, RR(1, IN, OUT, 0) }, { 0, 0, SEND(1, IN, 0) },
                                      { 1, 0, RR(0, IN, OUT, 0) }, { 1, 0, SEND(0, IN, 0) }, END };
    static const Line gone[] = { { 0, 0, SEND(1, IN, 0) }, { 0, 0, RR(1, IN, OUT, 0) },
                                 { 1, 0, RR(0, IN, OUT, 0) }, END };
    static const Line left_over[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 0, SEND(1, IN, 0) },
                                      { 1, 0, RR(0, IN, OUT, 0) }, { 1, 0, SEND(0, OUT, 0) }, END };
    static const Line own_future[] = { { 0, 0, COPY(IN, OUT, 0), AFTER(0, 1) },
                                       { 0, 0, COPY(IN, OUT, 0) }, END };
    const Row rows[] = {
        { "each waits for the other", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 0 (recv-reduce, chunk 0): deadlock", "a message from rank 1, lane 0",
            "rank 1, lane 0, step 0", "a cycle" }, both_wait },
        { "one slot too few", ALL2_S1, 2, 1, FALSE,
          { "rank 0, lane 0, step 1 (send, chunk 1): deadlock", "free slot (of 1) to rank 1, lane 0",
            "rank 1, lane 0, step 1", "a cycle" }, two_ahead },
        { "the same with rounds", { .n_ranks = 2, .count = 4000, .n_slots = 1, .slot_bytes = 128 }, 2, 1,
          FALSE, { "rank 0, lane 0, step 1 (send, chunk 1): deadlock" }, two_ahead },
        { "the other never sends", ALL2, 1, 1, FALSE,
          { "rank 0, lane 0, step 1 (recv-reduce, chunk 0): deadlock",
            "message from rank 1, lane 0, which has no steps left" }, gone },
        { "nobody receives", ALL2, 1, 1, FALSE,
          { "rank 1, lane 0, step 1 (send, chunk 0)", "rank 0 never receives this message" }, left_over },
        { "waits for its own future", { .n_ranks = 1 }, 1, 1, FALSE,
          { "rank 0, lane 0, step 0 (copy, chunk 0): deadlock", "waits for step 1 of its lane 0" },
          own_future },
    };

    check_rows(rows, G_N_ELEMENTS(rows));
}

static void
hazards_are_named(void)
{
    static const Line read_late[] = { { 0, 0, COPY(IN, SCR, 0) }, { 0, 0, COPY(SCR, OUT, 0) },
                                      { 0, 1, COPY(IN, SCR, 0), AFTER(0, 0) }, END };
    static const Line readers[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 1, COPY(IN, SCR, 0) }, END };
    /* ordered only by a message that went to rank 1 and back: does not count */
    static const Line by_message[] = { { 0, 0, COPY(IN, OUT, 0) }, { 0, 0, SEND(1, OUT, 0) },
                                       { 0, 1, RR(1, OUT, OUT, 0) },
                                       { 1, 0, RECV(0, OUT, 0) },
                                       { 1, 1, SEND(0, IN, 0) },
                                       { 1, 1, REDUCE(IN, OUT, 0), AFTER(0, 0) }, END };
    const Row rows[] = {
        { "written while another copies", ALL2, 1, 2, FALSE,
          { "rank 1, lane", "step", "chunk 0): hazard: lane", "the same output" },
          TWO_LANES(AFTER(0, 0), .waits = FALSE) },
        { "written while another reads", { .n_ranks = 1 }, 1, 2, FALSE,
          { "rank 0, lane", "hazard: lane", "the same scratch" }, read_late },
        { "two readers are no hazard", { .n_ranks = 1 }, 1, 2, FALSE, { NULL }, readers },
        { "messages do not order lanes", ALL2, 1, 2, FALSE, { "rank 0, lane", "hazard" }, by_message },
    };

    check_rows(rows, G_N_ELEMENTS(rows));
}

static void
malformed_steps_are_named(void)
{
#define ONE(...) (const Line[]) { { 0, 0, __VA_ARGS__ }, END }
    const Row rows[] = {
        { "unknown operation", ALL2, 1, 1, FALSE, { "rank 0, lane 0, step 0", "no operation 77" },
          ONE(STEP(77, NO, NO, IN, OUT, 0)) },
        { "unknown buffer", ALL2, 1, 1, FALSE, { "rank 0, lane 0, step 0", "no buffer 9" },
          ONE(COPY(9, OUT, 0)) },
        { "chunk out of range", ALL2, 2, 1, FALSE, { "(copy, chunk 2)", "chunks 0 .. 1" },
          ONE(COPY(IN, OUT, 2)) },
        { "span runs over the end", ALL2, 2, 1, FALSE, { "(copy, chunks 1+2)", "chunks 0 .. 1" },
          ONE(COPY(IN, OUT, 1), SPAN(2)) },
        { "span larger than there are", ALL2, 2, 1, FALSE, { "moves 3 chunks" },
          ONE(COPY(IN, OUT, 0), SPAN(3)) },
        { "no span", ALL2, 2, 1, FALSE, { "rank 0, lane 0, step 0 (copy, no chunk)", "moves 0 chunks" },
          ONE(COPY(IN, OUT, 0), SPAN(0)) },
        { "huge numbers", ALL2, 2, 1, FALSE, { "rank 0, lane 0, step 0" },
          ONE(COPY(IN, OUT, G_MAXUINT32), SPAN(G_MAXUINT32)) },
        { "to a rank there is not", ALL2, 1, 1, FALSE, { "step 0 (send, chunk 0)", "sends to role 2" },
          ONE(SEND(2, IN, 0)) },
        { "to itself", ALL2, 1, 1, FALSE, { "step 0 (send, chunk 0)", "sends to itself" },
          ONE(SEND(0, IN, 0)) },
        { "from itself", ALL2, 1, 1, FALSE, { "step 0 (recv, chunk 0)", "receives from itself" },
          ONE(RECV(0, OUT, 0)) },
        { "depends on a lane there is not", ALL2, 1, 1, FALSE, { "step 0 (copy", "depends on lane 1" },
          ONE(COPY(IN, OUT, 0), AFTER(1, 0)) },
        { "depends on a step there is not", ALL2, 1, 1, FALSE, { "step 0 (copy", "depends on step 1 of" },
          ONE(COPY(IN, OUT, 0), AFTER(0, 1)) },
        { "a part that is not its own", { .n_ranks = 2, .collective = TT_ALLGATHER }, 2, 1, FALSE,
          { "rank 0, lane 0, step 0 (copy, chunk 1)", "holds chunks 0 .. 0" }, ONE(COPY(IN, OUT, 1)) },
        { "an output only the root has", { .n_ranks = 2, .collective = TT_REDUCE, .root = 1 }, 1, 1, FALSE,
          { "rank 0, lane 0, step 0 (copy, chunk 0)", "no output buffer" }, ONE(COPY(IN, OUT, 0)) },
        { "parts of unequal chunks", { .n_ranks = 2, .collective = TT_ALLGATHER }, 3, 1, FALSE,
          { "3 chunks", "multiple of the ranks" }, ONE(COPY(IN, OUT, 0)) },
    };

    check_rows(rows, G_N_ELEMENTS(rows));
}

/* exchange: 2 messages of 10 floats on each of 3 channels = 2 * 10 * 4 bytes in all, 4 steps each */
static void
statistics_count_everything(void)
{
    const Row row = { "exchange", { .n_ranks = 2, .count = 1000, .type = TT_FLOAT32, .n_channels = 3,
                                    .slot_bytes = 128 }, 1, 1, FALSE, { NULL }, exchange };
    g_autoptr(TtPlan) plan = plan_of(&row);
    TtVerifyStats stats = { 0 };

    CHECK(plan->n_rounds > 1, "%lu", plan->n_rounds);
    CU_ASSERT(tt_verify(plan, FALSE, &stats, NULL));
    CU_ASSERT_EQUAL(stats.n_steps, 3 * 4);
    CU_ASSERT_EQUAL(stats.n_messages, 3 * 2);
    CU_ASSERT_EQUAL(stats.bytes, 2 * 1000 * 4);
}

static void
too_large_to_prove_is_refused(void)
{
    TtPlanSpec spec = { .n_ranks = 1u << 20, .count = 1 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    g_autoptr(GError) error = NULL;

    CU_ASSERT_FALSE(tt_verify(plan, FALSE, NULL, &error));
    CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "GiB");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "right plans pass", right_plans_pass },
                            { "wrong data is named", wrong_data_is_named },
                            { "blocked plans are explained", blocked_plans_are_explained },
                            { "hazards are named", hazards_are_named },
                            { "malformed steps are named", malformed_steps_are_named },
                            { "statistics count everything", statistics_count_everything },
                            { "too large to prove is refused", too_large_to_prove_is_refused },
                            CU_TEST_INFO_NULL };

    return check_main("verify", tests);
}
