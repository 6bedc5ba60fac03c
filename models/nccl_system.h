/* nccl_system.h - one node as NCCL's search sees it: devices, and directed links with a bandwidth.
 *
 * Made from an NCCL topology file: GPUs, PCI switches, CPUs, NICs and their ports ("nets"), and one
 * node for all NVSwitches together. Bandwidths of links are those NCCL believes (its src/graph/topo.h),
 * which are lower than data sheets'; they differ between versions.
 *
 * Knows devices and links. Knows no paths (nccl_paths.h), no channels (nccl_walk.h).
 */
#pragma once
#include "models/nccl_env.h"
#include "topologies/nccl_xml.h"

#define TT_SYS_MAX_NETS 256

typedef enum {
    TT_SYS_GPU,
    TT_SYS_PCI, /* switch */
    TT_SYS_NVS,
    TT_SYS_CPU,
    TT_SYS_NIC,
    TT_SYS_NET, /* port of a NIC: what sends */
    TT_SYS_N_TYPES
} TtSysType;

typedef enum { TT_ARCH_X86, TT_ARCH_ARM, TT_ARCH_POWER, TT_ARCH_OTHER } TtSysArch;
typedef enum { TT_VENDOR_INTEL, TT_VENDOR_AMD, TT_VENDOR_ZHAOXIN, TT_VENDOR_OTHER } TtSysVendor;

typedef struct {
    guint8 type; /* TtNcclPath: LOC, NVL, C2C, PIX (PCI), SYS or NET */
    guint16 from, to;
    guint16 reverse; /* the link the other way */
    float bw;        /* GB/s */
} TtSysLink;

typedef struct {
    guint8 type;   /* TtSysType */
    guint16 index; /* among its type */
    guint16 host;
    guint first_link, n_links; /* of system->link[] */

    guint cc; /* GPU: 90 for Hopper */
    int dev;
    guint place;  /* GPU: position in the order of ranks */
    gboolean gdr; /* GPU, net: can do GPUDirect RDMA */

    TtSysArch arch; /* CPU */
    TtSysVendor vendor;
    float socket_bw; /* to another CPU */

    int number; /* net: NCCL's number of it */
    guint64 asic;
    guint port;
    float bw;
    double latency_us;
    gboolean coll;
} TtSysNode;

typedef struct {
    guint version;
    guint n_nodes, n_links, n_hosts;
    TtSysNode *node;
    TtSysLink *link;
    guint n[TT_SYS_N_TYPES];
    guint16 *of[TT_SYS_N_TYPES]; /* nodes by type, in the file's order */
    guint min_cc, max_cc;
} TtNcclSystem;

#define TT_SYS_LOC_BW 5000.f

/* TT_NCCL_ERROR_USAGE if there is no GPU, or too much of something. GPUs without a rank are left out if
 * any has one. With @with_nets FALSE there are no nets: NCCL drops them when one node is all. */
TtNcclSystem *tt_nccl_system_new(const TtNcclXml *xml, guint version, gboolean with_nets,
                                 GError **error);
void tt_nccl_system_free(TtNcclSystem *system);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtNcclSystem, tt_nccl_system_free)

static inline const TtSysNode *
tt_nccl_system_node(const TtNcclSystem *system, TtSysType type, guint index)
{
    return &system->node[system->of[type][index]];
}
