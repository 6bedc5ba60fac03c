/* Registration: memory the card may use, and the limit that most often forbids it. */
#include "exec/verbs_device.h"

#include <errno.h>
#include <sys/resource.h>

#define MIB (1024.0 * 1024.0)

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

TtVerbsMemory *
tt_verbs_register(TtVerbs *self, gpointer start, gsize bytes, gboolean on_demand, GError **error)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_mr *region;
    TtVerbsMemory *memory;

    if (bytes > self->limits.max_mr_size) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s: cannot register %.1f MiB: the card takes at most %.1f MiB at a time",
                    self->info.device, (double)bytes / MIB, (double)self->limits.max_mr_size / MIB);
        return NULL;
    }
    if (on_demand && self->info.on_demand)
        access |= IBV_ACCESS_ON_DEMAND;
    region = ibv_reg_mr(self->domain, start, bytes, access);
    if (!region) {
        fail_memory(self, bytes, errno, error);
        return NULL;
    }
    memory = g_new0(TtVerbsMemory, 1);
    memory->verbs = self;
    memory->region = region;
    g_ptr_array_add(self->memories, memory);
    return memory;
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
        .address = GUINT64_TO_BE((guint64)(gsize)memory->region->addr),
        .bytes = GUINT64_TO_BE((guint64)memory->region->length),
        .key = GUINT32_TO_BE(memory->region->rkey),
    };
}
