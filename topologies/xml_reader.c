/* xml_reader - libxml2's SAX2 interface, so that nothing is built before it is judged. */
#include "topologies/xml_reader.h"
#include "topologies/keys.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <string.h>

typedef struct {
    const char *origin;
    TtXmlStart start;
    gpointer user;
    xmlParserCtxtPtr context;
    guint depth, skip_from, n_elements; /* skip_from: depth of the skipped element, or past all */
    GError *error;                      /* the first one */
} Reader;

/* --- what ends the reading ---------------------------------------------------------------------
 */

static guint
line_of(const Reader *reader)
{
    return reader->context->input ? (guint)reader->context->input->line : 0;
}

static void
stop(Reader *reader, const char *name, const char *what)
{
    g_autofree char *quoted = tt_quote(name ? name : "");

    if (!reader->error)
        g_set_error(&reader->error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s:%u: %s%s%s%s",
                    reader->origin, line_of(reader), name ? "<" : "", quoted, name ? ">: " : "",
                    what);
    xmlStopParser(reader->context);
}

static void
stop_over(Reader *reader, const char *name, guint limit, const char *of)
{
    g_autofree char *what = g_strdup_printf("more than %u %s", limit, of);

    stop(reader, name, what);
}

/* libxml2's own words, made one line. */
static void
on_error(void *user, const xmlError *problem)
{
    Reader *reader = ((xmlParserCtxtPtr)user)->_private;
    g_autofree char *what = tt_quote(problem->message ? problem->message : "");

    if (problem->level < XML_ERR_ERROR || reader->error)
        return;
    g_strchomp(what);
    g_set_error(&reader->error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                "%s:%d: not well-formed XML: %s", reader->origin, problem->line, what);
}

/* Comes before anything a DTD declares is read. */
static void
on_dtd(void *user, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    Reader *reader = ((xmlParserCtxtPtr)user)->_private;

    (void)name, (void)external, (void)system;
    stop(reader, NULL, "a document type (<!DOCTYPE>); only plain elements are allowed");
}

static xmlEntityPtr
on_entity(void *user, const xmlChar *name)
{
    (void)user;
    return xmlGetPredefinedEntity(name);
}

/* --- elements ----------------------------------------------------------------------------------
 */

/* @values: localname, prefix, URI, begin, end for each. FALSE: the reading has been stopped. */
static gboolean
copy_attributes(Reader *reader, const char *element, int n, const xmlChar **values,
                GPtrArray *copies)
{
    if ((guint)n > TT_XML_MAX_ATTRIBUTES) {
        stop_over(reader, element, TT_XML_MAX_ATTRIBUTES, "attributes");
        return FALSE;
    }
    for (int i = 0; i < n; i++, values += 5) {
        gsize length = values[4] - values[3];
        char *value;

        if (length > TT_XML_MAX_VALUE) {
            g_autofree char *of = g_strdup_printf("characters in %s", (const char *)values[0]);

            stop_over(reader, element, TT_XML_MAX_VALUE, of);
            return FALSE;
        }
        value = g_strndup((const char *)values[3], length);
        g_ptr_array_add(copies, g_strdup((const char *)values[0]));
        g_ptr_array_add(copies, value);
        for (const char *c = value; *c; c++)
            if (g_ascii_iscntrl(*c)) {
                stop(reader, element, "a control character in a value");
                return FALSE;
            }
    }
    g_ptr_array_add(copies, NULL);
    return TRUE;
}

static gboolean
within_limits(Reader *reader, const char *name)
{
    if (reader->depth >= TT_XML_MAX_DEPTH) {
        stop_over(reader, name, TT_XML_MAX_DEPTH, "elements inside one another");
        return FALSE;
    }
    if (reader->n_elements++ >= TT_XML_MAX_ELEMENTS) {
        stop_over(reader, name, TT_XML_MAX_ELEMENTS, "elements");
        return FALSE;
    }
    return TRUE;
}

static void
on_start(void *user, const xmlChar *local, const xmlChar *prefix, const xmlChar *uri,
         int n_namespaces, const xmlChar **namespaces, int n_attributes, int n_defaulted,
         const xmlChar **values)
{
    Reader *reader = ((xmlParserCtxtPtr)user)->_private;
    const char *name = (const char *)local;
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func(g_free);

    (void)prefix, (void)uri, (void)n_namespaces, (void)namespaces, (void)n_defaulted;
    if (reader->error || !within_limits(reader, name))
        return;
    if (reader->depth++ > reader->skip_from ||
        !copy_attributes(reader, name, n_attributes, values, copies))
        return;

    TtXmlElement element = { .origin = reader->origin,
                             .name = name,
                             .attributes = (const char *const *)copies->pdata,
                             .line = line_of(reader),
                             .depth = reader->depth - 1 };

    switch (reader->start(reader->user, &element, &reader->error)) {
    case TT_XML_ENTER: break;
    case TT_XML_SKIP: reader->skip_from = element.depth; break;
    case TT_XML_FAILED:
        g_assert(reader->error);
        xmlStopParser(reader->context);
        break;
    }
}

static void
on_end(void *user, const xmlChar *local, const xmlChar *prefix, const xmlChar *uri)
{
    Reader *reader = ((xmlParserCtxtPtr)user)->_private;

    (void)local, (void)prefix, (void)uri;
    if (reader->error)
        return;
    reader->depth--;
    if (reader->depth == reader->skip_from)
        reader->skip_from = G_MAXUINT;
}

gboolean
tt_xml_read(const char *origin, const char *text, gsize length, TtXmlStart start, gpointer user,
            GError **error)
{
    g_autofree char *quoted = tt_quote(origin);
    Reader reader = { .origin = quoted, .start = start, .user = user, .skip_from = G_MAXUINT };
    xmlSAXHandler handler = { .initialized = XML_SAX2_MAGIC,
                              .internalSubset = on_dtd,
                              .getEntity = on_entity,
                              .startElementNs = on_start,
                              .endElementNs = on_end,
                              .serror = (xmlStructuredErrorFunc)(void (*)(void))on_error };

    if (length > TT_XML_MAX_BYTES) {
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                    "%s: longer than %u bytes, not one machine's XML", quoted, TT_XML_MAX_BYTES);
        return FALSE;
    }
    reader.context = xmlCreatePushParserCtxt(&handler, NULL, NULL, 0, NULL);
    g_assert(reader.context);
    reader.context->_private = &reader;
    /* NOENT: "&amp;" arrives as "&". No other entity can exist: a DTD ends the reading. */
    xmlCtxtUseOptions(reader.context, XML_PARSE_NONET | XML_PARSE_NOENT);
    xmlParseChunk(reader.context, text, (int)length, 1);
    if (!reader.error && (!reader.context->wellFormed || reader.n_elements == 0))
        stop(&reader, NULL, "not well-formed XML");
    xmlFreeDoc(reader.context->myDoc);
    xmlFreeParserCtxt(reader.context);
    if (reader.error) {
        g_propagate_error(error, reader.error);
        return FALSE;
    }
    return TRUE;
}
