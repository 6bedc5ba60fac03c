/* mutate.h - texts spoilt at random, for parsers of files that others write.
 *
 * The same seed makes the same mutants; it is printed, and a program that calls fuzz_arguments()
 * takes it as an argument:
 *
 *     test_<file>_fuzz [SEED [MUTANTS]]
 */
#pragma once
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    guint32 seed;
    guint n_mutants;
    guint most_at_once;       /* changes to a mutant */
    guint least_accepted;     /* one mutant in so many, or the changes are too rough to tell much */
    const char *const *words; /* of the language in question, and what tends to hurt its parser */
    gsize n_words;
} Fuzz;

/* Checks what is made of a mutant of sample number @sample; TRUE if it was accepted. */
typedef gboolean (*TryMutant)(const char *text, gsize length, guint sample, GRand *rand,
                              const char *what);

static inline guint
below(GRand *rand, gsize n)
{
    return n ? (guint)(g_rand_int(rand) % n) : 0;
}

/* The sanitizers' builds take a share of the mutants, unless told how many. */
static inline void
fuzz_arguments(Fuzz *fuzz, int argc, char **argv)
{
    fuzz->n_mutants /= check_every(3);
    if (argc > 1)
        fuzz->seed = (guint32)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        fuzz->n_mutants = (guint)strtoul(argv[2], NULL, 10);
}

static inline void
mutate_number(GString *text, GRand *rand, gsize at)
{
    static const char *const numbers[] = {
        "0",   "1",   "-1",  "9",          "65535",
        "nan", "inf", "N/A", "4294967296", "18446744073709551616",
        "512", "0.5", "%s",  "1e999",      "99999999999999999999999999"
    };

    while (at < text->len && !g_ascii_isdigit(text->str[at]))
        at++;
    g_string_erase(text, (gssize)at, (gssize)strspn(text->str + at, "0123456789."));
    g_string_insert(text, (gssize)at, numbers[below(rand, G_N_ELEMENTS(numbers))]);
}

/* A line is said again elsewhere. */
static inline void
mutate_lines(GString *text, GRand *rand, gsize at)
{
    const char *end = memchr(text->str + at, '\n', text->len - at);
    gsize first = end ? (gsize)(end + 1 - text->str) : 0;
    g_autofree char *copy = g_strndup(text->str + first, strcspn(text->str + first, "\n") + 1);
    gsize from = below(rand, text->len);
    const char *place = memchr(text->str + from, '\n', text->len - from);

    g_string_insert(text, place ? place + 1 - text->str : (gssize)first, copy);
}

static inline void
mutate(const Fuzz *fuzz, GString *text, GRand *rand)
{
    gsize at = below(rand, text->len + 1), length = below(rand, MIN(text->len - at, 100) + 1);

    switch (below(rand, 10)) {
    case 0: /* flip a bit */
        if (at < text->len)
            text->str[at] ^= (char)(1 << below(rand, 8));
        break;
    case 1: g_string_erase(text, (gssize)at, (gssize)length); break;
    case 2:
    case 3: g_string_insert(text, (gssize)at, fuzz->words[below(rand, fuzz->n_words)]); break;
    case 4:
    case 5: mutate_number(text, rand, at); break;
    case 6: { /* say something twice */
        g_autofree char *copy = g_strndup(text->str + at, length);

        g_string_insert(text, below(rand, text->len + 1), copy);
        break;
    }
    case 7: mutate_lines(text, rand, at); break;
    case 8: /* a zero byte, which C text has not */
        if (at < text->len)
            text->str[at] = '\0';
        break;
    default: g_string_truncate(text, at); g_string_append_c(text, '\n');
    }
}

/* @samples: of GBytes. */
static inline void
check_mutants(const Fuzz *fuzz, const GPtrArray *samples, TryMutant try_mutant)
{
    GRand *rand = g_rand_new_with_seed(fuzz->seed);
    gint64 slowest_us = 0, begin_us = g_get_monotonic_time();
    guint n_accepted = 0;

    for (guint i = 0; i < fuzz->n_mutants; i++) {
        guint sample = i % samples->len;
        gsize size;
        const char *from = g_bytes_get_data(samples->pdata[sample], &size);
        g_autoptr(GString) text = g_string_new_len(from, (gssize)size);
        g_autofree char *what = g_strdup_printf("seed %u, mutant %u", fuzz->seed, i);
        gint64 start_us = g_get_monotonic_time();

        for (guint k = 0, n = 1 + below(rand, fuzz->most_at_once); k < n; k++)
            mutate(fuzz, text, rand);
        n_accepted += try_mutant(text->str, text->len, sample, rand, what);
        slowest_us = MAX(slowest_us, g_get_monotonic_time() - start_us);
    }
    printf("seed %u: %u mutants, %u accepted, %.1f s, slowest %.1f ms ", fuzz->seed,
           fuzz->n_mutants, n_accepted, (double)(g_get_monotonic_time() - begin_us) / 1e6,
           (double)slowest_us / 1e3);
    CHECK(n_accepted > fuzz->n_mutants / fuzz->least_accepted && n_accepted < fuzz->n_mutants,
          "%u of %u accepted", n_accepted, fuzz->n_mutants);
    CHECK(slowest_us < 5000000, "a mutant took %" G_GINT64_FORMAT " us", slowest_us);
    g_rand_free(rand);
}

/* What every refusal of a foreign text is: short, and one line for people. */
static inline gboolean
is_one_line(const GError *error)
{
    return error && !strpbrk(error->message, "\n\001") && strlen(error->message) < 1000;
}
