/* nccl_tree.h - what more than one reader of a topology file asks of it. */
#pragma once
#include "topologies/nccl_xml.h"

typedef struct {
    guint a, b;        /* indices of GPUs, a < b */
    guint there, back; /* links that @a's entry and @b's entry state */
} TtGpuPair;

/* Of TtGpuPair, ascending; pairs that neither end mentions are not there. Caller frees. */
GArray *tt_nccl_pairs(const TtNcclXml *xml);

/* [pci] Does it lead to a GPU or NIC, or hold one? Caller frees. */
gboolean *tt_nccl_leads(const TtNcclXml *xml);

/* Lower-case bus id -> index of its GPU + 1. Keys and table are the caller's. */
GHashTable *tt_nccl_gpus_by_bus_id(const TtNcclXml *xml);
