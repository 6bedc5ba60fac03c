/* Workers and cores: who has them and who waits for one. */
#include "sim/engine_private.h"

gboolean
tt_resource_acquire(TtEngine *self, TtResource *resource, TtLane *lane)
{
    if (resource->n_free > 0) {
        resource->n_free--;
        return TRUE;
    }
    self->work[tt_lane_index(self, lane)].next = TT_NONE;
    if (resource->last == TT_NONE)
        resource->first = tt_lane_index(self, lane);
    else
        self->work[resource->last].next = tt_lane_index(self, lane);
    resource->last = tt_lane_index(self, lane);
    return FALSE;
}

/* Hands a unit to the lane that has waited longest. */
void
tt_resource_release(TtEngine *self, TtResource *resource)
{
    TtLane *lane;

    if (resource->first == TT_NONE) {
        resource->n_free++;
        return;
    }
    lane = &self->lanes[resource->first];
    resource->first = self->work[resource->first].next;
    if (resource->first == TT_NONE)
        resource->last = TT_NONE;
    lane->state = lane->state == TT_LANE_WORKER ? TT_LANE_CORE : TT_LANE_GRANTED;
    tt_lane_make_ready(self, lane);
}

TtResource *
tt_lane_core(TtEngine *self, const TtLane *lane)
{
    guint per_node = self->net->ranks_per_node;

    return &self->cores[lane->rank / per_node * self->profile->cores +
                        lane->rank % per_node % self->profile->cores];
}
