/* keys.h - an .ini text as sections and keys that know their line, their source and whether anybody
 * asked for them.
 *
 * GKeyFile's syntax ([section], key = value, # comment), read here line by line because GKeyFile
 * does not tell line numbers and lets duplicate keys pass. A quantity may say whence it comes:
 *
 *     bandwidth = 25 GB/s ; spec: NVIDIA H100 datasheet
 *
 * Knows nothing of topologies: which sections and keys there are is the caller's schema.
 */
#pragma once
#include "topologies/topology.h"

typedef struct TtKeys TtKeys;

typedef struct {
    char *section, *key;
    char *value;  /* without the source; "" is a value */
    char *basis;  /* "spec", "measured", "fitted", "assumed", "set" (--set), or NULL: not said */
    char *source; /* NULL: not said */
    guint line;   /* 0: from --set */
    gboolean used;
} TtKey;

/* One kind of section and the keys it may have. A name that ends in a blank ("link ") is a family.
 */
typedef struct {
    const char *section;
    const char *const *keys; /* NULL-terminated */
} TtSectionSchema;

/* @where names the text in messages: a path, "preset dgx-h100". TT_TOPOLOGY_ERROR_FILE on failure.
 */
TtKeys *tt_keys_parse(const char *text, gsize length, const char *where, GError **error);
void tt_keys_free(TtKeys *keys);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtKeys, tt_keys_free)

/* Applies "section.key=value" over the text. TT_TOPOLOGY_ERROR_USAGE on failure. */
gboolean tt_keys_set(TtKeys *keys, const char *setting, GError **error);

/* Every section and key must be in @schema (ends with section NULL). */
gboolean tt_keys_check(const TtKeys *keys, const TtSectionSchema *schema, GError **error);

guint tt_keys_n(const TtKeys *keys);
TtKey *tt_keys_nth(const TtKeys *keys, guint i);
TtKey *tt_keys_find(const TtKeys *keys, const char *section, const char *key); /* NULL: not there */
gboolean tt_keys_has_section(const TtKeys *keys, const char *section);
char **tt_keys_sections(const TtKeys *keys, const char *family); /* in order of appearance */

/* Read one key and mark it used. An absent key leaves the output as it is, if @required fails. */
gboolean tt_keys_text(TtKeys *keys, const char *section, const char *key, gboolean required,
                      const char **text, GError **error);
gboolean tt_keys_count(TtKeys *keys, const char *section, const char *key, gboolean required,
                       guint min, guint max, guint *count, GError **error);
gboolean tt_keys_rate(TtKeys *keys, const char *section, const char *key, gboolean required,
                      double *bytes_per_s, GError **error);
gboolean tt_keys_time(TtKeys *keys, const char *section, const char *key, gboolean required,
                      TtTime *time_ps, GError **error);
gboolean tt_keys_bytes(TtKeys *keys, const char *section, const char *key, gboolean required,
                       double *bytes, GError **error);
gboolean tt_keys_percent(TtKeys *keys, const char *section, const char *key, gboolean required,
                         double *fraction, GError **error);
gboolean tt_keys_ratio(TtKeys *keys, const char *section, const char *key, gboolean required,
                       double *ratio, GError **error); /* "2" or "2:1", from 1 to 1000 */
gboolean tt_keys_yes_no(TtKeys *keys, const char *section, const char *key, gboolean required,
                        gboolean *yes, GError **error);

/* Text of a stranger for a message: short, valid, one line. Caller frees. */
char *tt_quote(const char *text);

/* Words an error about a key: "FILE:12: [section] key: ..." or "--set section.key: ...". */
void tt_keys_error(const TtKeys *keys, const TtKey *key, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
/* The same about the text as a whole or a missing thing. */
void tt_keys_error_whole(const TtKeys *keys, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
