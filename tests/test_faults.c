/* Ranks that die or stop: the run ends soon, says who and what, and leaves nothing behind. */
#include "algos/table.h"
#include "exec/exec.h"
#include "tests/check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_RANKS 3

/* A long run: minutes, if nobody interferes. */
static const TtRunOptions forever = { .iterations = 1000000000 };

static TtTeam *
start(double timeout_s)
{
    TtTeamOptions options = {
        .n_ranks = N_RANKS, .transport = "shm", .max_bytes = 1 << 20, .timeout_s = timeout_s
    };
    g_autoptr(GError) error = NULL;
    TtTeam *team = tt_team_start(&options, &error);

    CHECK_NO_ERROR(error);
    return team;
}

static TtPlan *
ring(void)
{
    TtPlanSpec spec = {
        .n_ranks = N_RANKS, .count = 30000, .type = TT_FLOAT32, .slot_bytes = 4096
    };

    return tt_plan_new("ring", &spec, NULL);
}

static double
now_s(void)
{
    return (double)g_get_monotonic_time() * 1e-6;
}

static guint
count_shared_segments(void)
{
    GDir *dir = g_dir_open("/dev/shm", 0, NULL);
    guint n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    if (dir)
        g_dir_close(dir);
    return n;
}

/* Gone: not even a zombie. */
static gboolean
is_gone(GPid pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* Waits up to two seconds: for processes that are not ours to reap. */
static gboolean
goes_away(GPid pid)
{
    for (guint i = 0; i < 200 && !is_gone(pid); i++)
        g_usleep(10000);
    return is_gone(pid);
}

/* A signal sent a while after the run has begun. */
typedef struct {
    GPid pid;
    int signal;
    guint delay_us;
    double sent_s;
} Shot;

static gpointer
shoot(gpointer data)
{
    Shot *shot = data;

    g_usleep(shot->delay_us);
    shot->sent_s = now_s();
    kill(shot->pid, shot->signal);
    return NULL;
}

typedef struct {
    const char *name;
    guint victim;
    int signal;
    double timeout_s, most_s;
    gint code;
    const char *words[4];
} Row;

/* Starts a team, runs, shoots after @delay_us; checks all but the words. Returns what the run said. */
static GError *
run_and_shoot_after(const Row *row, guint delay_us)
{
    guint segments = count_shared_segments();
    TtTeam *team = start(row->timeout_s);
    g_autoptr(TtPlan) plan = ring();
    Shot shot = { tt_team_pid(team, row->victim), row->signal, delay_us, 0 };
    GThread *thread = g_thread_new("shoot", shoot, &shot);
    GError *error = NULL, *again = NULL;
    TtRunResult result;
    GPid pids[N_RANKS];
    double took_s;

    for (guint r = 0; r < N_RANKS; r++)
        pids[r] = tt_team_pid(team, r);
    CHECK_ROW(row, !tt_team_run(team, plan, &forever, &result, &error));
    took_s = now_s();
    g_thread_join(thread);
    took_s -= shot.sent_s;
    CHECK(took_s < row->most_s, "%s: %.3f s after the signal", row->name, took_s);
    CHECK(g_error_matches(error, TT_EXEC_ERROR, row->code), "%s: %s", row->name,
          error ? error->message : "no error");
    for (guint r = 0; r < N_RANKS; r++)
        CHECK(is_gone(pids[r]), "%s: rank %u is still there", row->name, r);
    CHECK_ROW(row, !tt_team_run(team, plan, &forever, &result, &again));
    CHECK_ERROR(again, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "start a new team");
    tt_team_stop(team);
    CU_ASSERT_EQUAL(count_shared_segments(), segments);
    return error;
}

/* On a busy machine ranks may not have begun when the shot falls: then it falls later. */
static void
run_and_shoot(const Row *row)
{
    guint delay_us = 100000;
    g_autoptr(GError) error = run_and_shoot_after(row, delay_us);

    while (error && strstr(error->message, "no step finished") && delay_us < 3000000) {
        delay_us *= 3;
        g_clear_error(&error);
        error = run_and_shoot_after(row, delay_us);
    }
    for (guint w = 0; w < G_N_ELEMENTS(row->words) && row->words[w]; w++)
        CHECK(error && strstr(error->message, row->words[w]), "%s: \"%s\" not in: %s", row->name,
              row->words[w], error ? error->message : "none");
}

static void
a_rank_is_shot(void)
{
    static const Row rows[] = {
        { "killed",
          1,
          SIGKILL,
          20,
          1.0,
          TT_EXEC_ERROR_DEAD,
          { "rank 1 died of signal 9", "last finished step: lane 0 iteration",
            "rank 2 waits for a message from rank 1" } },
        { "the first, asked to end",
          0,
          SIGTERM,
          20,
          1.0,
          TT_EXEC_ERROR_DEAD,
          { "rank 0 died of signal 15" } },
        { "stopped",
          2,
          SIGSTOP,
          0.5,
          2.5,
          TT_EXEC_ERROR_HANG,
          { "no progress for 0.5 s; rank 2 is stopped by signal 19",
            "rank 0 waits for a message from rank 2" } },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++)
        run_and_shoot(&rows[r]);
}

/* Its neighbour is stopped, so the rank that is killed had been waiting. */
static void
a_waiting_rank_is_killed(void)
{
    TtTeam *team = start(20);
    g_autoptr(TtPlan) plan = ring();
    Shot stop = { tt_team_pid(team, 0), SIGSTOP, 100000, 0 };
    Shot death = { tt_team_pid(team, 1), SIGKILL, 300000, 0 };
    GThread *first = g_thread_new("stop", shoot, &stop),
            *second = g_thread_new("kill", shoot, &death);
    g_autoptr(GError) error = NULL;
    TtRunResult result;

    CU_ASSERT_FALSE(tt_team_run(team, plan, &forever, &result, &error));
    CHECK(now_s() - death.sent_s < 1, "%.3f s", now_s() - death.sent_s);
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "rank 1 died");
    g_thread_join(first);
    g_thread_join(second);
    CU_ASSERT(is_gone(stop.pid) && is_gone(death.pid)); /* the stopped one too */
    tt_team_stop(team);
}

static void
an_idle_rank_is_killed(void)
{
    TtTeam *team = start(20);
    g_autoptr(TtPlan) plan = ring();
    TtRunOptions once = { .iterations = 1, .check = TRUE };
    g_autoptr(GError) error = NULL;
    TtRunResult result;

    CU_ASSERT(tt_team_run(team, plan, &once, &result, &error));
    kill(tt_team_pid(team, 2), SIGKILL);
    CU_ASSERT_FALSE(tt_team_run(team, plan, &once, &result, &error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "rank 2 died of signal 9");
    tt_team_stop(team);
}

/* Rank 1 waits for a message nobody sends. */
static void
a_plan_that_hangs_is_named(void)
{
    TtTable *table = tt_table_new(N_RANKS, 1, 1);
    TtPlanSpec spec = { .n_ranks = N_RANKS, .count = 10, .type = TT_FLOAT32 };
    TtStep step = tt_recv(2, TT_OUTPUT, 0); /* roles of a table are ranks */
    TtTeam *team = start(0.3);
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = NULL;
    TtRunOptions once = { .iterations = 1 };
    TtRunResult result;
    double begin_s = now_s();

    g_array_append_val(tt_table_steps(table, 1, 0), step);
    plan = tt_table_to_plan(table, "lonely", &spec, &error);
    CHECK_NO_ERROR(error);
    CU_ASSERT_FALSE(tt_team_run(team, plan, &once, &result, &error));
    CHECK(now_s() - begin_s < 2.3, "%.3f s", now_s() - begin_s);
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG,
                "rank 1 waits for a message from rank 2, lane 0 iteration 0 round 0 step 0 (recv)");
    tt_team_stop(team);
}

/* A program that runs a team is killed, or interrupted: its ranks go with it. */
static void
the_parent_is_shot(void)
{
    static const int signals[] = { SIGKILL, SIGINT, SIGTERM };

    for (guint s = 0; s < G_N_ELEMENTS(signals); s++) {
        GPid pids[N_RANKS] = { 0 };
        int ends[2], status;
        pid_t parent;

        CU_ASSERT_EQUAL(pipe(ends), 0);
        parent = fork();
        if (parent == 0) {
            TtTeam *team = start(20);
            TtPlan *plan = ring();
            TtRunResult result;

            for (guint r = 0; r < N_RANKS; r++)
                pids[r] = tt_team_pid(team, r);
            if (write(ends[1], pids, sizeof pids) == sizeof pids)
                tt_team_run(team, plan, &forever, &result, NULL);
            _exit(0);
        }
        CU_ASSERT_EQUAL(read(ends[0], pids, sizeof pids), sizeof pids);
        g_usleep(50000);
        kill(parent, signals[s]);
        CU_ASSERT_EQUAL(waitpid(parent, &status, 0), parent);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[s], "signal %d", signals[s]);
        for (guint r = 0; r < N_RANKS; r++)
            CHECK(goes_away(pids[r]), "signal %d: rank %u outlives its parent", signals[s], r);
        close(ends[0]);
        close(ends[1]);
    }
}

static void
a_team_that_stops_is_gone(void)
{
    TtTeam *team = start(20);
    double begin_s = now_s();
    GPid pids[N_RANKS];

    for (guint r = 0; r < N_RANKS; r++)
        pids[r] = tt_team_pid(team, r);
    tt_team_stop(team);
    CHECK(now_s() - begin_s < 1, "%.3f s", now_s() - begin_s);
    for (guint r = 0; r < N_RANKS; r++)
        CU_ASSERT(is_gone(pids[r]));
    tt_team_stop(NULL);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "a rank is shot", a_rank_is_shot },
                            { "a waiting rank is killed", a_waiting_rank_is_killed },
                            { "an idle rank is killed", an_idle_rank_is_killed },
                            { "a plan that hangs is named", a_plan_that_hangs_is_named },
                            { "the parent is shot", the_parent_is_shot },
                            { "a team that stops is gone", a_team_that_stops_is_gone },
                            CU_TEST_INFO_NULL };

    return check_main("faults", tests);
}
