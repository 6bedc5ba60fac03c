#include "topologies/nccl_figures.h"

#include <math.h>
#include <string.h>

/* GT/s and GB/s of one lane after coding: 8b/10b, 128b/130b, and FLITs (PCIe 6.0). */
static const struct {
    double gts, gbytes_per_s;
} pcie[] = {
    { 2.5, 0.25 }, { 5, 0.5 }, { 8, 0.98463 }, { 16, 1.96923 }, { 32, 3.93846 }, { 64, 7.5625 },
};

double
tt_pcie_gbytes_per_s(double gts, guint width)
{
    gsize found = 2; /* NCCL takes a speed it does not know for PCIe 3.0 */

    for (gsize i = 0; i < G_N_ELEMENTS(pcie); i++)
        if (fabs(pcie[i].gts - gts) < 0.01)
            found = i;
    return pcie[found].gbytes_per_s * (width ? width : 16);
}

void
tt_pcie_nearest(double bytes_per_s, double *gts, guint *width)
{
    double best = INFINITY;

    for (guint lanes = 16; lanes > 0; lanes /= 2) {
        for (gsize i = 0; i < G_N_ELEMENTS(pcie); i++) {
            double off = fabs(log(bytes_per_s / 1e9 / (pcie[i].gbytes_per_s * lanes)));

            if (off < best - 0.02) {
                best = off;
                *gts = pcie[i].gts;
                *width = lanes;
            }
        }
    }
}

TtNvlinkSpeed
tt_nvlink_speed(guint sm)
{
    static const TtNvlinkSpeed speeds[] = {
        { 60, 20, 18 },   { 70, 25, 20 }, { 80, 25, 20 },    { 86, 14.0625, 12 },
        { 90, 25, 20.6 }, { 94, 64, 48 }, { 100, 50, 40.1 }, /* 94: xGMI of gfx942 */
    };
    gsize i = G_N_ELEMENTS(speeds) - 1;

    while (i > 0 && sm < speeds[i].sm)
        i--;
    return speeds[i];
}

double
tt_cpu_to_cpu_gbytes_per_s(const TtXmlCpu *cpu)
{
    if (g_strcmp0(cpu->arch, "ppc64") == 0)
        return 32;
    if (g_strcmp0(cpu->arch, "arm64") == 0)
        return 6;
    if (g_strcmp0(cpu->vendor, "AuthenticAMD") == 0 || g_strcmp0(cpu->vendor, "AMD") == 0)
        return 16;
    if (g_strcmp0(cpu->vendor, "GenuineIntel") == 0)
        return cpu->model >= 0xcf ? 40 : cpu->model >= 0x8f ? 22 : cpu->model >= 0x55 ? 10 : 6;
    if (cpu->vendor &&
        (strcmp(cpu->vendor, "CentaurHauls") == 0 || strstr(cpu->vendor, "Shanghai")))
        return 6;
    return 0;
}
