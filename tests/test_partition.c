/* Classes of small graphs, by eye; and of random ones, by the definition. */
#include "sim/partition.h"
#include "tests/check.h"

#include <string.h>

#define MAX_NODES 64
#define MAX_EDGES 512

typedef struct {
    guint32 n, n_ends, a[MAX_EDGES], b[MAX_EDGES], label_a[MAX_EDGES], label_b[MAX_EDGES];
    guint64 colour[MAX_NODES];
    guint32 class_of[MAX_NODES];
} Drawing;

static void
join(Drawing *d, guint32 a, guint32 b, guint32 label_a, guint32 label_b)
{
    d->a[d->n_ends] = a;
    d->b[d->n_ends] = b;
    d->label_a[d->n_ends] = label_a; /* what b is to a */
    d->label_b[d->n_ends++] = label_b;
}

static guint32
classes(Drawing *d)
{
    guint32 first[MAX_NODES + 1] = { 0 }, n = 0;
    TtEdge edge[2 * MAX_EDGES];
    TtLabelledGraph graph = { d->n, first, edge, d->colour };

    for (guint32 v = 0; v < d->n; v++) {
        for (guint32 e = 0; e < d->n_ends; e++) {
            if (d->a[e] == v)
                edge[n++] = (TtEdge){ d->b[e], d->label_a[e] };
            if (d->b[e] == v)
                edge[n++] = (TtEdge){ d->a[e], d->label_b[e] };
        }
        first[v + 1] = n;
    }
    return tt_partition(&graph, d->class_of);
}

static void
by_eye(void)
{
    Drawing ring = { .n = 12 }, path = { .n = 7 }, marked = { .n = 12 }, none = { .n = 0 };

    for (guint32 i = 0; i < 12; i++) {
        join(&ring, i, (i + 1) % 12, 1, 2);
        join(&marked, i, (i + 1) % 12, 1, 2);
    }
    CU_ASSERT_EQUAL(classes(&none), 0);
    CU_ASSERT_EQUAL(classes(&ring), 1);
    marked.colour[3] = marked.colour[9] = 5; /* two marks, opposite: period 6 */
    CU_ASSERT_EQUAL(classes(&marked), 6);
    for (guint32 i = 0; i < 12; i++)
        CU_ASSERT_EQUAL(marked.class_of[i], i % 6);
    marked.colour[9] = 6; /* unlike marks: every place is its own */
    CU_ASSERT_EQUAL(classes(&marked), 12);
    for (guint32 i = 0; i < 6; i++)
        join(&path, i, i + 1, 1, 1);
    CU_ASSERT_EQUAL(classes(&path), 4); /* a path and its mirror image */
    for (guint32 i = 0; i < 7; i++)
        CU_ASSERT_EQUAL(path.class_of[i], MIN(i, 6 - i));
}

/* Plain colour refinement: everybody looks again until nothing changes. */
static guint32
refine_plainly(const Drawing *d, guint32 *class_of)
{
    guint64 look[MAX_NODES];
    guint32 n = 0, before;

    memset(class_of, 0, d->n * sizeof *class_of);
    do {
        before = n;
        for (guint32 v = 0; v < d->n; v++)
            look[v] = tt_mix(d->colour[v], class_of[v]);
        for (guint32 e = 0; e < d->n_ends; e++) {
            look[d->a[e]] += tt_mix(class_of[d->b[e]], d->label_a[e] + 100);
            look[d->b[e]] += tt_mix(class_of[d->a[e]], d->label_b[e] + 100);
        }
        n = 0;
        for (guint32 v = 0; v < d->n; v++) {
            guint32 u = 0;

            while (look[u] != look[v])
                u++;
            class_of[v] = u == v ? n++ : class_of[u];
        }
    } while (n != before);
    return n;
}

static void
same_as_looking_everywhere(void)
{
    for (guint32 seed = 0; seed < 2000; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        Drawing d = { .n = (guint32)g_rand_int_range(random, 1, 24) };
        guint32 want[MAX_NODES], n_edges = (guint32)g_rand_int_range(random, 0, 40);
        guint32 copies = (guint32)g_rand_int_range(random, 1, 3), n = d.n;

        for (guint32 i = 0; i < n_edges; i++) {
            guint32 a = (guint32)g_rand_int_range(random, 0, (gint32)n);
            guint32 b = (guint32)g_rand_int_range(random, 0, (gint32)n);

            for (guint32 k = 0; k < copies; k++) /* so that there is something to find */
                join(&d, a + k * n, b + k * n, i % 3, i % 2);
        }
        d.n *= copies;
        CHECK(classes(&d) == refine_plainly(&d, want), "seed %u", seed);
        CHECK(memcmp(want, d.class_of, d.n * sizeof *want) == 0, "seed %u", seed);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "by eye", by_eye },
        { "same as looking everywhere", same_as_looking_everywhere },
        CU_TEST_INFO_NULL,
    };

    return check_main("partition", tests);
}
