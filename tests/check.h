/* check.h - table tests over CUnit: a failure prints the row's name, a suite is one call. */
#pragma once
#include <CUnit/Basic.h>
#include <glib.h>
#include <stdio.h>

/* Fails with a formatted text instead of the bare condition. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        gboolean check_ok = !!(condition);                                                         \
        g_autofree char *check_text = check_ok ? g_strdup("") : g_strdup_printf(__VA_ARGS__);      \
                                                                                                   \
        if (!check_ok)                                                                             \
            fprintf(stderr, "\n%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, check_text);      \
        CU_assertImplementation(check_ok, __LINE__, check_text, __FILE__, "", CU_FALSE);           \
    } while (0)

/* Rows are structs with a `name`. */
#define CHECK_ROW(row, condition) CHECK(condition, "%s", (row)->name)

/* Expects that @error is set, with this code, and says all of the words; then frees it. */
#define CHECK_ERROR(error, domain_, code_, words)                                                  \
    do {                                                                                           \
        CHECK(g_error_matches(error, domain_, code_), "wanted an error about \"%s\", got: %s",     \
              words, (error) ? (error)->message : "none");                                         \
        CHECK((error) && strstr((error)->message, words), "\"%s\" not in: %s", words,              \
              (error) ? (error)->message : "none");                                                \
        g_clear_error(&(error));                                                                   \
    } while (0)

#define CHECK_NO_ERROR(error) CHECK((error) == NULL, "%s", (error) ? (error)->message : "")

/* Builds with sanitizers are slow; there, tests of many cases of one kind take every @n-th. */
static inline guint
check_every(guint n)
{
    const char *sanitizers = g_getenv("TT_SANITIZE");

    return sanitizers && *sanitizers ? n : 1;
}

/* Runs the tests {name, function}, ends with {NULL}; returns what main() should. */
static inline int
check_main(const char *suite_name, CU_TestInfo *tests)
{
    CU_SuiteInfo suites[] = { { suite_name, NULL, NULL, NULL, NULL, tests }, CU_SUITE_INFO_NULL };
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return 1;
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures() + (CU_get_number_of_tests_run() == 0);
    CU_cleanup_registry();
    return failures ? 1 : 0;
}
