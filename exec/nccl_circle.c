#include "exec/nccl_circle.h"
#include "exec/control.h"

#include <string.h>

enum { TELL = 1, ALL, TROUBLE, BYE };

#define ANSWER_S 3 /* the root takes so long at most to pass trouble on */

/* What is told of an error; its domain is TT_EXEC_ERROR. */
typedef struct {
    gint32 code;
    char text[1020];
} Trouble;

struct TtCircle {
    TtControl *control; /* NULL: alone */
    guint own, n_processes, n_ranks;
    GBytes **parts;  /* [n_processes], of the gather; the root's own stays NULL */
    GBytes *all;     /* not at the root: its answer */
    gboolean *left;  /* [n_processes]: said good-bye */
    GError *trouble; /* heard of; all know it unless @alone */
    gboolean alone;
};

TtCircle *
tt_circle_open(const TtBackendJoin *join, GError **error)
{
    const TtLaunch *launch = join->launch;
    TtControlOptions options = { .secret = join->secret,
                                 .interface = join->interface,
                                 .timeout_s = join->timeout_s };
    TtCircle *self = g_new0(TtCircle, 1);

    self->n_processes = 1;
    self->n_ranks = launch->n_ranks;
    if (launch->n_local < launch->n_ranks) {
        self->control = tt_control_open(launch, &options, error);
        if (!self->control) {
            g_free(self);
            return NULL;
        }
        self->own = tt_control_process(self->control);
        self->n_processes = tt_control_n_processes(self->control);
    }
    self->parts = g_new0(GBytes *, self->n_processes);
    self->left = g_new0(gboolean, self->n_processes);
    return self;
}

void
tt_circle_close(TtCircle *self)
{
    gboolean root = self && self->own == 0;

    if (!self)
        return;
    for (guint p = root ? 1 : 0; self->control && p < (root ? self->n_processes : 1); p++)
        tt_control_send(self->control, p, BYE, NULL, 0);
    tt_control_close(self->control);
    for (guint p = 0; p < self->n_processes; p++)
        g_clear_pointer(&self->parts[p], g_bytes_unref);
    g_clear_pointer(&self->all, g_bytes_unref);
    g_clear_error(&self->trouble);
    g_free(self->parts);
    g_free(self->left);
    g_free(self);
}

gboolean
tt_circle_is_root(const TtCircle *self)
{
    return self->own == 0;
}

guint
tt_circle_n_processes(const TtCircle *self)
{
    return self->n_processes;
}

void
tt_circle_ranks(const TtCircle *self, guint process, guint *first_rank, guint *n_local)
{
    *first_rank = 0;
    *n_local = self->n_ranks;
    if (self->control)
        tt_control_ranks(self->control, process, first_rank, n_local);
}

void
tt_circle_set_n_ranks(TtCircle *self, guint n_ranks)
{
    self->n_ranks = n_ranks;
}

guint
tt_circle_process_of(const TtCircle *self, guint rank)
{
    return self->control ? tt_control_process_of(self->control, rank) : 0;
}

/* --- trouble ----------------------------------------------------------------------------------- */

static void
send_trouble(TtCircle *self, guint process, const GError *why)
{
    Trouble trouble = { .code = TT_EXEC_ERROR_SYSTEM };

    if (why->domain == TT_EXEC_ERROR)
        trouble.code = why->code;
    g_strlcpy(trouble.text, why->message, sizeof trouble.text);
    tt_control_send(self->control, process, TROUBLE, &trouble, sizeof trouble);
}

/* The first is everybody's; the root says so. */
static void
take_trouble(TtCircle *self, GError *why)
{
    if (self->trouble) {
        g_error_free(why);
        return;
    }
    self->trouble = why;
    for (guint p = 1; self->own == 0 && p < self->n_processes; p++)
        send_trouble(self, p, why);
}

static void
hear_trouble(TtCircle *self, const TtControlMessage *message)
{
    Trouble trouble;

    if (message->bytes != sizeof trouble)
        return;
    memcpy(&trouble, message->data, sizeof trouble);
    trouble.text[sizeof trouble.text - 1] = '\0';
    take_trouble(self, g_error_new_literal(TT_EXEC_ERROR, trouble.code, trouble.text));
}

static void
hear_loss(TtCircle *self, guint process)
{
    if (self->trouble)
        return;
    self->alone = self->own != 0;
    take_trouble(self, g_error_new(TT_EXEC_ERROR,
                                   self->left[process] ? TT_EXEC_ERROR_LEFT : TT_EXEC_ERROR_DEAD,
                                   self->left[process] ? "%s left before the others were done"
                                                       : "%s died, or its connection broke",
                                   tt_control_name(self->control, process)));
}

static void
hear(TtCircle *self, const TtControlMessage *message)
{
    switch (message->kind) {
    case TELL:
        g_clear_pointer(&self->parts[message->process], g_bytes_unref);
        self->parts[message->process] = g_bytes_new(message->data, message->bytes);
        break;
    case ALL:
        g_clear_pointer(&self->all, g_bytes_unref);
        self->all = g_bytes_new(message->data, message->bytes);
        break;
    case TROUBLE: hear_trouble(self, message); break;
    case BYE: self->left[message->process] = TRUE; break;
    case TT_CONTROL_LOST: hear_loss(self, message->process); break;
    default: break;
    }
}

static gboolean
pass_on(const TtCircle *self, GError **error)
{
    if (error)
        *error = g_error_copy(self->trouble);
    return FALSE;
}

gboolean
tt_circle_look(TtCircle *self, GError **error)
{
    TtControlMessage message;

    while (self->control && tt_control_receive(self->control, 0, &message))
        hear(self, &message);
    return !self->trouble || pass_on(self, error);
}

gboolean
tt_circle_fail(TtCircle *self, GError *why, GError **error)
{
    gint64 deadline_us = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    TtControlMessage message;

    if (self->own == 0) {
        take_trouble(self, why);
        return pass_on(self, error);
    }
    if (!self->trouble)
        send_trouble(self, 0, why);
    while (!self->trouble && g_get_monotonic_time() < deadline_us)
        if (tt_control_receive(self->control, 100, &message))
            hear(self, &message);
    if (self->trouble && !self->alone) {
        g_error_free(why);
        return pass_on(self, error);
    }
    self->alone = TRUE; /* the root does not answer: our own error says more */
    g_propagate_error(error, why);
    return FALSE;
}

gboolean
tt_circle_all_know(const TtCircle *self)
{
    return !self->alone;
}

/* --- gathers ----------------------------------------------------------------------------------- */

/* Who is missing; NULL if all parts, or the root's answer, are here. */
static const char *
awaited(const TtCircle *self)
{
    if (self->own != 0)
        return self->all ? NULL : tt_control_name(self->control, 0);
    for (guint p = 1; p < self->n_processes; p++)
        if (!self->parts[p])
            return tt_control_name(self->control, p);
    return NULL;
}

static gboolean
await(TtCircle *self, double timeout_s, GError **error)
{
    /* the root's word on who is late comes at its time-out */
    double patience_s = timeout_s + (self->own == 0 ? 0 : ANSWER_S);
    gint64 deadline_us = g_get_monotonic_time() + (gint64)(patience_s * G_USEC_PER_SEC);
    TtControlMessage message;
    const char *who;

    while ((who = awaited(self)) && !self->trouble) {
        if (tt_control_receive(self->control, 100, &message)) {
            hear(self, &message);
        } else if (g_get_monotonic_time() >= deadline_us) {
            self->alone = self->own != 0;
            take_trouble(self, g_error_new(TT_EXEC_ERROR, TT_EXEC_ERROR_HANG,
                                           "%s said nothing for %g s", who, patience_s));
        }
    }
    return !self->trouble || pass_on(self, error);
}

static gboolean
unequal(TtCircle *self, guint process, GError **error)
{
    take_trouble(self, g_error_new(TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                                   "%s is doing something else than the others",
                                   tt_control_name(self->control, process)));
    return pass_on(self, error);
}

static gboolean
gather_as_root(TtCircle *self, guint bytes, guint8 *all, double timeout_s, GError **error)
{
    if (!await(self, timeout_s, error))
        return FALSE;
    for (guint p = 1; p < self->n_processes; p++) {
        gsize got;
        gconstpointer data = g_bytes_get_data(self->parts[p], &got);

        if (got != bytes)
            return unequal(self, p, error);
        memcpy(all + (gsize)p * bytes, data, bytes);
        g_clear_pointer(&self->parts[p], g_bytes_unref);
    }
    for (guint p = 1; p < self->n_processes; p++)
        tt_control_send(self->control, p, ALL, all, (gsize)self->n_processes * bytes);
    return TRUE;
}

static gboolean
gather_as_peer(TtCircle *self, gconstpointer mine, guint bytes, guint8 *all, double timeout_s,
               GError **error)
{
    gconstpointer data;
    gsize got;

    tt_control_send(self->control, 0, TELL, mine, bytes);
    if (!await(self, timeout_s, error))
        return FALSE;
    data = g_bytes_get_data(self->all, &got);
    if (got != (gsize)self->n_processes * bytes)
        return unequal(self, 0, error);
    memcpy(all, data, got);
    g_clear_pointer(&self->all, g_bytes_unref);
    return TRUE;
}

gboolean
tt_circle_gather(TtCircle *self, gconstpointer mine, guint bytes, gpointer all, double timeout_s,
                 GError **error)
{
    if (self->trouble)
        return pass_on(self, error);
    memcpy((guint8 *)all + (gsize)self->own * bytes, mine, bytes);
    if (!self->control)
        return TRUE;
    return self->own == 0 ? gather_as_root(self, bytes, all, timeout_s, error)
                          : gather_as_peer(self, mine, bytes, all, timeout_s, error);
}
