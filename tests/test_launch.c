#include "exec/launch.h"
#include "exec/launch_env.h"
#include "exec/exec.h"
#include "tests/check.h"
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = { "node2", "node2.cluster", "10.0.0.2", "fe80::2", NULL };
static const TtLaunchMachine machine = { names, "4242 100" };

/* Variables of a launcher, as real ones set them; "what" is what is found, or "!words of the error". */
#define TORCH                                                                                      \
    "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=29500"
#define OMPI                                                                                       \
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "                  \
    "OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_MCA_ess_base_jobid=1494810625"
#define OMPI_FAR                                                                                   \
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "                  \
    "OMPI_COMM_WORLD_LOCAL_SIZE=2"
#define HYDRA     "PMI_RANK=2 PMI_SIZE=3 PMI_FD=6 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3"
#define HYDRA_FAR "PMI_RANK=2 PMI_SIZE=3 PMI_FD=6 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"
#define MV2                                                                                        \
    "MV2_COMM_WORLD_RANK=2 MV2_COMM_WORLD_SIZE=3 MV2_COMM_WORLD_LOCAL_RANK=2 "                     \
    "MV2_COMM_WORLD_LOCAL_SIZE=3"
#define MVP                                                                                        \
    "MVP_COMM_WORLD_RANK=2 MVP_COMM_WORLD_SIZE=3 MVP_COMM_WORLD_LOCAL_RANK=2 "                     \
    "MVP_COMM_WORLD_LOCAL_SIZE=3"
#define SLURM                                                                                      \
    "SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_STEP_NUM_TASKS=6 SLURM_LOCALID=2 SLURM_NODEID=1 "         \
    "SLURM_STEP_TASKS_PER_NODE=3(x2) SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=node[03-04] "      \
    "SLURM_JOB_ID=1000 SLURM_STEP_ID=2"
#define SLURM_ONE                                                                                  \
    "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 "    \
    "SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=node3 SLURM_JOB_ID=1000 SLURM_STEP_ID=2"

static const struct {
    const char *name, *environment;
    TtLaunchOptions options;
    const char *want;
} rows[] = {
    { "nothing: this process is everyone", "HOME=/root", { .n_ranks = 4 }, "fork 0+4/4 host 0/1" },
    { "nothing, not even --ranks", "", { 0 }, "fork 0+0/0 host 0/1" },

    { "torchrun over machines", TORCH, { 0 }, "torchrun 3+1/8 host 1/2 at node0:29500" },
    { "torchrun whose agent has the port",
      TORCH " TORCHELASTIC_USE_AGENT_STORE=True",
      { 0 },
      "torchrun 3+1/8 host 1/2 at node0:29501" },
    { "variables set by hand",
      "RANK=1 WORLD_SIZE=2 MASTER_ADDR=::1",
      { 0 },
      "torchrun 1+1/2 host 0/1 at ::1:29400" },
    { "torchrun on one machine",
      "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n "
      "MASTER_PORT=1",
      { 0 },
      "torchrun 1+1/2 host 1/2 meeting" },
    { "RANK alone is anybody's", "RANK=colonel", { 0 }, "fork 0+0/0 host 0/1" },
    { "no address", "RANK=1 WORLD_SIZE=2", { 0 }, "!MASTER_ADDR is not" },
    { "no size", "RANK=1 MASTER_ADDR=x", { 0 }, "!RANK=1 is set, but WORLD_SIZE is not" },

    { "Open MPI on one machine", OMPI, { 0 }, "Open MPI 1+1/4 host 1/4 meeting" },
    { "Open MPI, --ranks agrees", OMPI, { .n_ranks = 4 }, "Open MPI 1+1/4 host 1/4 meeting" },
    { "Open MPI, --ranks disagrees", OMPI, { .n_ranks = 8 }, "!--ranks 8, but Open MPI started 4" },
    { "Open MPI, --rank disagrees",
      OMPI,
      { .rank = "2" },
      "!--rank 2, but Open MPI says that this is rank 1" },
    { "Open MPI and a hostfile", OMPI, { .hostfile = "x" }, "!--hostfile and Open MPI both" },
    { "Open MPI over machines", OMPI_FAR, { 0 }, "!give --meet HOST:PORT or set TUTTI_ROOT" },
    { "Open MPI over machines, told",
      OMPI_FAR,
      { .root = "[fe80::1]:77" },
      "Open MPI 1+1/4 host 1/2 at fe80::1:77" },
    { "Open MPI over machines, told by a variable",
      OMPI_FAR " TUTTI_ROOT=a:5",
      { 0 },
      "Open MPI 1+1/4 host 1/2 at a:5" },
    { "the option is before the variable",
      OMPI_FAR " TUTTI_ROOT=a:5",
      { .root = "b" },
      "Open MPI 1+1/4 host 1/2 at b:29400" },
    { "the variable alone does not make a team",
      "TUTTI_ROOT=a:5",
      { .n_ranks = 2 },
      "fork 0+2/2 host 0/1" },

    { "MPICH on one machine", HYDRA, { 0 }, "MPICH 2+1/3 host 2/3 meeting" },
    { "MPICH over machines asks Hydra", HYDRA_FAR, { 0 }, "MPICH 2+1/3 host 0/1 pmi 6" },
    { "MPICH over machines, told", HYDRA_FAR, { .root = "h:1" }, "MPICH 2+1/3 host 0/1 at h:1" },
    { "PMI by port", "PMI_RANK=2 PMI_SIZE=3 PMI_PORT=h:7", { 0 }, "!give --meet HOST:PORT" },

    { "MVAPICH2", MV2, { 0 }, "MVAPICH 2+1/3 host 2/3 meeting" },
    { "MVAPICH 3", MVP, { 0 }, "MVAPICH 2+1/3 host 2/3 meeting" },
    { "MVAPICH under Hydra", MV2 " " HYDRA, { 0 }, "MVAPICH 2+1/3 host 2/3 meeting" },

    /* 20000 + (1000 * 7 + 2) % 20000 */
    { "Slurm over nodes", SLURM, { 0 }, "Slurm 5+1/6 host 2/3 at node03:27002" },
    { "Slurm on one node", SLURM_ONE, { 0 }, "Slurm 1+1/2 host 1/2 meeting" },
    { "srun --mpi=pmi2 sets both",
      SLURM " PMI_RANK=5 PMI_SIZE=6 PMI_FD=9",
      { 0 },
      "Slurm 5+1/6 host 2/3 at node03:27002" },
    { "an allocation without a step",
      "SLURM_JOB_ID=7 SLURM_NTASKS=64 SLURM_NNODES=8",
      { 0 },
      "fork 0+0/0 host 0/1" },
    { "a batch script",
      "SLURM_JOB_ID=7 SLURM_NTASKS=64 SLURM_PROCID=0",
      { .n_ranks = 2 },
      "fork 0+2/2 host 0/1" },
    { "a shell in an allocation",
      "SLURM_JOB_ID=7 SLURM_NTASKS=64 SLURM_PROCID=0 SLURM_STEP_ID=4294967290",
      { 0 },
      "fork 0+0/0 host 0/1" },
    { "srun --pty bash",
      "SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0",
      { .n_ranks = 8 },
      "fork 0+8/8 host 0/1" },
    { "a list without an end",
      "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_NODELIST=n[1",
      { 0 },
      "!names no first host" },

    { "mpirun in an allocation",
      OMPI " SLURM_JOB_ID=7 SLURM_NTASKS=64",
      { 0 },
      "Open MPI 1+1/4 host 1/4 meeting" },
    { "orted started by srun, other size",
      OMPI " SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0",
      { 0 },
      "Open MPI 1+1/4 host 1/4 meeting" },
    { "Hydra's proxies, as many as ranks, one per node",
      HYDRA_FAR " SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=3 SLURM_STEP_ID=0",
      { 0 },
      "MPICH 2+1/3 host 0/1 pmi 6" },
    { "torchrun's agents started by srun",
      TORCH " SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 "
            "SLURM_STEP_ID=0",
      { 0 },
      "torchrun 3+1/8 host 1/2 at node0:29500" },
    { "torchrun's agents started by mpirun",
      TORCH " GROUP_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
      { 0 },
      "torchrun 3+1/8 host 1/2 at node0:29500" },
    { "mpirun in a shell by srun",
      OMPI " SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0",
      { 0 },
      "Open MPI 1+1/4 host 1/4 meeting" },

    { "two that disagree",
      OMPI " " HYDRA,
      { 0 },
      "!Open MPI and MPICH disagree: OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4, but "
      "PMI_RANK=2, "
      "PMI_SIZE=3" },
    { "two that disagree by rank", MV2 " PMI_RANK=1 PMI_SIZE=3", { 0 }, "!MV2_COMM_WORLD_RANK=2" },
    { "Slurm with several tasks a node, same size, other rank",
      "PMI_RANK=1 PMI_SIZE=6 " SLURM,
      { 0 },
      "!Slurm and MPICH disagree: SLURM_PROCID=5" },

    { "not a number", "PMI_RANK=two PMI_SIZE=3", { 0 }, "!PMI_RANK=two is not a number" },
    { "rank too large",
      "PMI_RANK=3 PMI_SIZE=3",
      { 0 },
      "!PMI_RANK=3 must be less than PMI_SIZE=3" },
    { "negative", "PMI_RANK=-1 PMI_SIZE=3", { 0 }, "!PMI_RANK=-1" },
    { "size 0", "PMI_RANK=0 PMI_SIZE=0", { 0 }, "!must be less than" },
    { "size missing", "OMPI_COMM_WORLD_RANK=0", { 0 }, "!but OMPI_COMM_WORLD_SIZE is not" },
    { "a port that is none",
      "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000",
      { 0 },
      "!MASTER_PORT=70000" },
    { "local numbers that make no sense are not used",
      "PMI_RANK=2 PMI_SIZE=3 PMI_FD=6 MPI_LOCALRANKID=9 MPI_LOCALNRANKS=3",
      { 0 },
      "MPICH 2+1/3 host 0/1 pmi 6" },

    { "--meet, one rank",
      "",
      { .root = "h:5", .rank = "3", .n_ranks = 4 },
      "--meet 3+1/4 host 0/1 at h:5" },
    { "--meet, a range",
      "",
      { .root = "h", .rank = "0-3", .n_ranks = 8 },
      "--meet 0+4/8 host 0/1 at h:29400" },
    { "--rank and TUTTI_ROOT",
      "TUTTI_ROOT=h:6",
      { .rank = "1", .n_ranks = 2 },
      "--meet 1+1/2 host 0/1 at h:6" },
    { "a broken TUTTI_ROOT", "TUTTI_ROOT=h:", { .rank = "1", .n_ranks = 2 }, "!TUTTI_ROOT= h:" },
    { "--meet alone", "", { .root = "h:5" }, "!--meet needs --rank and --ranks too" },
    { "--meet without --ranks", "", { .root = "h:5", .rank = "1" }, "!--rank needs --ranks too" },
    { "--rank alone", "", { .rank = "1", .n_ranks = 2 }, "!--rank needs --meet HOST:PORT" },
    { "rank past the end",
      "",
      { .root = "h", .rank = "2-4", .n_ranks = 4 },
      "!there are ranks 0-3" },
    { "range backwards", "", { .root = "h", .rank = "3-2", .n_ranks = 4 }, "!--rank 3-2 is not" },
    { "range of words", "", { .root = "h", .rank = "a-b", .n_ranks = 4 }, "!--rank a-b is not" },
    { "empty range", "", { .root = "h", .rank = "", .n_ranks = 4 }, "!is not a rank" },
    { "port 0", "", { .root = "h:0", .rank = "0", .n_ranks = 2 }, "!ports 1 to 65535" },
    { "bare IPv6", "", { .root = "::1", .rank = "0", .n_ranks = 2 }, "!needs brackets" },
    { "no host", "", { .root = ":7", .rank = "0", .n_ranks = 2 }, "!is not HOST:PORT" },
    { "half a bracket", "", { .root = "[::1]x", .rank = "0", .n_ranks = 2 }, "!is not HOST:PORT" },
};

static char *
describe(const TtLaunch *l)
{
    GString *s = g_string_new(NULL);

    g_string_printf(s, "%s %u+%u/%u host %u/%u", l->source, l->first_rank, l->n_local, l->n_ranks,
                    l->host_rank, l->n_on_host);
    if (l->root_host)
        g_string_append_printf(s, " at %s:%u", l->root_host, l->root_port);
    if (l->meeting)
        g_string_append(s, " meeting");
    if (l->pmi_fd >= 0)
        g_string_append_printf(s, " pmi %d", l->pmi_fd);
    return g_string_free(s, FALSE);
}

static void
test_environments(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) environment = g_strsplit(rows[i].environment, " ", -1);
        TtLaunchOptions options = rows[i].options;
        g_auto(TtLaunch) launch = { 0 };
        g_autoptr(GError) error = NULL;
        g_autofree char *got = NULL;

        options.machine = &machine;
        if (tt_launch_find(&options, (const char *const *)environment, &launch, &error))
            got = describe(&launch);
        else
            got = g_strdup_printf("!%s", error->message);
        CHECK(*rows[i].want == '!' ? *got == '!' && strstr(got, rows[i].want + 1) != NULL
                                   : g_str_equal(got, rows[i].want),
              "%s: wanted \"%s\", got \"%s\"", rows[i].name, rows[i].want, got);
        CHECK(!strchr(got, '\n'), "%s: one line", rows[i].name);
    }
}

/* All ranks of one launcher find the same meeting; those of another one do not. */
static void
test_meetings(void)
{
    static const TtLaunchMachine other = { names, "4343 100" };
    const char *const hydra0[] = { "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0",
                                   "MPI_LOCALNRANKS=2", NULL };
    const char *const hydra1[] = { "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1",
                                   "MPI_LOCALNRANKS=2", NULL };
    TtLaunchOptions here = { .machine = &machine }, there = { .machine = &other }, real = { 0 };
    g_auto(TtLaunch) a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, e = { 0 };

    CHECK(tt_launch_find(&here, hydra0, &a, NULL), "a");
    CHECK(tt_launch_find(&here, hydra1, &b, NULL), "b");
    CHECK(tt_launch_find(&there, hydra1, &c, NULL), "c");
    CHECK(tt_launch_find(&real, hydra0, &d, NULL), "d");
    CHECK(tt_launch_find(&real, hydra1, &e, NULL), "e");
    CHECK(!g_strcmp0(a.meeting, b.meeting), "%s, %s", a.meeting, b.meeting);
    CHECK(g_strcmp0(a.meeting, c.meeting), "%s", a.meeting);
    CHECK(!g_strcmp0(d.meeting, e.meeting), "one parent: %s, %s", d.meeting, e.meeting);
    CHECK(strlen(a.meeting) < 100, "an abstract socket's name has 107 bytes: %s", a.meeting);
}

static void
test_node_lists(void)
{
    static const struct {
        const char *name, *list, *first;
    } lists[] = {
        { "one host", "node7", "node7" },
        { "two hosts", "node7,node8", "node7" },
        { "a range keeps its zeros", "node[03-07,9],x1", "node03" },
        { "a number in brackets", "node[12]", "node12" },
        { "something after it", "node[1-2].cluster,x", "node1.cluster" },
        { "two brackets", "rack[2-3]node[05-06]", "rack2node05" },
        { "nothing", "", NULL },
        { "no end", "node[1-2", NULL },
    };
    static const struct {
        const char *counts;
        guint node, want;
    } counts[] = { { "4", 0, 4 },       { "4(x2),3", 1, 4 }, { "4(x2),3", 2, 3 },
                   { "4(x2),3", 3, 0 }, { "junk", 0, 0 },    { "", 0, 0 } };

    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *got = tt_slurm_first_host(lists[i].list);

        CHECK(!g_strcmp0(got, lists[i].first), "%s: %s", lists[i].name, got);
    }
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        CHECK(tt_slurm_tasks_on(counts[i].counts, counts[i].node) == counts[i].want, "%s",
              counts[i].counts);
}

static void
test_hostfiles(void)
{
    static const struct {
        const char *name, *text;
        TtLaunchOptions options;
        const char *want;
    } files[] = {
        { "slots as Open MPI writes them",
          "node1 slots=4\nnode2 slots=2\n",
          { 0 },
          "--hostfile 4+2/6 host 0/1 at node1:29400" },
        { "slots as MPICH writes them",
          "# mine\nnode1:3\n\nNODE2:1 # that is us\nnode3\n",
          { 0 },
          "--hostfile 3+1/5 host 0/1 at node1:29400" },
        { "by address",
          "10.0.0.1 slots=2\r\n10.0.0.2 slots=2\r\n",
          { 0 },
          "--hostfile 2+2/4 host 0/1 at 10.0.0.1:29400" },
        { "by IPv6",
          "fe80::2\n[fe80::3]:2\n",
          { 0 },
          "--hostfile 0+1/3 host 0/1 at fe80::2:29400" },
        { "--meet names another port",
          "node2\nnode3",
          { .root = "x:7" },
          "--hostfile 0+1/2 host 0/1 at x:7" },
        { "--ranks agrees",
          "node2:2",
          { .n_ranks = 2 },
          "--hostfile 0+2/2 host 0/1 at node2:29400" },
        { "--ranks disagrees", "node2:2", { .n_ranks = 3 }, "!has slots for 2" },
        { "--rank disagrees", "node2:2\nx:2", { .rank = "2-3" }, "!gives this machine ranks 0-1" },
        { "not there",
          "node1\nnode3\n",
          { 0 },
          "!no line is this machine, which is called node2, node2.cluster, 10.0.0.2, fe80::2" },
        { "twice there", "node2\nx\n10.0.0.2\n", { 0 }, "!lines 1 and 3 are both this machine" },
        { "a broken number", "node1\nnode2 slots=many", { 0 }, ":2: \"slots=many\" is not" },
        { "no slots", "node2:0", { 0 }, "!:1: \"node2:0\" is not" },
        { "an unknown word", "node2 port=7", { 0 }, "!\"port=7\" is not" },
        { "empty", "# nothing\n", { 0 }, "!no hosts" },
    };
    const char *const none[] = { NULL };

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(g_get_tmp_dir(), "tutti-hostfile-XXXXXX", NULL);
        const char *want = files[i].want;
        TtLaunchOptions options = files[i].options;
        g_auto(TtLaunch) launch = { 0 };
        g_autoptr(GError) error = NULL;
        g_autofree char *got = NULL;
        int fd = g_mkstemp(path);

        CHECK(fd >= 0 && write(fd, files[i].text, strlen(files[i].text)) >= 0, "%s", path);
        close(fd);
        options.machine = &machine;
        options.hostfile = path;
        if (tt_launch_find(&options, none, &launch, &error))
            got = describe(&launch);
        else
            got = g_strdup_printf("!%s", error->message);
        want += *want == '!';
        CHECK(files[i].want == want && *want != ':' ? g_str_equal(got, want)
                                                    : *got == '!' && strstr(got, want) != NULL,
              "%s: wanted \"%s\", got \"%s\"", files[i].name, files[i].want, got);
        g_unlink(path);
    }
}

/* Without a made-up machine: "localhost" is always this one. */
static void
test_this_machine(void)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "tutti-hostfile-XXXXXX", NULL);
    int fd = g_mkstemp(path);
    TtLaunchOptions options = { .hostfile = path };
    const char *const none[] = { NULL };
    g_auto(TtLaunch) launch = { 0 };
    g_autoptr(GError) error = NULL;

    CHECK(fd >= 0 && write(fd, "localhost slots=3\n", 18) == 18, "%s", path);
    close(fd);
    CHECK(tt_launch_find(&options, none, &launch, &error), "%s", error ? error->message : "");
    CHECK(launch.n_local == 3 && launch.n_ranks == 3, "%u of %u", launch.n_local, launch.n_ranks);
    tt_launch_clear(&launch);
    g_unlink(path);
    options.hostfile = "/nonexistent/hosts";
    CHECK(!tt_launch_find(&options, none, &launch, &error), "no such file");
    CHECK(error && strstr(error->message, "/nonexistent/hosts"), "names the file");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "environments of launchers", test_environments },
                            { "meetings on one machine", test_meetings },
                            { "Slurm's lists", test_node_lists },
                            { "hostfiles", test_hostfiles },
                            { "this machine", test_this_machine },
                            CU_TEST_INFO_NULL };

    return check_main("launch", tests);
}
