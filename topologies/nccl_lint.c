#include "topologies/keys.h"
#include "topologies/nccl_lint_private.h"

/* --- findings ----------------------------------------------------------------------------------
 */

static void
finding_free(gpointer data)
{
    TtLintFinding *finding = data;

    g_free(finding->where);
    g_free(finding->what);
    g_free(finding->expected);
    g_free(finding->effect);
    g_free(finding);
}

void
tt_lint_add(TtLint *l, TtLintSeverity severity, const char *rule, char *what, char *where,
            char *expected, const char *effect)
{
    TtLintFinding *finding = g_new0(TtLintFinding, 1);

    finding->severity = severity;
    finding->rule = rule;
    finding->where = where;
    finding->what = what;
    finding->expected = expected;
    finding->effect = g_strdup(effect);
    g_ptr_array_add(l->findings, finding);
}

const char *
tt_lint_severity_name(TtLintSeverity severity)
{
    static const char *const names[] = { "note", "warning", "error" };

    return names[severity];
}

char *
tt_lint_line(const TtLintFinding *finding)
{
    return g_strdup_printf("%s: %s: %s; expected %s%s%s", tt_lint_severity_name(finding->severity),
                           finding->where, finding->what, finding->expected,
                           *finding->effect ? ". NCCL: " : "", finding->effect);
}

static int
by_severity(gconstpointer a, gconstpointer b)
{
    const TtLintFinding *one = *(TtLintFinding *const *)a, *two = *(TtLintFinding *const *)b;

    return (int)two->severity - (int)one->severity;
}

/* --- names -------------------------------------------------------------------------------------
 */

char *
tt_lint_name_gpu(const TtLint *l, guint i)
{
    const TtXmlGpu *gpu = tt_xml_gpu_at(l->xml, i);
    g_autofree char *bus_id = tt_quote(tt_xml_pci_at(l->xml, gpu->pci)->bus_id);

    return gpu->dev >= 0 ? g_strdup_printf("gpu %d (%s)", gpu->dev, bus_id)
                         : g_strdup_printf("gpu (%s)", bus_id);
}

char *
tt_lint_name_net(const TtLint *l, guint i)
{
    g_autofree char *name = tt_quote(tt_xml_net_at(l->xml, i)->name);

    return g_strdup_printf("nic %s", name);
}

char *
tt_lint_name_pci(const TtLint *l, guint i)
{
    g_autofree char *bus_id = tt_quote(tt_xml_pci_at(l->xml, i)->bus_id);

    if (l->gpu_of[i] != TT_NO_INDEX)
        return tt_lint_name_gpu(l, l->gpu_of[i]);
    if (l->net_of[i] != TT_NO_INDEX) {
        g_autofree char *name = tt_lint_name_net(l, l->net_of[i]);

        return g_strdup_printf("%s (%s)", name, bus_id);
    }
    return g_strdup_printf("PCIe switch (%s)", bus_id);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static void
find_places(TtLint *l)
{
    for (guint i = 0; i < l->xml->pci->len; i++) { /* parents come before children */
        guint parent = tt_xml_pci_at(l->xml, i)->parent;

        l->gpu_of[i] = l->net_of[i] = TT_NO_INDEX;
        l->depth[i] = parent == TT_NO_INDEX ? 1 : l->depth[parent] + 1;
    }
    for (guint i = l->xml->gpu->len; i-- > 0;)
        l->gpu_of[tt_xml_gpu_at(l->xml, i)->pci] = i;
    for (guint i = l->xml->net->len; i-- > 0;)
        if (tt_xml_net_at(l->xml, i)->pci != TT_NO_INDEX)
            l->net_of[tt_xml_net_at(l->xml, i)->pci] = i;
}

GPtrArray *
tt_nccl_lint(const TtNcclXml *xml)
{
    gsize n = xml->pci->len + 1;
    g_autofree guint *gpu_of = g_new0(guint, n), *net_of = g_new0(guint, n);
    g_autofree guint *depth = g_new0(guint, n);
    TtLint l = { xml, g_ptr_array_new_with_free_func(finding_free), gpu_of, net_of, depth };

    find_places(&l);
    tt_lint_gpus(&l);
    tt_lint_nvlink(&l);
    tt_lint_pcie(&l);
    tt_lint_nics(&l);
    tt_lint_cpus(&l);
    tt_lint_branches(&l);
    g_ptr_array_sort(l.findings, by_severity);
    return l.findings;
}
