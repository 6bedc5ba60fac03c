#include "cli/lab.h"
#include "topologies/topology_private.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define MAX_HOSTS 64
#define MAX_NICS  8
#define MAX_BITS  10e9
#define MIN_BITS  1e6
/* An Ethernet frame: 1500 bytes and their header; what TCP over IPv4 with time stamps leaves of it.
 */
#define FRAME_BYTES   1514
#define PAYLOAD_BYTES 1448

/* TCP keeps this much of gso_max_size for headers it might need (MAX_TCP_HEADER, 320 at most). */
#define SLACK_BYTES 320

/* A packet handed over in one piece, to be cut into frames later (GSO), passes a token bucket at
 * once, so the bucket has to hold it: that much is free after every pause, and makes small messages
 * faster than the link. Smaller pieces cost more CPU. What a link carries in this time keeps the CPU's
 * work per link alike at every rate; a third of it is more than two cores can do for eight busy links
 * (docs/labs.md has the figures). */
#define PIECE_S 0.0006

/* Beside a piece a bucket must hold what the link carries while its timer is late, or that is lost.
 * Timers are mostly late by less than 0.1 ms, but the few that are not make everybody wait: with 0.1 ms
 * a ring took 2 to 5 % longer than the link needs, with 2 ms 1 %. */
#define LATE_S 0.002

#define WINDOW_S 0.01

/* What one core forwards the whole way, from sender to receiver (docs/labs.md). */
#define BITS_PER_CORE   4e9
#define PIECES_PER_CORE 16e3 /* a second */

void
tt_lab_error(GError **error, int code, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error_literal(error, TT_CLI_ERROR, code, text);
}

void
tt_lab_free(TtLab *lab)
{
    if (!lab)
        return;
    g_free(lab->name);
    g_free(lab->topology);
    g_free(lab->nic_of_place);
    g_free(lab->nic_bits_per_s);
    g_free(lab->frames_per_piece);
    g_clear_pointer(&lab->bridges, g_ptr_array_unref);
    g_free(lab->bridge_of);
    g_clear_pointer(&lab->trunks, g_array_unref);
    g_clear_pointer(&lab->ways, g_array_unref);
    g_clear_pointer(&lab->notes, g_ptr_array_unref);
    g_free(lab->secret);
    g_strfreev(lab->namespaces);
    tt_lab_unlock(lab);
    g_free(lab);
}

guint
tt_lab_n_ranks(const TtLab *lab)
{
    return lab->n_hosts * lab->ranks_per_host;
}

char *
tt_lab_namespace(const TtLab *lab, guint host)
{
    return host < lab->n_hosts ? g_strdup_printf("ttlab-%s-h%u", lab->name, host)
                               : g_strdup_printf("ttlab-%s-switches", lab->name);
}

char *
tt_lab_hostname(const TtLab *lab, guint host)
{
    return g_strdup_printf("%s-h%u", lab->name, host);
}

/* A subnet for each NIC number. */
char *
tt_lab_ipv4(guint host, guint nic)
{
    return g_strdup_printf("10.%u.0.%u", nic, host + 1);
}

char *
tt_lab_ipv6(guint host, guint nic)
{
    return g_strdup_printf("fd74:7469:%x::%x", nic, host + 1);
}

guint
tt_lab_burst_bytes(const TtLab *lab, guint nic, double bits_per_s)
{
    return lab->frames_per_piece[nic] * FRAME_BYTES + (guint)(bits_per_s / 8 * LATE_S);
}

/* Enough for any way through the lab; much more would only wait in queues, for so long (0.1 s and more
 * where four share a link of 100 Mbit/s) that TCP takes it for lost. */
guint
tt_lab_window_bytes(const TtLab *lab)
{
    double fastest = 0;

    for (guint nic = 0; nic < lab->n_nics; nic++)
        fastest = MAX(fastest, lab->nic_bits_per_s[nic]);
    return (guint)CLAMP(fastest / 8 * WINDOW_S, 1 << 17, 1 << 20);
}

guint
tt_lab_gso_bytes(const TtLab *lab, guint nic)
{
    return lab->frames_per_piece[nic] * PAYLOAD_BYTES + SLACK_BYTES;
}

/* --- can it be? -------------------------------------------------------------------------------- */

static gboolean cannot(const TtTopology *topo, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static gboolean
cannot(const TtTopology *topo, GError **error, const char *format, ...)
{
    g_autofree char *why = NULL;
    va_list arguments;

    va_start(arguments, format);
    why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    tt_lab_error(error, TT_CLI_ERROR_USAGE, "%s cannot be built as a lab: %s", topo->name, why);
    return FALSE;
}

static gboolean
is_fabric(const TtTopology *topo, const char *name)
{
    return strcmp(topo->network.fabric->name, name) == 0;
}

static gboolean
check_node(const TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;

    if (t->rank_kind != TT_DEVICE_HOST)
        return cannot(topo, error, "its ranks are on %s ([node] must have hosts)",
                      t->rank_kind == TT_DEVICE_GPU ? "GPUs" : "processes of one machine");
    if (t->count[TT_DEVICE_NVSWITCH])
        return cannot(topo, error, "it has NVSwitches");
    if (topo->n_nodes < 2 || !topo->network.fabric)
        return cannot(topo, error, "it is one node (FILE.ini:8 asks for eight)");
    if (topo->n_nodes > MAX_HOSTS)
        return cannot(topo, error, "%u nodes are too many (%d at most)", topo->n_nodes, MAX_HOSTS);
    if (t->n_nics > MAX_NICS)
        return cannot(topo, error, "%u NICs per node are too many (%d at most)", t->n_nics,
                      MAX_NICS);
    return TRUE;
}

/* Linux sends to a subnet through the NIC that is in it, whatever the sender's own address. */
static gboolean
check_fabric(const TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;
    gboolean rail = is_fabric(topo, "rail");

    if (!rail && !is_fabric(topo, "single-switch") && !is_fabric(topo, "fat-tree"))
        return cannot(topo, error, "fabric %s (single-switch, fat-tree or rail)",
                      topo->network.fabric->name);
    if (!rail && t->n_nics > 1)
        return cannot(topo, error, "%u NICs per node need fabric rail, not %s", t->n_nics,
                      topo->network.fabric->name);
    if (t->n_own != 1)
        return cannot(topo, error,
                      "a rank has %u NICs of its own ([node] needs as many hosts as nics)",
                      t->n_own);
    if (rail && topo->n_nodes > topo->network.nodes_per_leaf)
        return cannot(topo, error, "rails of more than one leaf");
    if (rail && memchr(t->on_rail, FALSE, t->n_ranks * t->n_nics))
        return cannot(topo, error,
                      "a rank does not reach every rail's NIC inside its node (the link between "
                      "hosts and NICs needs pattern = each-to-all)");
    return TRUE;
}

static gboolean
check_rate(const TtTopology *topo, double bits_per_s, const char *what, GError **error)
{
    if (bits_per_s > MAX_BITS * 1.001 || bits_per_s < MIN_BITS)
        return cannot(topo, error,
                      "%s of %g Gbit/s (0.001 to 10; --set \"nic.bandwidth=200 Mbit/s\")", what,
                      bits_per_s / 1e9);
    return TRUE;
}

/* --- what is built ----------------------------------------------------------------------------- */

/* From payload, which topologies count in, to what the cable carries. */
static double
raw_bits(const TtTopology *topo, double payload_bytes_per_s)
{
    const GArray *bundles = topo->node->bundles;
    const TtBundle *cable = &g_array_index(bundles, TtBundle, bundles->len - 1);

    return round(payload_bytes_per_s * (cable->bytes_per_s / cable->capacity_bytes_per_s) * 8);
}

static gboolean
plan_cables(TtLab *lab, const TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);

    lab->efficiency = b->capacity_bytes_per_s / b->bytes_per_s;
    lab->nic_bits_per_s = g_new0(double, t->n_nics);
    lab->frames_per_piece = g_new0(guint, t->n_nics);
    for (guint n = 0; n < t->n_nics; n++) {
        guint cable = t->wires->len - 2 * (t->n_nics - n);

        lab->nic_bits_per_s[n] =
            raw_bits(topo, g_array_index(t->wires, TtWire, cable).capacity_bytes_per_s);
        if (!check_rate(topo, lab->nic_bits_per_s[n], "a NIC", error))
            return FALSE;
        lab->frames_per_piece[n] =
            (guint)CLAMP(round(lab->nic_bits_per_s[n] / 8 * PIECE_S / PAYLOAD_BYTES), 2, 44);
    }
    return TRUE;
}

static void
plan_bridges(TtLab *lab, const TtTopology *topo)
{
    const TtNetwork *n = &topo->network;
    gboolean rail = is_fabric(topo, "rail"), tree = is_fabric(topo, "fat-tree");
    guint n_leaves = rail ? lab->n_nics : tree ? n->n_leaves : 1;

    lab->bridges = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < n_leaves; i++)
        g_ptr_array_add(lab->bridges, rail   ? g_strdup_printf("rail%u", i)
                                      : tree ? g_strdup_printf("leaf%u", i)
                                             : g_strdup("switch"));
    lab->bridge_of = g_new0(guint, lab->n_hosts * lab->n_nics);
    for (guint h = 0; h < lab->n_hosts; h++)
        for (guint nic = 0; nic < lab->n_nics; nic++)
            lab->bridge_of[h * lab->n_nics + nic] = rail ? nic : tree ? h / n->nodes_per_leaf : 0;
}

/* Spines, the trunks to them, and which trunk leads to which NIC: the topology's own static routes. */
static gboolean
plan_spines(TtLab *lab, const TtTopology *topo, GError **error)
{
    const TtNetwork *n = &topo->network;
    guint n_leaves = lab->bridges->len;
    gboolean spines = is_fabric(topo, "fat-tree") && n_leaves > 1;

    lab->trunks = g_array_new(FALSE, FALSE, sizeof(TtLabTrunk));
    lab->ways = g_array_new(FALSE, FALSE, sizeof(TtLabWay));
    if (!spines)
        return TRUE;
    for (guint s = 0; s < n->n_spines; s++) {
        g_ptr_array_add(lab->bridges, g_strdup_printf("spine%u", s));
        for (guint leaf = 0; leaf < n_leaves; leaf++) {
            TtLabTrunk trunk = { leaf, n_leaves + s, raw_bits(topo, n->spine_bytes_per_s) };

            if (!check_rate(topo, trunk.bits_per_s, "a link to a spine", error))
                return FALSE;
            g_array_append_val(lab->trunks, trunk);
        }
    }
    for (guint h = 0; h < lab->n_hosts; h++)
        for (guint leaf = 0; leaf < n_leaves; leaf++) {
            guint own = lab->bridge_of[h * lab->n_nics], first_other = own == 0 ? 1 : 0;
            TtPort from = { .node = leaf * n->nodes_per_leaf }, to = { .node = h };
            guint32 links[TT_MAX_FABRIC_LINKS];

            if (leaf == own || n->fabric->route(n, from, to, links) != 2)
                continue;

            guint spine = n_leaves + links[0] / 2 % n->n_spines;
            TtLabWay up = { leaf, h, 0, spine }, down = { spine, h, 0, own };

            g_array_append_val(lab->ways, up);
            if (leaf == first_other)
                g_array_append_val(lab->ways, down);
        }
    return TRUE;
}

static void
add_notes(TtLab *lab, const TtTopology *topo)
{
    const TtTemplate *t = topo->node;
    double bits = 0, pieces = 0, slowest_inside = INFINITY;
    guint n_cores = g_get_num_processors();

    for (guint nic = 0; nic < lab->n_nics; nic++) {
        bits += lab->n_hosts * lab->nic_bits_per_s[nic];
        pieces += lab->n_hosts * lab->nic_bits_per_s[nic] / 8 /
                  (lab->frames_per_piece[nic] * FRAME_BYTES);
    }
    if (bits > n_cores * BITS_PER_CORE * 1.001 || pieces > n_cores * PIECES_PER_CORE)
        g_ptr_array_add(
            lab->notes,
            g_strdup_printf("all NICs together send %.3g Gbit/s in %.0f thousand pieces a second; "
                            "this machine's %u cores forward about %g Gbit/s in %g thousand: "
                            "expect less when all are busy",
                            bits / 1e9, pieces / 1e3, n_cores, n_cores * BITS_PER_CORE / 1e9,
                            n_cores * PIECES_PER_CORE / 1e3));
    for (guint w = 0; w < t->wires->len - 2 * t->n_nics; w++)
        slowest_inside =
            MIN(slowest_inside, g_array_index(t->wires, TtWire, w).capacity_bytes_per_s);
    for (guint nic = 0; nic < lab->n_nics; nic++)
        if (slowest_inside * 8 < lab->nic_bits_per_s[nic] * lab->efficiency) {
            g_ptr_array_add(lab->notes, g_strdup("links inside a node are not shaped, and one is "
                                                 "slower than the NICs"));
            break;
        }
}

TtLab *
tt_lab_plan(const TtTopology *topo, const char *name, const char *topology, GError **error)
{
    const TtTemplate *t = topo->node;
    g_autoptr(TtLab) lab = g_new0(TtLab, 1);

    if (!check_node(topo, error) || !check_fabric(topo, error))
        return NULL;
    lab->name = g_strdup(name);
    lab->topology = g_strdup(topology);
    lab->n_hosts = topo->n_nodes;
    lab->ranks_per_host = t->n_ranks;
    lab->n_nics = t->n_nics;
    lab->nic_of_place = g_new0(guint, t->n_ranks);
    for (guint r = 0; r < t->n_ranks; r++)
        lab->nic_of_place[r] = t->own[r * t->n_own];
    lab->notes = g_ptr_array_new_with_free_func(g_free);
    if (!plan_cables(lab, topo, error))
        return NULL;
    plan_bridges(lab, topo);
    if (!plan_spines(lab, topo, error))
        return NULL;
    add_notes(lab, topo);
    return g_steal_pointer(&lab);
}
