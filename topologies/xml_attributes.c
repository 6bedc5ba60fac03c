/* xml_attributes - where an element stands and what its attributes say, checked. */
#include "topologies/keys.h"
#include "topologies/xml_reader.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void
tt_xml_error(const TtXmlElement *e, GError **error, const char *format, ...)
{
    g_autofree char *what = NULL, *name = tt_quote(e->name);
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s:%u: <%s>: %s", e->origin,
                e->line, name, what);
}

const TtXmlRule *
tt_xml_place(const TtXmlElement *e, const TtXmlRule *rules, gsize n_rules, const char *what,
             guint kinds[TT_XML_MAX_DEPTH], GError **error)
{
    guint above = e->depth ? kinds[e->depth - 1] : 0;
    gsize i = 0;

    while (i < n_rules && strcmp(e->name, rules[i].name) != 0)
        i++;
    if (e->depth == 0 && i != 0) {
        tt_xml_error(e, error, "not %s, whose outermost element is <%s>%s", what, rules[0].name,
                     strcmp(e->name, "system") == 0   ? " (this is a topology file)"
                     : strcmp(e->name, "graphs") == 0 ? " (this is a graph file)"
                                                      : "");
        return NULL;
    }
    if (i == n_rules)
        return NULL;
    if (!(rules[i].below >> above & 1)) {
        tt_xml_error(e, error, "stands in the wrong place; it belongs into %s", rules[i].parents);
        return NULL;
    }
    kinds[e->depth] = rules[i].kind;
    return &rules[i];
}

const char *
tt_xml_text(const TtXmlElement *e, const char *name)
{
    for (const char *const *a = e->attributes; a[0]; a += 2)
        if (strcmp(a[0], name) == 0)
            return a[1];
    return NULL;
}

gboolean
tt_xml_required(const TtXmlElement *e, const char *name, const char **text, GError **error)
{
    const char *value = tt_xml_text(e, name);

    if (!value || !*value) {
        tt_xml_error(e, error, "needs the attribute %s", name);
        return FALSE;
    }
    *text = value;
    return TRUE;
}

/* The attribute's text; NULL if it is absent, and then *ok tells whether that is fine. */
static const char *
ask(const TtXmlElement *e, const char *name, gboolean required, gboolean *ok, GError **error)
{
    const char *text = NULL;

    if (required) {
        *ok = tt_xml_required(e, name, &text, error);
        return text;
    }
    *ok = TRUE;
    return tt_xml_text(e, name);
}

static gboolean
only_blanks(const char *rest)
{
    return rest[strspn(rest, " \t")] == '\0';
}

static gboolean
refuse(const TtXmlElement *e, const char *name, const char *text, const char *allowed,
       GError **error)
{
    g_autofree char *quoted = tt_quote(text);

    tt_xml_error(e, error, "%s=\"%s\" is not %s", name, quoted, allowed);
    return FALSE;
}

gboolean
tt_xml_int(const TtXmlElement *e, const char *name, gboolean required, int min, int max, int *value,
           GError **error)
{
    gboolean ok;
    const char *text = ask(e, name, required, &ok, error);
    g_autofree char *allowed = NULL;
    char *rest = NULL;
    gint64 number;

    if (!text)
        return ok;
    errno = 0;
    number = g_ascii_strtoll(text, &rest, 10);
    if (rest != text && only_blanks(rest) && errno == 0 && number >= min && number <= max) {
        *value = (int)number;
        return TRUE;
    }
    allowed = g_strdup_printf("a whole number from %d to %d", min, max);
    return refuse(e, name, text, allowed, error);
}

gboolean
tt_xml_count(const TtXmlElement *e, const char *name, gboolean required, guint max, guint *value,
             GError **error)
{
    int number = -1;

    if (!tt_xml_int(e, name, required, 0, (int)max, &number, error))
        return FALSE;
    if (number >= 0)
        *value = (guint)number;
    return TRUE;
}

gboolean
tt_xml_hex(const TtXmlElement *e, const char *name, gboolean required, guint64 max, guint64 *value,
           GError **error)
{
    gboolean ok;
    const char *text = ask(e, name, required, &ok, error);
    g_autofree char *allowed = NULL;
    char *rest = NULL;
    guint64 number;

    if (!text)
        return ok;
    errno = 0;
    number = g_ascii_strtoull(text, &rest, 16);
    if (g_ascii_isxdigit(*text) && rest != text && only_blanks(rest) && errno == 0 &&
        number <= max) {
        *value = number;
        return TRUE;
    }
    allowed = g_strdup_printf("a hexadecimal number up to 0x%" G_GINT64_MODIFIER "x", max);
    return refuse(e, name, text, allowed, error);
}

gboolean
tt_xml_number(const TtXmlElement *e, const char *name, gboolean required, double max, double *value,
              GError **error)
{
    gboolean ok;
    const char *text = ask(e, name, required, &ok, error);
    g_autofree char *allowed = NULL;
    char *rest = NULL;
    double number;

    if (!text)
        return ok;
    number = g_ascii_strtod(text, &rest);
    if (rest != text && only_blanks(rest) && number >= 0 && number <= max && !signbit(number)) {
        *value = number;
        return TRUE;
    }
    allowed = g_strdup_printf("a number from 0 to %g", max);
    return refuse(e, name, text, allowed, error);
}

gboolean
tt_xml_flag(const TtXmlElement *e, const char *name, gboolean *value, GError **error)
{
    int number = *value;

    if (!tt_xml_int(e, name, FALSE, 0, 1, &number, error))
        return FALSE;
    *value = number;
    return TRUE;
}
