/* nccl_lint_private.h - what the files of rules share. */
#pragma once
#include "topologies/nccl_lint.h"

typedef struct {
    const TtNcclXml *xml;
    GPtrArray *findings;
    guint *gpu_of, *net_of; /* [pci] the first one on it, TT_NO_INDEX: none */
    guint *depth;           /* [pci] */
} TtLint;

/* Adds a finding; takes @what, @where and @expected over. */
void tt_lint_add(TtLint *lint, TtLintSeverity severity, const char *rule, char *what, char *where,
                 char *expected, const char *effect);

/* For people. Caller frees. */
char *tt_lint_name_gpu(const TtLint *lint, guint gpu);
char *tt_lint_name_net(const TtLint *lint, guint net);
char *tt_lint_name_pci(const TtLint *lint, guint pci);

/* The rules by subject. */
void tt_lint_cpus(TtLint *lint);
void tt_lint_gpus(TtLint *lint);
void tt_lint_branches(TtLint *lint);
void tt_lint_nvlink(TtLint *lint);
void tt_lint_pcie(TtLint *lint);
void tt_lint_nics(TtLint *lint);
