/* table.h - a plan held as a table: imported schedules, and copies of plans to edit in tests.
 *
 * The same interface as a computed plan; here memory does grow with ranks x steps.
 */
#pragma once
#include "algos/schedule.h"

typedef struct TtTable TtTable;

/* An empty table for @n_ranks ranks: chunks and lanes per channel as given, all at least 1. */
TtTable *tt_table_new(guint n_ranks, guint n_chunks, guint lanes_per_channel);
void tt_table_free(TtTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtTable, tt_table_free)

/* A switch that reduces, the next agent after those there are; returns its number. */
guint tt_table_add_switch(TtTable *table, TtSwitchPlace place);

/* Copies every step of channel 0 of @plan, of ranks and switches. */
TtTable *tt_table_from_plan(const TtPlan *plan);

/* The steps of one lane, to read and edit: GArray of TtStep whose roles are peer RANKS + 0 (role
 * number = rank number) and whose dep_lane is a sub-lane. Borrowed. */
GArray *tt_table_steps(TtTable *table, guint rank, guint sub_lane);

/* Turns the table into a plan; with several channels all run the same steps. Takes the table over,
 * also on failure. The spec must ask for as many ranks as the table has. Steps are not checked:
 * tt_verify(). */
TtPlan *tt_table_to_plan(TtTable *table, const char *name, const TtPlanSpec *spec, GError **error);
