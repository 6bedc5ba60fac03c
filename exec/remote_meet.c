/* remote_meet.c - before the first job: who is where, who shares memory with whom, and all addresses.
 */
#include "exec/remote_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Gathers wait longer than any process waits for its own ranks, which then tells all. */
#define PATIENCE_S 3

TtRemote *
tt_remote_open(const TtTeamOptions *options, GError **error)
{
    TtControlOptions control = { .secret = options->secret,
                                 .interface = options->interface,
                                 .timeout_s = options->timeout_s };
    TtRemote *self = g_new0(TtRemote, 1);

    self->arena_fd = -1;
    self->control = tt_control_open(options->launch, &control, error);
    if (!self->control) {
        tt_remote_close(self);
        return NULL;
    }
    self->process = tt_control_process(self->control);
    self->n_processes = tt_control_n_processes(self->control);
    self->heard_us = g_new0(gint64, self->n_processes);
    self->left = g_new0(gboolean, self->n_processes);
    self->pids = g_array_new(FALSE, TRUE, sizeof(gint32));
    return self;
}

void
tt_remote_close(TtRemote *self)
{
    if (!self)
        return;
    if (self->control) {
        gboolean to_all = tt_remote_is_root(self);

        for (guint p = to_all ? 1 : 0; p < (to_all ? self->n_processes : 1); p++)
            tt_control_send(self->control, p, TT_REMOTE_LEAVE, NULL, 0);
        tt_control_close(self->control);
    }
    if (self->arena_fd >= 0)
        close(self->arena_fd);
    g_clear_pointer(&self->pids, g_array_unref);
    g_clear_pointer(&self->told, g_byte_array_unref);
    g_clear_pointer(&self->job, g_bytes_unref);
    g_free(self->cards);
    g_free(self->results);
    g_free(self->heard_us);
    g_free(self->left);
    g_free(self);
}

guint
tt_remote_n_strangers(TtRemote *self)
{
    return tt_control_n_strangers(self->control);
}

void
tt_remote_forget(TtRemote *self)
{
    tt_control_forget(self->control);
}

gboolean
tt_remote_is_root(const TtRemote *self)
{
    return self->process == 0;
}

void
tt_remote_ranks(const TtRemote *self, guint *first_rank, guint *n_local, guint *n_ranks)
{
    guint last_first, last_n;

    tt_control_ranks(self->control, self->process, first_rank, n_local);
    tt_control_ranks(self->control, self->n_processes - 1, &last_first, &last_n);
    *n_ranks = last_first + last_n;
}

int
tt_remote_fd(const TtRemote *self)
{
    return tt_control_fd(self->control);
}

const char *
tt_remote_host_name(const TtRemote *self, guint rank)
{
    return self->cards[tt_control_process_of(self->control, rank)].host_name;
}

GPid
tt_remote_pid(const TtRemote *self, guint rank)
{
    return rank < self->pids->len ? g_array_index(self->pids, gint32, rank) : 0;
}

/* --- who is where -------------------------------------------------------------------------------- */

/* Tells kernels apart; empty if there is no such file. */
static void
read_boot_id(char *text, gsize bytes)
{
    g_autofree char *all = NULL;

    if (g_file_get_contents("/proc/sys/kernel/random/boot_id", &all, NULL, NULL))
        g_strlcpy(text, g_strchomp(all), bytes);
}

static gboolean
write_card(TtRemote *self, TtRemoteCard *card, const char *same, GError **error)
{
    g_autofree char *host_id = tt_control_host_id();

    memset(card, 0, sizeof *card);
    g_strlcpy(card->host_id, host_id, sizeof card->host_id);
    g_strlcpy(card->host_name, g_get_host_name(), sizeof card->host_name);
    read_boot_id(card->boot_id, sizeof card->boot_id);
    g_strlcpy(card->same, same, sizeof card->same);
    card->pid = getpid();
    card->arena_bytes = self->region->arena_bytes;
    memcpy(card->token, self->region->wire.token, sizeof card->token);
    /* No name anywhere: gone with its last user. */
    self->arena_fd = memfd_create("tutti", MFD_CLOEXEC);
    card->arena_fd = self->arena_fd;
    if (self->arena_fd >= 0 && ftruncate(self->arena_fd, (off_t)card->arena_bytes) == 0)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "cannot make memory to share: %s",
                g_strerror(errno));
    return FALSE;
}

static gboolean
read_cards(TtRemote *self, GPtrArray *blobs, GError **error)
{
    self->cards = g_new0(TtRemoteCard, self->n_processes);
    for (guint p = 0; p < self->n_processes; p++) {
        gsize bytes;
        gconstpointer data = g_bytes_get_data(g_ptr_array_index(blobs, p), &bytes);

        if (bytes != sizeof *self->cards) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                        "%s is another build of this program", tt_control_name(self->control, p));
            return FALSE;
        }
        memcpy(&self->cards[p], data, bytes);
    }
    for (guint p = 1; p < self->n_processes; p++) {
        if (strcmp(self->cards[0].same, self->cards[p].same) == 0)
            continue;
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH, "rank 0 was told %s, %s %s",
                    self->cards[0].same, tt_control_name(self->control, p), self->cards[p].same);
        return FALSE;
    }
    return TRUE;
}

static gboolean
same_machine(const TtRemote *self, guint p, guint q)
{
    return strcmp(self->cards[p].host_id, self->cards[q].host_id) == 0;
}

/* Machines are numbered by their first process, which gives the memory. Cores are shared
 * by all that one kernel runs, also where namespaces make several machines of it. Returns that of this machine. */
static guint
place_ranks(TtRemote *self)
{
    TtRegion *region = self->region;
    guint leader = 0;

    region->n_on_host = region->host_rank = 0;
    for (guint p = 0; p < self->n_processes; p++) {
        guint first, n, host = 0;

        tt_control_ranks(self->control, p, &first, &n);
        while (!same_machine(self, host, p))
            host++;
        for (guint r = first; r < first + n; r++)
            region->ranks[r].host = host;
        if (same_machine(self, p, self->process))
            leader = host;
        if (strcmp(self->cards[p].boot_id, self->cards[self->process].boot_id) != 0)
            continue;
        region->n_on_host += n;
        region->host_rank += p < self->process ? n : 0;
    }
    return leader;
}

/* --- memory of one machine ----------------------------------------------------------------------- */

static gboolean
map_arena(TtRemote *self, guint leader, GError **error)
{
    const TtRemoteCard *card = &self->cards[leader];
    gboolean shares = !self->region->transports[TT_INSIDE];
    gpointer memory;

    if (shares && leader != self->process) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd/%d", card->pid, card->arena_fd);
        int fd = open(path, O_RDWR | O_CLOEXEC);

        if (fd < 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                        "cannot share memory with %s on this machine: %s (--transport tcp does "
                        "without)",
                        tt_control_name(self->control, leader), g_strerror(errno));
            return FALSE;
        }
        close(self->arena_fd);
        self->arena_fd = fd;
    }
    memory = mmap(NULL, card->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                  self->arena_fd, 0);
    if (memory == MAP_FAILED) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "cannot map %" G_GUINT64_FORMAT " MiB of shared memory: %s (see ulimit -v)",
                    card->arena_bytes >> 20, g_strerror(errno));
        return FALSE;
    }
    self->region->host_arena = memory;
    self->region->host_arena_bytes = card->arena_bytes;
    return TRUE;
}

/* n_ranks if all are on one machine. */
static guint
find_elsewhere(const TtRegion *region)
{
    guint r = 1;

    while (r < region->n_ranks && region->ranks[r].host == region->ranks[0].host)
        r++;
    return MIN(r, region->n_ranks);
}

static gboolean
check_reach(const TtRemote *self, guint elsewhere, GError **error)
{
    const char *name = self->region->is_gpu ? "cuda" : "shm";

    if (elsewhere == self->region->n_ranks || self->region->transports[TT_ACROSS])
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "transport %s reaches one machine only, but rank 0 is on %s and rank %u on %s "
                "(use %s,tcp or %s,verbs)",
                name, tt_remote_host_name(self, 0), elsewhere, tt_remote_host_name(self, elsewhere),
                name, name);
    return FALSE;
}

gboolean
tt_remote_settle(TtRemote *self, TtWatch *watch, const char *same, GError **error)
{
    TtRemoteCard card;
    g_autoptr(GBytes) mine = NULL;
    g_autoptr(GPtrArray) blobs = NULL;
    guint leader, elsewhere;

    self->watch = watch;
    self->region = watch->region;
    if (!write_card(self, &card, same, error))
        return FALSE;
    mine = g_bytes_new(&card, sizeof card);
    blobs = tt_control_gather(self->control, mine, watch->timeout_s, error);
    if (!blobs || !read_cards(self, blobs, error))
        return FALSE;
    memcpy(self->region->wire.token, self->cards[0].token, sizeof self->region->wire.token);
    leader = place_ranks(self);
    elsewhere = find_elsewhere(self->region);
    if (!check_reach(self, elsewhere, error) || !map_arena(self, leader, error))
        return FALSE;
    if (!self->region->wire.interface && elsewhere == self->region->n_ranks)
        self->region->wire.interface = "lo";
    return TRUE;
}

/* --- addresses ----------------------------------------------------------------------------------- */

/* What every process tells: what went wrong with its ranks; their processes and addresses. */
static GBytes *
pack_addresses(const TtRemote *self, const GError *mine)
{
    const TtRegion *region = self->region;
    TtTrouble trouble = { .code = mine ? (guint32)mine->code : 0 };
    GByteArray *bytes = g_byte_array_new();

    g_strlcpy(trouble.text, mine ? mine->message : "", sizeof trouble.text);
    g_byte_array_append(bytes, (const guint8 *)&trouble, sizeof trouble);
    for (guint r = region->first_rank; r < region->first_rank + region->n_local; r++) {
        gint32 pid = self->watch->pids ? self->watch->pids[r] : getpid();

        g_byte_array_append(bytes, (const guint8 *)&pid, sizeof pid);
        g_byte_array_append(bytes, (const guint8 *)region->ranks[r].address,
                            sizeof region->ranks[r].address);
    }
    return g_byte_array_free_to_bytes(bytes);
}

static gboolean
unpack_addresses(TtRemote *self, guint process, GBytes *blob, GError **error)
{
    gsize bytes, one = sizeof(gint32) + sizeof self->region->ranks[0].address;
    const guint8 *data = g_bytes_get_data(blob, &bytes);
    guint first, n;
    TtTrouble trouble;

    tt_control_ranks(self->control, process, &first, &n);
    if (bytes != sizeof trouble + n * one) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                    "%s is another build of this program", tt_control_name(self->control, process));
        return FALSE;
    }
    memcpy(&trouble, data, sizeof trouble);
    if (trouble.text[0] != '\0') {
        trouble.text[sizeof trouble.text - 1] = '\0';
        g_set_error_literal(error, TT_EXEC_ERROR, (gint)trouble.code, trouble.text);
        return FALSE;
    }
    data += sizeof trouble;
    for (guint r = first; r < first + n; r++, data += one) {
        memcpy(&g_array_index(self->pids, gint32, r), data, sizeof(gint32));
        memcpy(self->region->ranks[r].address, data + sizeof(gint32),
               sizeof self->region->ranks[r].address);
        atomic_store_explicit(&self->region->ranks[r].up, 1, memory_order_release);
    }
    return TRUE;
}

gboolean
tt_remote_share_addresses(TtRemote *self, const GError *mine, GError **error)
{
    g_autoptr(GBytes) packed = pack_addresses(self, mine);
    g_autoptr(GPtrArray) blobs =
        tt_control_gather(self->control, packed, self->watch->timeout_s + PATIENCE_S, error);

    g_array_set_size(self->pids, self->region->n_ranks);
    for (guint p = 0; blobs && p < self->n_processes; p++)
        if (!unpack_addresses(self, p, g_ptr_array_index(blobs, p), error))
            return FALSE;
    return blobs != NULL;
}
