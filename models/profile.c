#include "models/profile.h"

#include "models/profile_file.h"

#include <math.h>
#include <string.h>

GQuark
tt_profile_error_quark(void)
{
    return g_quark_from_static_string("tt-profile-error");
}

TtProfile *
tt_profile_ideal(void)
{
    TtProfile *profile = g_new0(TtProfile, 1);

    profile->name = g_strdup("ideal");
    return profile;
}

void
tt_profile_free(TtProfile *profile)
{
    if (!profile)
        return;
    g_free(profile->name);
    g_free(profile->machine);
    g_free(profile->measured_at);
    g_free(profile->conditions);
    tt_profile_free(profile->next);
    g_free(profile);
}

TtProfile *
tt_profile_new_state(const TtProfile *profile)
{
    TtProfile *state = g_new(TtProfile, 1);

    *state = *profile;
    memset(state->op, 0, sizeof state->op);
    state->name = g_strdup(profile->name);
    state->machine = state->measured_at = state->conditions = NULL;
    state->next = NULL;
    return state;
}

const TtProfile *
tt_profile_state(const TtProfile *profile, double flag_s)
{
    const TtProfile *best = NULL;
    double best_ratio = TT_PROFILE_STATE_FACTOR;

    for (; profile; profile = profile->next) {
        double ratio = MAX(flag_s, profile->latency_s) / MIN(flag_s, profile->latency_s);

        if (ratio < best_ratio) { /* false where a latency is 0 */
            best = profile;
            best_ratio = ratio;
        }
    }
    return best;
}

/* Linear in log(footprint) between points, flat outside. */
static double
interpolate(const TtOpCost *cost, const double *value, double footprint_bytes)
{
    const double *x = cost->footprint_bytes;
    guint low = 0, high = cost->n - 1;
    double share;

    if (!(footprint_bytes > x[low])) /* also NaN */
        return value[low];
    if (footprint_bytes >= x[high])
        return value[high];
    while (high - low > 1) {
        guint middle = (low + high) / 2;

        if (x[middle] <= footprint_bytes)
            low = middle;
        else
            high = middle;
    }
    share = log(footprint_bytes / x[low]) / log(x[high] / x[low]);
    return value[low] + share * (value[high] - value[low]);
}

double
tt_profile_footprint(const TtProfile *profile, double footprint_bytes, guint64 n_rounds,
                     double message_bytes)
{
    if (n_rounds > 1 || message_bytes > profile->uncut_bytes)
        return footprint_bytes;
    return MIN(footprint_bytes, 2 * message_bytes);
}

double
tt_profile_op_s(const TtProfile *profile, guint op, guint64 bytes, double footprint_bytes)
{
    const TtOpCost *cost = &profile->op[op];

    g_assert(op < TT_PROFILE_OPS);
    if (cost->n == 0)
        return 0;
    return interpolate(cost, cost->fixed_s, footprint_bytes) +
           (double)bytes * interpolate(cost, cost->per_byte_s, footprint_bytes);
}

TtProfile *
tt_profile_open(const char *name_or_path, GError **error)
{
    g_autoptr(GString) known = g_string_new("ideal");

    if (strcmp(name_or_path, "ideal") == 0)
        return tt_profile_ideal();
    for (guint i = 0; tt_builtin_profiles[i].name; i++) {
        const TtBuiltinProfile *built_in = &tt_builtin_profiles[i];

        if (strcmp(name_or_path, built_in->name) == 0)
            return tt_profile_parse(built_in->text, strlen(built_in->text), built_in->name, error);
        g_string_append_printf(known, ", %s", built_in->name);
    }
    if (!strpbrk(name_or_path, "/.") && !g_file_test(name_or_path, G_FILE_TEST_EXISTS)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_USAGE,
                    "unknown profile \"%s\" (one of: %s, or a file)", name_or_path, known->str);
        return NULL;
    }
    return tt_profile_load(name_or_path, error);
}
