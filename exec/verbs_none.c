/* Stands in for verbs*.c where libibverbs was not found: nothing can be opened, so nothing follows. */
#include "exec/verbs.h"

TtVerbs *
tt_verbs_open(const TtVerbsOptions *options, GError **error)
{
    (void)options;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "built without libibverbs: install libibverbs-dev and configure again");
    return NULL;
}

void
tt_verbs_close(TtVerbs *self)
{
    g_assert(!self);
}

const TtVerbsInfo *
tt_verbs_info(const TtVerbs *self)
{
    (void)self;
    g_assert_not_reached();
}

TtVerbsMemory *
tt_verbs_register(TtVerbs *self, gpointer start, gsize bytes, gboolean on_demand, GError **error)
{
    (void)self, (void)start, (void)bytes, (void)on_demand, (void)error;
    g_assert_not_reached();
}

TtVerbsMemory *
tt_verbs_register_device(TtVerbs *self, gpointer start, gsize bytes, int dma_buf,
                         guint64 dma_buf_offset, GError **error)
{
    (void)self, (void)start, (void)bytes, (void)dma_buf, (void)dma_buf_offset, (void)error;
    g_assert_not_reached();
}

void
tt_verbs_unregister(TtVerbsMemory *memory)
{
    g_assert(!memory);
}

void
tt_verbs_remote(const TtVerbsMemory *memory, TtVerbsRemote *remote)
{
    (void)memory, (void)remote;
    g_assert_not_reached();
}

TtVerbsQueue *
tt_verbs_queue_new(TtVerbs *self, const char *name, gpointer user, GError **error)
{
    (void)self, (void)name, (void)user, (void)error;
    g_assert_not_reached();
}

void
tt_verbs_queue_free(TtVerbsQueue *queue)
{
    g_assert(!queue);
}

void
tt_verbs_queue_break(TtVerbsQueue *queue)
{
    (void)queue;
    g_assert_not_reached();
}

void
tt_verbs_address(const TtVerbsQueue *queue, TtVerbsAddress *address)
{
    (void)queue, (void)address;
    g_assert_not_reached();
}

gboolean
tt_verbs_connect(TtVerbsQueue *queue, const TtVerbsAddress *peer, GError **error)
{
    (void)queue, (void)peer, (void)error;
    g_assert_not_reached();
}

gboolean
tt_verbs_receive(TtVerbsQueue *queue, guint n, GError **error)
{
    (void)queue, (void)n, (void)error;
    g_assert_not_reached();
}

TtVerbsPosted
tt_verbs_write(TtVerbsQueue *queue, const TtVerbsWrite *write, GError **error)
{
    (void)queue, (void)write, (void)error;
    g_assert_not_reached();
}

int
tt_verbs_poll(TtVerbs *self, TtVerbsCompletion *completions, guint n, GError **error)
{
    (void)self, (void)completions, (void)n, (void)error;
    g_assert_not_reached();
}

gboolean
tt_verbs_wait(TtVerbs *self, gint64 timeout_ns, GError **error)
{
    (void)self, (void)timeout_ns, (void)error;
    g_assert_not_reached();
}

gboolean
tt_verbs_arm(TtVerbs *self)
{
    (void)self;
    g_assert_not_reached();
}

void
tt_verbs_descriptors(const TtVerbs *self, int descriptors[2])
{
    (void)self, (void)descriptors;
    g_assert_not_reached();
}

gboolean
tt_verbs_woken(TtVerbs *self, GError **error)
{
    (void)self, (void)error;
    g_assert_not_reached();
}

const char *
tt_verbs_status_words(int status)
{
    (void)status;
    return "unknown completion status";
}

const char *
tt_verbs_event_words(int event, gboolean *harmless)
{
    (void)event;
    if (harmless)
        *harmless = TRUE;
    return "unknown event";
}

const char *
tt_verbs_errno_words(int code)
{
    return g_strerror(code);
}
