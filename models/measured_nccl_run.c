/* Lines around the tables of nccl-tests and rccl-tests: ranks, versions, environment, network. */
#include "models/measured_nccl_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static GHashTable *
counts_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static guint
count_one(GHashTable *counts, const char *key)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, key)) + 1;

    g_hash_table_insert(counts, g_strdup(key), GUINT_TO_POINTER(n));
    return n;
}

static guint
largest(GHashTable *counts)
{
    GHashTableIter iter;
    gpointer value;
    guint n = 0;

    g_hash_table_iter_init(&iter, counts);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        n = MAX(n, GPOINTER_TO_UINT(value));
    return n;
}

TtNcclRun *
tt_nccl_run_new(const char *origin)
{
    TtNcclRun *run = g_new0(TtNcclRun, 1);

    run->facts = tt_measured_new(origin);
    run->facts->library = TT_LIBRARY_NCCL;
    run->facts->tool = g_strdup("nccl-tests");
    run->per_host = counts_new();
    run->per_device = counts_new();
    run->processes = counts_new();
    return run;
}

void
tt_nccl_run_free(TtNcclRun *run)
{
    if (!run)
        return;
    tt_measured_free(run->facts);
    g_hash_table_unref(run->per_host);
    g_hash_table_unref(run->per_device);
    g_hash_table_unref(run->processes);
    g_free(run);
}

/* The number after @word; @absent if it is not there. Big ones are cut off. */
static guint
number_after(const char *line, const char *word, guint absent)
{
    const char *p = strstr(line, word);

    if (!p)
        return absent;
    for (p += strlen(word); *p == ' '; p++)
        ;
    return g_ascii_isdigit(*p) ? (guint)MIN(strtoul(p, NULL, 10), TT_MEASURED_MOST_RANKS) : absent;
}

/* The word after @word, up to a blank; NULL if it is not there. Caller frees. */
static char *
word_after(const char *line, const char *word)
{
    const char *p = strstr(line, word);
    gsize n;

    if (!p)
        return NULL;
    for (p += strlen(word); *p == ' '; p++)
        ;
    n = strcspn(p, " ");
    return n ? g_strndup(p, MIN(n, 255)) : NULL;
}

static void
set_rccl(TtNcclRun *run)
{
    run->facts->library = TT_LIBRARY_RCCL;
    g_free(run->facts->tool);
    run->facts->tool = g_strdup("rccl-tests");
}

/* "Rank  0 Group  0 Pid  15784 on  nid007106 device  0 [0009:01:00] NVIDIA GH200 120GB" and its older
 * forms: without group, without pid; "Device  0 ->  0 [0x0a] GeForce GTX TITAN X" of NCCL 1. */
static gboolean
read_rank(TtNcclRun *run, const char *line)
{
    const char *rank = strstr(line, "Rank "), *arrow = strstr(line, "Device ");
    const char *bracket, *name;
    g_autofree char *host = NULL, *device = NULL, *process = NULL;
    guint group = number_after(line, "Group ", 0);

    if (!rank && !(arrow && strstr(arrow, "->")))
        return FALSE;
    bracket = strchr(rank ? rank : arrow, '[');
    name = bracket ? strchr(bracket, ']') : NULL;
    if (!name || (rank && !strstr(rank, "device ")))
        return FALSE;
    run->highest_group = MAX(run->highest_group, group);
    if (group == 0) {
        host = rank ? word_after(rank, " on ") : NULL;
        host = host ? host : g_strdup("localhost");
        device = g_strdup_printf("%s %u", host, number_after(rank ? rank : arrow, "evice ", 0));
        run->n_rank_lines++;
        run->highest_rank = MAX(run->highest_rank, rank ? number_after(rank, "Rank ", 0)
                                                        : number_after(arrow, "Device ", 0));
        if (count_one(run->per_host, host) == 1 && run->facts->hosts->len < 65536)
            g_ptr_array_add(run->facts->hosts, g_strdup(host));
        count_one(run->per_device, device);
        if (rank && strstr(rank, "Pid ")) {
            process = g_strdup_printf("%s %u", host, number_after(rank, "Pid ", 0));
            count_one(run->processes, process);
        }
    }
    for (name++; *name == ' '; name++)
        ;
    if (!run->facts->gpu && *name && strlen(name) < 128) {
        run->facts->gpu = g_strstrip(g_strdup(name));
        g_strdelimit(run->facts->gpu, "`", '\0'); /* text marked up as code */
        if (strstr(name, "AMD") || strstr(name, "Instinct") || strstr(name, "Radeon"))
            set_rccl(run);
    }
    return TRUE;
}

/* "nThread 1 nGpus 8 minBytes 8 ... warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0" */
static gboolean
read_options(TtNcclRun *run, const char *line)
{
    const char *p = strstr(line, "nThread");

    if (!p || !strstr(p, "nGpus"))
        return FALSE;
    run->threads = number_after(p, "nThread ", 0);
    run->gpus_per_thread = number_after(p, "nGpus ", 0);
    for (const char *i = strstr(p, "iters:"); i; i = strstr(i + 1, "iters:"))
        if (g_ascii_isdigit(i[-2]) || i[-2] == ')')
            run->facts->n_iterations = number_after(i, "iters:", 0);
    run->facts->graph = number_after(p, "graph: ", 0) > 0;
    return TRUE;
}

static gboolean
read_version(TtNcclRun *run, const char *line)
{
    static const char *const words[] = { "CCL version : ", "NCCL version ", "compiled with NCCL ",
                                         "RCCL version ", NULL };
    g_autofree char *library = word_after(line, "nccl-library=");

    if (library) {
        tt_measured_set_code(run->facts, (guint)MIN(strtoul(library, NULL, 10), 999999));
        return TRUE;
    }
    if (strstr(line, "rccl-tests") || strstr(line, "RCCL version"))
        set_rccl(run);
    for (guint i = 0; words[i]; i++) {
        g_autofree char *text = word_after(line, words[i]);

        if (text && g_ascii_isdigit(text[0])) {
            tt_measured_set_version(run->facts, text);
            return TRUE;
        }
    }
    return strstr(line, "rccl-tests: Version") || strstr(line, "HIP version") ||
           strstr(line, "ROCm version");
}

/* NCCL_NAME=value, wherever commands and listings of the environment have it. */
static void
read_assignment(TtNcclRun *run, const char *word)
{
    const char *equals = strchr(word, '=');
    g_autofree char *name = NULL, *value = NULL;
    gsize n;

    while (*word == '"' || *word == '\'' || *word == '`')
        word++;
    n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!equals || !g_str_has_prefix(word, "NCCL_") || word + n != equals || n > 80)
        return;
    name = g_strndup(word, n);
    value = g_strndup(equals + 1, MIN(strcspn(equals + 1, " "), 255));
    g_strdelimit(value, "\"'`", ' ');
    tt_measured_set_env(run->facts, name, g_strstrip(value));
}

static gboolean
is_command(const char *line)
{
    return strstr(line, "_perf") || strstr(line, "mpirun") || strstr(line, "mpiexec") ||
           strstr(line, "srun") || strstr(line, "export ") || strstr(line, "-x ") ||
           g_str_has_prefix(line, "NCCL_");
}

static gboolean
read_command(TtNcclRun *run, const char *line)
{
    const char *perf = strstr(line, "_perf"), *first;

    if (!is_command(line) || strstr(line, "NCCL INFO") || strstr(line, "NCCL WARN"))
        return FALSE;
    for (const char *p = strstr(line, "NCCL_"); p; p = strstr(p + 5, "NCCL_"))
        if (p == line || strchr(" \"'`", p[-1]))
            read_assignment(run, p);
    if (!perf)
        return TRUE;
    for (first = perf; first > line && (g_ascii_isalnum(first[-1]) || first[-1] == '_'); first--)
        ;
    if (perf - first < 40) {
        g_autofree char *word = g_strndup(first, (gsize)(perf - first));
        const char *name = tt_measured_collective_name(word);

        if (name && (!run->facts->collective || strstr(line, "starting"))) {
            g_free(run->facts->collective);
            run->facts->collective = g_strdup(name);
        }
    }
    return TRUE;
}

/* "NCCL_PROTO set by environment to LL." */
static void
read_set_variable(TtNcclRun *run, const char *line)
{
    static const char middle[] = " set by environment to ";
    const char *p = strstr(line, "NCCL_"), *to = p ? strstr(p, middle) : NULL;
    g_autofree char *name = NULL, *value = NULL;
    gsize n;

    if (!to || to - p > 80 || memchr(p, ' ', (gsize)(to - p)))
        return;
    name = g_strndup(p, (gsize)(to - p));
    value = g_strndup(to + strlen(middle), 255);
    g_strstrip(value);
    n = strlen(value);
    if (n && value[n - 1] == '.')
        value[n - 1] = '\0';
    tt_measured_set_env(run->facts, name, value);
}

/* "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE": every entry with a slash is a NIC. */
static void
read_network(TtNcclRun *run, const char *line)
{
    TtMeasured *m = run->facts;
    const char *ib = strstr(line, "NET/IB : Using"), *ofi = strstr(line, "NET/OFI");
    guint n = 0;

    if (ib && !m->inter) {
        for (const char *p = strchr(ib, '['); p; p = strchr(p + 1, '['))
            n += g_ascii_isdigit(p[1]);
        m->inter = g_strdup(strstr(ib, "/RoCE") ? "RoCE" : "InfiniBand");
        m->nics_per_node = MIN(n, 1024);
    } else if (ofi && !m->inter && (strstr(ofi, "efa") || strstr(ofi, "EFA"))) {
        m->inter = g_strdup("EFA");
        m->nics_per_node = number_after(ofi, "found ", 0);
    } else if (ofi && !m->inter && (strstr(ofi, "cxi") || strstr(ofi, "CXI"))) {
        m->inter = g_strdup("Slingshot");
    } else if (!m->inter && (strstr(line, "FasTrak") || strstr(line, "TCPX"))) {
        m->inter = g_strdup("GPUDirect-TCPX");
    } else if (!m->inter && strstr(line, "Using network Socket")) {
        m->inter = g_strdup("TCP sockets");
    }
}

gboolean
tt_nccl_run_begins(const char *line)
{
    return strstr(line, "nccl-tests version") || strstr(line, "Collective test starting") ||
           (strstr(line, "nThread") && strstr(line, "nGpus"));
}

gboolean
tt_nccl_run_read(TtNcclRun *run, const char *line)
{
    if (strstr(line, "NCCL INFO")) {
        read_set_variable(run, line);
        read_network(run, line);
        return TRUE;
    }
    if (tt_nccl_run_begins(line))
        run->started = TRUE;
    if (read_options(run, line) || read_rank(run, line))
        return TRUE;
    if (read_version(run, line))
        return TRUE;
    return !strstr(line, "concluded") && read_command(run, line);
}

static void
lend(TtNcclRun *run, const TtNcclRun *previous)
{
    TtMeasured *m = run->facts;
    const TtMeasured *old = previous->facts;

    if (!m->collective)
        m->collective = g_strdup(old->collective);
    if (!m->version && old->version) {
        m->version = g_strdup(old->version);
        m->version_number = old->version_number;
    }
    if (!m->inter) {
        m->inter = g_strdup(old->inter);
        m->nics_per_node = old->nics_per_node;
    }
    if (run->n_rank_lines)
        return;
    m->gpu = g_strdup(old->gpu);
    m->library = old->library;
    m->ngpus = old->ngpus;
    m->nnodes = old->nnodes;
    m->gpus_per_node = old->gpus_per_node;
    m->one_process = old->one_process;
    for (guint i = 0; i < old->hosts->len; i++)
        g_ptr_array_add(m->hosts, g_strdup(g_ptr_array_index(old->hosts, i)));
}

static void
count_ranks(TtNcclRun *run)
{
    TtMeasured *m = run->facts;
    guint n_hosts = g_hash_table_size(run->per_host), alike = largest(run->per_device);

    m->ngpus =
        run->highest_group ? run->n_rank_lines : MIN(run->highest_rank + 1, TT_MEASURED_MOST_RANKS);
    if (m->ngpus > run->n_rank_lines)
        tt_measured_skip(m, "%u of %u rank lines are missing", m->ngpus - run->n_rank_lines,
                         m->ngpus);
    m->nnodes = n_hosts;
    if (n_hosts == 1 && alike > 1) {
        tt_measured_skip(m, "every node has the same name: %u nodes, by equal device numbers",
                         alike);
        m->nnodes = alike;
    }
    m->gpus_per_node = m->ngpus > run->n_rank_lines || m->nnodes > n_hosts
                           ? (m->ngpus + m->nnodes - 1) / m->nnodes
                           : largest(run->per_host);
    if (g_hash_table_size(run->processes))
        m->one_process = g_hash_table_size(run->processes) < run->n_rank_lines;
}

void
tt_nccl_run_finish(TtNcclRun *run, const TtNcclRun *previous)
{
    TtMeasured *m = run->facts;
    guint per_process =
        (guint)MIN((guint64)run->threads * run->gpus_per_thread, TT_MEASURED_MOST_RANKS);

    if (run->n_rank_lines)
        count_ranks(run);
    if (previous)
        lend(run, previous);
    if (!m->ngpus && per_process > 1) {
        m->ngpus = per_process;
        m->nnodes = 1;
    }
    if (m->one_process < 0 && per_process)
        m->one_process = per_process > 1;
}

void
tt_nccl_run_copy(const TtNcclRun *run, TtMeasured *m)
{
    const TtMeasured *f = run->facts;

    m->collective = g_strdup(f->collective);
    m->ngpus = f->ngpus;
    m->nnodes = f->nnodes;
    m->gpus_per_node = f->gpus_per_node;
    m->gpu = g_strdup(f->gpu);
    m->inter = g_strdup(f->inter);
    m->nics_per_node = f->nics_per_node;
    m->library = f->library;
    m->version = g_strdup(f->version);
    m->version_number = f->version_number;
    m->tool = g_strdup(f->tool);
    m->graph = f->graph;
    m->one_process = f->one_process;
    m->n_iterations = f->n_iterations;
    for (guint i = 0; i < f->env->len; i++)
        tt_measured_set_env(m, g_array_index(f->env, TtMeasuredVar, i).name,
                            g_array_index(f->env, TtMeasuredVar, i).value);
    for (guint i = 0; i < f->hosts->len; i++)
        g_ptr_array_add(m->hosts, g_strdup(g_ptr_array_index(f->hosts, i)));
    for (guint i = 0; i < f->skipped->len; i++)
        tt_measured_skip(m, "%s", (const char *)g_ptr_array_index(f->skipped, i));
}
