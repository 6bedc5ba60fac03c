#include "algos/verify_wires.h"

static guint32
hash(guint32 src, guint32 dst, guint32 sub_lane)
{
    guint64 h = ((guint64)src << 32 | dst) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);

    h = (h ^ sub_lane) * G_GUINT64_CONSTANT(0xd6e8feb86659fd93);
    return h >> 32;
}

static void
insert(TtWires *wires, guint32 index)
{
    const TtWire *c = tt_wire(wires, index);
    guint32 at = hash(c->src, c->dst, c->sub_lane) & (wires->table_size - 1);

    while (wires->table[at])
        at = (at + 1) & (wires->table_size - 1);
    wires->table[at] = index + 1;
}

guint32
tt_wires_find(TtWires *wires, guint32 src, guint32 dst, guint32 sub_lane)
{
    TtWire fresh = { .src = src, .dst = dst, .sub_lane = sub_lane };
    guint32 at = hash(src, dst, sub_lane) & (wires->table_size - 1);

    for (; wires->table[at]; at = (at + 1) & (wires->table_size - 1)) {
        const TtWire *c = tt_wire(wires, wires->table[at] - 1);

        if (c->src == src && c->dst == dst && c->sub_lane == sub_lane)
            return wires->table[at] - 1;
    }
    g_array_append_val(wires->wires, fresh);
    if (wires->wires->len > wires->table_size / 2) {
        wires->table_size *= 2;
        g_free(wires->table);
        wires->table = g_new0(guint32, wires->table_size);
        for (guint32 i = 0; i + 1 < wires->wires->len; i++)
            insert(wires, i);
    }
    insert(wires, wires->wires->len - 1);
    return wires->wires->len - 1;
}

TtWireMessage *
tt_wires_send(TtWires *wires, TtWire *to, guint32 step, guint32 chunk, guint32 n_chunks)
{
    guint32 size_class = n_chunks > 1 ? 32 - __builtin_clz(n_chunks - 1) : 0;
    TtWireMessage *message = wires->spare[size_class];

    if (message)
        wires->spare[size_class] = message->next;
    else
        message =
            g_malloc(sizeof *message + ((gsize)sizeof(guint64) << size_class) * wires->n_words);
    *message = (TtWireMessage){
        .step = step, .chunk = chunk, .n_chunks = n_chunks, .size_class = size_class
    };
    if (to->tail)
        to->tail->next = message;
    else
        to->head = message;
    to->tail = message;
    to->n_queued++;
    return message;
}

void
tt_wires_drop(TtWires *wires, TtWire *from)
{
    TtWireMessage *message = from->head;

    from->head = message->next;
    if (!from->head)
        from->tail = NULL;
    from->n_queued--;
    message->next = wires->spare[message->size_class];
    wires->spare[message->size_class] = message;
}

void
tt_wires_init(TtWires *wires, guint n_words)
{
    *wires = (TtWires){ .n_words = n_words, .table_size = 64 };
    wires->wires = g_array_new(FALSE, FALSE, sizeof(TtWire));
    wires->table = g_new0(guint32, wires->table_size);
}

static void
free_list(TtWireMessage *message)
{
    while (message) {
        TtWireMessage *next = message->next;

        g_free(message);
        message = next;
    }
}

void
tt_wires_clear(TtWires *wires)
{
    for (guint i = 0; i < wires->wires->len; i++)
        free_list(tt_wire(wires, i)->head);
    for (guint i = 0; i < G_N_ELEMENTS(wires->spare); i++)
        free_list(wires->spare[i]);
    g_array_free(wires->wires, TRUE);
    g_free(wires->table);
}
