#include "exec/ping.h"
#include "exec/wires.h"

#include <time.h>

#define PINGS_WARMUP      20
#define PINGS_MOST        200
#define PINGS_MOST_S      100e-6
#define WIRE_PINGS_WARMUP 4
#define WIRE_PINGS_MOST_S 2e-3
#define PING_STOP         G_MAXUINT64

/* A message of nothing asks for an echo, one of eight bytes for an end. */
#define ECHO_END TT_SLOT_SMALL_START
#define STOP_END (TT_SLOT_SMALL_START + 8)

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- on two cache lines --------------------------------------------------------------------------- */

static gboolean
wait_cell(TtRank *self, guint which, guint64 last, guint64 *value)
{
    _Atomic guint64 *cell = &self->region->ping[which].value;
    TtWait wait = { 0 };

    while ((*value = atomic_load_explicit(cell, memory_order_acquire)) == last) {
        if (!tt_wait(self, &wait, TT_RANK_WAITS_BARRIER, 1 - which, TT_NO_LANE))
            return FALSE;
    }
    tt_wait_over(self, &wait);
    return TRUE;
}

static void
write_cell(TtRank *self, guint which, guint64 value)
{
    atomic_store_explicit(&self->region->ping[which].value, value, memory_order_release);
}

static gboolean
echo_cells(TtRank *self)
{
    guint64 value = 0;

    while (value != PING_STOP) {
        if (!wait_cell(self, 0, value, &value))
            return FALSE;
        write_cell(self, 1, value);
    }
    return TRUE;
}

static gboolean
time_cells(TtRank *self)
{
    guint64 value;
    double start = 0;

    for (guint64 i = 1; i <= PINGS_WARMUP + PINGS_MOST; i++) {
        double elapsed;

        if (i == PINGS_WARMUP + 1)
            start = now_s();
        write_cell(self, 0, i);
        if (!wait_cell(self, 1, i - 1, &value))
            return FALSE;
        if (i <= PINGS_WARMUP || (i % 16 != 0 && i != PINGS_WARMUP + PINGS_MOST))
            continue;
        elapsed = now_s() - start;
        self->region->flag_s = elapsed / (double)(2 * (i - PINGS_WARMUP));
        if (elapsed > PINGS_MOST_S)
            break;
    }
    write_cell(self, 0, PING_STOP);
    return TRUE;
}

/* --- by messages ---------------------------------------------------------------------------------- */

gboolean
tt_ping_needs_connections(const TtRegion *region)
{
    return region->n_ranks > 1 && (tt_region_is_part(region) || tt_region_transport(region, 0, 1));
}

void
tt_ping_open(TtRank *self)
{
    guint first = self->region->job.ping_first;

    if (!tt_ping_needs_connections(self->region) || self->rank > 1)
        return;
    tt_port_open(self, first + self->rank, 1 - self->rank, TRUE);
    tt_port_open(self, first + 1 - self->rank, 1 - self->rank, FALSE);
}

/* *end: where the message ended. */
static gboolean
wait_message(TtRank *self, TtPort *in, guint64 *end)
{
    TtWait wait = { 0 };

    while (!tt_port_has_message(in))
        if (!tt_wires_pump(self, NULL) ||
            !tt_wait(self, &wait, TT_RANK_WAITS_BARRIER, in->peer, TT_NO_LANE))
            return FALSE;
    tt_wait_over(self, &wait);
    *end = TT_INFO_END(tt_port_head(in)->info);
    tt_port_acknowledge(in);
    return TRUE;
}

static gboolean
send_message(TtRank *self, TtPort *out, guint64 end)
{
    TtWait wait = { 0 };

    while (!tt_port_has_slot(out))
        if (!tt_wires_pump(self, NULL) ||
            !tt_wait(self, &wait, TT_RANK_WAITS_BARRIER, out->peer, TT_NO_LANE))
            return FALSE;
    tt_port_hand_over(out, end);
    return tt_wires_pump(self, NULL);
}

static gboolean
echo_messages(TtRank *self, TtPort *in, TtPort *out)
{
    guint64 end = ECHO_END;

    while (end != STOP_END)
        if (!wait_message(self, in, &end) ||
            (end == ECHO_END && !send_message(self, out, ECHO_END)))
            return FALSE;
    return TRUE;
}

static gboolean
time_messages(TtRank *self, TtPort *in, TtPort *out)
{
    double start = 0, elapsed = 0;
    guint64 end;

    for (guint i = 0; elapsed < WIRE_PINGS_MOST_S && i < WIRE_PINGS_WARMUP + PINGS_MOST; i++) {
        if (i == WIRE_PINGS_WARMUP)
            start = now_s();
        if (!send_message(self, out, ECHO_END) || !wait_message(self, in, &end))
            return FALSE;
        if (i < WIRE_PINGS_WARMUP)
            continue;
        elapsed = now_s() - start;
        self->region->flag_s = elapsed / (double)(2 * (i + 1 - WIRE_PINGS_WARMUP));
    }
    return send_message(self, out, STOP_END) && tt_wires_flush(self);
}

gboolean
tt_ping_measure(TtRank *self)
{
    guint first = self->region->job.ping_first;
    TtPort *in, *out;

    if (self->region->n_ranks < 2 || self->rank > 1 || self->gpu)
        return TRUE; /* between GPUs a flag of the host says nothing */
    if (!tt_ping_needs_connections(self->region))
        return self->rank == 0 ? time_cells(self) : echo_cells(self);
    in = &self->in_ports[first + 1 - self->rank];
    out = &self->out_ports[first + self->rank];
    return self->rank == 0 ? time_messages(self, in, out) : echo_messages(self, in, out);
}
