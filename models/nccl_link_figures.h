/* nccl_link_figures.h - what NCCL believes links carry, in GB/s, one direction, by version. */
#pragma once
#include "models/nccl_system.h"

/* One NVLink of a GPU of generation @cc; @amd: one XGMI link. */
float tt_nccl_nvlink_bw(guint version, guint cc, gboolean amd);
float tt_nccl_pci_bw(const TtXmlPci *pci);
TtSysArch tt_nccl_cpu_arch(const TtXmlCpu *cpu);
TtSysVendor tt_nccl_cpu_vendor(const TtXmlCpu *cpu);
float tt_nccl_socket_bw(guint version, const TtXmlCpu *cpu, TtSysArch arch, TtSysVendor vendor);
