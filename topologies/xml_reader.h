/* xml_reader.h - a foreign XML text, element by element, with nothing in it that could hurt.
 *
 * No DTD and so no entities but XML's own five, no network, no processing beyond well-formedness;
 * limits on size, depth, number of elements and length of values. Every refusal is one line:
 * "path:line: <element>: what, and what is allowed" (TT_TOPOLOGY_ERROR_FILE).
 *
 * Knows nothing of what elements mean. xml_reader_none.c stands in where libxml2 is missing.
 */
#pragma once
#include <glib.h>

#define TT_XML_MAX_BYTES      (8u << 20)
#define TT_XML_MAX_DEPTH      32u
#define TT_XML_MAX_ELEMENTS   50000u
#define TT_XML_MAX_ATTRIBUTES 64u
#define TT_XML_MAX_VALUE      255u /* NCCL's own limit (src/graph/xml.h, MAX_STR_LEN) */

typedef struct {
    const char *origin, *name;
    const char *const *attributes; /* name, value, name, value ..., NULL */
    guint line, depth;             /* the root's depth is 0 */
} TtXmlElement;

typedef enum {
    TT_XML_ENTER, /* go on with its children */
    TT_XML_SKIP,  /* leave its children out */
    TT_XML_FAILED /* *error is set */
} TtXmlVerdict;

/* Called for every element in document order; @e lives until the callback returns. */
typedef TtXmlVerdict (*TtXmlStart)(gpointer user, const TtXmlElement *e, GError **error);

gboolean tt_xml_read(const char *origin, const char *text, gsize length, TtXmlStart start,
                     gpointer user, GError **error);

/* Attributes. One that is absent leaves the output as it is; if @required that is an error. Blanks
 * around numbers are allowed, anything else behind them is not. */
const char *tt_xml_text(const TtXmlElement *e, const char *name); /* NULL if absent */
gboolean tt_xml_required(const TtXmlElement *e, const char *name, const char **text,
                         GError **error);
gboolean tt_xml_int(const TtXmlElement *e, const char *name, gboolean required, int min, int max,
                    int *value, GError **error);
gboolean tt_xml_count(const TtXmlElement *e, const char *name, gboolean required, guint max,
                      guint *value, GError **error);
gboolean tt_xml_hex(const TtXmlElement *e, const char *name, gboolean required, guint64 max,
                    guint64 *value, GError **error); /* with or without 0x */
gboolean tt_xml_number(const TtXmlElement *e, const char *name, gboolean required, double max,
                       double *value, GError **error); /* >= 0, finite */
gboolean tt_xml_flag(const TtXmlElement *e, const char *name, gboolean *value, GError **error);

/* Which elements there are, the outermost one first, and where they may stand. */
typedef struct {
    const char *name, *parents; /* for messages */
    guint kind;                 /* the file's own number, less than 32; 0: outside of all */
    guint below;                /* bit set of kinds */
} TtXmlRule;

/* The rule for @e, noted in kinds[e->depth]; NULL: unknown, to be passed over, or in a wrong place
 * (*error is set). @what: what the file is, for a text that starts with another element. */
const TtXmlRule *tt_xml_place(const TtXmlElement *e, const TtXmlRule *rules, gsize n_rules,
                              const char *what, guint kinds[TT_XML_MAX_DEPTH], GError **error);

void tt_xml_error(const TtXmlElement *e, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
