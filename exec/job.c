/* job.c - the parent's half of a job: roles become ranks, connections get numbers.
 *
 * The parent writes the steps of one round per rank and lane, a small table, into the shared
 * region. Every rank multiplies its own by the rounds, all at the same time, in memory of its own
 * (program.c). So ranks need no algorithm: imported plans run as built-in ones do.
 */
#include "exec/job.h"
#include "exec/barrier.h"

#include <string.h>

/* Numbers connections, by (sender, lane, receiver), as steps mention them. */
typedef struct {
    GHashTable *numbers;
    guint32 n;
} Connections;

static guint32
connection_number(Connections *connections, guint from, guint lane, guint to)
{
    g_autofree char *key = g_strdup_printf("%u %u %u", from, lane, to);
    gpointer number;

    if (!g_hash_table_lookup_extended(connections->numbers, key, NULL, &number)) {
        number = GUINT_TO_POINTER(connections->n++);
        g_hash_table_insert(connections->numbers, g_steal_pointer(&key), number);
    }
    return GPOINTER_TO_UINT(number);
}

static TtJobStep
resolve(const TtPlan *plan, guint rank, guint lane, guint32 i, Connections *connections)
{
    TtJobStep s = { .step = tt_plan_step(plan, rank, lane, i),
                    .recv_peer = TT_NO_RANK,
                    .send_peer = TT_NO_RANK };

    if (tt_op_receives(s.step.op)) {
        s.recv_peer = tt_plan_peer(plan, rank, lane, s.step.recv_role);
        s.recv_connection = connection_number(connections, s.recv_peer, lane, rank);
    }
    if (tt_op_sends(s.step.op)) {
        s.send_peer = tt_plan_peer(plan, rank, lane, s.step.send_role);
        s.send_connection = connection_number(connections, rank, lane, s.send_peer);
    }
    return s;
}

static gboolean
resolve_lanes(TtRegion *region, const TtPlan *plan, Connections *connections)
{
    TtJob *job = &region->job;
    guint n_agents = tt_plan_n_agents(plan);

    job->lanes = tt_region_alloc(region, sizeof(TtJobLane) * n_agents * plan->n_lanes);
    for (guint rank = 0; job->lanes && rank < n_agents; rank++) {
        for (guint l = 0; l < plan->n_lanes; l++) {
            TtJobLane *lane = &job->lanes[rank * plan->n_lanes + l];

            lane->n_steps = tt_plan_n_steps(plan, rank, l);
            lane->steps = tt_region_alloc(region, sizeof(TtJobStep) * lane->n_steps);
            if (!lane->steps)
                return FALSE;
            for (guint32 i = 0; i < lane->n_steps; i++)
                lane->steps[i] = resolve(plan, rank, l, i, connections);
        }
    }
    return job->lanes != NULL;
}

/* Room for the results: times, progress, events. */
static gboolean
alloc_results(TtRegion *region)
{
    TtJob *job = &region->job;
    guint n_ranks = tt_plan_n_agents(&job->plan), n_lanes = job->plan.n_lanes;
    gsize n_events = 0;

    /* Each rank's counters on cache lines of their own. */
    job->done_stride = (n_lanes + 15) / 16 * 16;
    job->done = tt_region_alloc(region, sizeof *job->done * job->done_stride * n_ranks);
    job->time_s = tt_region_alloc(region, sizeof *job->time_s * n_ranks * job->options.repeats);
    job->event_first = tt_region_alloc(region, sizeof *job->event_first * (n_ranks + 1));
    if (!job->done || !job->time_s || !job->event_first)
        return FALSE;
    for (guint rank = 0; rank < n_ranks; rank++) {
        job->event_first[rank] = n_events;
        for (guint l = 0; l < n_lanes; l++)
            n_events += job->lanes[rank * n_lanes + l].n_steps * job->plan.n_rounds;
    }
    job->event_first[n_ranks] = n_events;
    if (job->options.record)
        job->events = tt_region_alloc(region, sizeof *job->events * n_events);
    if (job->options.stamps)
        job->stamps = tt_region_alloc(region, sizeof *job->stamps * n_ranks * tt_job_n_stamps(job));
    if (job->options.arrivals)
        job->waited = tt_region_alloc(region, sizeof *job->waited * n_ranks * n_ranks);
    return (job->events || !job->options.record) && (job->stamps || !job->options.stamps) &&
           (job->waited || !job->options.arrivals);
}

/* Bytes of one connection, and whether all of them fit. Those over wires only use address space here. */
static gboolean
place_connections(TtRegion *region)
{
    TtJob *job = &region->job;
    gsize message = tt_plan_max_message_bytes(&job->plan);
    gsize room = region->host_arena ? region->host_arena_bytes : region->arena_bytes;

    if (tt_region_is_part(region)) {
        job->barrier_first = job->n_connections;
        job->n_connections += TT_BARRIER_CONNECTIONS(region->n_ranks);
    }
    job->slot_stride = TT_SLOT_HEAD_BYTES;
    if (message > TT_SLOT_SMALL_BYTES)
        job->slot_stride += (message + TT_LINE_BYTES - 1) / TT_LINE_BYTES * TT_LINE_BYTES;
    /* An odd number of line pairs, so that neighbours do not fall into the same sets of a cache. */
    job->connection_bytes = TT_PAIR_BYTES + job->slot_stride * job->plan.spec.n_slots;
    job->connection_bytes =
        (job->connection_bytes / TT_PAIR_BYTES + 1) / 2 * 2 * TT_PAIR_BYTES + TT_PAIR_BYTES;
    if (job->n_connections > room / job->connection_bytes)
        return FALSE;
    job->connections = region->host_arena
                           ? region->host_arena
                           : tt_region_alloc(region, job->n_connections * job->connection_bytes);
    return job->connections != NULL;
}

/* The numbers are the root's; only where the memory lies is this process's own. */
static gboolean
place_connections_again(TtRegion *region)
{
    TtJob *job = &region->job;

    if (job->n_connections > region->host_arena_bytes / job->connection_bytes)
        return FALSE;
    job->connections = region->host_arena;
    return TRUE;
}

/* A shape without an algorithm behind it. */
static TtPlan
bare_plan(const TtPlan *plan)
{
    TtPlan bare = *plan;

    bare.name = NULL;
    bare.algo = NULL;
    bare.data = NULL;
    bare.spec.wiring = NULL;
    return bare;
}

static TtSignature
sign(const TtPlan *plan, const TtRunOptions *options)
{
    const TtPlanSpec *spec = &plan->spec;
    TtSignature s;

    memset(&s, 0, sizeof s); /* it is compared as bytes */
    s.collective = spec->collective;
    s.type = spec->type;
    s.redop = spec->redop;
    s.root = spec->root;
    s.in_place = options->in_place;
    s.n_ranks = spec->n_ranks;
    s.warmup = options->warmup;
    s.iterations = options->iterations;
    s.repeats = MAX(1, options->repeats);
    s.check = options->check;
    s.record = options->record;
    s.stamps = options->stamps;
    s.arrivals = options->arrivals;
    s.count = spec->count;
    s.plan = tt_signature_hash_plan(plan);
    g_strlcpy(s.algorithm, plan->name, sizeof s.algorithm);
    return s;
}

void
tt_job_sign(TtRegion *region, const TtPlan *plan, const TtRunOptions *options)
{
    region->job.signature = sign(plan, options);
}

static void
set_no_room(const TtRegion *region, GError **error)
{
    const TtPlan *plan = &region->job.plan;

    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "%s: %u connections with %u slots of %" G_GUINT64_FORMAT
                " bytes do not fit %" G_GUINT64_FORMAT " MiB of shared memory (use smaller slots)",
                region->job.signature.algorithm, region->job.n_connections, plan->spec.n_slots,
                tt_plan_max_message_bytes(plan), (guint64)(region->arena_bytes >> 20));
}

gboolean
tt_job_prepare(TtRegion *region, const TtPlan *plan, const TtRunOptions *options, GError **error)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Connections connections = { numbers, 0 };
    TtJob *job = &region->job;
    gboolean fits;

    tt_region_reset(region);
    job->plan = bare_plan(plan);
    job->options = *options;
    job->options.repeats = MAX(1, options->repeats);
    job->signature = sign(plan, &job->options);
    fits = resolve_lanes(region, plan, &connections) && alloc_results(region);
    job->n_connections = connections.n;
    if (fits && place_connections(region))
        return TRUE;
    set_no_room(region, error);
    return FALSE;
}

/* --- for a process that runs some of the ranks ---------------------------------------------------
 *
 *     TtJob as it is | for each of its ranks and lanes: n_steps, steps
 *
 * Both sides are the same program on machines of one byte order; pointers are not looked at.
 */

GBytes *
tt_job_pack(const TtRegion *region, guint first_rank, guint n_ranks)
{
    const TtJob *job = &region->job;
    GByteArray *bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const guint8 *)job, sizeof *job);
    for (guint i = first_rank * job->plan.n_lanes; i < (first_rank + n_ranks) * job->plan.n_lanes;
         i++) {
        const TtJobLane *lane = &job->lanes[i];

        g_byte_array_append(bytes, (const guint8 *)&lane->n_steps, sizeof lane->n_steps);
        g_byte_array_append(bytes, (const guint8 *)lane->steps,
                            (guint)(sizeof *lane->steps * lane->n_steps));
    }
    return g_byte_array_free_to_bytes(bytes);
}

static gboolean
take(const guint8 **data, gsize *left, gpointer to, gsize bytes)
{
    if (bytes > *left)
        return FALSE;
    memcpy(to, *data, bytes);
    *data += bytes;
    *left -= bytes;
    return TRUE;
}

static gboolean
unpack_lanes(TtRegion *region, const guint8 *data, gsize left)
{
    TtJob *job = &region->job;
    guint n_lanes = job->plan.n_lanes;

    job->lanes = tt_region_alloc(region, sizeof(TtJobLane) * region->n_ranks * n_lanes);
    for (guint i = 0; job->lanes && i < region->n_local * n_lanes; i++) {
        TtJobLane *lane = &job->lanes[region->first_rank * n_lanes + i];

        if (!take(&data, &left, &lane->n_steps, sizeof lane->n_steps))
            return FALSE;
        lane->steps = tt_region_alloc(region, sizeof *lane->steps * lane->n_steps);
        if (!lane->steps || !take(&data, &left, lane->steps, sizeof *lane->steps * lane->n_steps))
            return FALSE;
    }
    return job->lanes && left == 0;
}

gboolean
tt_job_unpack(TtRegion *region, const guint8 *data, gsize bytes, GError **error)
{
    TtJob *job = &region->job;

    tt_region_reset(region);
    if (take(&data, &bytes, job, sizeof *job) && unpack_lanes(region, data, bytes) &&
        alloc_results(region) && place_connections_again(region))
        return TRUE;
    set_no_room(region, error);
    return FALSE;
}
