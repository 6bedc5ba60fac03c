#include "models/scoreboard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    guint64 up_to;
    const char *name;
} size_classes[TT_N_SIZE_CLASSES] = {
    { 16ull << 10, "up to 16 KiB" },
    { 1ull << 20, "up to 1 MiB" },
    { 64ull << 20, "up to 64 MiB" },
    { G_MAXUINT64, "larger" },
};

guint
tt_size_class(guint64 bytes)
{
    guint c = 0;

    while (bytes > size_classes[c].up_to)
        c++;
    return c;
}

const char *
tt_size_class_name(guint size_class)
{
    return size_class < TT_N_SIZE_CLASSES ? size_classes[size_class].name : "all";
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Between neighbours, linearly. */
static double
quantile(const double *sorted, guint n, double q)
{
    double at = q * (n - 1);
    guint below = (guint)at;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

TtErrorStats
tt_error_stats(const double *errors, guint n)
{
    g_autofree double *sorted = g_new(double, n + 1);
    double sum = 0;
    TtErrorStats stats = { .n = n, NAN, NAN, NAN, NAN, NAN };

    if (n == 0)
        return stats;
    for (guint i = 0; i < n; i++)
        sum += sorted[i] = errors[i];
    qsort(sorted, n, sizeof *sorted, ascending);
    stats.mean = sum / n;
    stats.median = quantile(sorted, n, 0.5);
    for (guint i = 0; i < n; i++)
        sorted[i] = fabs(sorted[i]);
    qsort(sorted, n, sizeof *sorted, ascending);
    stats.median_abs = quantile(sorted, n, 0.5);
    stats.p95_abs = quantile(sorted, n, 0.95);
    stats.max_abs = sorted[n - 1];
    return stats;
}

typedef struct {
    guint row, size_class;
    double error;
} Sample;

struct TtScoreboard {
    GPtrArray *rows; /* char * */
    GArray *samples; /* Sample */
};

TtScoreboard *
tt_scoreboard_new(void)
{
    TtScoreboard *board = g_new0(TtScoreboard, 1);

    board->rows = g_ptr_array_new_with_free_func(g_free);
    board->samples = g_array_new(FALSE, FALSE, sizeof(Sample));
    return board;
}

void
tt_scoreboard_free(TtScoreboard *board)
{
    if (!board)
        return;
    g_ptr_array_unref(board->rows);
    g_array_unref(board->samples);
    g_free(board);
}

void
tt_scoreboard_add(TtScoreboard *board, const char *row, guint64 bytes, double error)
{
    Sample sample = { .size_class = tt_size_class(bytes), .error = error };

    for (sample.row = 0; sample.row < board->rows->len; sample.row++)
        if (!strcmp(board->rows->pdata[sample.row], row))
            break;
    if (sample.row == board->rows->len)
        g_ptr_array_add(board->rows, g_strdup(row));
    g_array_append_val(board->samples, sample);
}

guint
tt_scoreboard_n_rows(const TtScoreboard *board)
{
    return board->rows->len;
}

const char *
tt_scoreboard_row(const TtScoreboard *board, guint row)
{
    return board->rows->pdata[row];
}

TtErrorStats
tt_scoreboard_stats(const TtScoreboard *board, guint row, guint size_class)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));

    for (guint i = 0; i < board->samples->len; i++) {
        const Sample *sample = &g_array_index(board->samples, Sample, i);

        if ((row == TT_ALL_ROWS || sample->row == row) &&
            (size_class == TT_N_SIZE_CLASSES || sample->size_class == size_class))
            g_array_append_val(errors, sample->error);
    }
    return tt_error_stats((const double *)(const void *)errors->data, errors->len);
}
