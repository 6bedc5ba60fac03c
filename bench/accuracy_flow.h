/* accuracy_flow.h - bench/accuracy's model "flow": what `tutti predict --library nccl` prints unless asked for
 * another level.
 *
 * The measurement's hardware becomes an NCCL topology file, that a topology, and NCCL's plan for the choice is
 * simulated on it with the constants compiled in. NAN where there is no plan, or no such topology.
 */
#pragma once
#include "models/nccl_train.h"
#include "sim/nccl_flow.h"
#include "topologies/topology_private.h"

#include <math.h>
#include <string.h>

/* What all rows of a file share. */
typedef struct {
    TtNcclXml *node;
    TtTopology *topo; /* NULL: none could be made */
} TtFlowMachine;

static inline void
tt_flow_machine_free(gpointer data)
{
    TtFlowMachine *machine = data;

    tt_nccl_xml_free(machine->node);
    tt_topology_free(machine->topo);
    g_free(machine);
}

static TtFlowMachine *
tt_flow_machine_new(const TtReplay *replay)
{
    TtFlowMachine *machine = g_new0(TtFlowMachine, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *ini = NULL;
    guint n_nodes = 0;

    machine->node = tt_hardware_xml(&replay->hardware, &n_nodes, &error);
    if (machine->node)
        ini = tt_nccl_xml_to_ini(machine->node, &error);
    if (ini)
        machine->topo = tt_topology_parse(ini, strlen(ini), "hardware", n_nodes, NULL, &error);
    if (!machine->topo)
        g_printerr("bench_accuracy: %s: no topology: %s\n", replay->measured->origin,
                   error->message);
    return machine;
}

/* Files of a machine, each made when its first row is asked for. */
static inline gpointer
tt_begin_flow(const GPtrArray *training)
{
    (void)training;
    return g_hash_table_new_full(NULL, NULL, NULL, tt_flow_machine_free);
}

static inline void
tt_end_flow(gpointer machines)
{
    g_hash_table_unref(machines);
}

static inline double
tt_time_by_flow(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice,
                gpointer machines)
{
    TtFlowMachine *machine = g_hash_table_lookup(machines, replay);
    TtNcclCall call = { .op = tt_replay_op(replay, row), .choice = *choice, .type = TT_FLOAT32 };
    const TtMeasured *m = replay->measured;
    g_autoptr(GError) error = NULL;
    TtNcclPlace place;
    double us = NAN;

    if (!machine) {
        machine = tt_flow_machine_new(replay);
        g_hash_table_insert(machines, (gpointer)replay, machine);
    }
    if (!machine->topo)
        return NAN;
    if (m->type && !tt_type_parse(m->type, &call.type, NULL))
        call.type = replay->type_bytes == 1   ? TT_INT8
                    : replay->type_bytes == 2 ? TT_BFLOAT16
                                              : TT_FLOAT32;
    if (m->redop)
        tt_redop_parse(m->redop, &call.redop, NULL);
    place = (TtNcclPlace){ machine->topo,    &replay->comm,
                           &replay->machine, tt_nccl_costs_built_in()->value,
                           &tt_no_effects,   machine->node };
    if (!tt_nccl_flow_us(&place, &call, FALSE, &us, NULL, &error))
        return NAN;
    return us;
}
