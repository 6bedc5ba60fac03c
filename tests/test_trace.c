/* The trace: valid JSON, exact times, nested slices, arrows with both ends. */
#include "algos/algo.h"
#include "plots/trace.h"
#include "tests/check.h"

#include <string.h>

static void
add_event(TtTimeline *t, TtEvent event)
{
    g_array_append_val(t->events, event);
}

/* Two ranks, one lane, two rounds: rank 0 sends, rank 1 receives, each the later for waiting. */
static TtTimeline *
make_timeline(const char *title)
{
    TtTimeline *t = tt_timeline_new(title);
    TtCounter *counter;

    for (guint round = 0; round < 2; round++) {
        gint64 begin = 5000000 * (gint64)round;

        add_event(t, (TtEvent){ .rank = 0, .op = TT_OP_SEND, .round = round, .bytes = 4096,
                                .recv_peer = TT_NO_RANK, .send_peer = 1, .begin_ps = begin + 1,
                                .end_ps = begin + 2000001, .wait_for = TT_NO_RANK });
        add_event(t, (TtEvent){ .rank = 1, .op = TT_OP_RECV, .round = round, .bytes = 4096,
                                .recv_peer = 0, .send_peer = TT_NO_RANK, .begin_ps = begin,
                                .end_ps = begin + 3500000, .wait_ps = 3000000, .wait_for = 0 });
    }
    counter = tt_timeline_add_counter(t, "gpu 0 \"out\" \\ \x01");
    tt_counter_add(counter, 0, 0.25);
    tt_counter_add(counter, 1500000, 1.0 / 3);
    return t;
}

#if __has_include(<json-glib/json-glib.h>)
#include <json-glib/json-glib.h>

/* Microseconds to picoseconds; a double holds these small times to the picosecond. */
static gint64
ps_of(JsonObject *o, const char *key)
{
    return (gint64)(json_object_get_double_member(o, key) * 1e6 + 0.5);
}

typedef struct {
    guint n_slices, n_waits, n_starts, n_ends, n_counters, n_processes;
    gint64 last_end_ps; /* of the slice a wait must lie in */
    gint64 last_begin_ps;
    gboolean nested, forward;
    GHashTable *open; /* flow id -> begin */
} Seen;

static void
see_slice(Seen *s, JsonObject *o)
{
    gint64 begin = ps_of(o, "ts"), end = begin + ps_of(o, "dur");

    if (strcmp(json_object_get_string_member(o, "cat"), "wait") == 0) {
        s->n_waits++;
        s->nested = s->nested && begin >= s->last_begin_ps && end <= s->last_end_ps;
    } else {
        s->n_slices++;
        s->last_begin_ps = begin;
        s->last_end_ps = end;
    }
}

static void
see(Seen *s, JsonObject *o)
{
    const char *phase = json_object_get_string_member(o, "ph");

    if (strcmp(phase, "X") == 0) {
        see_slice(s, o);
    } else if (strcmp(phase, "s") == 0) {
        gint64 *begin = g_new(gint64, 1);

        *begin = ps_of(o, "ts");
        s->n_starts++;
        g_hash_table_insert(s->open, GINT_TO_POINTER(json_object_get_int_member(o, "id")), begin);
    } else if (strcmp(phase, "f") == 0) {
        gpointer id = GINT_TO_POINTER(json_object_get_int_member(o, "id"));
        gint64 *begin = g_hash_table_lookup(s->open, id);

        s->n_ends++;
        s->forward = s->forward && begin && *begin <= ps_of(o, "ts");
        g_hash_table_remove(s->open, id);
    } else if (strcmp(phase, "C") == 0) {
        s->n_counters++;
    } else if (strcmp(json_object_get_string_member(o, "name"), "process_name") == 0) {
        s->n_processes++;
    }
}

static JsonParser *
parse(const TtTimeline *const *timelines, guint n)
{
    g_autofree char *text = tt_trace_json(timelines, n);
    g_autoptr(GError) error = NULL;
    JsonParser *parser = json_parser_new();

    json_parser_load_from_data(parser, text, -1, &error);
    CHECK_NO_ERROR(error);
    return parser;
}

static JsonArray *
events_of(JsonParser *parser)
{
    return json_object_get_array_member(json_node_get_object(json_parser_get_root(parser)),
                                        "traceEvents");
}

static Seen
look_at(JsonArray *events)
{
    Seen s = { .nested = TRUE, .forward = TRUE };

    s.open = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; i < json_array_get_length(events); i++)
        see(&s, json_array_get_object_element(events, i));
    return s;
}

static void
one_timeline(void)
{
    g_autoptr(TtTimeline) t = make_timeline("two ranks");
    g_autoptr(JsonParser) parser = parse((const TtTimeline *const[]){ t }, 1);
    Seen s = look_at(events_of(parser));

    CU_ASSERT_EQUAL(s.n_slices, 4);
    CU_ASSERT_EQUAL(s.n_waits, 2); /* only the receives waited */
    CU_ASSERT_EQUAL(s.n_starts, 2);
    CU_ASSERT_EQUAL(s.n_ends, 2);
    CU_ASSERT_EQUAL(s.n_counters, 2);
    CU_ASSERT_EQUAL(s.n_processes, 3); /* two ranks and the links */
    CU_ASSERT_TRUE(s.nested);
    CU_ASSERT_TRUE(s.forward);
    CU_ASSERT_EQUAL(g_hash_table_size(s.open), 0);
    g_hash_table_unref(s.open);
}

static void
two_timelines_do_not_mix(void)
{
    g_autoptr(TtTimeline) a = make_timeline("predicted");
    g_autoptr(TtTimeline) b = make_timeline("measured");
    g_autoptr(JsonParser) parser = parse((const TtTimeline *const[]){ a, b }, 2);
    Seen s = look_at(events_of(parser));

    CU_ASSERT_EQUAL(s.n_slices, 8);
    CU_ASSERT_EQUAL(s.n_starts, 4);
    CU_ASSERT_EQUAL(s.n_processes, 6);
    CU_ASSERT_TRUE(s.nested && s.forward);
    CU_ASSERT_EQUAL(g_hash_table_size(s.open), 0);
    g_hash_table_unref(s.open);
}

/* What one side did not record gets no arrow: a dangling one would hide the rest in Perfetto. */
static void
half_messages_get_no_arrow(void)
{
    g_autoptr(TtTimeline) t = make_timeline("cut");
    g_autoptr(JsonParser) parser = NULL;
    Seen s;

    g_array_remove_index(t->events, 3); /* the second receive */
    parser = parse((const TtTimeline *const[]){ t }, 1);
    s = look_at(events_of(parser));
    CU_ASSERT_EQUAL(s.n_slices, 3);
    CU_ASSERT_EQUAL(s.n_starts, 1);
    CU_ASSERT_EQUAL(s.n_ends, 1);
    g_hash_table_unref(s.open);
}

static void
empty_is_valid(void)
{
    g_autoptr(TtTimeline) t = tt_timeline_new("nothing");
    g_autoptr(JsonParser) parser = parse((const TtTimeline *const[]){ t }, 1);

    CU_ASSERT_EQUAL(json_array_get_length(events_of(parser)), 0);
}
#endif

/* 2000001 ps after 1 ps: all digits are there. */
static void
times_keep_picoseconds(void)
{
    g_autoptr(TtTimeline) t = make_timeline("exact");
    g_autofree char *text = tt_trace_json((const TtTimeline *const[]){ t }, 1);

    CHECK(strstr(text, "\"ts\":0.000001,\"dur\":2.000000") != NULL, "%s", text);
    CHECK(strstr(text, "\"ts\":5.000001,\"dur\":2.000000") != NULL, "%s", text);
    CHECK(strstr(text, "\"wait for rank 0\"") != NULL, "%s", text);
}

int
main(void)
{
    CU_TestInfo tests[] = {
#if __has_include(<json-glib/json-glib.h>)
        { "one timeline", one_timeline },
        { "two timelines do not mix", two_timelines_do_not_mix },
        { "half messages get no arrow", half_messages_get_no_arrow },
        { "empty is valid", empty_is_valid },
#endif
        { "times keep picoseconds", times_keep_picoseconds },
        CU_TEST_INFO_NULL,
    };

    return check_main("trace", tests);
}
