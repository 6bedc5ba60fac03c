/* nvls - the switch of a node adds up what its ranks send and hands out the sum.
 *
 * H heads, one chunk each; every rank is one unless the wiring says otherwise. G = H = 2:
 *
 *             rank 0          switch          rank 1
 *     scatter c0 c1  ------->   +   <-------  c0 c1       every chunk of every rank, once
 *     up      c0     <-------                             the sum, to the chunk's head
 *                               ------------> c1
 *     down    c0     ------->                             back from the head, complete
 *                               <------------ c1
 *     gather  c0 c1  <-------       ------->  c0 c1       a copy for everyone
 *
 * On one node the head only turns its chunk round, as multimem load-reduce and store do. On several,
 * it sends the node's sum to a switch of the network that adds up the nodes (SHARP), one per head.
 * Allgather: a part up, all parts down. Reduce-scatter: all parts up, a part down.
 *
 * Steps   per rank H sends and H receives, two more on a head; the switch 2(G+1)H
 * Wire    (1 + 1/H) n bytes leave and reach each rank; ring: 2(G-1)/G n. Across nodes n/H per head
 * Time    many rounds: (1 + 1/H) n * beta, at four hops
 * Source  NVLink SHARP, as in NCCL src/transport/nvls.cc and src/device/all_reduce.h; Graham et al.,
 *         COM-HPC 2016 (SHARP)
 * Limits  any shape, allgather and reduce-scatter one node; needs switches that reduce
 */
#include "algos/nvls.h"

static gboolean
nvls_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args;
    return tt_nvls_init(plan, TT_NVLS_NETWORK, error);
}

const TtAlgo tt_algo_nvls = {
    .name = "nvls",
    .summary =
        "the switch of a node adds up (NVLink SHARP); across nodes, that of the network does",
    .source = "NVLink SHARP as in NCCL src/transport/nvls.cc; Graham et al., COM-HPC 2016",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_REDUCE_SCATTER) | TT_BIT(TT_ALLGATHER),
    .init = nvls_init,
    .program = tt_nvls_program,
    .n_steps = tt_nvls_n_steps,
    .step = tt_nvls_step,
    .chunk = tt_nvls_chunk,
    .peer = tt_nvls_peer,
    .switch_place = tt_nvls_switch_place,
};
