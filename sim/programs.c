#include "sim/programs.h"

#include "sim/partition.h"

#define FEW_STEPS  65536 /* so many are always read */
#define WORTH_READ 8     /* else one for so many that a run takes */

/* Open hash of (program, sub-lane), while reading. */
typedef struct {
    guint32 *slots, n_slots;
    guint32 *stamp; /* [role * 2 + receiving] the last program that uses it, + 1 */
    guint64 n_steps, most_steps;
} Reader;

static guint32 *
find_slot(const TtPrograms *self, const Reader *reader, guint32 program, guint32 sub_lane)
{
    guint32 mask = reader->n_slots - 1, i = (guint32)tt_mix(program, sub_lane) & mask;

    for (;; i = (i + 1) & mask) {
        const TtProgram *known = &self->programs[reader->slots[i] - 1];

        if (reader->slots[i] == 0 || (known->program == program && known->sub_lane == sub_lane))
            return &reader->slots[i];
    }
}

static void
grow_slots(TtPrograms *self, Reader *reader)
{
    reader->n_slots = MAX(64, 2 * reader->n_slots);
    g_free(reader->slots);
    reader->slots = g_new0(guint32, reader->n_slots);
    for (guint32 p = 0; p < self->n_programs; p++)
        *find_slot(self, reader, self->programs[p].program, self->programs[p].sub_lane) = p + 1;
}

static void
add_use(TtPrograms *self, Reader *reader, guint32 role, gboolean receiving)
{
    guint32 *stamp = &reader->stamp[2 * (gsize)role + receiving];

    if (*stamp == self->n_programs)
        return;
    *stamp = self->n_programs;
    if (self->n_uses == self->uses_room) {
        self->uses_room = MAX(64, 2 * self->uses_room);
        self->uses = g_renew(TtUse, self->uses, self->uses_room);
    }
    self->uses[self->n_uses++] = (TtUse){ role, receiving };
}

static guint64
look_of_step(const TtStep *step)
{
    guint64 look = tt_mix(step->op, step->n_chunks);

    look = tt_mix(look, (guint64)step->recv_role << 32 | step->send_role);
    if (step->dep_lane != TT_NO_LANE)
        look = tt_mix(look, (guint64)step->dep_lane << 32 | step->dep_step);
    return look;
}

static gboolean
read_program(TtPrograms *self, Reader *reader, const TtPlan *plan, const TtLane *lane)
{
    TtProgram *program;

    reader->n_steps += lane->n_steps;
    if (reader->n_steps > reader->most_steps)
        return FALSE;
    if (self->n_programs == self->programs_room) {
        self->programs_room = MAX(16, 2 * self->programs_room);
        self->programs = g_renew(TtProgram, self->programs, self->programs_room);
    }
    program = &self->programs[self->n_programs++];
    *program = (TtProgram){ .program = lane->program,
                            .sub_lane = lane->lane % plan->lanes_per_channel,
                            .first_use = self->n_uses,
                            .look = lane->n_steps };
    for (guint32 i = 0; i < lane->n_steps; i++) {
        TtStep step = plan->algo->step(plan, lane->program, program->sub_lane, i);

        program->look = tt_mix(program->look, look_of_step(&step));
        if (tt_op_receives(step.op))
            add_use(self, reader, step.recv_role, TRUE);
        if (tt_op_sends(step.op))
            add_use(self, reader, step.send_role, FALSE);
    }
    program->n_uses = self->n_uses - program->first_use;
    return TRUE;
}

gboolean
tt_programs_read(TtPrograms *self, const TtEngine *engine)
{
    Reader reader = { .stamp = g_new0(guint32, 2 * (gsize)MAX(1, engine->n_roles)) };
    gboolean good = TRUE;

    *self = (TtPrograms){ .program_of = g_new(guint32, engine->total_lanes) };
    for (guint32 i = 0; i < engine->total_lanes; i++)
        reader.most_steps += engine->lanes[i].n_steps;
    reader.most_steps = MAX(FEW_STEPS, reader.most_steps / WORTH_READ * engine->plan->n_rounds *
                                           engine->iterations);
    for (guint32 i = 0; i < engine->total_lanes && good; i++) {
        const TtLane *lane = &engine->lanes[i];
        guint32 sub_lane = lane->lane % engine->lanes_per_channel, *slot;

        if (2 * self->n_programs >= reader.n_slots)
            grow_slots(self, &reader);
        slot = find_slot(self, &reader, lane->program, sub_lane);
        if (*slot == 0) {
            good = read_program(self, &reader, engine->plan, lane);
            *slot = self->n_programs;
        }
        self->program_of[i] = *slot - 1;
    }
    g_free(reader.slots);
    g_free(reader.stamp);
    return good;
}

void
tt_programs_clear(TtPrograms *self)
{
    g_free(self->programs);
    g_free(self->uses);
    g_free(self->program_of);
    *self = (TtPrograms){ 0 };
}
