/* flows_private.h - what flows.c, flows_heap.c and flows_share.c share.
 *
 * Fields are split by how often they are touched: the fast path of a flow that is alone reads Flow,
 * Hop and Link; the *Share structs only matter once links are shared.
 */
#pragma once
#include "sim/flows.h"
#include "sim/maxmin.h"

#define TT_NOWHERE G_MAXUINT32

typedef enum { FLOW_IDLE, FLOW_STARTING, FLOW_ALONE, FLOW_SHARING } FlowState;

typedef struct {
    double left_bytes; /* at since_ps */
    double rate;       /* bytes per second since then; 0: not yet known */
    TtTime since_ps, end_ps;
    double alone_rate; /* of the narrowest link, or what it is limited to */
    guint64 carried_bytes;
    guint32 first_hop;
    guint32 generation; /* an event of an older one no longer holds */
    guint32 heap_pos;
    guint8 n_hops; /* links that can limit it */
    guint8 n_all;  /* and behind them, links that carry it and never limit anybody */
    guint8 state;
} Flow; /* 64 bytes: one cache line */

typedef struct {
    guint64 visit; /* the last settlement that took it into its region */
    guint32 local; /* its index there */
    guint32 limit; /* index into links: the full link that sets its rate, while sharing */
    TtTime latency_ps;
} FlowShare;

typedef struct {
    guint32 link;   /* index into links */
    guint32 pos;    /* where this flow stands in the link's list */
    guint32 weight; /* how many flows like this one cross the link: 1, unless folded */
} Hop;

typedef struct {
    guint32 flow, hop; /* hop: index into hops */
} Crossing;

/* Flows on a link now, in no particular (but repeatable) order; the first two are kept in place. */
#define FEW_CROSSINGS 2
typedef struct {
    guint32 n, room; /* room 0: few */
    union {
        Crossing few[FEW_CROSSINGS];
        Crossing *at;
    };
} Link;

typedef struct {
    double capacity;
    double load;    /* sum of the rates of its sharing flows */
    guint64 visit;  /* the last settlement that reached it */
    guint64 dirty;  /* the last that lists it as changed */
    guint64 check;  /* the last round of checks that lists it */
    guint32 local;  /* its index in the settlement that reached it */
    TtLink id;      /* TT_NO_LINK: no wire, but what one flow is limited to */
    guint32 bucket; /* index into buckets + 1; 0: none */
} LinkShare;

/* A token bucket: what passes at once. Refilled at the link's rate by what the link does not carry. */
typedef struct {
    double size_bytes, tokens_bytes; /* tokens: at since_ps */
    double begun_bytes;              /* of flows that began to cross the link since then */
    TtTime since_ps;                 /* when it began, or ceased, to be busy */
} Bucket;

typedef struct {
    TtTime end_ps; /* a copy, so that the heap is in order while ends change */
    guint32 flow;
} HeapEntry;

struct TtFlows {
    const TtNetwork *net;
    TtEventQueue *queue;
    GArray *log;

    GArray *buckets; /* Bucket; NULL: no link has one */

    Flow *flows;
    FlowShare *flow_shares;
    Hop *hops;
    Link *links;
    LinkShare *link_shares;
    guint32 n_flows, flows_room, flow_shares_room, n_hops, hops_room;
    guint32 n_links, links_room, link_shares_room;
    guint32
        *link_of; /* [net->n_links] index into links + 1; 0: not used yet. Pages come as touched. */

    guint32 *started, *dirty; /* since the last settlement */
    guint32 n_started, started_room, n_dirty, dirty_room;

    /* flows_share.c: one settlement's region in local numbers. */
    guint64 settlement, check;
    TtMaxmin *maxmin;
    guint32 *member, *first, *route, *weight, *limit; /* by flow of the region, but route, weight */
    double *rate;
    guint32 n_member, member_room, first_room, route_room, weight_room, limit_room, rate_room;
    guint32 *link_member, *inside, *checks; /* by link of the region; checks: links to look at */
    double *capacity, *inside_load;
    guint32 n_link_member, link_member_room, inside_room, capacity_room, inside_load_room;
    guint32 n_checks, checks_room;

    /* flows_heap.c: sharing flows, earliest end on top, ties by index. */
    HeapEntry *heap;
    guint32 heap_n, heap_room;
    TtTime announced_ps; /* an event for the top of the heap is queued for this time; -1: none */
};

/* Grows an array to hold @need elements. */
#define TT_RESERVE(array, room, need)                                                              \
    do {                                                                                           \
        if (G_UNLIKELY((need) > (room))) {                                                         \
            (room) = MAX(64, 2 * (need));                                                          \
            (array) = g_realloc_n((array), (room), sizeof *(array));                               \
        }                                                                                          \
    } while (0)

static inline Crossing *
tt_link_crossings(Link *link)
{
    return link->room ? link->at : link->few;
}

guint32 tt_flows_new_link(TtFlows *self, TtLink id, double capacity);
void tt_flows_mark_dirty(TtFlows *self, guint32 link);
void tt_flows_log(TtFlows *self, guint32 flow, double rate);

/* flows_buckets.c. What of @bytes passes at once, taken from all buckets on the flow's way; before it enters
 * its links. */
void tt_flows_add_bucket(TtFlows *self, guint32 link, double size_bytes);
void tt_flows_fill_buckets(TtFlows *self);
double tt_flows_take_tokens(TtFlows *self, guint32 flow, double bytes);
void tt_flows_bucket_rests(TtFlows *self, guint32 link);

/* flows_share.c: new rates for everything the dirty links and started flows touch. */
void tt_flows_share(TtFlows *self);

/* flows_heap.c */
void tt_flows_heap_pop(TtFlows *self);
void tt_flows_heap_update(TtFlows *self, const guint32 *changed, guint32 n_changed);
