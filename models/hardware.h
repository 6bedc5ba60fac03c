/* hardware.h - from the facts of a measurement to the machine it ran on.
 *
 * First a few numbers (TtHardware), then one node as NCCL would have seen it (TtNcclXml). Facts the file
 * states win; the rest is what machines of that kind have, and is marked as assumed.
 */
#pragma once
#include "models/gpus.h"
#include "models/measured.h"
#include "topologies/nccl_xml.h"

#define TT_HARDWARE_ERROR (tt_hardware_error_quark())
GQuark tt_hardware_error_quark(void);
typedef enum { TT_HARDWARE_ERROR_USAGE } TtHardwareError;

/* How GPUs of one node reach each other. */
typedef enum {
    TT_INTRA_NONE,        /* one GPU per node */
    TT_INTRA_NVSWITCH,    /* any to any at full speed */
    TT_INTRA_NVLINK_MESH, /* direct links between GPUs: all pairs, or the hybrid cube mesh of eight */
    TT_INTRA_NVLINK_PAIRS, /* bridges between two, or rings */
    TT_INTRA_PCIE,         /* peer to peer over PCIe */
    TT_INTRA_SHM,          /* through host memory */
    TT_INTRA_XGMI,
    TT_N_INTRA
} TtIntra;

typedef enum {
    TT_NET_NONE, /* one node, or one NVLink domain */
    TT_NET_UNKNOWN,
    TT_NET_IB,
    TT_NET_ROCE,
    TT_NET_EFA,
    TT_NET_SLINGSHOT,
    TT_NET_TCPX,
    TT_NET_TCP,
    TT_N_NETS
} TtNetClass;

typedef struct {
    const TtGpuModel *gpu;
    guint n_nodes, gpus_per_node; /* as run; gpus_per_node GPUs take part */
    guint board_gpus;             /* GPUs the machine has, taking part or not */
    TtIntra intra;
    guint nics_per_node; /* of the machine; 0 only if n_nodes is 1 and nothing is known */
    double nic_gbits;    /* of one */
    TtNetClass net;
    gboolean gdr;          /* NICs reach GPU memory without the host's */
    gboolean nic_far;      /* the NIC hangs below the other socket */
    double net_latency_us; /* what the network plug-in states; 0: nothing */
    gboolean mnnvl;        /* NVLink spans nodes: NCCL counts @domain_nodes nodes as one */
    guint domain_nodes;    /* 1 without mnnvl */
    const char *cpu_arch, *cpu_vendor; /* as in topology files; vendor NULL on Arm */
    int cpu_family, cpu_model;         /* -1 if not to be stated */
    gboolean intra_assumed, nics_assumed, net_assumed; /* not in the file */
} TtHardware;

const char *tt_intra_name(TtIntra intra);      /* "NVSwitch" */
const char *tt_net_class_name(TtNetClass net); /* "InfiniBand" */

/* TT_HARDWARE_ERROR_USAGE with one line: a GPU we do not know (the line lists those we do), no GPU named,
 * or counts that do not fit each other. */
gboolean tt_hardware_of(const TtMeasured *m, TtHardware *hardware, GError **error);

/* One node (with mnnvl: one NVLink domain) for NCCL's search; its GPUs are those that take part. @n_nodes
 * is how many of them there are. xGMI links stand in it as RCCL's NVLinks. Fails for nodes that are larger
 * than any known. */
TtNcclXml *tt_hardware_xml(const TtHardware *hardware, guint *n_nodes, GError **error);

/* "H100 NVSwitch, 1 node", "A100 NVLink mesh + Slingshot": one row of a scoreboard. Caller frees. */
char *tt_hardware_class(const TtHardware *hardware);

/* "2 nodes x 8 H100-SXM5, NVSwitch, 8 x 400 Gbit/s InfiniBand (assumed)". Caller frees. */
char *tt_hardware_text(const TtHardware *hardware);
