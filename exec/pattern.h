/* pattern.h - what ranks contribute, and what must come out: data whose results are exact.
 *
 * A value is a pure function of rank and element, chosen so that every order of combining gives the
 * same bits: floats are small integers whose sum or product stays exact in the type, integers use
 * their whole range and wrap. The expected result is computed one element at a time in 64 bits,
 * with none of the kernels under test.
 */
#pragma once
#include "algos/schedule.h"

/* Writes the input of @rank: its share range.first .. of the vector goes to data[0] .. . Calls with another @salt
 * (a small number) have other data. */
void tt_pattern_fill(const TtPlan *plan, guint salt, guint rank, TtRange range, gpointer data);

/* Elements of @data, the output of a rank holding @range, that are not the expected result. */
guint64 tt_pattern_count_wrong(const TtPlan *plan, guint salt, TtRange range, gconstpointer data);

/* The same two for libraries that leave integer overflow undefined, as MPI does (Open MPI's int8 sums
 * stop at -128 and 127): no sum leaves its type. */
void tt_pattern_fill_fitting(const TtPlan *plan, guint rank, TtRange range, gpointer data);
guint64 tt_pattern_count_wrong_fitting(const TtPlan *plan, TtRange range, gconstpointer data);

/* As the first, but an average of floats may be off by as much as rounding allows where every rank's share is
 * divided before it is added, as NCCL does. */
guint64 tt_pattern_count_wrong_rounded(const TtPlan *plan, TtRange range, gconstpointer data);

/* The value of one element as stored, widened: for tests. */
double tt_pattern_read(TtType type, gconstpointer data, guint64 i);
