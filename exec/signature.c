#include "exec/signature.h"

#include <string.h>

static inline guint64
mix(guint64 hash, guint64 value)
{
    hash = (hash ^ value) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static guint64
mix_step(guint64 hash, const TtPlan *plan, guint rank, guint lane, guint32 i)
{
    TtStep s = tt_plan_step(plan, rank, lane, i);

    hash = mix(hash, s.op | (guint64)s.src << 8 | (guint64)s.dst << 16 | (guint64)s.dep_lane << 24);
    hash = mix(hash, s.dep_lane == TT_NO_LANE ? 0 : s.dep_step);
    hash = mix(hash, s.chunk | (guint64)s.n_chunks << 32);
    if (tt_op_receives(s.op))
        hash = mix(hash, tt_plan_peer(plan, rank, lane, s.recv_role));
    if (tt_op_sends(s.op))
        hash = mix(hash, tt_plan_peer(plan, rank, lane, s.send_role));
    return hash;
}

guint64
tt_signature_hash_part(guint64 hash, const TtRunPart *part)
{
    const TtPlan *plan = part->plan;

    hash = mix(mix(hash, plan->n_lanes), plan->n_rounds);
    hash = mix(mix(hash, plan->spec.count), plan->spec.collective | (guint64)plan->spec.root << 32);
    for (guint i = 0; i < plan->spec.n_ranks; i++) {
        guint64 offset_ps = part->offset_s ? (guint64)(part->offset_s[i] * 1e12) : 0;

        hash = mix(mix(hash, part->members ? part->members[i] : i), offset_ps);
    }
    hash = mix(hash, plan->n_chunks | (guint64)plan->spec.n_slots << 32);
    for (guint rank = 0; rank < tt_plan_n_agents(plan); rank++)
        for (guint lane = 0; lane < plan->n_lanes; lane++) {
            guint32 n = tt_plan_n_steps(plan, rank, lane);

            hash = mix(hash, n);
            for (guint32 i = 0; i < n; i++)
                hash = mix_step(hash, plan, rank, lane, i);
        }
    return hash;
}

/* --- words ------------------------------------------------------------------------------------- */

static char *
number_text(const char *what, guint64 value)
{
    return g_strdup_printf("%s %" G_GUINT64_FORMAT, what, value);
}

/* The fields in which two may differ, as each side would say them. */
static char *
field_text(const TtSignature *s, guint field)
{
    switch (field) {
    case 0: return g_strdup(tt_collective_name(s->collective));
    case 1: return number_text("count", s->count);
    case 2: return g_strdup_printf("type %s", tt_type_name(s->type));
    case 3: return g_strdup_printf("op %s", tt_redop_name(s->redop));
    case 4: return number_text("root", s->root);
    case 5: return g_strdup_printf("algorithm %s", s->algorithm);
    case 6: return number_text("ranks", s->n_ranks);
    case 7: return g_strdup(s->in_place ? "in place" : "out of place");
    case 8: return number_text("warmup", s->warmup);
    case 9: return number_text("iterations", s->iterations);
    case 10: return number_text("repeats", s->repeats);
    case 11: return number_text("check", s->check);
    case 12: return number_text("recording", s->record);
    case 13: return number_text("stamps", s->stamps);
    case 14: return number_text("arrivals", s->arrivals);
    case 15: return g_strdup_printf("%u at once", s->parts);
    case 16: return g_strdup_printf("plan %016" G_GINT64_MODIFIER "x", s->plan);
    default: return NULL;
    }
}

char *
tt_signature_difference(guint rank_a, const TtSignature *a, guint rank_b, const TtSignature *b)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return NULL;
    for (guint field = 0;; field++) {
        g_autofree char *of_a = field_text(a, field), *of_b = field_text(b, field);

        if (!of_a)
            return NULL;
        if (strcmp(of_a, of_b) != 0)
            return g_strdup_printf("rank %u was told %s, rank %u %s", rank_a, of_a, rank_b, of_b);
    }
}
