/* nccl_system_build.h - a node while it is being put together: nccl_system.c makes devices,
 * nccl_system_links.c their links. */
#pragma once
#include "models/nccl_link_figures.h"
#include <stdlib.h>

#define TT_SYS_MAX_NODES 8192 /* of all kinds */

typedef struct {
    TtNcclSystem *system;
    const TtNcclXml *xml;
    GArray *node;        /* TtSysNode */
    GArray *link;        /* TtSysLink in the order of connection, reverse not yet known */
    GHashTable *link_of; /* from, to and type -> place in @link plus one */
    guint *pci_node, *cpu_node, *gpu_node; /* of the file's elements; TT_NO_INDEX: none */
    gboolean any_kept;                     /* nets not marked with keep are then left out */
} TtSystemBuild;

static inline TtSysNode *
tt_system_node_at(TtSystemBuild *b, guint i)
{
    return &g_array_index(b->node, TtSysNode, i);
}

/* "0x1002" as in the file; 0 if absent. */
static inline guint32
tt_system_hex(const char *text)
{
    return text ? (guint32)strtoul(text, NULL, 16) : 0;
}

/* A device; returns its id. */
guint tt_system_add_node(TtSystemBuild *b, TtSysType type, guint host);

/* A link each way; links of one kind between the same two devices add up. */
void tt_system_connect(TtSystemBuild *b, guint one, guint other, TtNcclPath type, float bw);

/* All links but those of nets, once devices are known. FALSE: more than we can number. */
gboolean tt_system_add_links(TtSystemBuild *b, GError **error);

/* Devices and links into @b->system, in the order searches want. Ends @b->node. */
void tt_system_freeze(TtSystemBuild *b);
