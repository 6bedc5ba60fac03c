/* nccl_lint.h - what looks wrong in a node as NCCL sees it, and what NCCL does because of it.
 *
 * Rules, not measurements: a PCIe link below what its neighbours do, a GPU without the NVLinks of the
 * others, a NIC far from every GPU, what virtual machines leave out. Path types and limits: NCCL
 * src/graph/paths.cc (GPUDirect RDMA up to PXB, peer access up to PXB).
 */
#pragma once
#include "topologies/nccl_xml.h"

typedef enum { TT_LINT_NOTE, TT_LINT_WARNING, TT_LINT_ERROR } TtLintSeverity;

typedef struct {
    TtLintSeverity severity;
    const char *rule;              /* "pcie-speed", "nvlink-missing", ... */
    char *where, *what, *expected; /* "gpu 3 (0000:41:00.0)", "8 GT/s x16", "16 GT/s x16, as ..." */
    char *effect;                  /* what NCCL does; "" if nothing follows */
} TtLintFinding;

const char *tt_lint_severity_name(TtLintSeverity severity);

/* Findings, the severe first, in document order among equals. Owned by the caller. */
GPtrArray *tt_nccl_lint(const TtNcclXml *xml);

/* One line of @finding: "severity: what, where, expected ...". Caller frees. */
char *tt_lint_line(const TtLintFinding *finding);

/* { "topology": @name, "findings": [ ... ] }; needs json-glib. Caller frees. */
char *tt_lint_to_json(const char *name, const GPtrArray *findings);
