/* defaults.h - what this executor picks where a plan's shape was left open. */
#pragma once
#include "algos/schedule.h"

/* Fills zero fields of @spec (channels, slots, slot_bytes) for running @algorithm. */
void tt_exec_defaults(TtPlanSpec *spec, const char *algorithm);

/* The same where ranks reach each other over @transport, as after --transport. */
void tt_exec_defaults_over(TtPlanSpec *spec, const char *algorithm, const char *transport);

/* The algorithm `auto` stands for at this size, number of ranks and transport. Static text. */
const char *tt_exec_choose(const TtPlanSpec *spec, const char *transport);
