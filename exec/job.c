/* job.c - the parent's half of a job: roles become ranks, connections get numbers.
 *
 * The parent writes the steps of one round per rank and lane, a small table, into the shared
 * region. Every rank multiplies its own by the rounds, all at the same time, in memory of its own
 * (program.c). So ranks need no algorithm: imported plans run as built-in ones do.
 */
#include "exec/job.h"
#include "exec/barrier.h"
#include "exec/gpu_group.h"
#include "exec/ping.h"

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
resolve(const TtJobPart *part, const TtPlan *plan, guint member, guint lane, guint32 i,
        Connections *connections)
{
    TtJobStep s = { .step = tt_plan_step(plan, member, lane, i),
                    .recv_peer = TT_NO_RANK,
                    .send_peer = TT_NO_RANK };
    guint rank = part->members[member], number = part->first_lane + lane;

    if (s.step.dep_lane != TT_NO_LANE)
        s.step.dep_lane = (guint16)(s.step.dep_lane + part->first_lane);
    if (tt_op_receives(s.step.op)) {
        s.recv_peer = part->members[tt_plan_peer(plan, member, lane, s.step.recv_role)];
        s.recv_connection = connection_number(connections, s.recv_peer, number, rank);
    }
    if (tt_op_sends(s.step.op)) {
        s.send_peer = part->members[tt_plan_peer(plan, member, lane, s.step.send_role)];
        s.send_connection = connection_number(connections, rank, number, s.send_peer);
    }
    return s;
}

/* @plan: the part's, with its algorithm. */
static gboolean
resolve_part(TtRegion *region, const TtJobPart *part, const TtPlan *plan, Connections *connections)
{
    for (guint member = 0; member < part->n_members; member++) {
        for (guint l = 0; l < plan->n_lanes; l++) {
            TtJobLane *lane =
                tt_job_lane(&region->job, part->members[member], part->first_lane + l);

            lane->n_steps = tt_plan_n_steps(plan, member, l);
            lane->steps = tt_region_alloc(region, sizeof(TtJobStep) * lane->n_steps);
            if (!lane->steps)
                return FALSE;
            for (guint32 i = 0; i < lane->n_steps; i++)
                lane->steps[i] = resolve(part, plan, member, l, i, connections);
        }
    }
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

static gboolean
alloc_members(TtRegion *region, TtJobPart *part)
{
    part->members = tt_region_alloc(region, sizeof *part->members * part->n_members);
    part->offset_s = tt_region_alloc(region, sizeof *part->offset_s * part->n_members);
    return part->members && part->offset_s;
}

static gboolean
lay_out_parts(TtRegion *region, const TtRunPart *parts, guint n_parts)
{
    TtJob *job = &region->job;

    job->n_parts = n_parts;
    job->parts = tt_region_alloc(region, sizeof *job->parts * n_parts);
    for (guint p = 0; job->parts && p < n_parts; p++) {
        TtJobPart *part = &job->parts[p];

        *part = (TtJobPart){ .plan = bare_plan(parts[p].plan),
                             .first_lane = job->n_lanes,
                             .n_members = tt_plan_n_agents(parts[p].plan) };
        if (!alloc_members(region, part))
            return FALSE;
        for (guint i = 0; i < part->n_members; i++) {
            part->members[i] = parts[p].members ? parts[p].members[i] : i;
            part->offset_s[i] = parts[p].offset_s ? parts[p].offset_s[i] : 0;
        }
        job->n_lanes += part->plan.n_lanes;
        job->n_slots = MAX(job->n_slots, part->plan.spec.n_slots);
    }
    job->lanes = tt_region_alloc(region, sizeof(TtJobLane) * region->n_ranks * job->n_lanes);
    return job->parts && job->lanes;
}

static gboolean
resolve_parts(TtRegion *region, const TtRunPart *parts, Connections *connections)
{
    for (guint p = 0; p < region->job.n_parts; p++)
        if (!resolve_part(region, &region->job.parts[p], parts[p].plan, connections))
            return FALSE;
    return TRUE;
}

/* Room for the results: times, progress, events. */
static gboolean
alloc_results(TtRegion *region)
{
    TtJob *job = &region->job;
    guint n_ranks = region->n_ranks, n_lanes = job->n_lanes;
    gsize n_events = 0;

    /* Each rank's counters on cache lines of their own. */
    job->done_stride = (n_lanes + 15) / 16 * 16;
    job->done = tt_region_alloc(region, sizeof *job->done * job->done_stride * n_ranks);
    job->time_s = tt_region_alloc(region, sizeof *job->time_s * n_ranks * job->options.repeats);
    job->event_first = tt_region_alloc(region, sizeof *job->event_first * (n_ranks + 1));
    job->wrong = tt_region_alloc(region, sizeof *job->wrong * n_ranks * job->n_parts);
    if (!job->done || !job->time_s || !job->event_first || !job->wrong)
        return FALSE;
    for (guint rank = 0; rank < n_ranks; rank++) {
        job->event_first[rank] = n_events;
        for (guint l = 0; l < n_lanes; l++)
            n_events += tt_job_lane(job, rank, l)->n_steps * tt_job_part_of(job, l)->plan.n_rounds;
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

static gsize
max_message_bytes(const TtJob *job)
{
    gsize most = 0;

    for (guint p = 0; p < job->n_parts; p++)
        most = MAX(most, tt_plan_max_message_bytes(&job->parts[p].plan));
    return most;
}

/* Room for either kind of slot: some connections of the job may go over wires, which know the one kind only. */
static void
set_gpu_slots(TtRegion *region, gsize message)
{
    TtJob *job = &region->job;
    gsize slot;

    job->gpu_protocol = tt_gpu_choose_protocol(region, message);
    slot = tt_gpu_slot_bytes(job->gpu_protocol, message);
    job->slot_stride = MAX(job->slot_stride, slot);
    job->slot_stride =
        (job->slot_stride + TT_GPU_LINE_BYTES - 1) / TT_GPU_LINE_BYTES * TT_GPU_LINE_BYTES;
}

/* Bytes of one connection, and whether all of them fit. Those over wires only use address space here. */
static gboolean
place_connections(TtRegion *region)
{
    TtJob *job = &region->job;
    gsize message = max_message_bytes(job);
    gsize room = region->host_arena ? region->host_arena_bytes : region->arena_bytes;

    if (tt_region_is_part(region)) {
        job->barrier_first = job->n_connections;
        job->n_connections += TT_BARRIER_CONNECTIONS(region->n_ranks);
    }
    job->ping_first = job->n_connections;
    if (tt_ping_needs_connections(region))
        job->n_connections += TT_PING_CONNECTIONS;
    job->slot_stride = TT_SLOT_HEAD_BYTES;
    if (message > TT_SLOT_SMALL_BYTES)
        job->slot_stride += (message + TT_LINE_BYTES - 1) / TT_LINE_BYTES * TT_LINE_BYTES;
    if (region->is_gpu)
        set_gpu_slots(region, message);
    /* An odd number of line pairs, so that neighbours do not fall into the same sets of a cache. */
    job->connection_bytes = TT_PAIR_BYTES + job->slot_stride * job->n_slots;
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

/* In words of the first part; the others are in the hash. */
static TtSignature
sign(const TtRunPart *parts, guint n_parts, const TtRunOptions *options)
{
    const TtPlanSpec *spec = &parts[0].plan->spec;
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
    s.parts = n_parts;
    for (guint p = 0; p < n_parts; p++)
        s.plan = tt_signature_hash_part(s.plan, &parts[p]);
    g_strlcpy(s.algorithm, parts[0].plan->name, sizeof s.algorithm);
    return s;
}

void
tt_job_sign(TtRegion *region, const TtRunPart *parts, guint n_parts, const TtRunOptions *options)
{
    region->job.signature = sign(parts, n_parts, options);
}

static void
set_no_room(const TtRegion *region, GError **error)
{
    const TtJob *job = &region->job;

    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "%s: %u connections with %u slots of %" G_GUINT64_FORMAT
                " bytes do not fit %" G_GUINT64_FORMAT " MiB of shared memory (use smaller slots)",
                job->signature.algorithm, job->n_connections, job->n_slots,
                (guint64)max_message_bytes(job), (guint64)(region->arena_bytes >> 20));
}

gboolean
tt_job_prepare(TtRegion *region, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
               GError **error)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Connections connections = { numbers, 0 };
    TtJob *job = &region->job;
    gboolean fits;

    tt_region_reset(region);
    job->options = *options;
    job->options.repeats = MAX(1, options->repeats);
    job->signature = sign(parts, n_parts, &job->options);
    fits = lay_out_parts(region, parts, n_parts) && resolve_parts(region, parts, &connections) &&
           alloc_results(region);
    job->n_connections = connections.n;
    if (fits && place_connections(region))
        return TRUE;
    set_no_room(region, error);
    return FALSE;
}

/* --- for a process that runs some of the ranks ---------------------------------------------------
 *
 *     TtJob as it is | for each part: TtJobPart, members, offsets | for each of its ranks and lanes: n_steps, steps
 *
 * Both sides are the same program on machines of one byte order; pointers are not looked at.
 */

GBytes *
tt_job_pack(const TtRegion *region, guint first_rank, guint n_ranks)
{
    const TtJob *job = &region->job;
    GByteArray *bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const guint8 *)job, sizeof *job);
    for (guint p = 0; p < job->n_parts; p++) {
        const TtJobPart *part = &job->parts[p];

        g_byte_array_append(bytes, (const guint8 *)part, sizeof *part);
        g_byte_array_append(bytes, (const guint8 *)part->members,
                            (guint)sizeof *part->members * part->n_members);
        g_byte_array_append(bytes, (const guint8 *)part->offset_s,
                            (guint)sizeof *part->offset_s * part->n_members);
    }
    for (guint i = first_rank * job->n_lanes; i < (first_rank + n_ranks) * job->n_lanes; i++) {
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
unpack_parts(TtRegion *region, const guint8 **data, gsize *left)
{
    TtJob *job = &region->job;

    job->parts = tt_region_alloc(region, sizeof *job->parts * job->n_parts);
    for (guint p = 0; job->parts && p < job->n_parts; p++) {
        TtJobPart *part = &job->parts[p];

        if (!take(data, left, part, sizeof *part) || !alloc_members(region, part) ||
            !take(data, left, part->members, sizeof *part->members * part->n_members) ||
            !take(data, left, part->offset_s, sizeof *part->offset_s * part->n_members))
            return FALSE;
    }
    return job->parts != NULL;
}

static gboolean
unpack_lanes(TtRegion *region, const guint8 *data, gsize left)
{
    TtJob *job = &region->job;
    guint n_lanes = job->n_lanes;

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
    if (take(&data, &bytes, job, sizeof *job) && unpack_parts(region, &data, &bytes) &&
        unpack_lanes(region, data, bytes) && alloc_results(region) &&
        place_connections_again(region))
        return TRUE;
    set_no_room(region, error);
    return FALSE;
}
