/* What types, versions, collectives and machines are called, here and in the files. */
#include "models/measured_private.h"

#include <stdlib.h>
#include <string.h>

void
tt_measured_set_type(TtMeasured *m, const char *name)
{
    static const struct {
        const char *names, *name;
        guint bytes;
    } types[] = {
        { "int8 char", "int8", 1 },
        { "uint8 bytes", "uint8", 1 },
        { "int32 int", "int32", 4 },
        { "uint32", "uint32", 4 },
        { "int64", "int64", 8 },
        { "uint64", "uint64", 8 },
        { "half float16 fp16", "float16", 2 },
        { "bfloat16 bf16", "bfloat16", 2 },
        { "float float32 fp32", "float32", 4 },
        { "double float64 fp64", "float64", 8 },
        { "f8e4m3 fp8_e4m3 float8_e4m3", "float8_e4m3", 1 },
        { "f8e5m2 fp8_e5m2 float8_e5m2", "float8_e5m2", 1 },
    };
    const char *canonical = name;
    guint bytes = 0;

    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_auto(GStrv) names = g_strsplit(types[i].names, " ", 0);

        if (g_strv_contains((const char *const *)names, name)) {
            canonical = types[i].name;
            bytes = types[i].bytes;
        }
    }
    if (m->type && strcmp(m->type, canonical)) {
        canonical = "mixed";
        bytes = 0;
    }
    if (m->type != canonical) {
        g_free(m->type);
        m->type = g_strdup(canonical);
    }
    m->type_bytes = bytes;
}

/* Three numbers wherever they start; "2.18" is 2.18.0, for TtNcclComm's sake. */
void
tt_measured_set_version(TtMeasured *m, const char *text)
{
    const char *p = text;
    guint part[3] = { 0 }, n = 0;
    const char *first;

    while (*p && !g_ascii_isdigit(*p))
        p++;
    for (first = p; n < 3 && g_ascii_isdigit(*p); n++) {
        char *end;

        part[n] = (guint)MIN(strtoul(p, &end, 10), 999);
        p = end;
        if (*p != '.')
            break;
        p++;
    }
    if (n == 0 || (n == 1 && !part[1]))
        return;
    if (!m->version) {
        while (p > first && !g_ascii_isdigit(p[-1]))
            p--;
        m->version = g_strndup(first, (gsize)(p - first));
        m->version_number = TT_NCCL_VERSION(part[0], part[1], part[2]);
    }
}

void
tt_measured_set_code(TtMeasured *m, guint code)
{
    /* up to 2.8: 2804 is 2.8.4; since 2.9: 20907 is 2.9.7 */
    guint major = code < 10000 ? code / 1000 : code / 10000;
    guint minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
    g_autofree char *text = g_strdup_printf("%u.%u.%u", major, minor, code % 100);

    if (code >= 1000 && code < 100000)
        tt_measured_set_version(m, text);
}

const char *
tt_measured_collective_name(const char *text)
{
    static const char *const names[][2] = {
        { "allreduce", "all_reduce" },
        { "allgather", "all_gather" },
        { "reducescatter", "reduce_scatter" },
        { "broadcast", "broadcast" },
        { "bcast", "broadcast" },
        { "alltoallv", "alltoallv" },
        { "alltoall", "alltoall" },
        { "sendrecv", "sendrecv" },
        { "hypercube", "hypercube" },
        { "gather", "gather" },
        { "scatter", "scatter" },
        { "reduce", "reduce" },
    };
    GString *flat = g_string_new(NULL);
    const char *found = NULL;

    for (const char *c = text; *c && flat->len < 64; c++)
        if (g_ascii_isalnum(*c))
            g_string_append_c(flat, g_ascii_tolower(*c));
    for (guint i = 0; i < G_N_ELEMENTS(names) && !found; i++)
        if (strstr(flat->str, names[i][0]))
            found = names[i][1];
    g_string_free(flat, TRUE);
    return found;
}

double
tt_measured_busbw_factor(const char *collective, guint n)
{
    static const char *const shares[] = { "all_gather", "reduce_scatter", "alltoall", "alltoallv",
                                          "gather",     "scatter",        NULL };

    if (!collective || n == 0)
        return 1;
    if (!strcmp(collective, "all_reduce"))
        return 2.0 * (n - 1) / n;
    return g_strv_contains(shares, collective) ? (n - 1.0) / n : 1;
}

int
tt_measured_func(const TtMeasured *m)
{
    static const struct {
        const char *name;
        TtNcclFunc func;
    } rows[] = {
        { "all_reduce", TT_NCCL_ALLREDUCE },
        { "all_gather", TT_NCCL_ALLGATHER },
        { "reduce_scatter", TT_NCCL_REDUCE_SCATTER },
        { "broadcast", TT_NCCL_BROADCAST },
        { "reduce", TT_NCCL_REDUCE },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (!g_strcmp0(m->collective, rows[i].name))
            return rows[i].func;
    return -1;
}

char *
tt_measured_quote(const char *text, gssize length)
{
    GString *out = g_string_new("\"");
    gsize n = length < 0 ? strlen(text) : (gsize)length;

    for (gsize i = 0; i < n && i < 60; i++)
        g_string_append_c(out, g_ascii_isprint(text[i]) ? text[i] : text[i] == '\t' ? ' ' : '?');
    g_string_append(out, n > 60 ? "...\"" : "\"");
    return g_string_free(out, FALSE);
}

/* Runs of one machine have ids that begin alike. Most are told apart by what comes before the shape
 * ("abci2-a100-8x8-ar": "abci2-a100"); these are families whose ids do not follow that. */
char *
tt_measured_machine(const char *id)
{
    static const struct {
        const char *prefix, *machine;
    } rows[] = {
        { "cw-a100-80-", "cw-a100-80" },           /* cw-a100-80-<GPUs>-<collective> */
        { "dgx2-v100-", "dgx2-v100" },             /* dgx2-v100-<GPUs>- */
        { "superbench-a100-", "superbench-a100" }, /* superbench-a100-<GPUs>- */
        { "panl-4090-", "panl-4090" },
        { "panl-a100pcie-", "panl-a100pcie" },
        { "panl-h800-", "panl-h800" },
        { "panl-v100-", "panl-v100" },
        { "ncclblog-h200-", "ncclblog-h200" },
        { "rtx4090-", "rtx4090" },
        { "h200-1x", "h200-nvls-ring" }, /* one series, GPU counts 4 to 8 */
        { "h200-2x8-ar-bf3", "h200-bf3" },
        { "h200-2x8-ar-cetus", "h200-cetus" },
        { "h100-2x4-ar-cloud", "h100-cloud" },
        { "h100-2x8-ar-8nic", "h100-8nic" },
        { "h100-2x1-ar-tree-4nic", "h100-4nic" },
        { "h100-2x8-ibwrite-perftest", "h100-perftest" },
        { "h100-16x8-ar-issue1469", "h100-issue1469" },
        { "a100-1x8-sr", "a100-notes" },
        { "p3dn-v100-2x1-ar", "p3dn-v100-2020" },
        { "p3dn-v100-", "p3dn-v100-2019" },
        { "p4d-a100-", "p4d-a100" },
        { "a100pcie-1x4-", "a100pcie-shm" },
        { "a100pcie-2x1-", "a100pcie-issue293" },
    };
    g_auto(GStrv) parts = g_strsplit(id, "-", 0);
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (g_str_has_prefix(id, rows[i].prefix))
            return g_string_free(g_string_assign(out, rows[i].machine), FALSE);
    for (guint i = 0; parts[i]; i++) { /* up to the shape: "8x8", "n032" */
        const char *p = parts[i];

        if (i > 0 && (*p == 'n' || g_ascii_isdigit(*p)) &&
            strspn(p + 1, "0123456789x") == strlen(p + 1) && strlen(p) > 2)
            break;
        g_string_append_printf(out, "%s%s", i ? "-" : "", p);
    }
    for (gsize i = 0; i < out->len; i++) /* it is written into files of lines */
        if (g_ascii_iscntrl(out->str[i]))
            out->str[i] = ' ';
    return g_string_free(out, FALSE);
}
