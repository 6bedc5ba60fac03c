/* calibration_machine.c - what a profile says of its machine before anything is measured, and where it is kept. */
#include "cli/calibration.h"
#include "cli/micro.h"

#include "algos/passing.h"
#include "exec/defaults.h"

#include <string.h>

static char *
cpu_name(void)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL)) {
        lines = g_strsplit(text, "\n", 64);
        for (guint i = 0; lines[i]; i++) {
            const char *colon = strchr(lines[i], ':');

            if (g_str_has_prefix(lines[i], "model name") && colon)
                return g_strstrip(g_strdup(colon + 1));
        }
    }
    return g_strdup("unknown CPU");
}

/* All lanes of a rank work at the same time, and each stores its messages itself; what GPUs share is in what a step
 * costs, since all ranks are measured at once. */
static TtProfile *
describe_gpus(TtProfile *profile)
{
    profile->lane_pushes = TRUE;
    return profile;
}

TtProfile *
tt_calibration_describe(const char *transport, guint cores)
{
    TtPlanSpec spec = { .n_ranks = TT_MICRO_RANKS, .count = 1 << 30, .type = TT_FLOAT32 };
    TtProfile *profile = tt_profile_ideal();
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *cpu = cpu_name();
    gboolean in_memory = tt_calibration_is_of_memory(transport);

    tt_exec_defaults(&spec, "direct");
    g_free(profile->name);
    profile->name = g_strdup("this");
    profile->machine = in_memory ? g_strdup_printf("%s, %u cores", cpu, cores)
                                 : g_strdup_printf("%s, %u cores, %s", cpu, cores, transport);
    profile->measured_at = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    profile->covers_memory = TRUE;
    if (tt_calibration_is_of_gpus(transport))
        return describe_gpus(profile);
    profile->lane_pushes =
        in_memory; /* else the system, or the card, sends while the lane goes on */
    profile->workers_per_rank = 1;
    profile->cores = cores;
    profile->uncut_bytes = (double)spec.slot_bytes;
    if (in_memory) {
        profile->direct_bytes = TT_PASS_LEAST_BYTES;
        profile->direct_crowded_bytes = TT_PASS_LEAST_BYTES_CROWDED;
    }
    return profile;
}

gboolean
tt_calibration_is_of_memory(const char *transport)
{
    return !transport || strcmp(transport, "shm") == 0 || strcmp(transport, "threads") == 0;
}

gboolean
tt_calibration_is_of_gpus(const char *transport)
{
    return transport && (strcmp(transport, "cuda") == 0 || g_str_has_prefix(transport, "cuda,"));
}

char *
tt_calibration_conditions(const TtTeamOptions *team, guint n_ranks)
{
    return tt_calibration_is_of_gpus(team->transport)
               ? g_strdup_printf("%u ranks, protocol %s, placement %s", n_ranks,
                                 tt_gpu_protocol_name(team->gpu_protocol),
                                 tt_gpu_placement_name(team->gpu_placement))
               : NULL;
}

char *
tt_calibration_path(const char *transport, const char *gpus)
{
    const char *host =
        tt_calibration_is_of_gpus(transport) && gpus && g_str_has_prefix(gpus, "host") ? "-host"
                                                                                       : "";
    g_autofree char *name = tt_calibration_is_of_memory(transport)
                                ? g_strdup("this.ini")
                                : g_strdup_printf("this-%s%s.ini", transport, host);

    return g_build_filename(g_get_user_cache_dir(), "tutti", name, NULL);
}
