#include "exec/wires.h"
#include "exec/gpu_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const TtAddress *
address_of(gpointer data, guint rank, guint reach)
{
    const TtRank *self = data;

    return &self->region->ranks[rank].address[reach];
}

static const TtAddress *
address_inside(gpointer data, guint rank)
{
    return address_of(data, rank, TT_INSIDE);
}

static const TtAddress *
address_across(gpointer data, guint rank)
{
    return address_of(data, rank, TT_ACROSS);
}

static gboolean
complain(TtRank *self, guint peer, GError *error)
{
    tt_rank_complain(self, peer, error);
    g_error_free(error);
    return FALSE;
}

/* --- opening ------------------------------------------------------------------------------------- */

static gboolean
open_one(TtRank *self, TtReach r)
{
    TtRegion *region = self->region;
    TtReachWires *reach = &self->reach[r];
    TtWireOptions options = region->wire;
    GError *error = NULL;

    options.rank = self->rank;
    options.aborted = &region->aborted;
    options.context = self;
    options.address = r == TT_INSIDE ? address_inside : address_across;
    reach->transport = region->transports[r];
    if (!reach->transport)
        return TRUE;
    reach->wire = reach->transport->open(&options, &region->ranks[self->rank].address[r], &error);
    if (!reach->wire)
        return complain(self, TT_NO_RANK, error);
    if (self->gpu)
        tt_gpu_direct_open(self, reach);
    return TRUE;
}

gboolean
tt_wires_open(TtRank *self)
{
    gboolean one = self->region->transports[TT_ACROSS] == self->region->transports[TT_INSIDE];

    return open_one(self, TT_INSIDE) && (one || open_one(self, TT_ACROSS));
}

static void
give_room_back(TtRank *self, TtReachWires *reach)
{
    if (reach->memory && self->gpu)
        tt_gpu_unregister(self, reach->memory);
    if (reach->memory)
        munmap(reach->memory, reach->room_bytes);
    reach->memory = NULL;
    reach->room_bytes = 0;
}

void
tt_wires_close(TtRank *self)
{
    for (guint i = 0; i < TT_N_REACHES; i++) {
        TtReachWires *reach = &self->reach[i];

        if (reach->wire)
            reach->transport->close(reach->wire);
        reach->wire = NULL;
        if (self->gpu)
            tt_gpu_direct_close(self, reach);
        give_room_back(self, reach);
        g_clear_pointer(&reach->ends, g_array_unref);
    }
}

/* --- a job --------------------------------------------------------------------------------------- */

gboolean
tt_wires_make_room(TtRank *self, TtReachWires *reach, gsize bytes)
{
    gsize page = (gsize)sysconf(_SC_PAGESIZE), wanted = MAX(page, (bytes + page - 1) / page * page);
    guint8 *memory;

    if (self->gpu)
        tt_gpu_direct_room(self, reach, bytes);
    if (wanted <= reach->room_bytes)
        return TRUE;
    give_room_back(self, reach);
    memory = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return complain(self, TT_NO_RANK,
                        g_error_new(TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                                    "rank %u cannot map %" G_GSIZE_FORMAT
                                    " MiB for the slots of its %s connections: %s (use smaller "
                                    "slots)",
                                    self->rank, wanted >> 20, reach->transport->name,
                                    g_strerror(errno)));
    reach->memory = memory;
    reach->room_bytes = wanted;
    return !self->gpu || tt_gpu_register(self, memory, wanted);
}

static int
compare_ends(gconstpointer a, gconstpointer b)
{
    const TtWireEnd *x = a, *y = b;

    return x->connection != y->connection ? (x->connection < y->connection ? -1 : 1)
                                          : (int)x->sends - (int)y->sends;
}

void
tt_wires_sort_ends(TtReachWires *reach)
{
    g_array_sort(reach->ends, compare_ends);
}

const TtWireEnd *
tt_wires_find_end(const TtRank *self, guint peer, guint32 connection, gboolean sends)
{
    const GArray *ends = self->reach[tt_wires_reach(self, peer)].ends;
    TtWireEnd key = { .connection = connection, .sends = sends };

    return bsearch(&key, ends->data, ends->len, sizeof key, compare_ends);
}

gboolean
tt_wires_begin(TtRank *self, TtReachWires *reach)
{
    TtWireJob job = { .memory = reach->memory,
                      .memory_bytes = reach->room_bytes,
                      .ends = (const TtWireEnd *)(gpointer)reach->ends->data,
                      .n_ends = reach->ends->len,
                      .job = atomic_load(&self->region->command_number) };
    GError *error = NULL;

    return reach->transport->begin(reach->wire, &job, &error) || complain(self, TT_NO_RANK, error);
}

/* --- running ------------------------------------------------------------------------------------- */

gboolean
tt_wires_pump(TtRank *self, gboolean *moved)
{
    for (guint i = 0; i < TT_N_REACHES; i++) {
        TtReachWires *reach = &self->reach[i];
        TtWireNews news;

        if (!reach->wire || reach->ends->len == 0)
            continue;
        news = reach->transport->pump(reach->wire);
        if (moved && news == TT_WIRE_MOVED)
            *moved = TRUE;
        if (news == TT_WIRE_FAILED) {
            GError *error = NULL;
            guint peer = TT_NO_RANK;

            reach->transport->explain(reach->wire, &peer, &error);
            return complain(self, peer, error);
        }
    }
    return TRUE;
}

static const TtReachWires *
find_unflushed(const TtRank *self)
{
    for (guint i = 0; i < TT_N_REACHES; i++) {
        const TtReachWires *reach = &self->reach[i];

        if (reach->wire && reach->ends->len > 0 && !reach->transport->is_flushed(reach->wire))
            return reach;
    }
    return NULL;
}

gboolean
tt_wires_flush(TtRank *self)
{
    TtWait wait = { 0 };

    if (!self->has_wires)
        return TRUE;
    while (find_unflushed(self)) {
        gboolean moved = FALSE;

        if (!tt_wires_pump(self, &moved))
            return FALSE;
        if (!moved && find_unflushed(self) &&
            !tt_wait(self, &wait, TT_RANK_WAITS_SLOT, TT_NO_RANK, TT_NO_LANE))
            return FALSE;
    }
    tt_wait_over(self, &wait);
    return TRUE;
}

void
tt_wires_sleep(TtRank *self, int timeout_ms)
{
    const TtReachWires *busy[TT_N_REACHES];
    guint n = 0;

    for (guint i = 0; i < TT_N_REACHES; i++)
        if (self->reach[i].wire && self->reach[i].ends->len > 0)
            busy[n++] = &self->reach[i];
    for (guint i = 0; i < n; i++) /* of two, neither may sleep for long */
        busy[i]->transport->sleep(busy[i]->wire, n == 1 ? timeout_ms : 0);
}
