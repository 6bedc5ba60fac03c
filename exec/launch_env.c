#include "exec/launch_env.h"
#include "exec/exec.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In the order in which they are believed: those that start others' daemons last, except that Slurm
 * knows more about its own step than what it says in MPICH's variables (srun --mpi=pmi2). */
typedef enum { TORCHRUN, OPEN_MPI, SLURM, MVAPICH, MVAPICH2, MPICH, N_FAMILIES } Family;

static const struct {
    const char *source, *rank, *size[2], *host_rank, *n_on_host;
} families[N_FAMILIES] = {
    [TORCHRUN] = { "torchrun", "RANK", { "WORLD_SIZE" }, "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
    [OPEN_MPI] = { "Open MPI",
                   "OMPI_COMM_WORLD_RANK",
                   { "OMPI_COMM_WORLD_SIZE" },
                   "OMPI_COMM_WORLD_LOCAL_RANK",
                   "OMPI_COMM_WORLD_LOCAL_SIZE" },
    [SLURM] = { "Slurm",
                "SLURM_PROCID",
                { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
                "SLURM_LOCALID",
                NULL },
    [MVAPICH] = { "MVAPICH",
                  "MVP_COMM_WORLD_RANK",
                  { "MVP_COMM_WORLD_SIZE" },
                  "MVP_COMM_WORLD_LOCAL_RANK",
                  "MVP_COMM_WORLD_LOCAL_SIZE" },
    [MVAPICH2] = { "MVAPICH",
                   "MV2_COMM_WORLD_RANK",
                   { "MV2_COMM_WORLD_SIZE" },
                   "MV2_COMM_WORLD_LOCAL_RANK",
                   "MV2_COMM_WORLD_LOCAL_SIZE" },
    [MPICH] = { "MPICH", "PMI_RANK", { "PMI_SIZE" }, "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
};

/* What one family says. */
typedef struct {
    gboolean there;
    guint rank, size, host_rank, n_on_host; /* n_on_host 0: not said */
    const char *size_name;                  /* the variable */
} Said;

typedef struct {
    const char *const *environment;
    Said said[N_FAMILIES];
} Environment;

static const char *
get(const Environment *env, const char *name)
{
    const char *value = name ? g_environ_getenv((char **)env->environment, name) : NULL;

    return value && *value ? value : NULL;
}

/* A variable that is not set leaves @value alone. */
static gboolean
number(const Environment *env, const char *name, guint64 max, guint64 *value, GError **error)
{
    const char *text = get(env, name);

    if (!text || g_ascii_string_to_unsigned(text, 10, 0, max, value, NULL))
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "%s=%s is not a number from 0 to %" G_GUINT64_FORMAT, name, text, max);
    return FALSE;
}

/* Whether this family started us at all. */
static gboolean
is_there(const Environment *env, Family family)
{
    const char *step;

    if (!get(env, families[family].rank))
        return FALSE;
    switch (family) {
    case TORCHRUN: /* RANK alone is too common a name */
        return get(env, "WORLD_SIZE") || get(env, "MASTER_ADDR");
    case SLURM: /* a batch script has SLURM_PROCID=0 and no step, a shell in an allocation the step
                   "interactive": those above 0xfffffff0 are Slurm's own */
        step = get(env, "SLURM_STEP_ID") ? get(env, "SLURM_STEP_ID") : get(env, "SLURM_STEPID");
        return step && g_ascii_strtoull(step, NULL, 10) < 0xfffffff0u;
    default: return TRUE;
    }
}

static gboolean
read_family(Environment *env, Family family, GError **error)
{
    Said *said = &env->said[family];
    guint64 rank = 0, size = 0, host_rank = 0, n_on_host = 0;

    if (!is_there(env, family))
        return TRUE;
    said->size_name = families[family].size[0];
    if (families[family].size[1] && !get(env, said->size_name))
        said->size_name = families[family].size[1];
    if (!number(env, families[family].rank, G_MAXINT32, &rank, error) ||
        !number(env, said->size_name, G_MAXINT32, &size, error) ||
        !number(env, families[family].host_rank, G_MAXINT32, &host_rank, error) ||
        !number(env, families[family].n_on_host, G_MAXINT32, &n_on_host, error))
        return FALSE;
    if (!get(env, said->size_name)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "%s: %s=%u is set, but %s is not",
                    families[family].source, families[family].rank, (guint)rank,
                    families[family].size[0]);
        return FALSE;
    }
    if (rank >= size) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "%s: %s=%u must be less than %s=%u",
                    families[family].source, families[family].rank, (guint)rank, said->size_name,
                    (guint)size);
        return FALSE;
    }
    if (family == SLURM) {
        const char *counts = get(env, "SLURM_STEP_TASKS_PER_NODE");
        const char *node = get(env, "SLURM_NODEID");

        n_on_host =
            counts && node ? tt_slurm_tasks_on(counts, (guint)g_ascii_strtoull(node, NULL, 10)) : 0;
    }
    /* local numbers that make no sense only cost the pinning */
    if (host_rank >= n_on_host || n_on_host > size)
        host_rank = n_on_host = 0;
    *said = (Said){ TRUE,           (guint)rank, (guint)size, (guint)host_rank, (guint)n_on_host,
                    said->size_name };
    return TRUE;
}

static guint
variable(const Environment *env, const char *name)
{
    const char *text = get(env, name);

    return text ? (guint)g_ascii_strtoull(text, NULL, 10) : 0;
}

/* Whether @outer only started what started @inner, as launchers do when nested. Then what @outer says is
 * about agents and daemons, not about ranks:
 * - a launcher of one process (srun --pty bash, mpirun -n 1) speaks of no ranks at all;
 * - mpirun and mpiexec start a daemon on every node, through srun if there is Slurm: a step of another
 *   size, or of one task per node;
 * - agents of torchrun are as many as GROUP_WORLD_SIZE. */
static gboolean
is_around(const Environment *env, Family outer, Family inner)
{
    const Said *o = &env->said[outer], *i = &env->said[inner];
    const char *nodes = get(env, "SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";

    if (o->size == 1)
        return TRUE;
    if (inner == TORCHRUN && o->size == variable(env, "GROUP_WORLD_SIZE") && o->size != i->size)
        return TRUE;
    return outer == SLURM && (o->size != i->size || o->size == variable(env, nodes));
}

/* The family to believe; N_FAMILIES: none. */
static gboolean
choose(const Environment *env, Family *chosen, GError **error)
{
    *chosen = N_FAMILIES;
    for (Family f = 0; f < N_FAMILIES; f++) {
        const Said *a, *b = &env->said[f];

        if (!b->there)
            continue;
        if (*chosen == N_FAMILIES) {
            *chosen = f;
            continue;
        }
        a = &env->said[*chosen];
        if (a->rank == b->rank && a->size == b->size)
            continue;
        if (is_around(env, f, *chosen))
            continue;
        if (is_around(env, *chosen, f)) {
            *chosen = f;
            continue;
        }
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
            "%s and %s disagree: %s=%u, %s=%u, but %s=%u, %s=%u; unset those that are left over",
            families[*chosen].source, families[f].source, families[*chosen].rank, a->rank,
            a->size_name, a->size, families[f].rank, b->rank, b->size_name, b->size);
        return FALSE;
    }
    return TRUE;
}

/* ---- where the root is ---- */

static char *
meeting_name(const Environment *env, Family family, const TtLaunchMachine *machine)
{
    const char *step =
        get(env, "SLURM_STEP_ID") ? get(env, "SLURM_STEP_ID") : get(env, "SLURM_STEPID");
    const char *name = get(env, "OMPI_MCA_ess_base_jobid"), *run = get(env, "TORCHELASTIC_RUN_ID");
    g_autofree char *id = NULL, *hash = NULL, *mark = NULL;

    if (family == OPEN_MPI && (name || (name = get(env, "PMIX_NAMESPACE"))))
        id = g_strdup(name);
    else if (family == SLURM && step)
        id = g_strdup_printf("%u.%s", variable(env, "SLURM_JOB_ID"), step);
    else if (family == TORCHRUN && get(env, "MASTER_PORT"))
        id = g_strdup_printf("%s %s %s %u", run ? run : "", get(env, "MASTER_ADDR"),
                             get(env, "MASTER_PORT"), variable(env, "TORCHELASTIC_RESTART_COUNT"));
    else if (machine)
        id = g_strdup(machine->launcher);
    if (!id) {
        mark = g_strdup_printf("%s=%u", families[family].rank, env->said[family].rank);
        id = tt_launcher_id(mark);
    }
    hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);
    hash[16] = 0; /* whatever is in an id, the name stays short */
    return g_strdup_printf("tutti-%u-%s-%s", (guint)getuid(), families[family].source, hash);
}

static gboolean
torchrun_root(const Environment *env, TtLaunch *launch, GError **error)
{
    const char *host = get(env, "MASTER_ADDR"), *store = get(env, "TORCHELASTIC_USE_AGENT_STORE");
    guint64 port = TT_LAUNCH_DEFAULT_PORT;

    if (!host) {
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
            "torchrun: RANK and WORLD_SIZE are set, but MASTER_ADDR is not: give --meet HOST:PORT");
        return FALSE;
    }
    if (!number(env, "MASTER_PORT", 65535, &port, error))
        return FALSE;
    /* the agent's own store listens there */
    port += store && !g_ascii_strcasecmp(store, "true");
    launch->root_host = g_strdup(host);
    launch->root_port = (guint)(port > 65535 ? port - 2 : port);
    return TRUE;
}

static gboolean
slurm_root(const Environment *env, TtLaunch *launch, GError **error)
{
    const char *list = get(env, "SLURM_STEP_NODELIST");
    const char *step = get(env, "SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
    const char *job = get(env, "SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID";

    if (!list)
        list = get(env, "SLURM_JOB_NODELIST") ? get(env, "SLURM_JOB_NODELIST")
                                              : get(env, "SLURM_NODELIST");
    launch->root_host = list ? tt_slurm_first_host(list) : NULL;
    if (!launch->root_host) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "Slurm: %s%s names no first host: give --meet HOST:PORT",
                    list ? "SLURM_STEP_NODELIST=" : "SLURM_STEP_NODELIST", list ? list : "");
        return FALSE;
    }
    /* steps of one job, and jobs on one host, get ports of their own */
    launch->root_port = 20000 + (variable(env, job) * 7 + variable(env, step)) % 20000;
    return TRUE;
}

static gboolean
is_one_machine(const Environment *env, Family family)
{
    const Said *said = &env->said[family];
    const char *nodes = get(env, "SLURM_STEP_NUM_NODES");

    return said->n_on_host == said->size || (family == SLURM && nodes && g_str_equal(nodes, "1"));
}

static gboolean
find_root(const Environment *env, Family family, const TtLaunchMachine *machine, TtLaunch *launch,
          GError **error)
{
    guint64 fd = G_MAXUINT64;

    if (is_one_machine(env, family)) {
        launch->meeting = meeting_name(env, family, machine);
        return TRUE;
    }
    if (family == TORCHRUN)
        return torchrun_root(env, launch, error);
    if (family == SLURM)
        return slurm_root(env, launch, error);
    if (family != OPEN_MPI && get(env, "PMI_FD")) {
        if (!number(env, "PMI_FD", G_MAXINT32, &fd, error))
            return FALSE;
        launch->pmi_fd = (int)fd;
        return TRUE;
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "%s does not say on which host rank 0 is: give --meet HOST:PORT or set TUTTI_ROOT",
                families[family].source);
    return FALSE;
}

gboolean
tt_launch_from_environment(const char *const *environment, const TtLaunchMachine *machine,
                           gboolean has_root, TtLaunch *launch, GError **error)
{
    Environment env = { environment };
    const Said *said, *local;
    Family family;

    for (Family f = 0; f < N_FAMILIES; f++)
        if (!read_family(&env, f, error))
            return FALSE;
    if (!choose(&env, &family, error))
        return FALSE;
    if (family == N_FAMILIES || env.said[family].size == 1)
        return TRUE;
    said = local = &env.said[family];
    for (Family f = 0; f < N_FAMILIES && !local->n_on_host; f++) /* one that agrees may know */
        if (env.said[f].there && env.said[f].rank == said->rank && env.said[f].size == said->size)
            local = &env.said[f];
    launch->source = families[family].source;
    launch->first_rank = said->rank;
    launch->n_local = 1;
    launch->n_ranks = said->size;
    launch->host_rank = local->host_rank;
    launch->n_on_host = MAX(local->n_on_host, 1);
    env.said[family].n_on_host = local->n_on_host;
    return has_root || find_root(&env, family, machine, launch, error);
}
