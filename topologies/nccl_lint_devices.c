/* nccl_lint_devices - what CPUs, GPUs and PCIe branches do not tell. */
#include "topologies/nccl_lint_private.h"
#include "topologies/keys.h"
#include "topologies/nccl_tree.h"

#include <string.h>

static char *
name_cpu(const TtLint *l, guint i)
{
    guint numa = tt_xml_cpu_at(l->xml, i)->numa_id;

    return numa == TT_NO_INDEX ? g_strdup("cpu -1") : g_strdup_printf("cpu %u", numa);
}

static gboolean
holds_something(const TtLint *l, guint cpu)
{
    for (guint i = 0; i < l->xml->pci->len; i++)
        if (tt_xml_pci_at(l->xml, i)->cpu == cpu)
            return TRUE;
    return FALSE;
}

void
tt_lint_cpus(TtLint *l)
{
    for (guint i = 0; i < l->xml->cpu->len; i++) {
        const TtXmlCpu *cpu = tt_xml_cpu_at(l->xml, i);
        gboolean x86 = !cpu->arch || strcmp(cpu->arch, "x86_64") == 0;

        if (!holds_something(l, i))
            continue;
        if (cpu->numa_id == TT_NO_INDEX)
            tt_lint_add(l, TT_LINT_WARNING, "cpu-numa", g_strdup("numaid -1"), name_cpu(l, i),
                        g_strdup("the number of the NUMA node"),
                        "everything seems to hang at one CPU; sockets and affinity are unknown");
        if (!cpu->arch || (x86 && (!cpu->vendor || cpu->model < 0)))
            tt_lint_add(l, TT_LINT_WARNING, "cpu-vendor", g_strdup("no arch, vendor or modelid"),
                        name_cpu(l, i), g_strdup("arch, vendor, familyid and modelid"),
                        "cannot tell how fast the sockets are joined, nor pick its tuning for the "
                        "CPU");
    }
}

void
tt_lint_gpus(TtLint *l)
{
    guint n_without = 0, n_gpus = l->xml->gpu->len;

    for (guint i = 0; i < n_gpus; i++)
        n_without += tt_xml_gpu_at(l->xml, i)->rank < 0;
    for (guint i = 0; i < n_gpus && n_without < n_gpus; i++)
        if (tt_xml_gpu_at(l->xml, i)->rank < 0)
            tt_lint_add(l, TT_LINT_WARNING, "gpu-rank", g_strdup("no rank"), tt_lint_name_gpu(l, i),
                        g_strdup("a rank, as the other GPUs have"), "leaves the GPU out");
    for (guint i = 0; i < n_gpus; i++)
        if (tt_xml_gpu_at(l->xml, i)->sm != tt_xml_gpu_at(l->xml, 0)->sm)
            tt_lint_add(l, TT_LINT_WARNING, "gpu-mixed",
                        g_strdup_printf("sm %u", tt_xml_gpu_at(l->xml, i)->sm),
                        tt_lint_name_gpu(l, i),
                        g_strdup_printf("sm %u, as the first GPU", tt_xml_gpu_at(l->xml, 0)->sm),
                        "tunes for the older of the two and drops LL128 (before 2.30)");
    if (n_gpus == 0)
        tt_lint_add(l, TT_LINT_ERROR, "no-gpu", g_strdup("no <gpu>"), g_strdup("whole file"),
                    g_strdup("GPUs: let NCCL write the file (NCCL_TOPO_DUMP_FILE)"),
                    "detects them when it runs; nothing can be predicted from such a file");
}

void
tt_lint_branches(TtLint *l)
{
    g_autofree gboolean *leads = tt_nccl_leads(l->xml);

    for (guint i = 0; i < l->xml->pci->len; i++) {
        const TtXmlPci *pci = tt_xml_pci_at(l->xml, i);
        gboolean topmost = pci->parent == TT_NO_INDEX || leads[pci->parent];

        if (leads[i] || !topmost)
            continue;
        if (pci->class_id >> 16 == 3 && l->gpu_of[i] == TT_NO_INDEX) {
            g_autofree char *bus_id = tt_quote(pci->bus_id);

            tt_lint_add(l, TT_LINT_WARNING, "gpu-undescribed",
                        g_strdup("a GPU's PCI class without <gpu>"),
                        g_strdup_printf("pci %s", bus_id), g_strdup("<gpu dev= sm= rank=>"),
                        "fills it in when it runs; nothing is known of it here");
        } else {
            tt_lint_add(l, TT_LINT_NOTE, "empty-branch", g_strdup("neither GPU nor NIC below"),
                        tt_lint_name_pci(l, i), g_strdup("something"), "drops the branch");
        }
    }
}
