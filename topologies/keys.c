#include "topologies/keys.h"

#include <string.h>

/* Past these a text is not a topology; they keep hostile input from costing time. */
#define MAX_TEXT_BYTES (1u << 20)
#define MAX_KEYS       2000u

struct TtKeys {
    char *where;
    GPtrArray *entries;  /* of TtKey, in order of appearance */
    GPtrArray *sections; /* of names */
};

static const char *const bases[] = { "spec", "measured", "fitted", "assumed", NULL };

static void
key_free(gpointer data)
{
    TtKey *key = data;

    g_free(key->section);
    g_free(key->key);
    g_free(key->value);
    g_free(key->basis);
    g_free(key->source);
    g_free(key);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtKey, key_free)

void
tt_keys_free(TtKeys *keys)
{
    if (!keys)
        return;
    g_ptr_array_unref(keys->entries);
    g_ptr_array_unref(keys->sections);
    g_free(keys->where);
    g_free(keys);
}

/* --- messages ----------------------------------------------------------------------------------
 */

/* Text of a stranger, short enough and safe for one line. */
char *
tt_quote(const char *text)
{
    g_autofree char *cut = g_strndup(text, 60);
    g_autofree char *valid = g_utf8_make_valid(cut, -1);

    for (char *c = valid; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return g_steal_pointer(&valid);
}

void
tt_keys_error(const TtKeys *keys, const TtKey *key, GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);

    g_autofree char *section = tt_quote(key->section), *name = tt_quote(key->key);

    if (key->line)
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s:%u: [%s] %s: %s",
                    keys->where, key->line, section, name, what);
    else
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, "--set %s.%s: %s", section,
                    name, what);
}

void
tt_keys_error_whole(const TtKeys *keys, GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s: %s", keys->where, what);
}

static gboolean
line_error(const TtKeys *keys, guint line, GError **error, const char *what, const char *text)
{
    g_autofree char *quoted = tt_quote(text);

    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s:%u: %s: \"%s\"", keys->where,
                line, what, quoted);
    return FALSE;
}

/* --- parsing -----------------------------------------------------------------------------------
 */

/* Splits "25 GB/s ; spec: datasheet" into value, basis and source. */
static gboolean
split_source(TtKey *key)
{
    char *semicolon = strchr(key->value, ';'), *colon;

    if (!semicolon)
        return TRUE;
    *semicolon = '\0';
    g_strchomp(key->value);
    colon = strchr(semicolon + 1, ':');
    if (!colon)
        return FALSE;
    *colon = '\0';
    key->basis = g_strdup(g_strstrip(semicolon + 1));
    key->source = g_strdup(g_strstrip(colon + 1));
    return *key->source && g_strv_contains(bases, key->basis);
}

static TtKey *
key_new(const char *section, const char *name, const char *value, guint line)
{
    TtKey *key = g_new0(TtKey, 1);

    key->section = g_strdup(section);
    key->key = g_strstrip(g_strdup(name));
    key->value = g_strstrip(g_strdup(value));
    key->line = line;
    return key;
}

static gboolean
parse_key(TtKeys *keys, const char *section, char *text, guint line, GError **error)
{
    char *equals = strchr(text, '=');
    TtKey *earlier;

    if (!equals)
        return line_error(keys, line, error, "neither a [section] nor \"key = value\"", text);
    if (!section)
        return line_error(keys, line, error, "a key before the first [section]", text);
    *equals = '\0';

    g_autoptr(TtKey) key = key_new(section, text, equals + 1, line);

    if (!*key->key)
        return line_error(keys, line, error, "a value without a key", key->value);
    /* Names and descriptions are free text; quantities carry their source. */
    if (strcmp(section, "topology") != 0 && !split_source(key))
        return line_error(
            keys, line, error,
            "after ';' stands \"basis: source\" with the basis one of spec, measured, "
            "fitted, assumed",
            key->key);
    earlier = tt_keys_find(keys, key->section, key->key);
    if (earlier) {
        tt_keys_error(keys, key, error, "stands already in line %u", earlier->line);
        return FALSE;
    }
    if (keys->entries->len >= MAX_KEYS) {
        tt_keys_error_whole(keys, error, "more than %u keys", MAX_KEYS);
        return FALSE;
    }
    g_ptr_array_add(keys->entries, g_steal_pointer(&key));
    return TRUE;
}

/* *section is left pointing to the name, which the sections array owns. */
static gboolean
parse_section(TtKeys *keys, char *text, guint line, const char **section, GError **error)
{
    char *close = strchr(text, ']');

    if (!close || close[1])
        return line_error(keys, line, error, "a section is written [name]", text);
    *close = '\0';
    g_strstrip(text + 1);
    if (!text[1])
        return line_error(keys, line, error, "a section without a name", text);
    if (tt_keys_has_section(keys, text + 1))
        return line_error(keys, line, error, "this section stands already above", text + 1);
    if (keys->sections->len >= MAX_KEYS) {
        tt_keys_error_whole(keys, error, "more than %u sections", MAX_KEYS);
        return FALSE;
    }
    g_ptr_array_add(keys->sections, g_strdup(text + 1));
    *section = keys->sections->pdata[keys->sections->len - 1];
    return TRUE;
}

static gboolean
parse_lines(TtKeys *keys, const char *text, GError **error)
{
    const char *section = NULL;
    guint line = 0;

    while (*text) {
        gsize length = strcspn(text, "\n");
        g_autofree char *copy = g_strstrip(g_strndup(text, length));

        line++;
        for (const char *c = copy; *c; c++)
            if (g_ascii_iscntrl(*c) && *c != '\t')
                return line_error(keys, line, error, "a control character", copy);
        /* Editors end the last line, a copy cut short does not. */
        if (!text[length])
            return line_error(keys, line, error, "the last line has no end: is the file truncated?",
                              copy);
        text += length + 1;
        if (*copy == '\0' || *copy == '#' || *copy == ';')
            continue;
        if (*copy == '[' ? !parse_section(keys, copy, line, &section, error)
                         : !parse_key(keys, section, copy, line, error))
            return FALSE;
    }
    return TRUE;
}

TtKeys *
tt_keys_parse(const char *text, gsize length, const char *where, GError **error)
{
    g_autoptr(TtKeys) keys = g_new0(TtKeys, 1);
    g_autofree char *terminated = NULL;

    keys->where = g_strdup(where);
    keys->entries = g_ptr_array_new_with_free_func(key_free);
    keys->sections = g_ptr_array_new_with_free_func(g_free);
    if (length > MAX_TEXT_BYTES) {
        tt_keys_error_whole(keys, error, "longer than %u bytes, not a topology", MAX_TEXT_BYTES);
        return NULL;
    }
    if (!g_utf8_validate_len(text, length, NULL)) {
        tt_keys_error_whole(keys, error, "not a text in UTF-8");
        return NULL;
    }
    terminated = g_strndup(text, length);
    if (!parse_lines(keys, terminated, error))
        return NULL;
    return g_steal_pointer(&keys);
}

static gboolean
setting_error(const char *setting, GError **error, const char *what)
{
    g_autofree char *quoted = tt_quote(setting);

    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, "--set \"%s\": %s", quoted,
                what);
    return FALSE;
}

gboolean
tt_keys_set(TtKeys *keys, const char *setting, GError **error)
{
    g_autofree char *path = g_strdup(setting);
    char *equals = strchr(path, '='), *dot;

    if (!g_utf8_validate(setting, -1, NULL))
        return setting_error(setting, error, "not UTF-8");
    if (equals)
        *equals = '\0';
    dot = strrchr(path, '.'); /* keys have no dot, names of links may */
    if (!equals || !dot || dot == path)
        return setting_error(setting, error, "is not section.key=value");
    *dot = '\0';
    g_strstrip(path);

    g_autoptr(TtKey) key = key_new(path, dot + 1, equals + 1, 0);
    TtKey *old = tt_keys_find(keys, key->section, key->key);

    if (!split_source(key))
        return setting_error(setting, error, "after ';' stands \"basis: source\"");
    if (!key->basis) {
        key->basis = g_strdup("set");
        key->source = g_strdup("--set");
    }
    /* "link " families hold what the file names; a setting can change a link, not invent one. */
    if (g_str_has_prefix(key->section, "link ") && !tt_keys_has_section(keys, key->section)) {
        g_auto(GStrv) links = tt_keys_sections(keys, "link ");
        g_autofree char *names = g_strjoinv(", ", links);

        tt_keys_error(keys, key, error, "there is no such link (there is: %s)", names);
        return FALSE;
    }
    if (!tt_keys_has_section(keys, key->section))
        g_ptr_array_add(keys->sections, g_strdup(key->section));
    if (old)
        g_ptr_array_remove(keys->entries, old);
    g_ptr_array_add(keys->entries, g_steal_pointer(&key));
    return TRUE;
}

/* --- looking up --------------------------------------------------------------------------------
 */

guint
tt_keys_n(const TtKeys *keys)
{
    return keys->entries->len;
}

TtKey *
tt_keys_nth(const TtKeys *keys, guint i)
{
    return keys->entries->pdata[i];
}

TtKey *
tt_keys_find(const TtKeys *keys, const char *section, const char *name)
{
    for (guint i = 0; i < keys->entries->len; i++) {
        TtKey *key = keys->entries->pdata[i];

        if (strcmp(key->key, name) == 0 && strcmp(key->section, section) == 0)
            return key;
    }
    return NULL;
}

gboolean
tt_keys_has_section(const TtKeys *keys, const char *section)
{
    return g_ptr_array_find_with_equal_func(keys->sections, section, g_str_equal, NULL);
}

char **
tt_keys_sections(const TtKeys *keys, const char *family)
{
    GPtrArray *found = g_ptr_array_new();

    for (guint i = 0; i < keys->sections->len; i++)
        if (g_str_has_prefix(keys->sections->pdata[i], family))
            g_ptr_array_add(found, g_strdup(keys->sections->pdata[i]));
    g_ptr_array_add(found, NULL);
    return (char **)g_ptr_array_free(found, FALSE);
}

static const TtSectionSchema *
schema_of(const TtSectionSchema *schema, const char *section)
{
    for (; schema->section; schema++) {
        gboolean family = g_str_has_suffix(schema->section, " ");

        if (family ? g_str_has_prefix(section, schema->section) && section[strlen(schema->section)]
                   : strcmp(section, schema->section) == 0)
            return schema;
    }
    return NULL;
}

static char *
section_names(const TtSectionSchema *schema)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (; schema->section; schema++)
        g_string_append_printf(names, "%s[%s%s]", names->len ? ", " : "", schema->section,
                               g_str_has_suffix(schema->section, " ") ? "NAME" : "");
    return g_strdup(names->str);
}

gboolean
tt_keys_check(const TtKeys *keys, const TtSectionSchema *schema, GError **error)
{
    for (guint i = 0; i < keys->entries->len; i++) {
        const TtKey *key = keys->entries->pdata[i];
        const TtSectionSchema *section = schema_of(schema, key->section);

        if (!section) {
            g_autofree char *names = section_names(schema);

            tt_keys_error(keys, key, error, "unknown section (allowed: %s)", names);
            return FALSE;
        }
        if (!g_strv_contains(section->keys, key->key)) {
            g_autofree char *names = g_strjoinv(", ", (char **)section->keys);

            tt_keys_error(keys, key, error, "unknown key (allowed: %s)", names);
            return FALSE;
        }
    }
    for (guint i = 0; i < keys->sections->len; i++) { /* those without keys */
        if (!schema_of(schema, keys->sections->pdata[i])) {
            g_autofree char *names = section_names(schema);
            g_autofree char *quoted = tt_quote(keys->sections->pdata[i]);

            tt_keys_error_whole(keys, error, "[%s]: unknown section (allowed: %s)", quoted, names);
            return FALSE;
        }
    }
    return TRUE;
}
