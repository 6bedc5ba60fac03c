/* nccl_figures.h - how fast NCCL takes links for, and what the wires could do, per direction.
 *
 * NCCL's figures: src/graph/topo.h and topo.cc, 2.27.7. They are what files that give no speed stand for.
 */
#pragma once
#include "topologies/nccl_xml.h"

/* PCIe: GB/s after coding, of @width lanes at @gts GT/s; 0 means what NCCL assumes: 8 GT/s, 16 lanes. */
double tt_pcie_gbytes_per_s(double gts, guint width);

/* The standard link whose speed is nearest; near ties go to the wider. */
void tt_pcie_nearest(double bytes_per_s, double *gts, guint *width);

/* One NVLink of a GPU of generation @sm: as the vendor counts it and as NCCL does, GB/s. */
typedef struct {
    guint sm; /* this and later ones */
    double wire_gbytes_per_s, nccl_gbytes_per_s;
} TtNvlinkSpeed;
TtNvlinkSpeed tt_nvlink_speed(guint sm);

/* Between two sockets, GB/s; 0 if NCCL knows no figure. */
double tt_cpu_to_cpu_gbytes_per_s(const TtXmlCpu *cpu);
