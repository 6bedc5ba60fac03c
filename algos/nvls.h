/* nvls.h - in-switch reduction inside nodes, and what may join the nodes: what nvls and nvls-tree
 * share.
 *
 * The vector has one chunk per head. Each rank sends every chunk up to its node's switch once; the
 * switch adds them up and gives the sum to the chunk's head, which passes it up again, for the switch
 * to hand a copy to every rank. Four lanes per channel, so that all of this goes on at once:
 *
 *     SCATTER   rank --> switch            every chunk, added up there
 *     UP        switch --> head            the sum of the node; head --> parent, if there are nodes
 *     DOWN      parent --> head --> switch the sum of all
 *     GATHER    switch --> rank            every chunk
 *
 * Per rank and direction n + n/H bytes with H heads. Allgather and reduce-scatter are the half they
 * need: two lanes, a chunk per rank, one node.
 */
#pragma once
#include "algos/algo.h"

/* How heads of several nodes meet: double trees of heads, or a switch in the network per head. */
typedef enum { TT_NVLS_TREE, TT_NVLS_NETWORK } TtNvlsJoin;

gboolean tt_nvls_init(TtPlan *plan, TtNvlsJoin join, GError **error);
guint32 tt_nvls_program(const TtPlan *plan, guint rank, guint channel);
guint32 tt_nvls_n_steps(const TtPlan *plan, guint32 program, guint sub_lane);
TtStep tt_nvls_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i);
guint32 tt_nvls_chunk(const TtPlan *plan, guint rank, guint channel, guint32 relative);
guint tt_nvls_peer(const TtPlan *plan, guint rank, guint channel, guint role);
TtSwitchPlace tt_nvls_switch_place(const TtPlan *plan, guint index);
