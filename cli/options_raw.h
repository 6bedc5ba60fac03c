/* options_raw.h - options as text, between GOption and the checks. Private to options*.c. */
#pragma once
#include "cli/options.h"

/* What GOption writes: text as given, checked afterwards so that messages are ours. One command is
 * parsed per process; tt_options_parse() takes everything out and clears it. */
typedef struct {
    char *begin, *end, *factor, *step;
    char *collective, *types, *redops, *root;
    char *algo, *channels, *slots, *chunk_bytes, *group;
    char *topo, **set;
    char *profile, *level;
    char *library, **env, *constants, *launch;
    char *ranks;
    char *iterations, *warmup, *check, *transport, *timeout;
    gboolean no_pin, checksum;
    char *fault;
    gboolean per_iteration, arrivals;
    char *in_flight, *groups, *start_offset;
    char *interface, *device, *gid_index, *streams;
    char *gpus, *protocol, *placement;
    char *meet, *rank, *hostfile, *secret_file;
    gboolean json, csv, quiet;
    char *json_file, *trace, *timeline, *plot;
    gboolean help;
    char **rest;
} TtRawOptions;

extern TtRawOptions tt_raw;

/* options_check.c: takes the texts out of tt_raw, checks them, and fills @options. */
gboolean tt_options_check(TtOptions *options, GError **error);
