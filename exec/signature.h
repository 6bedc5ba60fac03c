/* signature.h - what a rank believes it is to run: compared between all ranks before the first byte.
 */
#pragma once
#include "exec/exec.h"

typedef struct {
    guint32 collective, type, redop, root, in_place, n_ranks;
    guint32 warmup, iterations, repeats, check, record, stamps, arrivals, parts;
    guint64 count;
    guint64 plan; /* hash of every step of every rank, and of what shapes them */
    char algorithm[48];
} TtSignature;

/* @hash with @part mixed in: equal for equal ones, in every process and on every machine of one byte order. */
guint64 tt_signature_hash_part(guint64 hash, const TtRunPart *part);

/* NULL if equal; else the first difference in words: "rank 0 runs allreduce of 1024 float (sum, ring), rank 2 of
 * 2048". Caller frees. */
char *tt_signature_difference(guint rank_a, const TtSignature *a, guint rank_b,
                              const TtSignature *b);
