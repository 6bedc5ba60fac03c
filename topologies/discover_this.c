/* discover_this - this machine as an .ini text, so that it can be overridden, shown and saved like
 * any other topology.
 *
 * A rank is a process on core (rank mod cores); messages cross the last-level cache that core hangs
 * on, and memory where there is more than one such cache:
 *
 *     process 0   process 1   process 2   process 3
 *           \      /                \      /
 *           cache 0                 cache 1           a last-level cache
 *              |                       |
 *           memory 0  ------------- memory 1          its NUMA domain
 *
 * hwloc knows the shape, not the speed: rates and latencies are assumptions for calibration to
 * refine.
 */
#include "topologies/topology_private.h"

#include <hwloc.h>

#define CACHE_RATE                                                                                 \
    "100 GB/s ; assumed: 32 B a cycle at 3 GHz between a core and its last-level cache"
#define CACHE_LATENCY  "50 ns ; assumed: half of a cache line's way from core to core"
#define MEMORY_RATE    "50 GB/s ; assumed: two channels of DDR4-3200"
#define MEMORY_LATENCY "50 ns ; assumed: a cache to its memory domain"
#define SOCKET_RATE    "20 GB/s ; assumed: one socket link"
#define SOCKET_LATENCY "60 ns ; assumed: one hop between memory domains"

typedef struct {
    hwloc_topology_t topology;
    hwloc_obj_type_t core_type; /* PU where hwloc sees no cores */
    GArray *cores;              /* of guint, hwloc's logical index: those this process may use */
} Machine;

static void
machine_clear(Machine *m)
{
    hwloc_topology_destroy(m->topology);
    g_array_unref(m->cores);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Machine, machine_clear)

static gboolean
load(Machine *m, GError **error)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0)
        goto failed;
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        goto failed;
    }
    m->topology = topology;
    m->cores = g_array_new(FALSE, FALSE, sizeof(guint));
    return TRUE;

failed:
    g_set_error_literal(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                        "--topo this: hwloc cannot read this machine's topology");
    return FALSE;
}

/* Cores with a processing unit this process is bound to (taskset, a container's cpuset). */
static void
find_cores(Machine *m)
{
    hwloc_cpuset_t bound = hwloc_bitmap_alloc();
    int n;

    if (hwloc_get_cpubind(m->topology, bound, HWLOC_CPUBIND_PROCESS) != 0 ||
        hwloc_bitmap_iszero(bound))
        hwloc_bitmap_fill(bound);
    m->core_type =
        hwloc_get_nbobjs_by_type(m->topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    n = hwloc_get_nbobjs_by_type(m->topology, m->core_type);
    for (guint i = 0; i < (guint)n; i++)
        if (hwloc_bitmap_intersects(hwloc_get_obj_by_type(m->topology, m->core_type, i)->cpuset,
                                    bound))
            g_array_append_val(m->cores, i);
    hwloc_bitmap_free(bound);
}

/* The largest cache above a core, or what is above it if it has none of its own kind. */
static hwloc_obj_t
last_cache(hwloc_obj_t core)
{
    hwloc_obj_t found = NULL;

    for (hwloc_obj_t up = core->parent; up; up = up->parent)
        if (hwloc_obj_type_is_dcache(up->type))
            found = up;
    /* Private caches share nothing; then the package is where cores meet. */
    if (!found || hwloc_bitmap_weight(found->cpuset) == hwloc_bitmap_weight(core->cpuset))
        for (hwloc_obj_t up = core->parent; up; up = up->parent)
            if (up->type == HWLOC_OBJ_PACKAGE || up->type == HWLOC_OBJ_MACHINE) {
                found = up;
                break;
            }
    return found;
}

/* Position of @thing among @things, appended if new. */
static guint
number_of(GPtrArray *things, gpointer thing)
{
    guint i;

    if (!g_ptr_array_find(things, thing, &i)) {
        i = things->len;
        g_ptr_array_add(things, thing);
    }
    return i;
}

static guint
memory_of(hwloc_topology_t topology, hwloc_obj_t cache, GPtrArray *memories)
{
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

    for (int i = 0; i < n; i++) {
        hwloc_obj_t memory = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, i);

        if (hwloc_bitmap_intersects(memory->cpuset, cache->cpuset))
            return number_of(memories, memory);
    }
    return number_of(memories, NULL);
}

static void
append_link(GString *text, const char *name, const char *from, const char *to, const char *shape,
            const char *rate, const char *latency)
{
    g_string_append_printf(text,
                           "\n[link %s]\nfrom = %s\nto = %s\n%s\nkind = memory\nbandwidth = %s\n"
                           "latency = %s\n",
                           name, from, to, shape, rate, latency);
}

static char *
to_text(const Machine *m, guint n_ranks)
{
    g_autoptr(GPtrArray) caches = g_ptr_array_new(), memories = g_ptr_array_new();
    g_autoptr(GString) to_cache = g_string_new("pairs =");
    g_autoptr(GString) to_memory = g_string_new("pairs =");
    g_autoptr(GString) text = g_string_new(NULL);
    guint n_cores = m->cores->len;

    for (guint r = 0; r < n_ranks; r++) {
        guint core = g_array_index(m->cores, guint, r % n_cores);
        hwloc_obj_t object = hwloc_get_obj_by_type(m->topology, m->core_type, core);

        g_string_append_printf(to_cache, " %u-%u", r, number_of(caches, last_cache(object)));
    }
    for (guint c = 0; c < caches->len; c++)
        g_string_append_printf(to_memory, " %u-%u", c,
                               memory_of(m->topology, caches->pdata[c], memories));

    g_string_append_printf(text,
                           "# This machine, as hwloc sees it\n[topology]\nname = this\n"
                           "description = this machine: %u ranks on %u cores\n\n[node]\n"
                           "processes = %u\ncores = %u\ncaches = %u\n",
                           n_ranks, n_cores, n_ranks, n_cores, caches->len);
    if (caches->len > 1)
        g_string_append_printf(text, "memories = %u\n", memories->len);
    append_link(text, "cache", "process", "cache", to_cache->str, CACHE_RATE, CACHE_LATENCY);
    if (caches->len > 1)
        append_link(text, "memory", "cache", "memory", to_memory->str, MEMORY_RATE, MEMORY_LATENCY);
    if (caches->len > 1 && memories->len > 1)
        append_link(text, "socket", "memory", "memory", "pattern = each-to-all", SOCKET_RATE,
                    SOCKET_LATENCY);
    return g_strdup(text->str);
}

char *
tt_discover_this(guint n_ranks, GError **error)
{
    Machine loaded;

    if (!load(&loaded, error))
        return NULL;

    g_auto(Machine) m = loaded;

    find_cores(&m);
    g_assert(m.cores->len > 0); /* we run on one */
    return to_text(&m, n_ranks ? n_ranks : MIN(m.cores->len, TT_MAX_RANKS_PER_NODE));
}
