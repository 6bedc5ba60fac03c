/* Several collectives at once: in flight on the same ranks, in groups, in both, at other times. */
#include "algos/table.h"
#include "exec/exec.h"
#include "tests/check.h"

#include <string.h>

#define MOST_BYTES (1 << 20)
#define MOST_PARTS 8

/* Rows of a test: what runs, and on which ranks. "01234" are members in that order. */
typedef struct {
    const char *algorithm;
    TtCollective collective;
    guint64 count;
    const char *members;
    double offset_s; /* of its last member */
} Part;

typedef struct {
    const char *name;
    guint n_ranks;
    TtRedop redop;
    TtType type;
    Part parts[MOST_PARTS];
} Row;

static const Row rows[] = {
    { "one of all", 3, TT_SUM, TT_FLOAT32, { { "ring", TT_ALLREDUCE, 5000, "012", 0 } } },
    { "two in flight",
      2,
      TT_SUM,
      TT_INT32,
      { { "ring", TT_ALLREDUCE, 3000, "01", 0 }, { "ring", TT_ALLREDUCE, 3000, "01", 0 } } },
    { "five in flight, each another way",
      4,
      TT_AVG,
      TT_FLOAT32,
      { { "ring", TT_ALLREDUCE, 3000, "0123", 0 },
        { "double-tree", TT_ALLREDUCE, 1001, "0123", 0 },
        { "direct", TT_ALLREDUCE, 7, "0123", 0 },
        { "ring", TT_ALLGATHER, 4096, "0123", 0 },
        { "recursive-doubling", TT_ALLREDUCE, 30000, "0123", 0 } } },
    { "two groups of two",
      4,
      TT_AVG,
      TT_INT64,
      { { "ring", TT_ALLREDUCE, 3000, "01", 0 }, { "ring", TT_ALLREDUCE, 3000, "23", 0 } } },
    { "odd and even",
      6,
      TT_PROD,
      TT_INT32,
      { { "ring", TT_ALLREDUCE, 3000, "024", 0 }, { "tree", TT_ALLREDUCE, 3000, "135", 0 } } },
    { "groups of unequal size, a rank in none",
      6,
      TT_SUM,
      TT_FLOAT64,
      { { "ring", TT_ALLREDUCE, 2999, "0215", 0 }, { "ring", TT_REDUCE_SCATTER, 17, "4", 0 } } },
    { "rows and columns of a grid at once",
      6,
      TT_MAX,
      TT_FLOAT16,
      { { "ring", TT_ALLREDUCE, 1000, "012", 0 },
        { "ring", TT_ALLREDUCE, 1000, "345", 0 },
        { "direct", TT_ALLREDUCE, 1000, "03", 0 },
        { "direct", TT_ALLREDUCE, 1000, "14", 0 },
        { "direct", TT_ALLREDUCE, 1000, "25", 0 } } },
    { "no elements beside some",
      3,
      TT_SUM,
      TT_INT8,
      { { "ring", TT_ALLREDUCE, 0, "012", 0 },
        { "ring", TT_BROADCAST, 100000, "210", 0 },
        { "ring", TT_REDUCE, 3, "120", 0 } } },
    { "long messages, which need no slots where memory is shared",
      2,
      TT_SUM,
      TT_FLOAT32,
      { { "ring", TT_ALLREDUCE, 60000, "01", 0 },
        { "two-shot", TT_ALLREDUCE, 60000, "10", 0 },
        { "direct", TT_ALLREDUCE, 20000, "01", 0 },
        { "ring", TT_ALLGATHER, 60000, "10", 0 } } },
    { "long messages in groups",
      4,
      TT_AVG,
      TT_FLOAT32,
      { { "ring", TT_ALLREDUCE, 100000, "03", 0 },
        { "two-shot", TT_ALLREDUCE, 100000, "12", 0.001 },
        { "ring", TT_ALLREDUCE, 100000, "3201", 0 } } },
    { "one begins later",
      3,
      TT_SUM,
      TT_FLOAT32,
      { { "ring", TT_ALLREDUCE, 3000, "012", 0.004 }, { "ring", TT_ALLREDUCE, 3000, "012", 0 } } },
};

static guint
count_parts(const Row *row)
{
    guint n = 0;

    while (n < MOST_PARTS && row->parts[n].algorithm)
        n++;
    return n;
}

/* The plans, members and offsets of a row, ready to run. */
typedef struct {
    guint n;
    TtRunPart parts[MOST_PARTS];
    guint members[MOST_PARTS][8];
    double offsets[MOST_PARTS][8];
} Ready;

static void
make_ready(const Row *row, Ready *ready)
{
    ready->n = count_parts(row);
    for (guint p = 0; p < ready->n; p++) {
        const Part *part = &row->parts[p];
        guint n = (guint)strlen(part->members);
        TtPlanSpec spec = { .collective = part->collective,
                            .n_ranks = n,
                            .count = part->count,
                            .type = row->type,
                            .redop = row->redop,
                            .n_channels = 1 + p % 2,
                            .slot_bytes = p % 3 ? 2048 : 0,
                            .n_slots = 2 + p };
        g_autoptr(GError) error = NULL;

        for (guint i = 0; i < n; i++) {
            ready->members[p][i] = (guint)(part->members[i] - '0');
            ready->offsets[p][i] = i + 1 == n ? part->offset_s : 0;
        }
        ready->parts[p] = (TtRunPart){ .plan = tt_plan_new(part->algorithm, &spec, &error),
                                       .members = ready->members[p],
                                       .offset_s = ready->offsets[p] };
        CHECK_NO_ERROR(error);
    }
}

static void
clear(Ready *ready)
{
    for (guint p = 0; p < ready->n; p++)
        tt_plan_free((TtPlan *)ready->parts[p].plan);
}

static TtTeam *
start_with(const char *transport, guint n_ranks, guint ranks_per_host, TtFault fault)
{
    TtTeamOptions options = { .n_ranks = n_ranks,
                              .transport = transport,
                              .max_bytes = MOST_BYTES,
                              .ranks_per_host = ranks_per_host,
                              .timeout_s = 20,
                              .fault = fault };
    g_autoptr(GError) error = NULL;
    TtTeam *team = tt_team_start(&options, &error);

    CHECK_NO_ERROR(error);
    return team;
}

static TtTeam *
start(const char *transport, guint n_ranks, guint ranks_per_host)
{
    return start_with(transport, n_ranks, ranks_per_host, (TtFault){ 0 });
}

static void
run_row(const char *transport, const Row *row, gboolean in_place)
{
    TtRunOptions options = { .warmup = 1,
                             .iterations = 4,
                             .in_place = in_place,
                             .check = TRUE,
                             .record = TRUE,
                             .stamps = TRUE,
                             .arrivals = TRUE };
    g_autoptr(TtTeam) team = start(transport, row->n_ranks, 2);
    g_autoptr(GError) error = NULL;
    TtRunResult results[MOST_PARTS] = { 0 };
    Ready ready;

    make_ready(row, &ready);
    for (guint again = 0; again < 2; again++) { /* the second job finds the memory of the first */
        tt_team_run_parts(team, ready.parts, ready.n, &options, results, &error);
        CHECK(error == NULL, "%s, %s: %s", row->name, transport, error ? error->message : "");
        for (guint p = 0; p < ready.n; p++) {
            guint n = ready.parts[p].plan->spec.n_ranks;

            CHECK(results[p].wrong == 0, "%s, %s, part %u: %ld wrong", row->name, transport, p,
                  (long)results[p].wrong);
            CHECK(results[p].time_s > row->parts[p].offset_s / n && results[p].iterations.n == 4,
                  "%s, %s, part %u: times", row->name, transport, p);
            CHECK(results[p].arrivals && results[p].arrivals->len == n, "%s: arrivals", row->name);
            for (guint i = 0; results[p].arrivals && i < n; i++)
                CU_ASSERT_EQUAL(g_array_index(results[p].arrivals, TtArrival, i).rank,
                                ready.members[p][i]);
            CHECK((results[p].timeline != NULL) == (p == 0), "%s: timeline", row->name);
            tt_run_result_clear(&results[p]);
        }
    }
    clear(&ready);
}

static void
all_parts_are_right(void)
{
    static const char *const transports[] = { "threads", "threads,tcp", "shm", "tcp", "shm,tcp" };

    /* Between processes a sanitizer sees one side only. */
    for (guint t = 0; t < G_N_ELEMENTS(transports); t++)
        for (guint r = 0; r < G_N_ELEMENTS(rows);
             r += g_str_has_prefix(transports[t], "threads") ? 1 : check_every(3))
            run_row(transports[t], &rows[r], (r + t) % 2);
}

/* Lanes of the second part are numbered after those of the first, and every rank has events of its own parts only. */
static void
a_timeline_tells_parts_apart(void)
{
    static const Row row = { "two groups",
                             4,
                             TT_SUM,
                             TT_FLOAT32,
                             { { "ring", TT_ALLREDUCE, 3000, "02", 0 },
                               { "ring", TT_ALLREDUCE, 3000, "13", 0 } } };
    TtRunOptions options = { .iterations = 1, .record = TRUE };
    g_autoptr(TtTeam) team = start("shm", 4, 0);
    g_autoptr(GError) error = NULL;
    TtRunResult results[2] = { 0 };
    Ready ready;

    make_ready(&row, &ready);
    CU_ASSERT(tt_team_run_parts(team, ready.parts, 2, &options, results, &error));
    CHECK_NO_ERROR(error);
    for (guint i = 0; results[0].timeline && i < results[0].timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(results[0].timeline->events, TtEvent, i);

        CHECK(e->rank % 2 == (e->lane >= ready.parts[0].plan->n_lanes), "rank %u lane %u", e->rank,
              e->lane);
        CHECK(e->send_peer == TT_NO_RANK || e->send_peer == (e->rank + 2) % 4, "peer %u",
              e->send_peer);
    }
    tt_run_result_clear(&results[0]);
    clear(&ready);
}

static void
what_cannot_be_is_refused(void)
{
    static const struct {
        const char *name;
        Row row;
        const char *words;
    } bad[] = {
        { "a rank twice",
          { "", 3, TT_SUM, TT_INT8, { { "ring", TT_ALLREDUCE, 5, "011", 0 } } },
          "rank 1 is twice" },
        { "a rank that is not there",
          { "", 3, TT_SUM, TT_INT8, { { "ring", TT_ALLREDUCE, 5, "013", 0 } } },
          "rank 3 is none of the team's" },
        { "more than fits",
          { "",
            2,
            TT_SUM,
            TT_INT8,
            { { "ring", TT_ALLREDUCE, MOST_BYTES - 5, "01", 0 },
              { "ring", TT_ALLREDUCE, 6, "01", 0 } } },
          "on a team started for" },
        { "later than the time-out",
          { "", 2, TT_SUM, TT_INT8, { { "ring", TT_ALLREDUCE, 5, "01", 21 } } },
          "start offset" },
    };
    TtRunOptions once = { .iterations = 1 };
    TtRunResult results[MOST_PARTS];

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(TtTeam) team = start("shm", bad[i].row.n_ranks, 0);
        g_autoptr(GError) error = NULL;
        Ready ready;

        make_ready(&bad[i].row, &ready);
        CHECK_ROW(&bad[i], !tt_team_run_parts(team, ready.parts, ready.n, &once, results, &error));
        CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, bad[i].words);
        clear(&ready);
    }
}

/* Who dies is named with the collective it was in. */
static void
a_death_is_told_by_collective(void)
{
    static const Row row = { "two groups",
                             4,
                             TT_SUM,
                             TT_FLOAT32,
                             { { "ring", TT_ALLREDUCE, 3000, "01", 0 },
                               { "ring", TT_ALLREDUCE, 3000, "23", 0 } } };
    TtRunOptions forever = { .iterations = 1000000000 };
    TtFault fault = { .kind = TT_FAULT_KILL, .rank = 2, .after = 5 };
    g_autoptr(TtTeam) team = start_with("shm", 4, 0, fault);
    g_autoptr(GError) error = NULL;
    TtRunResult results[2];
    Ready ready;

    make_ready(&row, &ready);
    CU_ASSERT_FALSE(tt_team_run_parts(team, ready.parts, 2, &forever, results, &error));
    CHECK(error && strstr(error->message, "rank 2 died"), "%s", error ? error->message : "none");
    CHECK(error && strstr(error->message, "collective 1 lane 0 iteration 4"), "%s",
          error ? error->message : "none");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "rank 3 waits for");
    clear(&ready);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "all parts are right", all_parts_are_right },
                            { "a timeline tells parts apart", a_timeline_tells_parts_apart },
                            { "what cannot be is refused", what_cannot_be_is_refused },
                            { "a death is told by collective", a_death_is_told_by_collective },
                            CU_TEST_INFO_NULL };

    return check_main("parts", tests);
}
