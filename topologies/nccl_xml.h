/* nccl_xml.h - one node as NCCL sees it: the content of an NCCL topology file.
 *
 * NCCL writes such a file with NCCL_TOPO_DUMP_FILE and reads it with NCCL_TOPO_FILE. Here it is flat
 * arrays in document order, children naming their parents, so that linting, drawing and the search read
 * it without walking a tree. Element and attribute names: docs/topology-format.md.
 *
 * Knows nothing of NCCL's decisions (models/nccl_*.h), only of what stands in the file.
 */
#pragma once
#include "topologies/topology.h"

#define TT_NO_INDEX G_MAXUINT

typedef struct {
    guint numa_id;     /* TT_NO_INDEX: -1, the machine does not say */
    char *affinity;    /* hex mask, NULL if absent */
    char *arch;        /* "x86_64", "arm64", "ppc64" */
    char *vendor;      /* "GenuineIntel", "AuthenticAMD", ...; NULL if absent */
    int family, model; /* -1 if absent */
    char *host_hash;   /* NULL if absent */
} TtXmlCpu;

typedef struct {
    guint cpu;        /* index of the CPU it hangs below */
    guint parent;     /* index of the PCI device above, TT_NO_INDEX: the CPU itself */
    char *bus_id;     /* "0000:1b:00.0" */
    guint32 class_id; /* 0x060400 PCI switch, 0x0302.. GPU, 0x02.... NIC, 0x068000 NVSwitch */
    char *vendor, *device, *subsystem_vendor, *subsystem_device; /* as written, NULL if absent */
    double link_gts;                                             /* GT/s per lane; 0: not stated */
    guint link_width;                                            /* lanes; 0: not stated */
} TtXmlPci;

typedef struct {
    guint pci; /* its PCI device */
    int dev;   /* CUDA index; -1 if absent */
    int rank;  /* -1 if absent */
    guint sm;  /* 90 for H100 */
    gboolean gdr;
} TtXmlGpu;

typedef struct {
    guint gpu;
    char *target;         /* bus id of the peer GPU, NVSwitch or CPU */
    guint count;          /* links */
    guint32 target_class; /* 0x03.... GPU, 0x068000 NVSwitch, 0x068001 CPU */
} TtXmlNvlink;

typedef struct {
    guint gpu;
    double mb_per_s; /* per link */
    guint count;
} TtXmlC2c;

typedef struct {
    guint pci; /* TT_NO_INDEX: hangs below @cpu directly */
    guint cpu;
    char *name;     /* "mlx5_0" */
    guint dev;      /* NCCL's number of it */
    int speed_mbps; /* megabits per second */
    guint port;
    double latency_us;
    char *guid; /* as written, NULL if absent */
    guint max_conn;
    gboolean gdr, coll, keep;
} TtXmlNet;

typedef struct {
    guint pci;
    char *target;
} TtXmlPciLink;

struct TtNcclXml {
    char *origin; /* the path, or the topology it was made from; for messages */
    GArray *cpu, *pci, *gpu, *nvlink, *c2c, *net, *pci_link; /* of the structs above, owned */
};

/* Entry @i of each. */
static inline const TtXmlCpu *
tt_xml_cpu_at(const TtNcclXml *xml, guint i)
{
    return &g_array_index(xml->cpu, TtXmlCpu, i);
}

static inline const TtXmlPci *
tt_xml_pci_at(const TtNcclXml *xml, guint i)
{
    return &g_array_index(xml->pci, TtXmlPci, i);
}

static inline const TtXmlGpu *
tt_xml_gpu_at(const TtNcclXml *xml, guint i)
{
    return &g_array_index(xml->gpu, TtXmlGpu, i);
}

static inline const TtXmlNet *
tt_xml_net_at(const TtNcclXml *xml, guint i)
{
    return &g_array_index(xml->net, TtXmlNet, i);
}

TtNcclXml *tt_nccl_xml_new(const char *origin);
void tt_nccl_xml_free(TtNcclXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtNcclXml, tt_nccl_xml_free)

/* Reads a file (libxml2, no entities, no network, limits on size, depth and counts). Every refusal is
 * one line: path, line, element, what is allowed. TT_TOPOLOGY_ERROR_FILE. */
TtNcclXml *tt_nccl_xml_load(const char *path, GError **error);
TtNcclXml *tt_nccl_xml_parse(const char *origin, const char *text, gsize length, GError **error);

/* The file's text, as NCCL would read it: reading it gives an equal TtNcclXml. Caller frees. */
char *tt_nccl_xml_to_text(const TtNcclXml *xml);

/* One node of @topo as NCCL would detect it; a node alone keeps its NICs all the same (whoever asks
 * NCCL's search says how many nodes there are). If @topo came from such a file, a copy of it. Refuses
 * topologies whose nodes hold no GPUs, or whose GPUs are of no stated generation ([node] sm). */
TtNcclXml *tt_nccl_xml_of_topology(const TtTopology *topo, GError **error);

/* The file as an .ini text (docs/topology-format.md) for any number of nodes: what of it is stated,
 * and NCCL's figures for what it leaves open. NULL if it holds no GPUs. Caller frees. */
char *tt_nccl_xml_to_ini(const TtNcclXml *xml, GError **error);
