#include "topologies/nccl_xml.h"

static void
cpu_clear(gpointer data)
{
    TtXmlCpu *cpu = data;

    g_free(cpu->affinity);
    g_free(cpu->arch);
    g_free(cpu->vendor);
    g_free(cpu->host_hash);
}

static void
pci_clear(gpointer data)
{
    TtXmlPci *pci = data;

    g_free(pci->bus_id);
    g_free(pci->vendor);
    g_free(pci->device);
    g_free(pci->subsystem_vendor);
    g_free(pci->subsystem_device);
}

static void
nvlink_clear(gpointer data)
{
    g_free(((TtXmlNvlink *)data)->target);
}

static void
net_clear(gpointer data)
{
    g_free(((TtXmlNet *)data)->name);
    g_free(((TtXmlNet *)data)->guid);
}

static void
pci_link_clear(gpointer data)
{
    g_free(((TtXmlPciLink *)data)->target);
}

static GArray *
array_new(gsize size, GDestroyNotify clear)
{
    GArray *array = g_array_new(FALSE, FALSE, (guint)size);

    if (clear)
        g_array_set_clear_func(array, clear);
    return array;
}

TtNcclXml *
tt_nccl_xml_new(const char *origin)
{
    TtNcclXml *xml = g_new0(TtNcclXml, 1);

    xml->origin = g_strdup(origin);
    xml->cpu = array_new(sizeof(TtXmlCpu), cpu_clear);
    xml->pci = array_new(sizeof(TtXmlPci), pci_clear);
    xml->gpu = array_new(sizeof(TtXmlGpu), NULL);
    xml->nvlink = array_new(sizeof(TtXmlNvlink), nvlink_clear);
    xml->c2c = array_new(sizeof(TtXmlC2c), NULL);
    xml->net = array_new(sizeof(TtXmlNet), net_clear);
    xml->pci_link = array_new(sizeof(TtXmlPciLink), pci_link_clear);
    return xml;
}

void
tt_nccl_xml_free(TtNcclXml *xml)
{
    if (!xml)
        return;
    g_array_unref(xml->cpu);
    g_array_unref(xml->pci);
    g_array_unref(xml->gpu);
    g_array_unref(xml->nvlink);
    g_array_unref(xml->c2c);
    g_array_unref(xml->net);
    g_array_unref(xml->pci_link);
    g_free(xml->origin);
    g_free(xml);
}
