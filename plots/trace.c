#include "plots/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    GString *text;
    gboolean any;    /* a comma is due */
    guint n;         /* timelines */
    guint64 next_id; /* of a message */
} Writer;

/* Ranks of all timelines interleave: rank 0 predicted, rank 0 measured, rank 1 predicted, ... */
static guint64
process_of(const Writer *w, guint timeline, guint rank)
{
    return (guint64)rank * w->n + timeline + 1;
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void
begin_entry(Writer *w)
{
    g_string_append(w->text, w->any ? ",\n" : "\n");
    w->any = TRUE;
}

/* Quoted; whatever is not printable ASCII becomes an escape or, in bad UTF-8, a question mark. */
static void
append_quoted(GString *text, const char *string)
{
    g_autofree char *valid = g_utf8_make_valid(string, -1);

    g_string_append_c(text, '"');
    for (const char *c = valid; *c; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_c(text, '\\');
        if ((guchar)*c < 0x20)
            g_string_append_printf(text, "\\u%04x", (guchar)*c);
        else
            g_string_append_c(text, *c);
    }
    g_string_append_c(text, '"');
}

/* Microseconds with all picoseconds. */
static void
append_us(GString *text, const char *key, gint64 ps)
{
    guint64 magnitude = ps < 0 ? -(guint64)ps : (guint64)ps;

    g_string_append_printf(text, ",\"%s\":%s%" G_GUINT64_FORMAT ".%06" G_GUINT64_FORMAT, key,
                           ps < 0 ? "-" : "", magnitude / 1000000, magnitude % 1000000);
}

static void
append_name(Writer *w, const char *what, guint64 process, guint thread, const char *name)
{
    begin_entry(w);
    g_string_append_printf(w->text,
                           "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" G_GUINT64_FORMAT
                           ",\"tid\":%u,\"args\":{\"name\":",
                           what, process, thread);
    append_quoted(w->text, name);
    g_string_append(w->text, "}}");
}

static void
append_process(Writer *w, guint64 process, const char *name)
{
    append_name(w, "process_name", process, 0, name);
    begin_entry(w);
    g_string_append_printf(
        w->text,
        "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" G_GUINT64_FORMAT
        ",\"tid\":0,\"args\":{\"sort_index\":%" G_GUINT64_FORMAT "}}",
        process, process);
}

/* --- slices ------------------------------------------------------------------------------------ */

static gint64
waited_ps(const TtEvent *e)
{
    return CLAMP(e->wait_ps, 0, e->end_ps - e->begin_ps);
}

static void
append_slice(Writer *w, guint64 process, const TtEvent *e)
{
    begin_entry(w);
    g_string_append_printf(
        w->text,
        "{\"ph\":\"X\",\"cat\":\"step\",\"name\":\"%s\",\"pid\":%" G_GUINT64_FORMAT ",\"tid\":%u",
        tt_op_name(e->op), process, e->lane);
    append_us(w->text, "ts", e->begin_ps);
    append_us(w->text, "dur", MAX(0, e->end_ps - e->begin_ps));
    g_string_append_printf(w->text,
                           ",\"args\":{\"round\":%u,\"step\":%u,\"bytes\":%" G_GUINT64_FORMAT,
                           e->round, e->step, e->bytes);
    if (e->recv_peer != TT_NO_RANK)
        g_string_append_printf(w->text, ",\"from rank\":%u", e->recv_peer);
    if (e->send_peer != TT_NO_RANK)
        g_string_append_printf(w->text, ",\"to rank\":%u", e->send_peer);
    if (waited_ps(e) > 0)
        append_us(w->text, "wait us", waited_ps(e));
    if (e->wait_for != TT_NO_RANK)
        g_string_append_printf(w->text, ",\"waits for rank\":%u", e->wait_for);
    g_string_append(w->text, "}}");
}

/* An event does not say when inside the step it waited; nearly always that is at its begin. */
static void
append_wait(Writer *w, guint64 process, const TtEvent *e)
{
    begin_entry(w);
    g_string_append(w->text, "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":");
    if (e->wait_for != TT_NO_RANK)
        g_string_append_printf(w->text, "\"wait for rank %u\"", e->wait_for);
    else
        g_string_append(w->text, "\"wait\"");
    g_string_append_printf(w->text, ",\"pid\":%" G_GUINT64_FORMAT ",\"tid\":%u", process, e->lane);
    append_us(w->text, "ts", e->begin_ps);
    append_us(w->text, "dur", waited_ps(e));
    g_string_append_c(w->text, '}');
}

/* --- messages ---------------------------------------------------------------------------------- */

/* One end of a message. Connections are FIFOs: the k-th send meets the k-th receive. */
typedef struct {
    guint32 src, dst;
    guint16 lane;
    const TtEvent *event;
} End;

static int
compare_connections(const End *a, const End *b)
{
    int order = (a->src > b->src) - (a->src < b->src);

    if (order == 0)
        order = (a->dst > b->dst) - (a->dst < b->dst);
    return order ? order : (int)a->lane - (int)b->lane;
}

static int
compare_ends(const void *pa, const void *pb)
{
    const End *a = pa, *b = pb;
    int order = compare_connections(a, b);

    if (order == 0)
        order = (a->event->round > b->event->round) - (a->event->round < b->event->round);
    return order ? order : (a->event->step > b->event->step) - (a->event->step < b->event->step);
}

static void
append_flow(Writer *w, const char *how, guint64 process, guint lane, gint64 time_ps)
{
    begin_entry(w);
    g_string_append_printf(w->text,
                           "{%s,\"cat\":\"message\",\"name\":\"message\",\"id\":%" G_GUINT64_FORMAT
                           ",\"pid\":%" G_GUINT64_FORMAT ",\"tid\":%u",
                           how, w->next_id, process, lane);
    append_us(w->text, "ts", time_ps);
    g_string_append_c(w->text, '}');
}

/* Halfway through the working part: inside the slice, outside the wait. */
static gint64
working_ps(const TtEvent *e)
{
    gint64 from = e->begin_ps + waited_ps(e);

    return from + (MAX(e->end_ps, from) - from) / 2;
}

static void
append_message(Writer *w, guint timeline, const End *send, const End *recv)
{
    gint64 sent_ps = working_ps(send->event), received_ps = working_ps(recv->event);

    received_ps = MIN(MAX(received_ps, sent_ps), MAX(recv->event->end_ps, received_ps));
    w->next_id++;
    append_flow(w, "\"ph\":\"s\"", process_of(w, timeline, send->src), send->lane, sent_ps);
    append_flow(w, "\"ph\":\"f\",\"bp\":\"e\"", process_of(w, timeline, recv->dst), recv->lane,
                received_ps);
}

static GArray *
collect_ends(const TtTimeline *t, gboolean sends)
{
    GArray *ends = g_array_new(FALSE, FALSE, sizeof(End));

    for (guint i = 0; i < t->events->len; i++) {
        const TtEvent *e = &g_array_index(t->events, TtEvent, i);
        End end = { .lane = e->lane, .event = e };

        if (sends ? e->send_peer == TT_NO_RANK : e->recv_peer == TT_NO_RANK)
            continue;
        end.src = sends ? e->rank : e->recv_peer;
        end.dst = sends ? e->send_peer : e->rank;
        g_array_append_val(ends, end);
    }
    if (ends->len > 1) /* an empty array has no data to point at */
        qsort(ends->data, ends->len, sizeof(End), compare_ends);
    return ends;
}

/* Pairs what both sides recorded; an end whose other half is missing gets no arrow. */
static void
append_messages(Writer *w, guint timeline, const TtTimeline *t)
{
    g_autoptr(GArray) sends = collect_ends(t, TRUE);
    g_autoptr(GArray) recvs = collect_ends(t, FALSE);
    guint s = 0, r = 0;

    while (s < sends->len && r < recvs->len) {
        const End *send = &g_array_index(sends, End, s), *recv = &g_array_index(recvs, End, r);
        int order = compare_connections(send, recv);

        if (order == 0)
            append_message(w, timeline, send, recv);
        s += order <= 0;
        r += order >= 0;
    }
}

/* --- a timeline -------------------------------------------------------------------------------- */

static int
compare_in_program_order(const void *pa, const void *pb)
{
    const TtEvent *a = *(const TtEvent *const *)pa, *b = *(const TtEvent *const *)pb;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

static void
append_steps(Writer *w, guint timeline, const TtTimeline *t)
{
    guint n = t->events->len;
    g_autofree const TtEvent **events = g_new(const TtEvent *, n + 1);

    for (guint i = 0; i < n; i++)
        events[i] = &g_array_index(t->events, TtEvent, i);
    qsort(events, n, sizeof *events, compare_in_program_order);
    for (guint i = 0; i < n; i++) {
        const TtEvent *e = events[i];
        guint64 process = process_of(w, timeline, e->rank);

        if (i == 0 || events[i - 1]->rank != e->rank) {
            g_autofree char *name = w->n == 1 ? g_strdup_printf("rank %u", e->rank)
                                              : g_strdup_printf("rank %u: %s", e->rank, t->title);

            append_process(w, process, name);
        }
        if (i == 0 || events[i - 1]->rank != e->rank || events[i - 1]->lane != e->lane) {
            g_autofree char *name = g_strdup_printf("lane %u", e->lane);

            append_name(w, "thread_name", process, e->lane, name);
        }
        append_slice(w, process, e);
        if (waited_ps(e) > 0)
            append_wait(w, process, e);
    }
}

static void
append_counters(Writer *w, guint64 process, const TtTimeline *t)
{
    g_autofree char *name = w->n == 1 ? g_strdup("links") : g_strdup_printf("links: %s", t->title);

    if (t->counters->len == 0)
        return;
    append_process(w, process, name);
    for (guint c = 0; c < t->counters->len; c++) {
        const TtCounter *counter = t->counters->pdata[c];

        for (guint i = 0; i < counter->time_ps->len; i++) {
            double value = g_array_index(counter->value, double, i);
            char number[G_ASCII_DTOSTR_BUF_SIZE];

            begin_entry(w);
            g_string_append(w->text, "{\"ph\":\"C\",\"name\":");
            append_quoted(w->text, counter->name);
            g_string_append_printf(w->text, ",\"pid\":%" G_GUINT64_FORMAT ",\"tid\":0", process);
            append_us(w->text, "ts", g_array_index(counter->time_ps, gint64, i));
            g_string_append_printf(
                w->text, ",\"args\":{\"value\":%s}}",
                g_ascii_dtostr(number, sizeof number, isfinite(value) ? value : 0));
        }
    }
}

static guint
count_ranks(const TtTimeline *t)
{
    guint n = 0;

    for (guint i = 0; i < t->events->len; i++)
        n = MAX(n, g_array_index(t->events, TtEvent, i).rank + 1);
    return n;
}

char *
tt_trace_json(const TtTimeline *const *timelines, guint n)
{
    Writer w = { .text = g_string_new("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":"),
                 .n = n };
    g_autoptr(GString) title = g_string_new(NULL);
    guint n_ranks = 0;

    for (guint i = 0; i < n; i++) {
        g_string_append_printf(title, "%s%s", i ? " | " : "", timelines[i]->title);
        n_ranks = MAX(n_ranks, count_ranks(timelines[i]));
    }
    append_quoted(w.text, title->str);
    g_string_append(w.text, "},\"traceEvents\":[");
    for (guint i = 0; i < n; i++) {
        append_steps(&w, i, timelines[i]);
        append_messages(&w, i, timelines[i]);
        append_counters(&w, process_of(&w, i, n_ranks), timelines[i]);
    }
    g_string_append(w.text, "\n]}\n");
    return g_string_free(w.text, FALSE);
}
