/* profile_file.h - profiles as .ini text. Private to models/.
 *
 *     [profile]  machine, measured_at, source, kind
 *     [lanes]    covers_memory, push (yes or no), workers_per_rank, cores, uncut ("128 KiB"),
 *                direct, direct_crowded (likewise)
 *     [times]    latency, credit, start, switch ("150 ns")
 *     [op NAME]  footprint, fixed, per_byte: as many values each, by ';', footprints ascending
 *                ("1 MiB; 32 MiB", "40 ns; 60 ns", "50 ps/B; 83 ps/B")
 *     [state N times], [state N op NAME]   the same for another state of the machine, N from 2 on
 *
 * Every group may have source and kind (spec, measured, fitted, assumed). What is not given is
 * free. Anything else is an error that names file, group and key.
 */
#pragma once
#include "models/profile.h"
#include "models/profile_builtin.h"

/* @name: for the profile and for messages. */
TtProfile *tt_profile_parse(const char *text, gsize length, const char *name, GError **error);
TtProfile *tt_profile_load(const char *path, GError **error);

/* Words both sides of the format use. */
extern const char *const tt_profile_op_names[TT_PROFILE_OPS];
#define TT_PER_BYTE "/B"
