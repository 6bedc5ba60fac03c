/* nvml.h - the GPUs NVIDIA's driver knows, and where their NVLinks lead. The library (NVML) comes with the driver and
 * is loaded when this is called; nothing of it is needed to build.
 */
#pragma once
#include "topologies/topology.h"

#define TT_NVML_LIBRARY "libnvidia-ml.so.1"

/* What the far end of an NVLink is. */
typedef enum { TT_NVLINK_GPU, TT_NVLINK_NPU, TT_NVLINK_SWITCH } TtNvlinkPeer;

typedef struct {
    TtNvlinkPeer peer;
    char *bus_id; /* "0000:1b:00.0"; of switches a machine may hide: "fffffff:ffff:ff" */
} TtNvmlLink;

typedef struct {
    guint index;   /* as NVML counts: by bus id */
    char *bus_id;  /* "0000:1b:00.0" */
    char *name;    /* "NVIDIA H100 80GB HBM3" */
    guint sm;      /* 90 */
    gboolean mig;  /* cut into instances, which have no NVLinks */
    GArray *links; /* TtNvmlLink: those that are up */
} TtNvmlGpu;

/* Of TtNvmlGpu; frees what it holds. @library: a path; NULL: the driver's. What could not be read of single GPUs is said
 * in @notes, lines. NULL without driver or GPUs: says which. TT_TOPOLOGY_ERROR_USAGE. */
GPtrArray *tt_nvml_gpus(const char *library, GPtrArray *notes, GError **error);
