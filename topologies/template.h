/* template.h - one node: its devices, the wires between them and the ways through it, once for all.
 *
 * Devices of a kind stand together, those that hold ranks first, so rank place r of a node is
 * device r. A wire is one direction of a link, or of a bundle of parallel links taken together. The
 * network is one more device past the last: the far end of every NIC's cable.
 *
 * Knows nothing of other nodes or of what lies behind the cables.
 */
#pragma once
#include "topologies/keys.h"

typedef enum {
    TT_DEVICE_GPU, /* the first three hold ranks; a node has one of them */
    TT_DEVICE_HOST,
    TT_DEVICE_PROCESS,
    TT_DEVICE_CPU, /* a NUMA domain: cores, root complex and memory */
    TT_DEVICE_CACHE,
    TT_DEVICE_MEMORY,
    TT_DEVICE_PCIE_SWITCH,
    TT_DEVICE_NVSWITCH,
    TT_DEVICE_NIC,
    TT_DEVICE_NETWORK, /* not in files */
    TT_N_DEVICE_KINDS
} TtDeviceKind;

#define TT_MAX_RANKS_PER_NODE 512u
#define TT_MAX_NICS_PER_NODE  128u
#define TT_MAX_CPUS_PER_NODE  64u
#define TT_MAX_WAY            11 /* wires of a way through a node, NIC cable included */

typedef struct {
    double capacity_bytes_per_s;
    TtTime latency_ps;
    guint16 from, to; /* devices */
    guint16 bundle;
} TtWire;

/* What one [link NAME] (or [nic]) says. */
typedef struct {
    char *name;                  /* "nvlink" */
    char *kind;                  /* "nvlink", "pcie", "ib" ...: TtLinkInfo.kind */
    double bytes_per_s;          /* of one link, one direction, as the vendor counts it */
    double capacity_bytes_per_s; /* the same * efficiency */
    TtTime latency_ps;
    double burst_bytes; /* TtLinkInfo.burst_bytes */
    TtDeviceKind from, to;
    double pcie_gts; /* of kind "pcie": what the system reports of it; 0: it does not say */
    guint pcie_width;
} TtBundle;

/* From one device to another, in order; n = 0 to itself. */
typedef struct {
    guint16 n;
    guint16 wire[TT_MAX_WAY];
} TtWay;

typedef struct {
    guint count[TT_N_DEVICE_KINDS], first[TT_N_DEVICE_KINDS];
    guint n_devices; /* without the network, whose number this is */
    TtDeviceKind rank_kind;
    guint n_ranks, n_nics, cores;
    gboolean pxn; /* a GPU may reach a NIC through the GPU next to it */

    /* What only NCCL asks for (nccl_xml_of_topology.c). */
    guint sm, trays;                   /* 90 for H100, 0: not said; machines of the node */
    const char *cpu_arch, *cpu_vendor; /* NULL: not said */
    int cpu_family, cpu_model;         /* -1: not said */
    gboolean gdr, sharp;               /* NICs reach GPU memory; switches reduce */
    guint8 *without_gdr;               /* [n_devices] TRUE: that GPU or NIC does not */
    double *nic_reported_bytes_per_s;  /* [n_nics] the speed the system reports; NULL: no NICs */
    double nic_reported_latency_s;     /* what the network plug-in says of itself */
    const char *nic_prefix; /* what drivers of that network call NICs: "rdmap"; NULL: not said */

    GArray *wires;   /* of TtWire; wires 2i and 2i + 1 are the two directions of one link */
    GArray *bundles; /* of TtBundle; the NICs' cables last if there are any */

    /* Filled by tt_template_find_ways(). R ranks, N NICs. */
    TtWay *local;    /* [R * R] rank to rank */
    TtWay *out;      /* [R * N] rank to network through that NIC */
    TtWay *in;       /* [N * R] network to rank */
    guint8 *on_rail; /* [R * N] out passes no CPU: the NIC may serve this rank as its own */
    guint n_own;     /* NICs each rank has for itself */
    guint8 *own;     /* [R * n_own] */
} TtTemplate;

const char *tt_device_kind_name(TtDeviceKind kind);
TtDeviceKind tt_template_kind_of(const TtTemplate *template, guint device);
char *tt_template_device_name(const TtTemplate *template, guint device); /* "gpu 3" */

/* Builds devices and wires from [node], [link ...] and [nic]. */
TtTemplate *tt_template_new(TtKeys *keys, GError **error);
void tt_template_free(TtTemplate *template);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtTemplate, tt_template_free)

/* The part of it that no wire tells: what only NCCL asks for. */
/* The word for [nic] network that stands for NICs of this name; NULL if none does. */
const char *tt_template_network_of(const char *nic_name);

gboolean tt_template_read_facts(TtTemplate *template, TtKeys *keys, GError **error);

/* [link]'s pcie: what is reported, "8 GT/s x8" or "unknown"; what is nearest to the bandwidth without it, or
 * where a --set made that another one. */
gboolean tt_template_read_pcie(TtKeys *keys, const char *section, TtBundle *bundle, GError **error);

/* [nic]'s slower and degraded: cables below its bandwidth, reported or not. */
gboolean tt_template_read_slower(TtTemplate *template, TtKeys *keys, GError **error);

/* Computes the ways; an unreachable rank is an error. @networked: there are other nodes. */
gboolean tt_template_find_ways(TtTemplate *template, gboolean networked, const TtKeys *keys,
                               GError **error);

/* Keys of the sections this file reads, NULL-terminated. */
extern const char *const tt_node_keys[], *const tt_link_keys[], *const tt_nic_keys[];
