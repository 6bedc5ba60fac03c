/* gpus.h - the GPUs whose figures we know, and the names logs and datasets give them.
 *
 * Figures are the makers'; what NCCL makes of them (nccl.md's link constants) is not here.
 */
#pragma once
#include <glib.h>

typedef struct {
    const char *words;  /* all of these stand in the name: "a100 pcie"; the entry with most wins */
    const char *name;   /* "A100-PCIe" */
    const char *family; /* "A100": one class in summaries */
    gboolean nvidia;    /* else AMD, which NCCL does not run on */
    guint sm;           /* 80; 0 for AMD */
    guint n_sms;        /* streaming multiprocessors or compute units */
    guint n_links;      /* NVLink or xGMI links of one GPU; 0: PCIe only */
    double link_gbps;   /* one link, one direction, GB/s */
    guint pcie_gen;     /* of a 16-lane slot */
    double memory_gbps; /* HBM or GDDR, GB/s */
    gboolean peer_access; /* the stock driver lets GPUs reach each other and NICs over PCIe */
    const char *source;
} TtGpuModel;

extern const TtGpuModel tt_gpu_models[]; /* ends with name NULL */

/* The model a name means ("NVIDIA A100-SXM4-40GB", "Tesla T4", "H100 SXM 80GB"); NULL if unknown.
 * Letters and digits count, nothing else; upper or lower case is the same. */
const TtGpuModel *tt_gpu_find(const char *name);

/* "A100-SXM4-40GB, A100-PCIe, ...". Caller frees. */
char *tt_gpu_names(void);
