/* nccl_systems.h - the machines behind tests/data/nccl-golden.tsv, as NCCL topology files describe them.
 *
 * They are made by hand, not dumps of real ones: real machines of these names have more NICs and other
 * wiring. Header only, so that any test may use it.
 */
#pragma once
#include "topologies/nccl_xml.h"
#include <string.h>

typedef struct {
    const char *name;
    const char *vendor; /* of the CPUs */
    int family, model;
    guint n_cpus, n_switches, gpus_per_switch, nics_per_switch;
    double link_gts;
    guint sm, n_links; /* NVLinks of a GPU, to NVSwitches; 0: a hybrid cube mesh */
    int nic_mbps;
} NcclSystem;

static const NcclSystem nccl_systems[] = {
    { "dgx1v", "GenuineIntel", 6, 79, 2, 4, 2, 1, 8, 70, 0, 100000 },
    { "dgx2", "GenuineIntel", 6, 85, 2, 8, 2, 1, 8, 70, 6, 100000 },
    { "dgxa100", "AuthenticAMD", 23, 49, 2, 4, 2, 2, 16, 80, 12, 200000 },
    { "dgxh100", "GenuineIntel", 6, 143, 2, 8, 1, 1, 32, 90, 18, 400000 },
    { "h100amd", "AuthenticAMD", 25, 17, 2, 8, 1, 1, 32, 90, 18, 400000 },
    { "dgxb200", "GenuineIntel", 6, 143, 2, 8, 1, 1, 32, 100, 18, 400000 },
    { "b200net800", "GenuineIntel", 6, 143, 2, 8, 1, 1, 64, 100, 18, 800000 },
    { "h100x1", "GenuineIntel", 6, 143, 1, 1, 1, 1, 32, 90, 18, 400000 },
    { "a100x1", "AuthenticAMD", 23, 49, 1, 1, 1, 1, 16, 80, 12, 200000 },
};

/* NVLinks between the eight V100 of a DGX-1. */
static const guint8 nccl_cube_mesh[8][8] = {
    { 0, 1, 1, 2, 2, 0, 0, 0 }, { 1, 0, 2, 1, 0, 2, 0, 0 }, { 1, 2, 0, 2, 0, 0, 1, 0 },
    { 2, 1, 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 1, 1, 2 }, { 0, 2, 0, 0, 1, 0, 2, 1 },
    { 0, 0, 1, 0, 1, 2, 0, 2 }, { 0, 0, 0, 1, 2, 1, 2, 0 },
};

static inline guint
nccl_add_cpu(TtNcclXml *xml, const char *arch, const char *vendor, int family, int model)
{
    TtXmlCpu cpu = { .numa_id = xml->cpu->len,
                     .affinity = g_strdup("ffff"),
                     .arch = g_strdup(arch),
                     .vendor = g_strdup(vendor),
                     .family = family,
                     .model = model };

    g_array_append_val(xml->cpu, cpu);
    return xml->cpu->len - 1;
}

static inline guint
nccl_add_pci(TtNcclXml *xml, guint cpu, guint parent, guint32 class_id, double gts)
{
    TtXmlPci pci = { .cpu = cpu,
                     .parent = parent,
                     .bus_id = g_strdup_printf("%04x:%02x:00.0", xml->pci->len / 255,
                                               xml->pci->len % 255 + 1),
                     .class_id = class_id,
                     .link_gts = gts,
                     .link_width = 16 };

    g_array_append_val(xml->pci, pci);
    return xml->pci->len - 1;
}

static inline guint
nccl_add_gpu(TtNcclXml *xml, guint cpu, guint parent, double gts, guint sm)
{
    TtXmlGpu gpu = { .pci = nccl_add_pci(xml, cpu, parent, 0x030200, gts),
                     .dev = (int)xml->gpu->len,
                     .rank = (int)xml->gpu->len,
                     .sm = sm,
                     .gdr = TRUE };

    g_array_append_val(xml->gpu, gpu);
    return xml->gpu->len - 1;
}

static inline void
nccl_add_nic(TtNcclXml *xml, guint cpu, guint parent, double gts, int mbps)
{
    TtXmlNet net = { .pci = nccl_add_pci(xml, cpu, parent, 0x020700, gts),
                     .cpu = cpu,
                     .name = g_strdup_printf("mlx5_%u", xml->net->len),
                     .dev = xml->net->len,
                     .speed_mbps = mbps,
                     .port = 1,
                     .guid = g_strdup_printf("0x%x", 0x1001 + xml->net->len),
                     .max_conn = 131072,
                     .keep = TRUE,
                     .gdr = TRUE };

    g_array_append_val(xml->net, net);
}

/* @peer: TT_NO_INDEX for the NVSwitches. */
static inline void
nccl_add_nvlink(TtNcclXml *xml, guint gpu, guint peer, guint count)
{
    gboolean to_switch = peer == TT_NO_INDEX;
    guint pci = to_switch ? 0 : g_array_index(xml->gpu, TtXmlGpu, peer).pci;
    TtXmlNvlink link = { .gpu = gpu,
                         .target =
                             g_strdup(to_switch ? "0000:f0:00.0"
                                                : g_array_index(xml->pci, TtXmlPci, pci).bus_id),
                         .count = count,
                         .target_class = to_switch ? 0x068000 : 0x030200 };

    g_array_append_val(xml->nvlink, link);
}

static inline TtNcclXml *
nccl_system_xml(const NcclSystem *s)
{
    TtNcclXml *xml = tt_nccl_xml_new(s->name);

    for (guint c = 0; c < s->n_cpus; c++) {
        guint cpu = nccl_add_cpu(xml, "x86_64", s->vendor, s->family, s->model);

        for (guint w = 0; w < s->n_switches / s->n_cpus; w++) {
            guint pci = nccl_add_pci(xml, cpu, TT_NO_INDEX, 0x060400, s->link_gts);

            for (guint g = 0; g < s->gpus_per_switch; g++) {
                guint gpu = nccl_add_gpu(xml, cpu, pci, s->link_gts, s->sm);

                if (s->n_links)
                    nccl_add_nvlink(xml, gpu, TT_NO_INDEX, s->n_links);
            }
            for (guint n = 0; n < s->nics_per_switch; n++)
                nccl_add_nic(xml, cpu, pci, s->link_gts, s->nic_mbps);
        }
    }
    for (guint g = 0; g < xml->gpu->len && !s->n_links; g++)
        for (guint p = 0; p < xml->gpu->len; p++)
            if (nccl_cube_mesh[g][p])
                nccl_add_nvlink(xml, g, p, nccl_cube_mesh[g][p]);
    return xml;
}

/* NULL if there is none of that name. */
static inline TtNcclXml *
nccl_system_by_name(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(nccl_systems); i++)
        if (g_str_equal(nccl_systems[i].name, name))
            return nccl_system_xml(&nccl_systems[i]);
    return NULL;
}
