/* fold.h - lanes that behave alike are simulated once. Private to sim/.
 *
 * Two units (a rank's lanes on one channel) behave alike if they run the same steps on pieces of the same
 * size and every role leads, over connections of the same cost whose links are loaded alike, to units that
 * behave alike: the classes of partition.h on the graph of units, connections and links. Their clocks then
 * show the same to the end, so one of each class is simulated, on one link of each class of links, where a
 * connection counts as often as ones of its class cross it:
 *
 *     ring of 4, one channel        one unit that sends to itself, one connection, one link
 *     nodes of 8, channels that start at different ranks         16 units where there were 8 * M * C
 *
 * Nothing is assumed about nodes or rails; what is not alike (a leaf switch's border, a tree's levels) has
 * its own class. Exact: what moves at one instant does not depend on the order of lanes. Refused where it
 * would: lanes that queue for workers or cores; and for chunks of different sizes, and when recording.
 */
#pragma once
#include "sim/engine.h"

/* Makes all connections and, if fewer units then suffice, turns @self into the folded run. Call before
 * the first step. */
void tt_engine_fold(TtEngine *self);
