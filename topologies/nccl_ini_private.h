/* nccl_ini_private.h - what the two files that turn an NCCL topology into an .ini text share. */
#pragma once
#include "topologies/nccl_xml.h"

#define TT_INI_PCIE_LATENCY                                                                        \
    "0.25 us ; fitted: a quarter of NCCL's 1.0 us per PCI hop with LL, over four links"
#define TT_INI_NO_NUMBER G_MAXUINT

typedef struct {
    const TtNcclXml *xml;
    GArray *gpus, *nets; /* indices in use, in order of our numbers */
    guint *gpu_number;   /* [xml->gpu->len], TT_INI_NO_NUMBER: not in use */
    guint *holds;        /* [xml->pci->len] GPUs and NICs right on it */
    gboolean *leads,
        *above; /* [xml->pci->len] to a GPU or NIC, itself included; to another such PCI */
    guint *switch_number; /* [xml->pci->len] */
    guint n_switches, nic_mbps;
    GString *text;
    GHashTable *links; /* "link NAME ..." -> GString of pairs */
    GPtrArray *order;  /* of its keys */
} TtIniWriter;

static inline gboolean
tt_ini_is_switch(const TtIniWriter *w, guint pci)
{
    return w->leads[pci] && (w->above[pci] || w->holds[pci] > 1);
}

static inline guint
tt_ini_mbps_of(const TtXmlNet *net)
{
    return net->speed_mbps > 0 ? (guint)net->speed_mbps : 10000; /* as NCCL */
}

/* Fills links and order; TRUE if there are NVSwitches. */
gboolean tt_ini_collect_links(TtIniWriter *w);
