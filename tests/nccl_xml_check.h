/* nccl_xml_check.h - an example of NCCL's topology files, and that one is read as it was written. */
#pragma once
#include "tests/check.h"
#include "topologies/nccl_xml.h"

#include <string.h>

static inline TtNcclXml *
parse(const char *text, GError **error)
{
    return tt_nccl_xml_parse("node.xml", text, strlen(text), error);
}

/* The hand-written file of 8 H100 that NCCL 2.27.7 read and searched. */
static inline TtNcclXml *
load_example(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "tests/data/nccl_h100.xml", NULL);
    GError *error = NULL;
    TtNcclXml *xml = tt_nccl_xml_load(path, &error);

    CHECK_NO_ERROR(error);
    g_assert(xml);
    return xml;
}

/* Same text, same content: everything but what has a default is in it. */
static inline void
check_round_trip(const TtNcclXml *xml)
{
    GError *error = NULL;
    g_autofree char *text = tt_nccl_xml_to_text(xml), *again = NULL;
    g_autoptr(TtNcclXml) copy = parse(text, &error);

    CHECK_NO_ERROR(error);
    if (!copy)
        return;
    again = tt_nccl_xml_to_text(copy);
    CU_ASSERT_STRING_EQUAL(again, text);
    CU_ASSERT_EQUAL(copy->cpu->len, xml->cpu->len);
    CU_ASSERT_EQUAL(copy->pci->len, xml->pci->len);
    CU_ASSERT_EQUAL(copy->gpu->len, xml->gpu->len);
    CU_ASSERT_EQUAL(copy->nvlink->len, xml->nvlink->len);
    CU_ASSERT_EQUAL(copy->c2c->len, xml->c2c->len);
    CU_ASSERT_EQUAL(copy->net->len, xml->net->len);
    CU_ASSERT_EQUAL(copy->pci_link->len, xml->pci_link->len);
    for (guint i = 0; i < xml->pci->len && i < copy->pci->len; i++) {
        const TtXmlPci *a = &g_array_index(xml->pci, TtXmlPci, i);
        const TtXmlPci *b = &g_array_index(copy->pci, TtXmlPci, i);

        CU_ASSERT_STRING_EQUAL(a->bus_id, b->bus_id);
        CU_ASSERT_TRUE(a->cpu == b->cpu && a->parent == b->parent && a->class_id == b->class_id &&
                       a->link_gts == b->link_gts && a->link_width == b->link_width);
    }
    for (guint i = 0; i < xml->net->len && i < copy->net->len; i++) {
        const TtXmlNet *a = &g_array_index(xml->net, TtXmlNet, i);
        const TtXmlNet *b = &g_array_index(copy->net, TtXmlNet, i);

        CU_ASSERT_TRUE(a->cpu == b->cpu && a->pci == b->pci && a->dev == b->dev &&
                       a->speed_mbps == b->speed_mbps && a->latency_us == b->latency_us &&
                       a->gdr == b->gdr && a->coll == b->coll && a->keep == b->keep);
        CU_ASSERT_STRING_EQUAL(a->name, b->name);
    }
}
