/* explain_json.h - the explanation of NCCL's choice for programs. Private to explain_*.c. */
#pragma once
#include "cli/library.h"

/* What NCCL believes of every pair (algorithm * 3 + protocol) for one case. */
typedef struct {
    TtNcclOp op;
    double us[TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS]; /* INFINITY: off */
    guint winner, next;                            /* pairs; their number where there is none */
    gboolean chosen;
    TtNcclChoice choice;
} TtCaseExplained;

void tt_explain_case(const TtLibrary *library, const TtCase *c, TtCaseExplained *out);

/* The tables of all collectives [TT_NCCL_N_FUNCS]. */
gboolean tt_explain_tables(const TtLibrary *library, TtNcclTable *tables);

const char *tt_explain_graph_name(guint graph);
gboolean tt_explain_has_head(const TtNcclGraph *graph);

/* One JSON object. Caller frees. */
char *tt_explain_json(const TtLibrary *library, const GArray *cases);
