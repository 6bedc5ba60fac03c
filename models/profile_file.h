/* profile_file.h - profiles as .ini text. Private to models/.
 *
 *     [profile]  machine, measured_at, source, kind
 *     [lanes]    covers_memory, push (yes or no), workers_per_rank, cores
 *     [times]    latency, credit, start, switch ("150 ns")
 *     [op NAME]  footprint, fixed, per_byte: as many values each, separated by ';', footprints
 * ascending
 *                ("1 MiB; 32 MiB", "40 ns; 60 ns", "50 ps/B; 83 ps/B")
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
