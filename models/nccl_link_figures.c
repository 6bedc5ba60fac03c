/* nccl_link_figures - what NCCL believes links carry (src/graph/topo.h and topo.cc). */
#include "models/nccl_link_figures.h"
#include <math.h>
#include <string.h>

/* GB/s per NVLink and direction: SMxx_NVLINK_BW of src/graph/topo.h; SM90 20.6 since 2.21, SM100 40.0
 * in 2.25 and 40.1 since 2.27, unknown before (then as SM90). AMD: RCCL's XGMI widths (topo.h): 24 up to
 * gfx908, 36 for gfx90a, 48 for gfx94x. */
float
tt_nccl_nvlink_bw(guint version, guint cc, gboolean amd)
{
    if (amd)
        return cc == 90 || cc == 910 ? 36.f : cc >= 94 ? 48.f : 24.f;
    if (cc >= 100 && version >= TT_NCCL_VERSION(2, 25, 0))
        return version >= TT_NCCL_VERSION(2, 27, 0) ? 40.1f : 40.f;
    if (cc >= 90)
        return version >= TT_NCCL_VERSION(2, 21, 0) ? 20.6f : 20.f;
    return cc == 86 ? 12.f : cc >= 70 ? 20.f : cc >= 60 ? 18.f : 20.f;
}

/* Lanes times speed; a lane's figure is 60 at 8 GT/s and in proportion, in units of 1/80 GB/s. */
float
tt_nccl_pci_bw(const TtXmlPci *pci)
{
    static const struct {
        double gts;
        int figure;
    } speeds[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
    int figure = 60; /* unknown: third generation */

    for (guint i = 0; i < G_N_ELEMENTS(speeds); i++)
        if (fabs(pci->link_gts - speeds[i].gts) < 0.05)
            figure = speeds[i].figure;
    return (float)((pci->link_width ? pci->link_width : 16.0) * figure / 80.0);
}

TtSysArch
tt_nccl_cpu_arch(const TtXmlCpu *cpu)
{
    if (!cpu->arch || g_str_equal(cpu->arch, "x86_64"))
        return TT_ARCH_X86;
    if (g_str_equal(cpu->arch, "arm64") || g_str_equal(cpu->arch, "aarch64"))
        return TT_ARCH_ARM;
    return g_str_has_prefix(cpu->arch, "ppc64") ? TT_ARCH_POWER : TT_ARCH_OTHER;
}

TtSysVendor
tt_nccl_cpu_vendor(const TtXmlCpu *cpu)
{
    if (!cpu->vendor)
        return TT_VENDOR_OTHER;
    if (g_str_equal(cpu->vendor, "GenuineIntel"))
        return TT_VENDOR_INTEL;
    if (g_str_equal(cpu->vendor, "AuthenticAMD"))
        return TT_VENDOR_AMD;
    return strstr(cpu->vendor, "Shanghai") || g_str_equal(cpu->vendor, "CentaurHauls")
               ? TT_VENDOR_ZHAOXIN
               : TT_VENDOR_OTHER;
}

/* Between sockets (src/graph/topo.h: QPI, ZPI, AMD, P9, ARM). */
float
tt_nccl_socket_bw(guint version, const TtXmlCpu *cpu, TtSysArch arch, TtSysVendor vendor)
{
    gboolean intel6 = cpu->family == 6;

    if (arch == TT_ARCH_POWER)
        return 32;
    if (arch == TT_ARCH_ARM)
        return 6;
    if (arch != TT_ARCH_X86)
        return TT_SYS_LOC_BW;
    if (vendor == TT_VENDOR_INTEL) {
        if (version >= TT_NCCL_VERSION(2, 26, 0) && intel6 && cpu->model >= 0x8f)
            return cpu->model >= 0xcf ? 40 : 22;
        return intel6 && cpu->model >= 0x55 ? 10 : 6;
    }
    if (vendor == TT_VENDOR_AMD)
        return version >= TT_NCCL_VERSION(2, 19, 0) ? 16 : TT_SYS_LOC_BW;
    if (vendor == TT_VENDOR_ZHAOXIN)
        return cpu->family == 7 && cpu->model == 0x5b ? 9 : 6;
    return TT_SYS_LOC_BW;
}
