/* discover_gpus.h - the machine this runs on as NCCL would detect it: GPUs and NVLinks from the driver, PCIe, NICs and
 * CPUs from the kernel.
 */
#pragma once
#include "topologies/nccl_xml.h"

/* Where to look. */
typedef struct {
    const char *root;    /* in front of /sys and /proc; NULL: this machine's */
    const char *library; /* NVML; NULL: the driver's */
} TtDiscovery;

/* @notes gets lines about what could not be found out. NULL without GPUs: says why. TT_TOPOLOGY_ERROR_USAGE. */
TtNcclXml *tt_discover_gpus(const TtDiscovery *where, GPtrArray *notes, GError **error);
