/* test_nccl_flow - NCCL's plans by the simulator, against the closed form its constants were fitted with. */
#include "check.h"
#include "models/nccl_machine.h"
#include "sim/nccl_flow.h"
#include <math.h>
#include <stdlib.h>

#define VERSION TT_NCCL_VERSION(2, 27, 7)

typedef struct {
    TtTopology *topo;
    TtNcclXml *node;
    TtNcclComm *comm;
    TtNcclMachine machine;
    TtNcclTable table;
    TtNcclFunc func;
} Setup;

static gboolean
setup_open(Setup *self, const char *text, TtNcclFunc func)
{
    g_autoptr(GError) error = NULL;

    *self = (Setup){ .topo = tt_topology_open(text, NULL, &error), .func = func };
    CHECK_NO_ERROR(error);
    if (!self->topo)
        return FALSE;
    self->node = tt_nccl_xml_of_topology(self->topo, &error);
    self->comm = g_new0(TtNcclComm, 1);
    tt_nccl_comm_init(self->comm, self->node, tt_topology_n_nodes(self->topo), VERSION, NULL, NULL,
                      &error);
    CHECK_NO_ERROR(error);
    tt_nccl_machine_of_node(&self->machine, self->node, self->comm);
    tt_nccl_table(self->comm, func, NULL, &self->table, &error);
    CHECK_NO_ERROR(error);
    return TRUE;
}

static void
setup_clear(Setup *self)
{
    tt_topology_free(self->topo);
    tt_nccl_xml_free(self->node);
    g_free(self->comm);
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void
close_to_closed_form(void)
{
    static const char *const topologies[] = { "dgx-h100:1",  "dgx-h100:2",  "dgx-h100:4",
                                              "dgx-h100:16", "dgx-a100:1",  "dgx-a100:2",
                                              "dgx-a100:8",  "dgx1-v100:1", "v100-4:8",
                                              "a100-4:8" };
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));
    gboolean talk = g_getenv("TT_SHOW") != NULL;

    for (guint t = 0; t < G_N_ELEMENTS(topologies); t++) {
        g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
        Setup s;

        if (!setup_open(&s, topologies[t], TT_NCCL_ALLREDUCE))
            continue;
        for (guint64 bytes = 8; bytes <= G_GUINT64_CONSTANT(1) << 30; bytes *= 2) {
            const double *costs = tt_nccl_costs_built_in()->value;
            TtNcclPlace place = { s.topo, s.comm, &s.machine, costs, &tt_no_effects, s.node };
            TtNcclCall call = { .op = { .func = s.func,
                                        .bytes = bytes,
                                        .type_bytes = 4,
                                        .is_float = TRUE,
                                        .op_is_sum = TRUE },
                                .type = TT_FLOAT32,
                                .redop = TT_SUM };
            g_autoptr(GError) error = NULL;
            double closed, flow = NAN, diff;
            gint64 begin = g_get_monotonic_time();
            TtSimResult result = { 0 };

            tt_nccl_choose(s.comm, &s.table, NULL, &call.op, &call.choice, &error);
            CHECK_NO_ERROR(error);
            closed = tt_nccl_model_us(costs, &tt_no_effects, &s.machine, &call.op, &call.choice);
            tt_nccl_flow_us(&place, &call, FALSE, &flow, &result, &error);
            CHECK_NO_ERROR(error);
            diff = flow / closed - 1;
            g_array_append_val(errors, diff);
            g_array_append_val(all, diff);
            if (talk)
                printf("%-12s %10lu %-8s %-6s ch %2u loops %4u chunk %7lu closed %10.2f flow "
                       "%10.2f %+6.1f%%  "
                       "%5.1f ms folded %u leapt %lu %s\n",
                       topologies[t], (gulong)bytes, tt_nccl_algo_name(call.choice.algo),
                       tt_nccl_proto_name(call.choice.proto), call.choice.used_channels,
                       call.choice.n_loops, (gulong)call.choice.chunk_bytes, closed, flow,
                       100 * diff, (g_get_monotonic_time() - begin) / 1e3, result.folded_ranks,
                       (gulong)result.leapt_rounds, result.bottleneck ? result.bottleneck : "");
            tt_sim_result_clear(&result);
        }
        setup_clear(&s);
    }
    for (guint i = 0; i < all->len; i++)
        g_array_index(all, double, i) = fabs(g_array_index(all, double, i));
    qsort(all->data, all->len, sizeof(double), compare_doubles);
    printf("median %.2f%% p95 %.2f%% max %.2f%%\n", 100 * g_array_index(all, double, all->len / 2),
           100 * g_array_index(all, double, all->len * 95 / 100),
           100 * g_array_index(all, double, all->len - 1));
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "close to the closed form", close_to_closed_form },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_flow", tests);
}
