/* measured.h - sweeps somebody measured: what was run, on what, and how long it took.
 *
 * Reads, telling them apart by content: this project's measurement files (collective-measurement/1, see
 * docs/measurements.md), the text nccl-tests and rccl-tests print, and nccl-tests' -J files. What a file
 * does not say stays empty (NULL, 0, NAN or -1); nothing is guessed here. A file may hold several tables.
 */
#pragma once
#include "models/nccl.h"

#define TT_MEASURED_ERROR (tt_measured_error_quark())
GQuark tt_measured_error_quark(void);
typedef enum { TT_MEASURED_ERROR_FILE, TT_MEASURED_ERROR_USAGE } TtMeasuredError;

/* One size. Times in microseconds, bandwidths in GB/s = 1e9 B/s; NAN where the source has none. */
typedef struct {
    guint64 bytes;
    guint64 count; /* elements as printed; 0: not stated */
    double
        time_us; /* as stated; from busbw where only that is known; the median of repeats in logs */
    double min_us; /* over repeats and ranks; else time_us */
    double max_us;
    double median_us; /* over all repeats of this size; else time_us */
    guint n_repeats;  /* 1: measured once */
    double algbw_gbps, busbw_gbps;
    gint64 wrong;     /* elements found wrong; -1: not checked or not stated */
    gboolean derived; /* time_us comes from a bandwidth */
} TtMeasuredRow;

typedef struct {
    char *name, *value;
} TtMeasuredVar;

typedef enum {
    TT_LIBRARY_UNKNOWN,
    TT_LIBRARY_NCCL,
    TT_LIBRARY_RCCL,
    TT_LIBRARY_MPI,
    TT_LIBRARY_OTHER /* not a collective library: perftest, host memory */
} TtLibraryKind;

typedef struct TtMeasured {
    char *origin;  /* the path */
    guint table;   /* within the file, from 1 */
    char *id;      /* the file's own, else the path's last part without its ending */
    char *machine; /* runs of one machine share it: never fit on one and test on the other */

    char *
        collective; /* "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
                         "sendrecv", ...; NULL if not stated */
    char *type;     /* "float32", "int8", "bfloat16", "mixed" if the rows differ; NULL */
    guint type_bytes;             /* 0: not known */
    char *redop;                  /* "sum", "none"; NULL */
    int root;                     /* -1: none or not stated */
    GArray *rows, *rows_in_place; /* TtMeasuredRow, in file order */

    guint ngpus, nnodes, gpus_per_node; /* 0: not stated; several numbers per node: the largest */
    char *gpu;                          /* as written; NULL */
    char *intra, *intra_detail;         /* NVLink, PCIe ... in the file's words; NULL */
    double intra_gbps;                  /* per GPU and direction; NAN */
    char *inter, *inter_name;           /* network, in the file's words; NULL */
    guint nics_per_node;                /* 0: not stated */
    double nic_gbits;                   /* per NIC; 0: not stated */
    char *cpu;                          /* NULL */

    TtLibraryKind library;
    char *version;        /* "2.18.5"; NULL */
    guint version_number; /* TT_NCCL_VERSION(2, 18, 5); 0 */
    char *net_plugin;     /* NULL */
    char *tool;           /* "nccl-tests" */
    GArray *env;          /* TtMeasuredVar */
    char *algo, *proto;   /* forced by NCCL_ALGO or NCCL_PROTO; NULL */
    gboolean graph;       /* CUDA graph launches */
    int one_process;      /* 1: one process drives several GPUs, 0: one each, -1: not known */
    guint n_iterations;   /* 0: not stated */

    char *date;
    char quality; /* 'A' 'B' 'C', 0: not rated */
    gboolean anomalous, headline;
    char *anomaly, *notes; /* NULL */
    GPtrArray *hosts;      /* char *, each once */
    GPtrArray *skipped;    /* char *: "line 17: ..."; what could not be read or was left out */
} TtMeasured;

void tt_measured_free(TtMeasured *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtMeasured, tt_measured_free)

/* All tables of a file: GPtrArray of TtMeasured, at least one, each with at least one row in one of its
 * lists (a collective-measurement/1 file may have none: published ratios). TT_MEASURED_ERROR_FILE with
 * one line if there is nothing to read. Files over 64 MiB are refused. */
GPtrArray *tt_measured_read(const char *path, GError **error);
GPtrArray *tt_measured_parse(const char *origin, const char *text, gsize length, GError **error);

/* busbw = algbw x this: nccl-tests' factor for @collective over @n ranks; 1 for what it does not know. */
double tt_measured_busbw_factor(const char *collective, guint n);

/* The collective in NCCL's words; -1 for those NCCL has no algorithm choice for. */
int tt_measured_func(const TtMeasured *m);

/* The value of an environment variable, NULL if not set. */
const char *tt_measured_env(const TtMeasured *m, const char *name);
