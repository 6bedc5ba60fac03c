#include "models/nccl_costs.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name, *unit;
    double prior, sigma;
} Entry;

typedef struct {
    const char *name, *unit;
    double prior[TT_NCCL_N_PROTOS], sigma;
} ProtoEntry;

/* Priors: NCCL's own figures where it has one (src/graph/tuning.cc, topo.h), makers' figures, else a wide
 * guess. */
static const Entry single[TT_N_SINGLE_COSTS] = {
    [TT_COST_START] = { "start", "us", 5, 0.5 },
    [TT_COST_CALL] = { "call", "us", 6, 0.1 },
    [TT_COST_CALL_EACH] = { "call.each", "us", 4.5, 0.2 },
    [TT_COST_EFA_GEN] = { "efa.generation", "", 0.6, 0.3 },
    [TT_COST_PCIE_SHARE] = { "share.pcie", "", 0.8, 0.2 },
    [TT_COST_HOST_RATE] = { "rate.host", "GB/s", 4.5, 0.3 },
    [TT_COST_FAR_SHARE] = { "share.far-nic", "", 0.8, 0.2 },
    [TT_COST_GRACE_FORWARD] = { "grace.forward", "", 0.5, 0.7 },
    [TT_COST_TREE_CROWD] = { "tree.crowd", "", 0.03, 1 },
    [TT_COST_NVLS_START] = { "nvls.start", "us", 30, 0.4 },
    [TT_COST_NVLS_ROUND] = { "nvls.round", "us", 4.5, 0.5 },
    [TT_COST_NVLS_SHARE] = { "nvls.share", "", 0.7, 0.3 },
    [TT_COST_NVLSTREE_ROUND] = { "nvls-tree.round", "us", 8, 0.7 },
    [TT_COST_NVLSTREE_HOP] = { "nvls-tree.hop", "", 0.3, 0.2 },
    [TT_COST_NVLSTREE_FILL] = { "nvls-tree.fill", "", 2, 0.7 },
};

static const ProtoEntry by_proto[TT_N_PROTO_COSTS] = {
    [TT_COST_HOP_NVLINK] = { "hop.nvlink", "us", { 0.8, 2.5, 5 }, 0.5 },
    [TT_COST_HOP_PCIE] = { "hop.pcie", "us", { 1.6, 5, 10 }, 0.5 },
    [TT_COST_HOP_HOST] = { "hop.host", "us", { 2, 6.25, 12.5 }, 0.5 },
    [TT_COST_HOP_GROWTH] = { "hop.growth", "us", { 0.1, 0.05, 0.1 }, 1 },
    [TT_COST_CHANNEL] = { "channel", "GB/s", { 4, 6, 20 }, 0.4 },
    [TT_COST_SHARE] = { "share.nvlink", "", { 0.5, 0.75, 0.8 }, 0.3 },
    [TT_COST_HOP_NET] = { "hop.net", "us", { 5, 15, 25 }, 0.4 },
    [TT_COST_FORWARD] = { "forward", "GB/s", { 1, 6, 12 }, 0.5 },
    [TT_COST_HIDDEN] = { "hidden", "", { 0.3, 0.3, 0.3 }, 1 },
    [TT_COST_TREE] = { "tree", "", { 0.7, 0.7, 0.7 }, 0.3 },
    [TT_COST_BEGIN] = { "begin", "us", { 0.1, 7.5, 10 }, 1 },
};

static const Entry gen_proto[TT_N_GEN_PROTO_COSTS] = {
    [TT_GEN_HOP] = { "hop", "", 1, 0.12 },
    [TT_GEN_GROWTH] = { "growth", "", 1, 0.6 },
    [TT_GEN_CHANNEL] = { "channel", "", 1, 0.6 },
    [TT_GEN_SHARE] = { "share", "", 1, 0.3 },
};

static const Entry gen_one[TT_N_GEN_COSTS] = {
    [TT_GEN_START] = { "start", "", 1, 0.1 },
    [TT_GEN_NVLS_START] = { "nvls.start", "", 1, 0.3 },
    [TT_GEN_NVLS_ROUND] = { "nvls.round", "", 1, 0.3 },
    [TT_GEN_NVLS_SHARE] = { "nvls.share", "", 1, 0.2 },
};

static const Entry nic_proto[TT_N_NIC_PROTO_COSTS] = {
    [TT_NIC_HOP] = { "hop", "", 1, 0.6 },
    [TT_NIC_FORWARD] = { "forward", "", 1, 0.4 },
};

static const char *const gens[TT_N_GENS] = { "volta",  "turing",    "ampere", "ada",
                                             "hopper", "blackwell", "cdna" };
static const char *const nics[TT_N_NIC_KINDS] = { "unknown",    "infiniband", "roce", "efa",
                                                  "efa-bounce", "slingshot",  "tcp" };
static const char *const protos[TT_NCCL_N_PROTOS] = { "ll", "ll128", "simple" };

/* Simple's rate of one block follows the machine: memory and clock of each generation. From busbw over
 * channels where the wires are wider (DGX-2 10, DGX A100 12, H100 over 16 channels 23 GB/s). */
static const double channel_of_gen[TT_N_GENS] = { 0.55, 0.6, 0.65, 0.8, 1.2, 1.5, 1 };

const char *
tt_gpu_gen_name(guint gen)
{
    g_assert(gen < TT_N_GENS);
    return gens[gen];
}

const char *
tt_nic_kind_name(guint nic)
{
    g_assert(nic < TT_N_NIC_KINDS);
    return nics[nic];
}

/* What stands at a place of the array, and its name. */
static Entry
entry_of(guint cost, char **name)
{
    Entry entry;

    g_assert(cost < TT_N_COSTS);
    if (cost < TT_COSTS_PROTO) {
        entry = single[cost];
        *name = g_strdup(entry.name);
    } else if (cost < TT_COSTS_GEN_PROTO) {
        guint i = cost - TT_COSTS_PROTO, p = i % TT_NCCL_N_PROTOS;
        const ProtoEntry *e = &by_proto[i / TT_NCCL_N_PROTOS];

        entry = (Entry){ e->name, e->unit, e->prior[p], e->sigma };
        *name = g_strdup_printf("%s.%s", e->name, protos[p]);
    } else if (cost < TT_COSTS_GEN) {
        guint i = cost - TT_COSTS_GEN_PROTO, p = i % TT_NCCL_N_PROTOS, kind, gen;

        i /= TT_NCCL_N_PROTOS;
        kind = i % TT_N_GEN_PROTO_COSTS;
        gen = i / TT_N_GEN_PROTO_COSTS;
        entry = gen_proto[kind];
        if (kind == TT_GEN_CHANNEL && p == TT_NCCL_SIMPLE)
            entry.prior = channel_of_gen[gen], entry.sigma = 0.15;
        *name = g_strdup_printf("gen.%s.%s.%s", gens[gen], entry.name, protos[p]);
    } else if (cost < TT_COSTS_NIC_PROTO) {
        guint i = cost - TT_COSTS_GEN;

        entry = gen_one[i % TT_N_GEN_COSTS];
        *name = g_strdup_printf("gen.%s.%s", gens[i / TT_N_GEN_COSTS], entry.name);
    } else if (cost < TT_COSTS_NIC_SHARE) {
        guint i = cost - TT_COSTS_NIC_PROTO, p = i % TT_NCCL_N_PROTOS;

        i /= TT_NCCL_N_PROTOS;
        entry = nic_proto[i % TT_N_NIC_PROTO_COSTS];
        *name =
            g_strdup_printf("net.%s.%s.%s", nics[i / TT_N_NIC_PROTO_COSTS], entry.name, protos[p]);
    } else {
        guint nic = cost - TT_COSTS_NIC_SHARE;

        entry = (Entry){ "share", "", nic == TT_NIC_BOUNCE ? 0.25 : 0.92, 0.1 };
        *name = g_strdup_printf("net.%s.share", nics[nic]);
    }
    return entry;
}

char *
tt_cost_name(guint cost)
{
    char *name;

    entry_of(cost, &name);
    return name;
}

const char *
tt_cost_unit(guint cost)
{
    g_autofree char *name = NULL;

    return entry_of(cost, &name).unit;
}

double
tt_cost_prior(guint cost)
{
    g_autofree char *name = NULL;

    return entry_of(cost, &name).prior;
}

double
tt_cost_sigma(guint cost)
{
    g_autofree char *name = NULL;

    return entry_of(cost, &name).sigma;
}

TtNcclCosts *
tt_nccl_costs_new(void)
{
    TtNcclCosts *costs = g_new0(TtNcclCosts, 1);

    costs->name = g_strdup("priors");
    for (guint i = 0; i < TT_N_COSTS; i++)
        costs->value[i] = costs->low[i] = costs->high[i] = tt_cost_prior(i);
    return costs;
}

void
tt_nccl_costs_free(TtNcclCosts *costs)
{
    if (!costs)
        return;
    for (guint i = 0; i < TT_N_COSTS; i++)
        g_free(costs->from[i]);
    g_free(costs->name);
    g_free(costs);
}
