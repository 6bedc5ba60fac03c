#include "sim/fold.h"

#include "sim/engine_private.h"
#include "sim/partition.h"
#include "sim/programs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONNECTIONS (1u << 23) /* beyond, finding classes costs more memory than a run */
#define MAX_PIECES      (1u << 20) /* pieces looked at to tell channels apart */

/* A relation between two nodes of the graph, and what each is to the other. */
typedef struct {
    guint32 a, b, label_ab, label_ba;
} Relation;

/* Nodes: units, then connections, then links, then ranks. */
typedef struct {
    TtEngine *engine;
    TtPrograms programs;
    guint32 n_links, n_nodes, first_connection, first_link, first_rank;
    GArray *relations;
    guint64 *colour;
    guint32 *class_of;
} Fold;

enum { AS_WRITER = 1, AS_READER, AS_LINK, AS_UNIT, AS_RANK, AS_HOP, N_LABELS };

/* --- the graph ---------------------------------------------------------------------------------
 */

static void
relate(Fold *self, guint32 a, guint32 b, guint32 label_ab, guint32 label_ba)
{
    Relation relation = { a, b, label_ab, label_ba };

    g_array_append_val(self->relations, relation);
}

/* Channels with pieces of the same sizes look alike. */
static guint64
look_of_channel(const TtEngine *e, guint channel)
{
    const TtPlan *plan = e->plan;
    guint64 look = 0;

    if (e->even_bytes > 0)
        return 0;
    if (plan->n_rounds > MAX_PIECES / plan->spec.n_channels)
        return channel;
    for (guint64 round = 0; round < plan->n_rounds; round++)
        look = tt_mix(look, tt_engine_piece_bytes(e, channel, round));
    return look;
}

/* A unit looks as its programs, its channel and its rank's step costs do. */
static void
describe_units(Fold *self)
{
    const TtEngine *e = self->engine;
    g_autofree guint64 *channel = g_new(guint64, e->plan->spec.n_channels);

    for (guint c = 0; c < e->plan->spec.n_channels; c++)
        channel[c] = look_of_channel(e, c);
    for (guint32 u = 0; u < e->n_units; u++) {
        const TtLane *lane = &e->lanes[u * e->lanes_per_channel];
        const TtRank *rank = &e->ranks[lane->rank];
        guint64 look = tt_mix(AS_UNIT, channel[u % e->plan->spec.n_channels]);

        look = tt_mix(look, (guint64)rank->cost << 1 | rank->is_switch);
        for (guint i = 0; i < e->lanes_per_channel; i++)
            look =
                tt_mix(look, self->programs
                                 .programs[self->programs.program_of[u * e->lanes_per_channel + i]]
                                 .look);
        self->colour[u] = look;
    }
}

/* What a unit calls a connection: two that one unit uses never look alike. */
static guint32
use_label(guint sub_lane, const TtUse *use)
{
    return (guint32)tt_mix(sub_lane, (guint64)use->role << 1 | use->receiving) * 8;
}

static void
relate_units(Fold *self)
{
    const TtEngine *e = self->engine;

    for (guint32 i = 0; i < e->total_lanes; i++) {
        const TtProgram *program = &self->programs.programs[self->programs.program_of[i]];

        for (guint32 k = 0; k < program->n_uses; k++) {
            const TtUse *use = &self->programs.uses[program->first_use + k];
            guint32 known = e->by_role[((gsize)i * e->n_roles + use->role) * 2 + use->receiving];
            guint32 label = use_label(i % e->lanes_per_channel, use);

            if (known > 0)
                relate(self, i / e->lanes_per_channel, self->first_connection + known - 1, label,
                       label + (use->receiving ? AS_READER : AS_WRITER));
        }
    }
}

static void
describe_connections(Fold *self)
{
    const TtEngine *e = self->engine;
    guint32 hops[TT_MAX_ROUTE + 1];

    for (guint32 c = 0; c < e->n_connections; c++) {
        guint n = tt_flows_hops(e->flows, c, hops);
        guint64 look = tt_mix(AS_HOP, (guint64)e->connections[c].latency_ps);

        if (e->paces)
            look = tt_mix(tt_mix(look, (guint64)e->paces[c].gap_ps),
                          (guint64)(e->paces[c].wire_factor * 1e9));
        self->colour[self->first_connection + c] = look;
        for (guint h = 0; h < n; h++)
            relate(self, self->first_connection + c, self->first_link + hops[h],
                   h * N_LABELS + AS_LINK, h * N_LABELS + AS_HOP);
    }
    for (guint32 l = 0; l < self->n_links; l++) {
        double capacity = tt_flows_link_capacity(e->flows, l);
        guint64 bits;

        memcpy(&bits, &capacity, sizeof bits);
        self->colour[self->first_link + l] = tt_mix(AS_LINK, bits);
    }
}

/* Units of a rank begin the next iteration together. */
static void
relate_ranks(Fold *self)
{
    const TtEngine *e = self->engine;

    for (guint32 r = 0; r < e->n_ranks; r++)
        self->colour[self->first_rank + r] = tt_mix(AS_RANK, 0);
    for (guint32 u = 0; u < e->n_units; u++)
        relate(self, u, self->first_rank + e->lanes[u * e->lanes_per_channel].rank, AS_RANK,
               AS_UNIT);
}

static void
find_classes(Fold *self)
{
    const Relation *relations = (const Relation *)self->relations->data;
    guint32 n_relations = self->relations->len;
    g_autofree guint32 *first = g_new0(guint32, self->n_nodes + 2);
    g_autofree TtEdge *edge = g_new(TtEdge, 2 * (gsize)n_relations + 1);
    TtLabelledGraph graph = { self->n_nodes, first, edge, self->colour };

    for (guint32 i = 0; i < n_relations; i++) {
        first[relations[i].a + 2]++;
        first[relations[i].b + 2]++;
    }
    for (guint32 n = 2; n < self->n_nodes + 2; n++)
        first[n] += first[n - 1];
    for (guint32 i = 0; i < n_relations; i++) {
        const Relation *r = &relations[i];

        edge[first[r->a + 1]++] = (TtEdge){ r->b, r->label_ab };
        edge[first[r->b + 1]++] = (TtEdge){ r->a, r->label_ba };
    }
    tt_partition(&graph, self->class_of);
}

/* --- the folded run ----------------------------------------------------------------------------
 */

/* The classes of one kind of nodes, numbered by themselves. */
typedef struct {
    guint32 n, *of, *first, *size; /* of: [node] class; first: [class] a member; size: how many */
} Classes;

static void
classes_init(Classes *self, const guint32 *class_of, guint32 n_nodes, guint32 *scratch)
{
    self->n = 0;
    self->of = g_new(guint32, MAX(1, n_nodes));
    self->first = g_new(guint32, MAX(1, n_nodes));
    self->size = g_new0(guint32, MAX(1, n_nodes));
    for (guint32 i = 0; i < n_nodes; i++) {
        guint32 *number = &scratch[class_of[i]];

        if (*number == 0) {
            self->first[self->n] = i;
            *number = ++self->n;
        }
        self->of[i] = *number - 1;
        self->size[self->of[i]]++;
    }
}

static void
classes_clear(Classes *self)
{
    g_free(self->of);
    g_free(self->first);
    g_free(self->size);
}

typedef struct {
    Classes units, connections, links, ranks;
    guint32 *place; /* [class of units] where it stands in the folded run */
} Quotient;

static void
quotient_init(Quotient *self, const Fold *fold)
{
    const TtEngine *e = fold->engine;
    g_autofree guint32 *scratch = g_new0(guint32, fold->n_nodes + 1);

    classes_init(&self->units, fold->class_of, e->n_units, scratch);
    classes_init(&self->connections, fold->class_of + fold->first_connection, e->n_connections,
                 scratch);
    classes_init(&self->links, fold->class_of + fold->first_link, fold->n_links, scratch);
    classes_init(&self->ranks, fold->class_of + fold->first_rank, fold->n_nodes - fold->first_rank,
                 scratch);
    self->place = g_new(guint32, MAX(1, self->units.n));
}

static void
quotient_clear(Quotient *self)
{
    classes_clear(&self->units);
    classes_clear(&self->connections);
    classes_clear(&self->links);
    classes_clear(&self->ranks);
    g_free(self->place);
}

/* One iteration: every unit may begin and end by itself. Several: those of a rank together. */
static TtRank *
arrange_units(const Fold *fold, Quotient *q, guint32 *n_ranks)
{
    const TtEngine *e = fold->engine;
    gboolean together = e->iterations > 1;
    guint32 lpc = e->lanes_per_channel, n_channels = e->plan->spec.n_channels, n_placed = 0;
    g_autofree guint8 *is_placed = g_new0(guint8, MAX(1, q->units.n));
    TtRank *ranks;

    *n_ranks = together ? q->ranks.n : q->units.n;
    ranks = g_new(TtRank, MAX(1, *n_ranks));
    for (guint32 r = 0; r < *n_ranks; r++) {
        guint32 unit = together ? q->ranks.first[r] * n_channels : q->units.first[r];
        guint32 end = together ? unit + n_channels : unit + 1;

        ranks[r] = e->ranks[e->lanes[unit * lpc].rank];
        ranks[r].first_lane = n_placed * lpc;
        for (; unit < end; unit++) {
            guint32 class = q->units.of[unit];

            if (is_placed[class])
                continue;
            is_placed[class] = TRUE;
            q->place[class] = n_placed++;
        }
        ranks[r].n_lanes = n_placed * lpc - ranks[r].first_lane;
    }
    g_assert(n_placed == q->units.n);
    return ranks;
}

static guint32
folded_lane(const TtEngine *e, const Quotient *q, guint32 lane)
{
    return q->place[q->units.of[lane / e->lanes_per_channel]] * e->lanes_per_channel +
           lane % e->lanes_per_channel;
}

/* Lanes and whom their roles lead to, one unit for each class. */
static void
fold_lanes(Fold *fold, const Quotient *q, TtLane *lanes, guint32 *by_role, guint32 *unit_weight)
{
    const TtEngine *e = fold->engine;

    for (guint32 class = 0; class < q->units.n; class ++) {
        guint32 from = q->units.first[class] * e->lanes_per_channel;
        guint32 to = q->place[class] * e->lanes_per_channel;

        unit_weight[q->place[class]] = q->units.size[class];
        for (guint i = 0; i < e->lanes_per_channel; i++) {
            const TtProgram *program =
                &fold->programs.programs[fold->programs.program_of[from + i]];

            lanes[to + i] = e->lanes[from + i];
            for (guint32 k = 0; k < program->n_uses; k++) {
                const TtUse *use = &fold->programs.uses[program->first_use + k];
                gsize at = (gsize)use->role * 2 + use->receiving;
                guint32 known = e->by_role[(gsize)(from + i) * e->n_roles * 2 + at];

                by_role[(gsize)(to + i) * e->n_roles * 2 + at] =
                    known > 0 ? q->connections.of[known - 1] + 1 : 0;
            }
        }
    }
}

static void
fold_connections(Fold *fold, const Quotient *q)
{
    TtEngine *e = fold->engine;
    TtFlows *flows =
        tt_flows_fold(e->flows, q->connections.of, q->connections.n, q->links.of, q->links.n);

    /* a class's number is at most that of its first member: in place */
    for (guint32 class = 0; class < q->connections.n; class ++) {
        TtConnection c = e->connections[q->connections.first[class]];

        c.writer = folded_lane(e, q, c.writer);
        c.reader = folded_lane(e, q, c.reader);
        e->connections[class] = c;
        if (e->paces)
            e->paces[class] = e->paces[q->connections.first[class]];
    }
    e->n_connections = q->connections.n;
    e->connection_weight = g_memdup2(q->connections.size, q->connections.n * sizeof(guint32));
    tt_flows_free(e->flows);
    e->flows = flows;
}

static void
take_over(Fold *fold, Quotient *q)
{
    TtEngine *e = fold->engine;
    guint32 n_ranks, n_lanes = q->units.n * e->lanes_per_channel;
    TtRank *ranks = arrange_units(fold, q, &n_ranks);
    TtLane *lanes = tt_new_lanes(n_lanes);
    guint32 *by_role = g_new0(guint32, MAX(1, (gsize)n_lanes * e->n_roles * 2));

    e->unit_weight = g_new(guint32, q->units.n);
    fold_lanes(fold, q, lanes, by_role, e->unit_weight);
    fold_connections(fold, q);
    for (guint32 r = 0; r < n_ranks; r++)
        for (guint32 i = 0; i < ranks[r].n_lanes; i++)
            lanes[ranks[r].first_lane + i].rank = r;
    free(e->lanes);
    e->lanes = lanes;
    g_free(e->by_role);
    e->by_role = by_role;
    g_free(e->ranks);
    e->ranks = ranks;
    e->n_ranks = e->ranks_left = n_ranks;
    e->n_units = q->units.n;
    e->total_lanes = n_lanes;
    e->is_folded = TRUE;
}

/* --- whether and how ---------------------------------------------------------------------------
 */

/* Every connection a step will use; FALSE if there are too many. */
static gboolean
connect_all(Fold *self)
{
    TtEngine *e = self->engine;
    guint64 n = 0;

    for (guint32 i = 0; i < e->total_lanes; i++)
        n += self->programs.programs[self->programs.program_of[i]].n_uses;
    if (n > MAX_CONNECTIONS)
        return FALSE;
    for (guint32 i = 0; i < e->total_lanes; i++) {
        const TtProgram *program = &self->programs.programs[self->programs.program_of[i]];

        for (guint32 k = 0; k < program->n_uses; k++) {
            const TtUse *use = &self->programs.uses[program->first_use + k];

            tt_engine_connection(e, i, use->role, use->receiving);
        }
    }
    return TRUE;
}

static void
fold(Fold *self)
{
    TtEngine *e = self->engine;
    gboolean together = e->iterations > 1;
    Quotient q;

    self->n_links = tt_flows_n_links(e->flows);
    self->first_connection = e->n_units;
    self->first_link = self->first_connection + e->n_connections;
    self->first_rank = self->first_link + self->n_links;
    self->n_nodes = self->first_rank + (together ? e->n_ranks : 0);
    self->colour = g_new(guint64, self->n_nodes);
    self->class_of = g_new(guint32, self->n_nodes);
    self->relations = g_array_new(FALSE, FALSE, sizeof(Relation));
    describe_units(self);
    relate_units(self);
    describe_connections(self);
    if (together)
        relate_ranks(self);
    find_classes(self);
    quotient_init(&q, self);
    if (q.units.n < e->n_units)
        take_over(self, &q);
    quotient_clear(&q);
    g_array_unref(self->relations);
    g_free(self->colour);
    g_free(self->class_of);
}

void
tt_engine_fold(TtEngine *engine)
{
    Fold self = { .engine = engine };

    /* how a message goes depends on more than the programs of two units: see algos/passing.h */
    if (!engine->passed && engine->n_cores == 0 && engine->profile->workers_per_rank == 0 &&
        !engine->watch && tt_programs_read(&self.programs, engine) && connect_all(&self)) {
        if (engine->uniform)
            fold(&self);
        tt_flows_prune(engine->flows);
        engine->is_connected = TRUE;
    }
    tt_programs_clear(&self.programs);
}
