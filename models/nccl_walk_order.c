/* nccl_walk_order - what is tried first. Within a budget of steps this decides what is found. */
#include "models/nccl_walk_private.h"
#include <stdlib.h>

/* ---- nets in the order of tries ---- */

static void
add_net(TtWalk *w, guint list, guint16 net, guint8 *in_list)
{
    if (!in_list[net])
        w->net_order[list][w->n_net_order[list]++] = net;
    in_list[net] = 1;
}

/* First those GPUs use by themselves, then all others of a kind near enough. */
void
tt_walk_order_nets(TtWalk *w)
{
    gboolean by_channel = w->system->n_hosts > 1;

    if (w->order_type == w->now.graph.type_inter)
        return;
    w->order_type = w->now.graph.type_inter;
    for (guint list = 0; list <= w->n_gpus; list++) {
        guint first = list < w->n_gpus ? list : 0, end = list < w->n_gpus ? list + 1 : w->n_gpus;
        guint8 in_list[TT_SYS_MAX_NETS] = { 0 };

        w->n_net_order[list] = 0;
        for (guint c = 0; c < (by_channel ? TT_NCCL_MAX_CHANNELS : 1); c++)
            for (guint g = first; g < end; g++)
                for (guint i = c; i < w->paths->n_own_nets[g] && (!by_channel || i == c); i++)
                    add_net(w, list, w->paths->own_nets[g][i], in_list);
        for (guint kind = 0; kind <= w->order_type; kind++)
            for (guint g = first; g < end; g++)
                for (guint n = 0; n < w->n_nets; n++)
                    if (tt_nccl_way(w->paths, g, w->n_gpus + n)->type == kind)
                        add_net(w, list, (guint16)n, in_list);
    }
}

/* ---- the next GPU ---- */

typedef struct {
    guint16 gpu;
    int key[6]; /* smallest first */
} Candidate;

static int
compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    for (guint i = 0; i < G_N_ELEMENTS(x->key); i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

/* With NVSwitches all peers are equal; NCCL keeps to neighbours. */
static guint
neighbours(const TtWalk *w, guint g, guint64 channel, guint16 *next)
{
    guint up = (g + 1) % w->n_gpus, down = (g + w->n_gpus - 1) % w->n_gpus, n = 0;
    guint pattern = w->now.graph.pattern;
    guint order[2] = { up, TT_WALK_NOWHERE };

    if (pattern == TT_PATTERN_RING && down != up)
        order[0] = down, order[1] = up;
    else if ((pattern == TT_PATTERN_BALANCED_TREE || pattern == TT_PATTERN_SPLIT_TREE) &&
             down != up)
        order[0] = up, order[1] = down;
    for (guint i = 0; i < 2; i++)
        if (order[i] != TT_WALK_NOWHERE && order[i] != g && !(w->used[order[i]] & channel) &&
            tt_nccl_way(w->paths, g, order[i])->n_hops > 0)
            next[n++] = (guint16)order[i];
    return n;
}

/* All other GPUs as @g would like them: close to the net a channel comes from (@net; TT_WALK_NOWHERE: never
 * mind), then with the widest way, then the shortest. */
static const guint16 *
peers_of(TtWalk *w, guint g, guint net)
{
    guint16 **list = &w->peers[(net == TT_WALK_NOWHERE ? 0 : 1 + net) * w->n_gpus + g];
    Candidate found[TT_NCCL_MAX_GPUS];
    guint n = 0;

    if (*list)
        return *list;
    for (guint i = 1; i < w->n_gpus; i++, n++) {
        guint to = (g + i) % w->n_gpus;
        const TtWay *way = tt_nccl_way(w->paths, g, to),
                    *from_net =
                        net == TT_WALK_NOWHERE ? NULL : tt_nccl_way(w->paths, w->n_gpus + net, to);

        found[n] = (Candidate){ .gpu = (guint16)to };
        if (from_net) {
            found[n].key[0] = -(int)from_net->bw;
            found[n].key[1] = -(int)w->pci_bw[to];
            found[n].key[2] = from_net->n_hops;
        }
        found[n].key[3] = -(int)way->bw;
        found[n].key[4] = way->n_hops;
        found[n].key[5] = (int)i;
    }
    qsort(found, n, sizeof *found, compare_candidates);
    *list = g_new(guint16, w->n_gpus);
    for (guint i = 0; i < n; i++)
        (*list)[i] = found[i].gpu;
    return *list;
}

/* GPUs all alike are taken last first while a net lies far ahead. */
guint
tt_walk_next_gpus(TtWalk *w, guint g, int near_net, guint16 *next)
{
    guint64 channel = G_GUINT64_CONSTANT(1) << w->now.graph.n_channels;
    const guint16 *peers;
    gboolean all_alike = near_net == -1;
    const TtWay *first = NULL;
    guint n = 0;

    if (w->has_nvs)
        return neighbours(w, g, channel, next);
    peers = peers_of(
        w, g, near_net ? (guint)w->now.graph.net[w->now.graph.n_channels][0] : TT_WALK_NOWHERE);
    for (guint i = 0; i + 1 < w->n_gpus; i++) {
        const TtWay *way = tt_nccl_way(w->paths, g, peers[i]);

        if (way->n_hops == 0 || (w->used[peers[i]] & channel))
            continue;
        if (!first)
            first = way;
        all_alike = all_alike && (int)way->bw == (int)first->bw && way->n_hops == first->n_hops;
        next[n++] = peers[i];
    }
    for (guint i = 0; all_alike && i < n / 2; i++) {
        guint16 swap = next[i];

        next[i] = next[n - 1 - i];
        next[n - 1 - i] = swap;
    }
    return n;
}
