/* job.h - what a process must know to have its ranks run one plan, or several at once.
 */
#pragma once
#include "exec/shared.h"

/* Lays out @parts as region->job. */
gboolean tt_job_prepare(TtRegion *region, const TtRunPart *parts, guint n_parts,
                        const TtRunOptions *options, GError **error);

/* What this process's ranks were told, beside what the root says: the signature they will give. */
void tt_job_sign(TtRegion *region, const TtRunPart *parts, guint n_parts,
                 const TtRunOptions *options);

/* The job as another process needs it that runs ranks @first_rank .., and back. */
GBytes *tt_job_pack(const TtRegion *region, guint first_rank, guint n_ranks);
gboolean tt_job_unpack(TtRegion *region, const guint8 *data, gsize bytes, GError **error);
