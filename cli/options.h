/* options.h - the options commands share, parsed and checked once.
 *
 * Letters and meanings are nccl-tests' where it has the option. Sizes count K, M, G, T as powers of
 * 1024. Every problem is one line that names the option, what it was given and what is allowed.
 */
#pragma once
#include "algos/types.h"
#include "cli/cli.h"
#include "exec/exec.h"
#include "sim/sim.h"

/* Groups of options a command may take. */
enum {
    TT_OPTIONS_SIZES = 1 << 0,      /* -b -e -f -i */
    TT_OPTIONS_COLLECTIVE = 1 << 1, /* --collective */
    TT_OPTIONS_ELEMENTS = 1 << 2,   /* -d -o -r */
    TT_OPTIONS_PLAN = 1 << 3,       /* --algo --channels --slots --chunk-bytes --group */
    TT_OPTIONS_TOPOLOGY = 1 << 4,   /* --topo --set */
    TT_OPTIONS_MODEL = 1 << 5,      /* --profile --level */
    TT_OPTIONS_RANKS = 1 << 6,      /* --ranks */
    TT_OPTIONS_MEASURE = 1 << 7,    /* -n -w -c --transport --timeout --no-pin --checksum --fault */
    TT_OPTIONS_ROWS = 1 << 8,       /* --json --csv -J --quiet */
    TT_OPTIONS_TRACE = 1 << 9,      /* --trace --timeline */
    TT_OPTIONS_PLOT = 1 << 10,      /* --plot */
    TT_OPTIONS_LIBRARY = 1 << 11,   /* --library --env --constants --launch */
    TT_OPTIONS_NETWORK = 1 << 12, /* --interface --device --streams --meet --rank --hostfile ... */
    TT_OPTIONS_ITERATIONS = 1 << 13, /* -I --arrivals --in-flight --groups --start-offset */
    TT_N_OPTION_GROUPS = 14,
    TT_OPTIONS_CALL = TT_OPTIONS_COLLECTIVE | TT_OPTIONS_ELEMENTS
};

#define TT_CHUNK_AUTO G_MAXUINT64

struct TtOptions {
    const TtCommand *command;
    char *line;       /* the command as it was given, for the report */
    char **arguments; /* what is left after the options, NULL-terminated */

    guint64 *sizes; /* -b -e -f -i unrolled, bytes */
    guint n_sizes;
    gboolean sizes_given, algo_given, level_given, transport_given; /* on the command line */

    TtCollective collective;
    TtType types[TT_N_TYPES];
    guint n_types;
    TtRedop redops[TT_N_REDOPS];
    guint n_redops;
    guint root;

    char **algorithms; /* as listed; all of the registry for "all" and "auto" */
    gboolean algo_all, algo_auto;
    guint channels;      /* 0: chosen */
    guint slots;         /* 0: chosen */
    guint64 chunk_bytes; /* TT_CHUNK_AUTO: chosen; 0: no rounds */
    guint group;         /* 0: ranks of a node */

    const char *topo; /* NULL: not given */
    const char *const *settings;
    const char *profile; /* NULL: not given */
    TtLevel level;

    const char *library;   /* as given; NULL: not given. "ideal" and "tutti" are profiles as well */
    guint nccl_version;    /* 22707 for nccl-2.27.7; 0: the library is not NCCL */
    char *library_warning; /* a version that is not among those known; NULL: none */
    const char *const *env; /* NAME=VALUE, each; NULL: none */
    const char *constants;  /* file; NULL: those built in */
    int launch;             /* TtNcclLaunch; -1: not given */

    guint *ranks; /* at least one entry if n_ranks > 0; ascending is not required */
    guint n_ranks;

    guint iterations, warmup;
    gboolean check, pin;
    const char *transport;
    double timeout_s;
    gboolean checksum;
    const char *fault; /* NULL: none */

    gboolean per_iteration, arrivals;
    guint in_flight;             /* 0: not given */
    guint groups;                /* >= 1 */
    gboolean groups_interleaved; /* by rank % groups, else consecutive ranks */
    const char *start_offset;    /* NULL: not given */

    const char *interface, *device; /* NULL: chosen */
    gint gid_index;                 /* -1: chosen */
    const char *gpus;               /* of transport cuda; NULL: all */
    TtGpuProtocol protocol;
    TtGpuPlacement placement;
    guint streams;                                    /* >= 1 */
    const char *meet, *rank, *hostfile, *secret_file; /* NULL: not given */

    gboolean json, csv, quiet;
    const char *json_file, *trace_file, *timeline_file, *plot;
};

/* Parses @argv (the command's name first) for @command. NULL with an error; if help was asked for,
 * prints it and returns NULL without one. */
TtOptions *tt_options_parse(const TtCommand *command, int argc, char **argv, GError **error);
void tt_options_free(TtOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtOptions, tt_options_free)

/* For --help, completion and the documentation's test. */
typedef struct {
    const char *name, *title; /* "sizes", "Sizes" */
    const GOptionEntry *entries;
} TtOptionGroup;
extern const TtOptionGroup tt_option_groups[TT_N_OPTION_GROUPS];

/* One call to predict or run: what the lists of types and reductions and the sizes multiply to. */
typedef struct {
    TtType type;
    TtRedop redop;
    guint64 bytes;        /* nccl-tests' size column */
    guint64 count;        /* its count column: per rank for allgather and reduce-scatter */
    guint64 vector_count; /* elements of the whole vector, what a plan wants */
} TtCase;

/* All of them for @n_ranks, sizes innermost. Caller frees the array. */
GArray *tt_options_cases(const TtOptions *options, guint n_ranks);
