/* Cards, ports and addresses: what there is, which is taken, and what to do if there is none. */
#include "exec/verbs_device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define OR(value, otherwise) ((value) ? (value) : (otherwise))

void
tt_verbs_fail(const TtVerbs *self, GError **error, int code, const char *what)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "%s: %s: %s", self->device_name, what,
                tt_verbs_errno_words(code));
}

/* --- ports -------------------------------------------------------------------------------------- */

static gboolean
is_usable(const struct ibv_port_attr *port)
{
    return port->state == IBV_PORT_ACTIVE;
}

/* Takes the port asked for, or the first active one; with none, adds what each is to @seen. */
static gboolean
choose_port(TtVerbs *self, guint wanted, GString *seen)
{
    for (guint number = 1; number <= self->limits.phys_port_cnt; number++) {
        if (wanted && number != wanted)
            continue;
        if (ibv_query_port(self->context, number, &self->port) == 0 && is_usable(&self->port)) {
            self->info.port = number;
            return TRUE;
        }
        g_string_append_printf(seen, "%s%s port %u is %s", seen->len ? ", " : "", self->device_name,
                               number, ibv_port_state_str(self->port.state));
    }
    return FALSE;
}

/* --- addresses ---------------------------------------------------------------------------------- */

static gboolean
is_ipv4(const union ibv_gid *gid)
{
    static const guint8 mapped[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

static const char *
type_name(guint32 type)
{
    return type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
           : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                          : "IB";
}

/* The better of two addresses has the larger number; 0 is none. RoCE v2 is routed and, with an IPv4
 * address, the one that networks are set up for; v1 stays in one Ethernet segment. */
static guint
rate_gid(const struct ibv_gid_entry *entry)
{
    static const union ibv_gid none;

    if (memcmp(&entry->gid, &none, sizeof none) == 0)
        return 0;
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 1;
    return is_ipv4(&entry->gid) ? 3 : 2;
}

static char *
describe_gid(const struct ibv_gid_entry *entry)
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (is_ipv4(&entry->gid))
        inet_ntop(AF_INET, entry->gid.raw + 12, text, sizeof text);
    else
        inet_ntop(AF_INET6, entry->gid.raw, text, sizeof text);
    return g_strdup_printf("%s (%s)", text, type_name(entry->gid_type));
}

/* "0 fe80::1 (RoCE v1), 1 10.77.0.1 (RoCE v2)": the entries in use. */
static char *
list_gids(const TtVerbs *self)
{
    GString *list = g_string_new(NULL);

    for (int i = 0; i < self->port.gid_tbl_len; i++) {
        struct ibv_gid_entry entry = { 0 };

        if (ibv_query_gid_ex(self->context, self->info.port, i, &entry, 0) == 0 &&
            rate_gid(&entry)) {
            g_autofree char *text = describe_gid(&entry);

            g_string_append_printf(list, "%s%d %s", list->len ? ", " : "", i, text);
        }
    }
    return g_string_free(list, FALSE);
}

static gboolean
choose_gid(TtVerbs *self, int wanted, GError **error)
{
    g_autofree char *list = NULL;
    struct ibv_gid_entry best = { 0 };
    int last = self->port.gid_tbl_len - 1, chosen = -1;
    guint rating = 0;

    for (int i = MAX(wanted, 0); i <= (wanted >= 0 ? MIN(wanted, last) : last); i++) {
        struct ibv_gid_entry entry = { 0 };

        if (ibv_query_gid_ex(self->context, self->info.port, i, &entry, 0) ||
            rate_gid(&entry) <= rating)
            continue;
        best = entry;
        rating = rate_gid(&entry);
        chosen = i;
    }
    if (chosen >= 0) {
        self->gid = best.gid;
        self->info.gid_index = chosen;
        self->address = describe_gid(&best);
        return TRUE;
    }
    list = list_gids(self);
    if (wanted >= 0)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "%s: port %u has no GID index %d: it has %s", self->device_name,
                    self->info.port, wanted, *list ? list : "none");
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: port %u has no GID: give its network interface an IP address",
                    self->device_name, self->info.port);
    return FALSE;
}

/* InfiniBand is addressed by LID, which the subnet manager gave out; a GID only if asked for. */
static gboolean
choose_address(TtVerbs *self, int wanted, GError **error)
{
    if (self->port.link_layer == IBV_LINK_LAYER_ETHERNET || wanted >= 0 ||
        (self->port.flags & IBV_QPF_GRH_REQUIRED))
        return choose_gid(self, wanted, error);
    (void)ibv_query_gid(self->context, self->info.port, 0, &self->gid);
    self->info.gid_index = -1;
    self->address = g_strdup_printf("LID %u", self->port.lid);
    return TRUE;
}

/* --- the card ----------------------------------------------------------------------------------- */

static void
close_context(TtVerbs *self)
{
    if (self->context)
        ibv_close_device(self->context);
    self->context = NULL;
    g_clear_pointer(&self->device_name, g_free);
}

/* Opens @device far enough to know its ports. 0, or the errno. */
static int
open_context(TtVerbs *self, struct ibv_device *device)
{
    int code;

    self->device_name = g_strdup(ibv_get_device_name(device));
    self->info.device = self->device_name;
    self->context = ibv_open_device(device);
    if (!self->context)
        return OR(errno, EIO);
    code = ibv_query_device(self->context, &self->limits);
    return code;
}

static char *
list_names(struct ibv_device **devices)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; devices[i]; i++)
        g_string_append_printf(names, "%s%s", i ? ", " : "", ibv_get_device_name(devices[i]));
    return g_string_free(names, FALSE);
}

/* The named card: everything about it that does not fit is the error. */
static gboolean
open_named(TtVerbs *self, struct ibv_device **devices, const TtVerbsOptions *options,
           GError **error)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autofree char *names = NULL;
    guint i = 0;
    int code;

    while (devices[i] && strcmp(ibv_get_device_name(devices[i]), options->device) != 0)
        i++;
    if (!devices[i]) {
        names = list_names(devices);
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "no RDMA device \"%s\": this machine has %s", options->device, names);
        return FALSE;
    }
    code = open_context(self, devices[i]);
    if (code) {
        tt_verbs_fail(self, error, code, "cannot open the device");
        return FALSE;
    }
    if (options->port > self->limits.phys_port_cnt) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "%s: no port %u: ports are 1 to %u",
                    self->device_name, options->port, self->limits.phys_port_cnt);
        return FALSE;
    }
    if (devices[i]->transport_type != IBV_TRANSPORT_IB) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: neither InfiniBand nor RoCE (iWARP and others are not supported)",
                    self->device_name);
        return FALSE;
    }
    if (!choose_port(self, options->port, seen)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "no active RDMA port: %s (is the "
                    "cable in, the interface up: ip link set ... up?)",
                    seen->str);
        return FALSE;
    }
    return TRUE;
}

/* The first card with an active port. */
static gboolean
open_any(TtVerbs *self, struct ibv_device **devices, const TtVerbsOptions *options, GError **error)
{
    g_autoptr(GString) seen = g_string_new(NULL);

    for (guint i = 0; devices[i]; i++) {
        int code = open_context(self, devices[i]);

        if (code)
            g_string_append_printf(seen, "%s%s: %s", seen->len ? ", " : "", self->device_name,
                                   tt_verbs_errno_words(code));
        else if (devices[i]->transport_type != IBV_TRANSPORT_IB)
            g_string_append_printf(seen, "%s%s is neither InfiniBand nor RoCE",
                                   seen->len ? ", " : "", self->device_name);
        else if (choose_port(self, options->port, seen))
            return TRUE;
        close_context(self);
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "no active RDMA port: %s", seen->str);
    return FALSE;
}

static gboolean
open_device(TtVerbs *self, const TtVerbsOptions *options, GError **error)
{
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);
    gboolean ok = FALSE;

    if (!devices || n == 0)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "no RDMA devices here: a card's driver makes one, or software RoCE (modprobe "
                    "rdma_rxe; rdma link add rxe0 type rxe netdev eth0) with ibverbs-providers");
    else
        ok = options->device ? open_named(self, devices, options, error)
                             : open_any(self, devices, options, error);
    if (devices)
        ibv_free_device_list(devices);
    return ok;
}

/* Pages of registered memory may be brought in by the card for what we do: writes over RC. */
static gboolean
can_page(struct ibv_context *context)
{
    struct ibv_device_attr_ex more = { 0 };

    return ibv_query_device_ex(context, NULL, &more) == 0 &&
           (more.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
           (more.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE);
}

/* The completion queue has room for all that can be in flight, so it never overflows. */
static gboolean
make_completions(TtVerbs *self, const TtVerbsOptions *options, GError **error)
{
    guint n_queues = OR(options->n_queues, 16);
    guint64 entries;

    self->info.send_depth = MIN(OR(options->send_depth, 128), (guint)self->limits.max_qp_wr);
    self->info.receive_depth = MIN(OR(options->receive_depth, 256), (guint)self->limits.max_qp_wr);
    entries = (guint64)n_queues * (self->info.send_depth + self->info.receive_depth);
    if (entries > (guint64)self->limits.max_cqe || n_queues > (guint)self->limits.max_qp) {
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
            "%s: %u queues with %u writes and %u events in flight: the card takes at most %d "
            "queues and %d in flight over all",
            self->device_name, n_queues, self->info.send_depth, self->info.receive_depth,
            self->limits.max_qp, self->limits.max_cqe);
        return FALSE;
    }
    self->channel = ibv_create_comp_channel(self->context);
    if (self->channel)
        self->completions = ibv_create_cq(self->context, (int)entries, NULL, self->channel, 0);
    if (!self->completions) {
        tt_verbs_fail(self, error, errno, "cannot make a completion queue");
        return FALSE;
    }
    return TRUE;
}

/* Events are looked for, never waited for: descriptors must not block. */
static gboolean
stop_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

TtVerbs *
tt_verbs_open(const TtVerbsOptions *options, GError **error)
{
    g_autoptr(TtVerbs) self = g_new0(TtVerbs, 1);

    self->queues = g_ptr_array_new();
    self->memories = g_ptr_array_new();
    if (!open_device(self, options, error) || !choose_address(self, options->gid_index, error))
        return NULL;
    self->info.address = self->address;
    self->info.mtu_bytes = 128u << self->port.active_mtu;
    self->info.inline_bytes = OR(options->inline_bytes, 64);
    self->info.on_demand = can_page(self->context);
    self->service_level = options->service_level;
    self->traffic_class = options->traffic_class;

    self->domain = ibv_alloc_pd(self->context);
    if (!self->domain) {
        tt_verbs_fail(self, error, errno, "cannot make a protection domain");
        return NULL;
    }
    if (!make_completions(self, options, error))
        return NULL;
    if (!stop_blocking(self->channel->fd) || !stop_blocking(self->context->async_fd)) {
        tt_verbs_fail(self, error, errno, "cannot set up the event descriptors");
        return NULL;
    }
    return g_steal_pointer(&self);
}

void
tt_verbs_close(TtVerbs *self)
{
    if (!self)
        return;
    for (guint i = 0; i < self->queues->len; i++)
        tt_verbs_queue_free(self->queues->pdata[i]);
    while (self->memories->len)
        tt_verbs_unregister(self->memories->pdata[self->memories->len - 1]);
    if (self->completions)
        ibv_destroy_cq(self->completions);
    if (self->channel)
        ibv_destroy_comp_channel(self->channel);
    if (self->domain)
        ibv_dealloc_pd(self->domain);
    close_context(self);
    g_ptr_array_free(self->queues, TRUE);
    g_ptr_array_free(self->memories, TRUE);
    g_free(self->address);
    g_free(self);
}

const TtVerbsInfo *
tt_verbs_info(const TtVerbs *self)
{
    return &self->info;
}
