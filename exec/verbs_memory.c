/* Registration: memory the card may use, and the limit that most often forbids it. */
#include "exec/verbs_device.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#define MIB    (1024.0 * 1024.0)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* The likely reason for ENOMEM is the limit of locked memory, which counts all this user has pinned. */
static void
fail_memory(const TtVerbs *self, gsize bytes, int code, GError **error)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (code == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s: locked memory: need %.*f MiB, limit is %" G_GUINT64_FORMAT
                    " KiB (ulimit -l; /etc/security/limits.conf: memlock)",
                    self->info.device, bytes < 10 * MIB ? 1 : 0, (double)bytes / MIB,
                    (guint64)limit.rlim_cur / 1024);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "%s: cannot register %.1f MiB: %s",
                    self->info.device, (double)bytes / MIB, tt_verbs_errno_words(code));
}

static gboolean
check_size(const TtVerbs *self, gsize bytes, GError **error)
{
    if (bytes <= self->limits.max_mr_size)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "%s: cannot register %.1f MiB: the card takes at most %.1f MiB at a time",
                self->info.device, (double)bytes / MIB, (double)self->limits.max_mr_size / MIB);
    return FALSE;
}

static TtVerbsMemory *
keep(TtVerbs *self, struct ibv_mr *region, gpointer start, gboolean is_device)
{
    TtVerbsMemory *memory = g_new0(TtVerbsMemory, 1);

    *memory =
        (TtVerbsMemory){ .verbs = self, .region = region, .start = start, .is_device = is_device };
    g_ptr_array_add(self->memories, memory);
    return memory;
}

TtVerbsMemory *
tt_verbs_register(TtVerbs *self, gpointer start, gsize bytes, gboolean on_demand, GError **error)
{
    struct ibv_mr *region;

    if (!check_size(self, bytes, error))
        return NULL;
    region = ibv_reg_mr(self->domain, start, bytes,
                        ACCESS | (on_demand && self->info.on_demand ? IBV_ACCESS_ON_DEMAND : 0));
    if (region)
        return keep(self, region, start, FALSE);
    fail_memory(self, bytes, errno, error);
    return NULL;
}

/* --- of devices ---------------------------------------------------------------------------------- */

/* ibv_reg_dmabuf_mr(), which came with version 34 of rdma-core: looked up, so that older ones do for the rest. */
typedef struct ibv_mr *(*RegisterDmaBuf)(struct ibv_pd *domain, uint64_t offset, size_t length,
                                         uint64_t address, int fd, int access);

static RegisterDmaBuf
find_register_dma_buf(void)
{
    RegisterDmaBuf found = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr");

    memcpy(&found, &symbol, sizeof found);
    return found;
}

static struct ibv_mr *
register_dma_buf(TtVerbs *self, gpointer start, gsize bytes, int dma_buf, guint64 offset)
{
    RegisterDmaBuf func = find_register_dma_buf();

    if (func)
        return func(self->domain, offset, bytes, (guint64)(gsize)start, dma_buf, ACCESS);
    errno = ENOSYS;
    return NULL;
}

TtVerbsMemory *
tt_verbs_register_device(TtVerbs *self, gpointer start, gsize bytes, int dma_buf,
                         guint64 dma_buf_offset, GError **error)
{
    struct ibv_mr *region;

    if (!check_size(self, bytes, error))
        return NULL;
    if (dma_buf >= 0)
        region = register_dma_buf(self, start, bytes, dma_buf, dma_buf_offset);
    else
        region = ibv_reg_mr(self->domain, start, bytes, ACCESS);
    if (region)
        return keep(self, region, start, TRUE);
    if (errno == ENOMEM)
        fail_memory(self, bytes, errno, error);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: cannot register memory of a device: %s", self->info.device,
                    tt_verbs_errno_words(errno));
    return NULL;
}

void
tt_verbs_unregister(TtVerbsMemory *memory)
{
    if (!memory)
        return;
    g_ptr_array_remove_fast(memory->verbs->memories, memory);
    ibv_dereg_mr(memory->region);
    g_free(memory);
}

void
tt_verbs_remote(const TtVerbsMemory *memory, TtVerbsRemote *remote)
{
    *remote = (TtVerbsRemote){
        .address = GUINT64_TO_BE((guint64)(gsize)memory->start),
        .bytes = GUINT64_TO_BE((guint64)memory->region->length),
        .key = GUINT32_TO_BE(memory->region->rkey),
    };
}
