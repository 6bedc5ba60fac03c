/* library.h - what a command knows of NCCL when --library asks for it: the communicator NCCL would build
 * on the topology, its table of costs, and the times that are printed.
 */
#pragma once
#include "cli/report.h"
#include "models/nccl_machine.h"
#include "sim/nccl_flow.h"

/* An entry of --algo: "ring" is Ring by the protocol NCCL prefers, "ring:ll" by LL. */
typedef struct {
    TtNcclAlgo algo;
    int proto; /* TtNcclProto; -1: whichever is best */
} TtLibraryPair;

typedef struct {
    guint version;
    TtNcclEnv env;
    TtNcclComm comm;
    TtNcclGraph unmerged[TT_N_GRAPHS]; /* as one node found them */
    TtNcclFunc func;
    TtNcclTable table; /* of that collective */
    TtTopology *topo;
    TtNcclXml *node; /* as NCCL sees it */
    TtNcclMachine machine;
    TtNcclCosts *costs; /* of --constants; NULL: those built in */
    char *topology;     /* for headings */
} TtLibrary;

/* The version --library names; 0 with an error. *warning as tt_nccl_version_parse() does. */
guint tt_library_nccl_version(const char *library, char **warning, GError **error);

/* What does not depend on the topology: --env, and options that say nothing to NCCL. */
gboolean tt_library_check(const TtOptions *options, GError **error);

gboolean tt_library_pair_parse(const char *text, TtLibraryPair *pair, GError **error);

/* Names for --algo and rows: "nvls-tree", "ll128". */
const char *tt_library_algo_word(guint algo);
const char *tt_library_proto_word(guint proto);

/* Opens --topo and searches it as NCCL would. Tells @report about it. NULL with an error. */
TtLibrary *tt_library_open(const TtOptions *options, TtReport *report, GError **error);
void tt_library_free(TtLibrary *library);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtLibrary, tt_library_free)

/* What NCCL is asked for in @c. */
TtNcclOp tt_library_op(const TtLibrary *library, const TtCase *c);

/* TtLibraryPair: what --algo names; every pair that is on for "all"; none for "auto": NCCL chooses. */
GArray *tt_library_pairs(const TtLibrary *library, const TtOptions *options);

/* NCCL's choice, among all pairs (@pair NULL) or for one entry of --algo. Fails where NCCL fails, and where
 * the pair is off, with the reason. */
gboolean tt_library_choose(const TtLibrary *library, const TtNcclOp *op, const TtLibraryPair *pair,
                           TtNcclChoice *choice, GError **error);

/* The same with type, reduction and root. */
TtNcclCall tt_library_call(const TtLibrary *library, const TtCase *c, guint root,
                           const TtNcclChoice *choice);

/* How long that takes, at a level. */
typedef struct {
    double time_us, bound_us;
    char *limit, *bottleneck; /* what sets the bound; what was busiest. Owned, may be NULL */
    TtTimeline *timeline;     /* NULL unless recorded; owned */
} TtLibraryTime;

/* Only level flow can record. Fails where there is no closed form, or no plan. */
gboolean tt_library_time(const TtLibrary *library, const TtNcclCall *call, TtLevel level,
                         gboolean record, TtLibraryTime *time, GError **error);
void tt_library_time_clear(TtLibraryTime *time);

/* The level in words, for headings. NULL with an error where NCCL's plans have no such level. */
const char *tt_library_time_source(TtLevel level, GError **error);

/* A row that says what @choice does in @c and how long it takes. Borrows the texts of @time. */
TtRow tt_library_row(const TtLibrary *library, const TtCase *c, const TtNcclChoice *choice,
                     const TtLibraryTime *time);
