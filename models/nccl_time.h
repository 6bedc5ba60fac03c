/* nccl_time.h - how long NCCL takes for what it chose: the closed form of the schedules it runs.
 *
 * An operation takes as long as the slower of the host, which launches kernels at a certain pace, and the
 * GPUs: a start, then the steps of the algorithm, each a fixed cost and its bytes at the rate of whatever
 * is narrowest for it (a block, an NVLink shared by the channels, the node's NICs). docs/nccl.md has
 * the formulas. The same constants drive the simulator (sim/), which also knows of links shared with
 * others.
 */
#pragma once
#include "models/nccl_costs.h"
#include "models/nccl_tuner.h"

typedef enum {
    TT_LAUNCH_PROCESS_PER_GPU,
    TT_LAUNCH_ONE_PROCESS, /* one process drives all GPUs of the node: launches queue up */
    TT_LAUNCH_GRAPH,       /* CUDA graphs: the host hardly matters */
    TT_N_LAUNCHES
} TtNcclLaunch;

/* What time depends on of a machine, beside NCCL's choice. */
typedef struct {
    guint n_ranks, n_nodes, ranks_per_node;
    TtGpuGen gen;
    TtNcclWay way;
    double nvlink_gbps; /* of one GPU and direction, as sold */
    double pcie_gbps;   /* of one GPU and direction, after encoding and headers */
    TtNicKind nic;
    guint efa_generation;
    double nics_gbps;    /* all NICs of a node that take part, one direction, as sold */
    gboolean nic_far[2]; /* reached through a CPU: of the ring's graph, of the tree's */
    guint heads, nvls_channels;
    gboolean
        side_trees; /* a child node attaches beside the GPU that leads to the parent (BALANCED, SPLIT) */
    gboolean grace; /* NICs are reached over C2C and a Grace CPU */
    TtNcclLaunch launch;
} TtNcclMachine;

/* What sets one machine apart from others of its kind: factors, 1 for a machine nobody has seen. */
typedef struct {
    double call, hop_net, nics, host;
} TtMachineEffects;
extern const TtMachineEffects tt_no_effects;

/* Microseconds. @value: TT_N_COSTS figures. NAN for what there is no form for (CollNet). */
double tt_nccl_model_us(const double *value, const TtMachineEffects *effects,
                        const TtNcclMachine *machine, const TtNcclOp *op,
                        const TtNcclChoice *choice);

/* --- parts of it, which the simulator takes over ---------------------------------------------- */

/* Of one step of @bytes data in a ring or tree. */
typedef struct {
    double hop_us, hop_net_us;     /* from a step's start to the next one's, beside its bytes */
    double channel_gbps;           /* what one block moves at most */
    double nvlink_gbps, nics_gbps; /* data a GPU's links, a node's NICs carry at most */
    double forward_gbps; /* a message over the network is first stored at; INFINITY: it is not */
} TtNcclStepCost;
TtNcclStepCost tt_nccl_step_cost(const double *value, const TtMachineEffects *effects,
                                 const TtNcclMachine *machine, const TtNcclChoice *choice,
                                 double bytes);

/* Of one chunk on its way around a ring: what a hop costs beside the bytes, and the rate of a channel. */
typedef struct {
    double inner_us, outer_us; /* inside a node, between nodes */
    double gbps;
} TtNcclRingCost;
TtNcclRingCost tt_nccl_ring_cost(const double *value, const TtMachineEffects *effects,
                                 const TtNcclMachine *machine, const TtNcclChoice *choice,
                                 double chunk_bytes, double n_channels);

/* Of one chunk in a tree: the time of a hop with its bytes, and how long after each other chunks follow. */
typedef struct {
    double inner_us, outer_us, pace_us;
    guint levels; /* of the tree over nodes */
} TtNcclTreeCost;
TtNcclTreeCost tt_nccl_tree_cost(const double *value, const TtMachineEffects *effects,
                                 const TtNcclMachine *machine, const TtNcclChoice *choice,
                                 double chunk_bytes, double n_channels);

/* Of in-switch reduction: start + 2 levels hop + rounds + (bytes + fill) / rate. Alone on a node there are no
 * hops and nothing fills. */
typedef struct {
    double start_us, hop_us, rounds_us, fill_bytes, gbps;
    guint levels;
} TtNcclNvlsCost;
TtNcclNvlsCost tt_nccl_nvls_cost(const double *value, const TtMachineEffects *effects,
                                 const TtNcclMachine *machine, const TtNcclOp *op,
                                 const TtNcclChoice *choice);

/* The smallest of rates in series, rounded at the corner (the eighth norm). */
double tt_nccl_narrowest(double a, double b, double c);

/* GB/s to bytes per microsecond. */
static inline double
tt_nccl_move_us(double bytes, double gbps)
{
    return bytes / (gbps * 1e3);
}

double tt_nccl_start_us(const double *value, const TtNcclMachine *machine);
double tt_nccl_call_us(const double *value, const TtMachineEffects *effects,
                       const TtNcclMachine *machine);

/* The host and the GPUs work at the same time: the slower one, softly. */
double tt_nccl_join_us(double call_us, double gpu_us);
