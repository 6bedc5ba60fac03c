/* nccl_machine.h - what time depends on of a machine (TtNcclMachine), from a node and what NCCL made of it.
 */
#pragma once
#include "models/hardware.h"
#include "models/nccl_search.h"
#include "models/nccl_time.h"

/* From the node alone: GPUs, links and NICs by their figures, the kind of network by the NICs' names, one
 * process per GPU. */
void tt_nccl_machine_of_node(TtNcclMachine *machine, const TtNcclXml *node, const TtNcclComm *comm);

/* What a measurement's hardware and notes say better. */
void tt_nccl_machine_refine(TtNcclMachine *machine, const TtHardware *hardware,
                            const TtMeasured *measured);
