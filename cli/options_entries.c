/* The option tables. What they say is what --help and completion say. */
#include "cli/options_raw.h"

TtRawOptions tt_raw;

#define TEXT                                                                                       \
    G_OPTION_ARG_FILENAME /* the bytes as given; G_OPTION_ARG_STRING insists on the locale */
#define LIST G_OPTION_ARG_FILENAME_ARRAY
#define FLAG G_OPTION_ARG_NONE

static const GOptionEntry size_entries[] = {
    { "minbytes", 'b', 0, TEXT, &tt_raw.begin, "smallest size (default 32M, or -e)", "SIZE" },
    { "maxbytes", 'e', 0, TEXT, &tt_raw.end, "largest size (default -b)", "SIZE" },
    { "stepfactor", 'f', 0, TEXT, &tt_raw.factor, "next size = size * FACTOR", "FACTOR" },
    { "stepbytes", 'i', 0, TEXT, &tt_raw.step, "next size = size + SIZE (default 1M)", "SIZE" },
    { NULL },
};
static const GOptionEntry collective_entries[] = {
    { "collective", 0, 0, TEXT, &tt_raw.collective,
      "allreduce (default), reduce-scatter, allgather, broadcast or reduce", "NAME" },
    { NULL },
};
static const GOptionEntry element_entries[] = {
    { "datatype", 'd', 0, TEXT, &tt_raw.types,
      "float (default), double, half, bfloat16, f8e4m3, f8e5m2, int8/32/64; all; list", "TYPE" },
    { "op", 'o', 0, TEXT, &tt_raw.redops, "sum (default), prod, min, max, avg; all; a list", "OP" },
    { "root", 'r', 0, TEXT, &tt_raw.root,
      "root of broadcast and reduce (default 0); HOST:PORT: as --meet", "RANK" },
    { NULL },
};
static const GOptionEntry plan_entries[] = {
    { "algo", 'a', 0, TEXT, &tt_raw.algo, "algorithms: a list, all, or auto", "NAME" },
    { "channels", 0, 0, TEXT, &tt_raw.channels, "independent shares of the data (default: chosen)",
      "N" },
    { "slots", 0, 0, TEXT, &tt_raw.slots, "messages a connection holds (default: chosen)", "N" },
    { "chunk-bytes", 0, 0, TEXT, &tt_raw.chunk_bytes,
      "cut messages to this size, 0: never (default: chosen)", "SIZE" },
    { "group", 0, 0, TEXT, &tt_raw.group, "ranks that are close (default: those of a node)", "N" },
    { NULL },
};
static const GOptionEntry topology_entries[] = {
    { "topo", 't', 0, TEXT, &tt_raw.topo,
      "PRESET[:NODES], FILE.ini[:NODES], FILE.xml[:NODES] (NCCL's) or this", "TOPOLOGY" },
    { "set", 0, 0, LIST, &tt_raw.set, "change a constant of it; may be repeated",
      "SECTION.KEY=VALUE" },
    { NULL },
};
static const GOptionEntry model_entries[] = {
    { "profile", 'p', 0, TEXT, &tt_raw.profile,
      "ideal (default), tutti, or a file that tutti calibrate wrote", "NAME" },
    { "level", 0, 0, TEXT, &tt_raw.level,
      "bound, hockney, loggp (--library nccl only) or flow (default)", "NAME" },
    { NULL },
};
static const GOptionEntry rank_entries[] = {
    { "ranks", 0, 0, TEXT, &tt_raw.ranks, "how many ranks; where several make sense 1-33 or 2,4,8",
      "N" },
    { NULL },
};
static const GOptionEntry measure_entries[] = {
    { "iters", 'n', 0, TEXT, &tt_raw.iterations, "timed iterations (default 20)", "N" },
    { "warmup_iters", 'w', 0, TEXT, &tt_raw.warmup, "iterations before them (default 1)", "N" },
    { "check", 'c', 0, TEXT, &tt_raw.check, "1: compare with a reference (default), 0: do not",
      "0|1" },
    { "transport", 0, 0, TEXT, &tt_raw.transport,
      "shm (default), tcp, verbs, cuda; two, shm,tcp: inside a machine and across", "NAME" },
    { "timeout", 'T', 0, TEXT, &tt_raw.timeout,
      "give up without progress for this long (default 30 s)", "TIME" },
    { "no-pin", 0, 0, FLAG, &tt_raw.no_pin, "leave the placement of ranks to the system", NULL },
    { "checksum", 0, 0, FLAG, &tt_raw.checksum, "send a checksum with every message", NULL },
    { "fault", 0, 0, TEXT, &tt_raw.fault, "let something go wrong, as in kill:rank=1,after=5",
      "KIND" },
    { NULL },
};
static const GOptionEntry iteration_entries[] = {
    { "per-iteration", 'I', 0, FLAG, &tt_raw.per_iteration,
      "how single iterations differ: shortest, p50, p95, p99, longest, cv", NULL },
    { "arrivals", 0, 0, FLAG, &tt_raw.arrivals, "when each rank came, and whom it waited for",
      NULL },
    { "in-flight", 0, 0, TEXT, &tt_raw.in_flight,
      "so many collectives at once, each on data of its own (default 1)", "N" },
    { "groups", 0, 0, TEXT, &tt_raw.groups,
      "divide the ranks: each group runs it by itself; mod:N: by rank modulo N", "N" },
    { "start-offset", 0, 0, TEXT, &tt_raw.start_offset,
      "ranks that come late to every collective, as in 1:2ms,3:500us", "RANK:TIME" },
    { NULL },
};
static const GOptionEntry network_entries[] = {
    { "interface", 0, 0, TEXT, &tt_raw.interface, "network interface, or its address", "NAME" },
    { "device", 0, 0, TEXT, &tt_raw.device, "RDMA device, as in mlx5_0 or mlx5_0:1", "NAME" },
    { "gpus", 0, 0, TEXT, &tt_raw.gpus,
      "for cuda and nccl: 0,2 (default: all); host, host:2: cuda's kernels on the CPU", "LIST" },
    { "protocol", 0, 0, TEXT, &tt_raw.protocol,
      "between GPUs: simple, ll, ll128 or auto (default: by length)", "NAME" },
    { "placement", 0, 0, TEXT, &tt_raw.placement,
      "messages lie with the receiver (write), the sender (read), host, or auto", "NAME" },
    { "gid-index", 0, 0, TEXT, &tt_raw.gid_index, "of the RDMA port (default: RoCE v2)", "N" },
    { "streams", 0, 0, TEXT, &tt_raw.streams,
      "sockets or queue pairs for each connection (default 1)", "N" },
    { "meet", 0, 0, TEXT, &tt_raw.meet, "where rank 0 listens, if no launcher says", "HOST:PORT" },
    { "rank", 0, 0, TEXT, &tt_raw.rank, "the rank this process runs, or several: 0-3", "R" },
    { "hostfile", 0, 0, TEXT, &tt_raw.hostfile, "lines of HOST slots=N; one process on each host",
      "FILE" },
    { "secret-file", 0, 0, TEXT, &tt_raw.secret_file,
      "what all processes know and strangers do not (or TUTTI_SECRET)", "FILE" },
    { NULL },
};
static const GOptionEntry row_entries[] = {
    { "json", 0, 0, FLAG, &tt_raw.json, "one JSON object instead of the table", NULL },
    { "csv", 0, 0, FLAG, &tt_raw.csv, "CSV instead of the table", NULL },
    { "json-file", 'J', 0, TEXT, &tt_raw.json_file, "write the JSON object to FILE as well",
      "FILE" },
    { "quiet", 'q', 0, FLAG, &tt_raw.quiet, "no notes, warnings or progress on standard error",
      NULL },
    { NULL },
};
static const GOptionEntry trace_entries[] = {
    { "trace", 0, 0, TEXT, &tt_raw.trace, "write the last size as a trace for ui.perfetto.dev",
      "FILE" },
    { "timeline", 0, 0, TEXT, &tt_raw.timeline, "write the last size as CSV, an event a line",
      "FILE" },
    { NULL },
};
static const GOptionEntry plot_entries[] = {
    { "plot", 0, 0, TEXT, &tt_raw.plot, "draw PREFIX.png and PREFIX.svg with gnuplot", "PREFIX" },
    { NULL },
};
static const GOptionEntry library_entries[] = {
    { "library", 0, 0, TEXT, &tt_raw.library,
      "ideal (default), tutti, nccl or nccl-VERSION, as in nccl-2.27", "NAME" },
    { "env", 0, 0, LIST, &tt_raw.env,
      "an NCCL_* variable to honour (the process's own are not); may be repeated", "NAME=VALUE" },
    { "constants", 0, 0, TEXT, &tt_raw.constants,
      "step costs from `tutti calibrate --from` (default: built in)", "FILE" },
    { "launch", 0, 0, TEXT, &tt_raw.launch,
      "process-per-gpu (default), one-process (nccl-tests -g N, -t N) or graph (-G)", "HOW" },
    { NULL },
};
/* In the order of the bits. */
const TtOptionGroup tt_option_groups[TT_N_OPTION_GROUPS] = {
    { "sizes", "Sizes", size_entries },
    { "collective", "Collective", collective_entries },
    { "elements", "Elements", element_entries },
    { "plan", "Algorithm", plan_entries },
    { "topology", "Topology", topology_entries },
    { "model", "Model", model_entries },
    { "ranks", "Ranks", rank_entries },
    { "measure", "Measurement", measure_entries },
    { "rows", "Output", row_entries },
    { "trace", "Timelines", trace_entries },
    { "plot", "Plot", plot_entries },
    { "library", "Library", library_entries },
    { "network", "Network", network_entries },
    { "iterations", "Iterations", iteration_entries },
};
