/* explain_choice.h - why NCCL chooses what it chooses: what it found, what it computed from that when the
 * communicator was made, what it believes for each size, and why the rest is off.
 */
#pragma once
#include "cli/library.h"

/* As comments of @report's table, or as its JSON member "choice". @cases: TtCase. */
void tt_explain_choice(TtReport *report, const TtLibrary *library, const GArray *cases);
