#include "exec/gpu_group.h"

#include <string.h>
#include <time.h>

#define LOOK_MS 20

static gboolean
parse(const char *what, const char *const *names, const char *text, guint *found, GError **error)
{
    g_autofree char *all = NULL;

    for (guint i = 0; names[i]; i++) {
        if (!text || strcmp(names[i], text) == 0) {
            *found = i;
            return TRUE;
        }
    }
    all = g_strjoinv(", ", (char **)names);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "unknown %s \"%s\" (one of: %s)", what,
                text, all);
    return FALSE;
}

static const char *const placement_names[] = { "auto", "write", "read", "host", NULL };

gboolean
tt_gpu_placement_parse(const char *text, TtGpuPlacement *placement, GError **error)
{
    return parse("placement", placement_names, text, placement, error);
}

static const char *const protocol_names[] = { "auto", "simple", "ll", "ll128", NULL };

const char *
tt_gpu_protocol_name(TtGpuProtocol protocol)
{
    return protocol_names[protocol];
}

const char *
tt_gpu_placement_name(TtGpuPlacement placement)
{
    return placement_names[placement];
}

gboolean
tt_gpu_protocol_parse(const char *text, TtGpuProtocol *protocol, GError **error)
{
    return parse("protocol", protocol_names, text, protocol, error);
}

/* --- which devices ------------------------------------------------------------------------------- */

static gboolean
is_host(const char *device)
{
    return device && (strcmp(device, "host") == 0 || g_str_has_prefix(device, "host:"));
}

/* "host:2,8": two pretend GPUs, blocks of eight threads. */
static gboolean
set_up_host(const char *device, GError **error)
{
    guint64 n_gpus = 1, n_threads = 1;
    const char *colon = strchr(device, ':');
    g_auto(GStrv) words = g_strsplit(colon ? colon + 1 : "1", ",", -1);

    if (g_strv_length(words) > 2 ||
        !g_ascii_string_to_unsigned(words[0], 10, 1, 64, &n_gpus, NULL) ||
        (words[1] && !g_ascii_string_to_unsigned(words[1], 10, 1, 64, &n_threads, NULL))) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "--gpus %s: \"host:N\" or \"host:N,THREADS\", both 1 .. 64", device);
        return FALSE;
    }
    tt_gpu_host_set((guint)n_gpus, (guint)n_threads);
    return TRUE;
}

/* "0,2": numbers, none twice. @list NULL if all are meant. */
static gboolean
parse_devices(const char *device, GArray **list, GError **error)
{
    g_auto(GStrv) words = device ? g_strsplit(device, ",", -1) : NULL;
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(guint));

    *list = NULL;
    if (!device)
        return TRUE;
    for (guint i = 0; i == 0 || words[i]; i++) {
        guint64 number = 0;
        guint index;
        gboolean good =
            words[i] && g_ascii_string_to_unsigned(words[i], 10, 0, 1023, &number, NULL);

        for (guint j = 0; good && j < i; j++)
            good = g_array_index(found, guint, j) != number;
        if (!good) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "--gpus \"%s\": neither numbers of GPUs as in 0,2 (none twice) nor host, "
                        "host:2 or host:2,8",
                        device);
            return FALSE;
        }
        index = (guint)number;
        g_array_append_val(found, index);
    }
    *list = g_steal_pointer(&found);
    return TRUE;
}

/* @devices: those asked for, or NULL; all there are then. */
static GArray *
check_devices(const TtGpuDriver *driver, GArray *devices, GError **error)
{
    guint n;

    if (!driver->count(&n, error))
        return NULL;
    if (n == 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "there is no GPU here (--gpus host runs the same kernels on the CPU)");
        return NULL;
    }
    if (!devices) {
        devices = g_array_new(FALSE, FALSE, sizeof(guint));
        for (guint i = 0; i < n; i++)
            g_array_append_val(devices, i);
        return devices;
    }
    for (guint i = 0; i < devices->len; i++)
        if (g_array_index(devices, guint, i) >= n) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "--gpus: there is no GPU %u, only 0 .. %u",
                        g_array_index(devices, guint, i), n - 1);
            return NULL;
        }
    return g_array_ref(devices);
}

/* --- groups -------------------------------------------------------------------------------------- */

/* Which device a rank of this machine uses: they are dealt out in blocks of neighbours. */
static guint
device_of(const TtRegion *region, guint rank, guint n_devices)
{
    guint on_host = region->host_rank + rank - region->first_rank;

    return region->n_on_host <= n_devices ? on_host : on_host * n_devices / region->n_on_host;
}

static void
meet_init(TtGpuMeet *meet, guint n)
{
    pthread_condattr_t attr;

    *meet = (TtGpuMeet){ .n = n };
    pthread_mutex_init(&meet->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&meet->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static void
meet_clear(TtGpuMeet *meet)
{
    pthread_mutex_destroy(&meet->mutex);
    pthread_cond_destroy(&meet->changed);
}

static gboolean
open_group(TtGpus *self, TtGpuGroup *group, guint index, guint first, GError **error)
{
    *group = (TtGpuGroup){ .gpus = self, .index = index, .first = first };
    group->ranks = g_new0(TtGpuRank *, self->region->n_local);
    pthread_mutex_init(&group->lock, NULL);
    meet_init(&group->meet, 0);
    group->gpu = self->driver->open(index, error);
    if (!group->gpu)
        return FALSE;
    self->driver->facts(group->gpu, &group->facts);
    return TRUE;
}

static gboolean
open_groups(TtGpus *self, const GArray *devices, GError **error)
{
    const TtRegion *region = self->region;

    self->groups = g_new0(TtGpuGroup, region->n_local);
    for (guint r = region->first_rank; r < region->first_rank + region->n_local; r++) {
        guint device = device_of(region, r, devices->len), index;
        TtGpuGroup *last = self->n_groups ? &self->groups[self->n_groups - 1] : NULL;

        index = g_array_index(devices, guint, device);
        if (last && last->index == index) {
            last->meet.n = ++last->n;
            continue;
        }
        self->n_groups++;
        if (!open_group(self, &self->groups[self->n_groups - 1], index, r, error))
            return FALSE;
        self->groups[self->n_groups - 1].n = self->groups[self->n_groups - 1].meet.n = 1;
    }
    return TRUE;
}

/* Inputs and outputs of all ranks of a GPU; what slots and programs need is found out later. */
static gboolean
check_memory(const TtGpus *self, GError **error)
{
    guint64 max_bytes = self->region->max_bytes;

    for (guint g = 0; g < self->n_groups; g++) {
        const TtGpuGroup *group = &self->groups[g];

        if (max_bytes <= group->facts.free_bytes / 2 / group->n)
            continue;
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%u rank%s with an input and an output of %" G_GUINT64_FORMAT
                    " MiB each need more memory than the %" G_GUINT64_FORMAT
                    " MiB that GPU %u has free (use fewer ranks or a smaller size)",
                    group->n, group->n == 1 ? "" : "s", max_bytes >> 20,
                    group->facts.free_bytes >> 20, group->index);
        return FALSE;
    }
    return TRUE;
}

TtGpus *
tt_gpus_open(TtRegion *region, const char *device, TtGpuPlacement placement, GError **error)
{
    TtGpus *self;
    const TtGpuDriver *driver;
    g_autoptr(GArray) asked = NULL, devices = NULL;

    if (is_host(device) ? !set_up_host(device, error) : !parse_devices(device, &asked, error))
        return NULL;
    driver = tt_gpu_driver_find(is_host(device) ? "host" : "cuda", error);
    if (!driver || !(devices = check_devices(driver, asked, error)))
        return NULL;
    self = g_new0(TtGpus, 1);
    self->driver = driver;
    self->region = region;
    self->placement = placement;
    pthread_mutex_init(&self->lock, NULL);
    meet_init(&self->meet, region->n_local);
    if (open_groups(self, devices, error) && check_memory(self, error) &&
        (self->abort = driver->alloc_host(self->groups[0].gpu, TT_LINE_BYTES, error)) &&
        tt_gpu_place_open(self, error))
        return self;
    tt_gpus_close(self);
    return NULL;
}

static void
close_group(TtGpuGroup *group)
{
    const TtGpuDriver *driver = group->gpus->driver;
    TtGpuRoom *rooms[] = { &group->arena, &group->program, &group->events };

    if (group->gpu) {
        for (guint i = 0; i < G_N_ELEMENTS(rooms); i++)
            if (rooms[i]->memory)
                driver->free(group->gpu, rooms[i]->memory);
        if (group->status)
            driver->free_host(group->gpu, group->status);
    }
    g_free(group->ranks);
    pthread_mutex_destroy(&group->lock);
    meet_clear(&group->meet);
}

void
tt_gpus_close(TtGpus *self)
{
    if (!self)
        return;
    tt_gpu_place_close(self);
    if (self->abort)
        self->driver->free_host(self->groups[0].gpu, self->abort);
    for (guint g = 0; g < self->n_groups; g++)
        close_group(&self->groups[g]);
    for (guint g = 0; g < self->n_groups; g++)
        self->driver->close(self->groups[g].gpu);
    pthread_mutex_destroy(&self->lock);
    meet_clear(&self->meet);
    g_free(self->groups);
    g_free(self);
}

char *
tt_gpus_text(const TtGpus *self)
{
    GString *text = g_string_new(NULL);

    for (guint g = 0; g < self->n_groups; g++) {
        const TtGpuGroup *group = &self->groups[g];
        g_autofree char *ranks = tt_launch_ranks_text(group->first, group->n);

        g_string_append_printf(text, "%s%u %s (%s)", g ? ", " : "", group->index, group->facts.name,
                               ranks);
    }
    return g_string_free(text, FALSE);
}

/* --- a rank of a group --------------------------------------------------------------------------- */

TtGpuRank *
tt_gpu_rank_new(TtGpus *gpus, guint rank)
{
    TtGpuRank *self = g_new0(TtGpuRank, 1);
    TtGpuGroup *group = gpus->groups;

    while (rank >= group->first + group->n)
        group++;
    self->group = group;
    self->index = rank - group->first;
    group->ranks[self->index] = self;
    self->steps = g_array_new(FALSE, TRUE, sizeof(TtGpuStep));
    self->lanes = g_array_new(FALSE, TRUE, sizeof(TtGpuLane));
    self->ends = g_array_new(FALSE, TRUE, sizeof(TtGpuEnd));
    self->shapes = g_array_new(FALSE, TRUE, sizeof(TtGpuShape));
    return self;
}

void
tt_gpu_rank_free(TtGpuRank *self)
{
    TtGpuGroup *group = self->group;

    pthread_mutex_lock(&group->lock);
    for (guint b = 0; b < TT_N_BUFFERS; b++)
        if (self->buffer[b].memory)
            group->gpus->driver->free(group->gpu, self->buffer[b].memory);
    pthread_mutex_unlock(&group->lock);
    g_array_unref(self->steps);
    g_array_unref(self->lanes);
    g_array_unref(self->ends);
    g_array_unref(self->shapes);
    g_free(self->staging);
    g_free(self->direct_why);
    g_free(self);
}

gboolean
tt_gpu_complain(TtRank *self, GError *error)
{
    tt_rank_complain(self, TT_NO_RANK, error);
    g_error_free(error);
    return FALSE;
}

gboolean
tt_gpu_make_room(TtGpuGroup *group, TtGpuRoom *room, gsize bytes, GError **error)
{
    const TtGpuDriver *driver = group->gpus->driver;

    if (bytes <= room->bytes)
        return TRUE;
    if (room->memory)
        driver->free(group->gpu, room->memory);
    *room = (TtGpuRoom){ driver->alloc(group->gpu, bytes, error), 0 };
    room->bytes = room->memory ? bytes : 0;
    return room->memory != NULL;
}

static void
wait_for_change(TtGpuMeet *meet)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&meet->changed, &meet->mutex, &until);
}

/* So that a time-out tells who waits for ranks of the same GPU from who is late. Trouble told stays told. */
static void
say_waits(TtRank *self, gboolean waits)
{
    TtRankBlock *block = &self->region->ranks[self->rank];
    guint32 from = waits ? TT_RANK_BUSY : TT_RANK_WAITS_BARRIER;

    if (waits)
        atomic_store_explicit(&block->wait_lane, TT_NO_LANE, memory_order_relaxed);
    atomic_compare_exchange_strong(&block->state, &from,
                                   waits ? TT_RANK_WAITS_BARRIER : TT_RANK_BUSY);
}

gboolean
tt_gpu_meet(TtRank *self, TtGpuMeet *meet, gboolean (*last)(TtRank *self))
{
    const TtRegion *region = self->region;
    guint64 meeting;
    gboolean good;

    pthread_mutex_lock(&meet->mutex);
    meeting = meet->meetings;
    if (++meet->n_met == meet->n) {
        if (last && !meet->failed && !last(self))
            meet->failed = TRUE;
        meet->n_met = 0;
        meet->meetings++;
        pthread_cond_broadcast(&meet->changed);
    }
    if (meet->meetings == meeting)
        say_waits(self, TRUE);
    while (meet->meetings == meeting && !atomic_load(&region->aborted))
        wait_for_change(meet);
    if (meet->meetings != meeting)
        say_waits(self, FALSE);
    good = meet->meetings != meeting && !meet->failed && !atomic_load(&region->aborted);
    pthread_mutex_unlock(&meet->mutex);
    return good;
}
