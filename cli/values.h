/* values.h - one option's text turned into a value, with an error that names the option.
 *
 * Shared by options.c and by commands for options of their own. A NULL text means the option was
 * not given: the value is left alone. All errors are TT_CLI_ERROR_USAGE.
 */
#pragma once
#include <glib.h>

/* A whole number, min .. max. */
gboolean tt_parse_count(const char *option, const char *text, guint64 min, guint64 max,
                        guint64 *value, GError **error);
gboolean tt_parse_uint(const char *option, const char *text, guint min, guint max, guint *value,
                       GError **error);

/* nccl-tests' sizes: "8", "64K", "1G". */
gboolean tt_parse_size(const char *option, const char *text, guint64 *bytes, GError **error);

/* Seconds, a bare number as nccl-tests' -T takes it or with a unit: "30", "500 ms". > 0. */
gboolean tt_parse_timeout(const char *option, const char *text, double *seconds, GError **error);

/* "1-33", "2,4,8-16": the numbers in the order given, appended to @values (guint64). */
gboolean tt_parse_ranges(const char *option, const char *text, guint64 min, guint64 max,
                         GArray *values, GError **error);

/* The words of a comma list, blanks stripped; NULL with an error if one is empty. */
char **tt_split_list(const char *option, const char *text, GError **error);

/* The word of @words (NULL-terminated) that @text was probably meant to be, NULL if none is near.
 */
const char *tt_nearest_word(const char *text, const char *const *words);
