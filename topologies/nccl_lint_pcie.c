/* nccl_lint_pcie - PCIe links below what their like does. */
#include "topologies/nccl_lint_private.h"

typedef enum { IS_SWITCH, IS_GPU, IS_NIC } Role;

static Role
role_of(const TtLint *l, guint pci)
{
    if (l->gpu_of[pci] != TT_NO_INDEX)
        return IS_GPU;
    return l->net_of[pci] != TT_NO_INDEX ? IS_NIC : IS_SWITCH;
}

static double
rate(const TtXmlPci *pci)
{
    return pci->link_gts * pci->link_width;
}

static char *
name_rate(const TtXmlPci *pci)
{
    return g_strdup_printf("%g GT/s x%u", pci->link_gts, pci->link_width);
}

/* May one device be expected to do what the other does? NICs of one speed, switches of one model and
 * level, GPUs. */
static gboolean
are_alike(const TtLint *l, guint one, guint two)
{
    const TtXmlPci *a = tt_xml_pci_at(l->xml, one), *b = tt_xml_pci_at(l->xml, two);

    if (role_of(l, one) != role_of(l, two))
        return FALSE;
    switch (role_of(l, one)) {
    case IS_GPU: return TRUE;
    case IS_NIC:
        return tt_xml_net_at(l->xml, l->net_of[one])->speed_mbps ==
               tt_xml_net_at(l->xml, l->net_of[two])->speed_mbps;
    case IS_SWITCH:
        return g_strcmp0(a->vendor, b->vendor) == 0 && g_strcmp0(a->device, b->device) == 0 &&
               l->depth[one] == l->depth[two];
    }
    g_assert_not_reached();
}

static guint
fastest_peer(const TtLint *l, guint of)
{
    guint best = of;

    for (guint i = 0; i < l->xml->pci->len; i++)
        if (rate(tt_xml_pci_at(l->xml, i)) > rate(tt_xml_pci_at(l->xml, best)) &&
            are_alike(l, i, of))
            best = i;
    return best;
}

static double
nic_needs(const TtLint *l, guint pci)
{
    double gbits_per_s = 0;

    for (guint i = 0; i < l->xml->net->len; i++)
        if (tt_xml_net_at(l->xml, i)->pci == pci)
            gbits_per_s += tt_xml_net_at(l->xml, i)->speed_mbps / 1000.0;
    return gbits_per_s;
}

static void
lint_link(TtLint *l, guint i)
{
    const TtXmlPci *pci = tt_xml_pci_at(l->xml, i);
    guint peer = fastest_peer(l, i);

    if (pci->link_gts <= 2.5 && pci->link_gts > 0) {
        tt_lint_add(l, TT_LINT_WARNING, "pcie-vm", name_rate(pci), tt_lint_name_pci(l, i),
                    g_strdup("8 GT/s or more (virtual machines report 2.5 whatever the link does)"),
                    "believes it and counts 3 GB/s; give it a file with the real speeds "
                    "(NCCL_TOPO_FILE)");
        return;
    }
    if (rate(pci) < rate(tt_xml_pci_at(l->xml, peer))) {
        g_autofree char *other = tt_lint_name_pci(l, peer),
                        *speed = name_rate(tt_xml_pci_at(l->xml, peer));

        tt_lint_add(
            l, TT_LINT_WARNING, "pcie-speed", name_rate(pci), tt_lint_name_pci(l, i),
            g_strdup_printf("%s, as %s", speed, other),
            role_of(l, i) == IS_NIC
                ? "a channel over it runs at its pace, so the search leaves it out where the "
                  "others "
                  "make faster ones, and loses a NIC: reseat the card, look at its slot and at "
                  "lspci's LnkSta"
                : "a channel over it runs at its pace, and every ring passes every GPU: reseat the "
                  "card, look at its slot and at lspci's LnkSta");
        return;
    }
    if (role_of(l, i) == IS_NIC && nic_needs(l, i) > rate(pci) * 128 / 130)
        tt_lint_add(
            l, TT_LINT_WARNING, "nic-pcie", name_rate(pci), tt_lint_name_pci(l, i),
            g_strdup_printf("a PCIe link of more than the NIC's %g Gbit/s", nic_needs(l, i)),
            "the NIC never reaches its speed");
}

/* A switch whose link upwards is slower than what hangs below. */
static void
lint_uplink(TtLint *l, guint i)
{
    const TtXmlPci *pci = tt_xml_pci_at(l->xml, i);

    for (guint k = i + 1; role_of(l, i) == IS_SWITCH && k < l->xml->pci->len; k++) {
        const TtXmlPci *child = tt_xml_pci_at(l->xml, k);
        g_autofree char *name = NULL, *speed = NULL;

        if (child->parent != i || rate(child) <= rate(pci))
            continue;
        name = tt_lint_name_pci(l, k);
        speed = name_rate(child);
        tt_lint_add(l, TT_LINT_NOTE, "pcie-uplink", name_rate(pci), tt_lint_name_pci(l, i),
                    g_strdup_printf("%s, as %s below it", speed, name),
                    "what leaves the switch gets no more than this");
        return;
    }
}

/* Beside C2C the PCIe link of a GPU carries next to nothing. */
static gboolean
matters(const TtLint *l, guint pci)
{
    for (guint i = 0; i < l->xml->c2c->len; i++)
        if (g_array_index(l->xml->c2c, TtXmlC2c, i).gpu == l->gpu_of[pci])
            return FALSE;
    return TRUE;
}

static void
lint_unknown(TtLint *l)
{
    guint n = 0, first = 0;
    g_autofree char *name = NULL;

    for (guint i = 0; i < l->xml->pci->len; i++) {
        const TtXmlPci *pci = tt_xml_pci_at(l->xml, i);

        if ((pci->link_gts > 0 && pci->link_width > 0) || !matters(l, i))
            continue;
        first = n++ == 0 ? i : first;
    }
    if (n == 0)
        return;
    name = tt_lint_name_pci(l, first);
    tt_lint_add(l, TT_LINT_WARNING, "pcie-unknown", g_strdup("PCIe link of unknown speed or width"),
                n > 1 ? g_strdup_printf("%s and %u more", name, n - 1) : g_strdup(name),
                g_strdup("link_speed like \"32.0 GT/s PCIe\" and link_width like \"16\""),
                "takes them for PCIe 3.0 x16, 12 GB/s");
}

void
tt_lint_pcie(TtLint *l)
{
    for (guint i = 0; i < l->xml->pci->len; i++) {
        const TtXmlPci *pci = tt_xml_pci_at(l->xml, i);

        if (pci->link_gts > 0 && pci->link_width > 0 && matters(l, i)) {
            lint_link(l, i);
            lint_uplink(l, i);
        }
    }
    lint_unknown(l);
}
