/* measured_private.h - what the readers of measurements share. Private to models/measured*.c. */
#pragma once
#include "models/measured.h"

#define TT_MEASURED_MOST_BYTES (64u << 20) /* of a file */
#define TT_MEASURED_MOST_ROWS  100000u     /* of a table */
#define TT_MEASURED_MOST_NOTES 200u        /* skipped lines told of one by one */
#define TT_MEASURED_MOST_RANKS 16777216u

TtMeasured *tt_measured_new(const char *origin);
void tt_measured_row_init(TtMeasuredRow *row);

/* "line 17: ..."; after many, counts on silently and says so once. */
void tt_measured_skip(TtMeasured *m, const char *format, ...) G_GNUC_PRINTF(2, 3);

void tt_measured_set_env(TtMeasured *m, const char *name, const char *value);
void tt_measured_set_type(TtMeasured *m, const char *name); /* "float" becomes "float32" */
void tt_measured_set_version(TtMeasured *m,
                             const char *text);       /* "2.18.5+cuda12.2", "RCCL 2.22.3" */
void tt_measured_set_code(TtMeasured *m, guint code); /* 21805, 2804: as NCCL counts */

/* Fills what follows from the rest: times from bandwidths, order statistics, machine, launch facts.
 * FALSE if there is nothing in it. */
void tt_measured_finish(TtMeasured *m);

/* "all_reduce" of "all_reduce_perf", "AllReduce", "ncclAllReduce"; NULL if it is none. Static text. */
const char *tt_measured_collective_name(const char *text);

/* The machine that an id speaks of: "abci2-a100" of "abci2-a100-8x8-ar". Caller frees. */
char *tt_measured_machine(const char *id);

/* For messages: what is printable of @text, at most 60 characters. Caller frees. */
char *tt_measured_quote(const char *text, gssize length);

/* Readers. Each is asked only if its _is() says so. NULL with error if there is nothing. */
gboolean tt_measured_is_json(const char *text, gsize length);
GPtrArray *tt_measured_from_json(const char *origin, const char *text, gsize length,
                                 GError **error);
GPtrArray *tt_measured_from_nccl_text(const char *origin, const char *text, gsize length,
                                      GError **error);
