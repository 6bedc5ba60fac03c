#include "algos/timeline.h"

static void
counter_free(gpointer data)
{
    TtCounter *counter = data;

    g_free(counter->name);
    g_array_unref(counter->time_ps);
    g_array_unref(counter->value);
    g_free(counter);
}

TtTimeline *
tt_timeline_new(const char *title)
{
    TtTimeline *timeline = g_new0(TtTimeline, 1);

    timeline->title = g_strdup(title);
    timeline->events = g_array_new(FALSE, FALSE, sizeof(TtEvent));
    timeline->counters = g_ptr_array_new_with_free_func(counter_free);
    return timeline;
}

void
tt_timeline_free(TtTimeline *timeline)
{
    if (!timeline)
        return;
    g_free(timeline->title);
    g_array_unref(timeline->events);
    g_ptr_array_unref(timeline->counters);
    g_free(timeline);
}

static int
compare_numbers(gint64 a, gint64 b)
{
    return (a > b) - (a < b);
}

static int
compare_events(gconstpointer a, gconstpointer b)
{
    const TtEvent *x = a, *y = b;
    int order = compare_numbers(x->begin_ps, y->begin_ps);

    if (order == 0)
        order = compare_numbers(x->rank, y->rank);
    if (order == 0)
        order = compare_numbers(x->lane, y->lane);
    if (order == 0)
        order = compare_numbers(x->round, y->round);
    return order ? order : compare_numbers(x->step, y->step);
}

void
tt_timeline_sort(TtTimeline *timeline)
{
    g_array_sort(timeline->events, compare_events);
}

TtCounter *
tt_timeline_add_counter(TtTimeline *timeline, const char *name)
{
    TtCounter *counter = g_new0(TtCounter, 1);

    counter->name = g_strdup(name);
    counter->time_ps = g_array_new(FALSE, FALSE, sizeof(gint64));
    counter->value = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(timeline->counters, counter);
    return counter;
}

void
tt_counter_add(TtCounter *counter, gint64 time_ps, double value)
{
    g_array_append_val(counter->time_ps, time_ps);
    g_array_append_val(counter->value, value);
}

static void
append_rank(GString *text, guint32 rank)
{
    if (rank != TT_NO_RANK)
        g_string_append_printf(text, "%u", rank);
    g_string_append_c(text, ',');
}

char *
tt_timeline_to_csv(const TtTimeline *timeline)
{
    GString *text =
        g_string_new("rank,lane,round,step,op,recv_peer,send_peer,bytes,begin_ps,end_ps,"
                     "wait_ps,wait_for\n");

    for (guint i = 0; i < timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(timeline->events, TtEvent, i);

        g_string_append_printf(text, "%u,%u,%u,%u,%s,", e->rank, e->lane, e->round, e->step,
                               tt_op_name(e->op));
        append_rank(text, e->recv_peer);
        append_rank(text, e->send_peer);
        g_string_append_printf(text,
                               "%" G_GUINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                               ",%" G_GINT64_FORMAT ",",
                               e->bytes, e->begin_ps, e->end_ps, e->wait_ps);
        append_rank(text, e->wait_for);
        text->str[text->len - 1] = '\n'; /* the last comma */
    }
    return g_string_free(text, FALSE);
}
