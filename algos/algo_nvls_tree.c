/* nvls-tree - the switch of a node adds up its ranks; heads of equal place add up the nodes by a tree.
 *
 * As nvls inside nodes. Across them, each head sends its node's sum up a binary tree of the same
 * heads of other nodes, and the sum of all comes down again; even channels use one of the two trees of
 * double-tree, odd channels the other:
 *
 *     rank --> switch --> head --> head of the parent node --> ...    up
 *     rank <-- switch <-- head <-- head of the parent node <-- ...    down
 *
 * Steps   as nvls; a head one more up and down per child
 * Wire    (1 + 1/H) n bytes leave and reach each rank inside the node; about 2n/H per head and
 *         direction across nodes over both trees
 * Time    many rounds: the larger of the two, at 4 + 2 log2 M hops for M nodes
 * Source  NCCL src/transport/nvls.cc, src/graph/connect.cc
 * Limits  any shape; one node is nvls; needs switches that reduce, inside nodes only
 */
#include "algos/nvls.h"

static gboolean
nvls_tree_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args;
    return tt_nvls_init(plan, TT_NVLS_TREE, error);
}

const TtAlgo tt_algo_nvls_tree = {
    .name = "nvls-tree",
    .summary = "the switch of a node adds up, heads of nodes form double binary trees",
    .source = "NCCL src/transport/nvls.cc, src/graph/connect.cc",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = nvls_tree_init,
    .program = tt_nvls_program,
    .n_steps = tt_nvls_n_steps,
    .step = tt_nvls_step,
    .chunk = tt_nvls_chunk,
    .peer = tt_nvls_peer,
    .switch_place = tt_nvls_switch_place,
};
