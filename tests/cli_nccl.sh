#!/usr/bin/env bash
# tutti predict --library nccl: choices by version, --algo's pairs, --env, --explain-choice as text and JSON.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

h100="predict --topo dgx-h100:2 --library nccl-2.27.7"

# chooses SIZE ALGORITHM PROTOCOL: the row of that size in the last output.
chooses() {
    grep -v '^#' stdout | awk -v s="$1" -v a="$2" -v p="$3" \
        '$1 == s && ($5 == a && $6 == p || $5 == "*" && $6 == a && $7 == p) { found = 1 } END { exit !found }' ||
        fail "$1: wanted $2 $3 in: $(grep -v '^#' stdout)"
}

# NCCL's choices on two DGX H100: Tree LL, from 2^18 Tree LL128, from 2^19 NVLSTree.
want 0 - -- $h100 -b 8 -e 8G -f 2
[ "$(grep -vc '^#' stdout)" -eq 31 ] || fail "a row a size: $(cat stdout)"
chooses 8 tree ll
chooses 131072 tree ll
chooses 262144 tree ll128
chooses 524288 nvls-tree simple
chooses 8589934592 nvls-tree simple
has "# Chosen at the sizes asked: tree ll up to 128 KiB, tree ll128 to 256 KiB, nvls-tree simple above"
[ -s stderr ] && fail "something on standard error: $(cat stderr)"
cp stdout first.keep
want 0 - -- $h100 -b 8 -e 8G -f 2
cmp -s stdout first.keep || fail "two runs differ"

# Versions: nccl is the newest; a minor its newest patch; those not known are taken as the next, said once.
want 0 - -- predict --topo dgx-a100:1 -b 1M --library nccl
has "by NCCL 2.30.7"
want 0 - -- predict --topo dgx-a100:1 -b 1M --library nccl-2.27
has "by NCCL 2.27.7"
want 0 - -- predict --topo dgx-a100:1 -b 1M --library nccl-2.18.1
chooses 1048576 ring ll
want 0 - -- predict --topo dgx-a100:1 -b 1M --library nccl-2.99
grep -q 'newer than what is known' stderr || fail "2.99: $(cat stderr)"
want 2 'must be ideal, tutti, nccl or nccl-VERSION' -- predict --topo dgx-a100:1 --library mccl
want 2 'is no NCCL version' -- predict --topo dgx-a100:1 --library nccl-two

# ideal and tutti are the profiles of that name, and the default is what it was.
want 0 - -- predict --topo hosts:4 -b 1M --algo ring --library tutti
cp stdout tutti.keep
want 0 - -- predict --topo hosts:4 -b 1M --algo ring --profile tutti
cmp -s stdout tutti.keep || fail "--library tutti is not --profile tutti"
want 2 'and --profile says tutti' -- predict --topo hosts:4 -b 1M --library ideal --profile tutti
want 2 'exclude each other' -- $h100 --profile tutti

# Every collective; ranks in whole nodes.
for collective in reduce-scatter allgather broadcast reduce; do
    want 0 - -- $h100 -b 4096 --collective $collective
    chooses 4096 ring ll
done
want 0 - -- $h100 -b 1G --collective broadcast -r 15
want 2 "root 16 must be below 16" -- $h100 -b 1G --collective broadcast -r 16
want 0 - -- $h100 -b 1M --ranks 8
has "8 ranks on 1 node,"
chooses 1048576 ring ll
want 2 "whole nodes of 8, up to 16" -- $h100 --ranks 12
want 2 "no GPUs" -- predict --topo hosts:4 --library nccl

# Types and reductions the switch cannot do.
want 0 - -- predict --topo dgx-h100:1 --library nccl-2.27 -b 1G -d float,half -o sum,max,avg
[ "$(grep -c ' nvls ' stdout)" -eq 3 ] || fail "NVLS adds up float sum, half sum, half max: $(cat stdout)"
[ "$(grep -c ' ring ' stdout)" -eq 3 ] || fail "the rest is by ring: $(cat stdout)"

# --algo: pairs, everything that is on, and what is off.
want 0 - -- $h100 -b 1M --algo ring,tree:ll,NVLSTree
[ "$(grep -vc '^#' stdout)" -eq 3 ] || fail "three rows: $(cat stdout)"
chooses 1048576 ring ll128
chooses 1048576 tree ll
grep -q ' \* nvls-tree ' stdout || fail "no star at the fastest: $(cat stdout)"
want 0 - -- $h100 -b 1M --algo all
[ "$(grep -vc '^#' stdout)" -eq 7 ] || fail "7 pairs are on: $(cat stdout)"
grep -v '^#' stdout | grep -q 'latency: ' && fail "long words in the table: $(cat stdout)"
# NCCL's own choice among them is named if it is over 3 % slower than the fastest, and only then.
want 0 - -- $h100 -b 1M -e 1G -f 2 --algo all --csv
cp stdout all.keep
want 0 - -- $h100 -b 1M -e 1G -f 2 --csv
awk -F, 'NR == FNR { if ($7 > 0 && (!($7 in best) || $12 < best[$7])) best[$7] = $12; next }
    FNR > 1 && $12 > 1.03 * best[$7] { n++ } END { print n + 0 }' all.keep stdout >slow.keep
want 0 - -- $h100 -b 1M -e 1G -f 2 --algo all
line=$(grep "^# NCCL's choice at " stdout)
if [ "$(cat slow.keep)" -eq 0 ]; then
    [ -z "$line" ] || fail "no choice is slow: $line"
else
    echo "$line" | grep -Eq 'is predicted [0-9]+ % slower than [a-z0-9-]+ [a-z0-9]+: NCCL_ALGO=' || fail "a slow choice: $line"
fi
want 2 "nvls is off for AllReduce: NVLS across nodes needs CollNet" -- $h100 -b 1M --algo nvls
want 2 "pat is off for AllReduce" -- $h100 -b 1M --algo ring,pat
want 2 'no algorithm "rong"' -- $h100 --algo rong
want 2 'no algorithm "ring:ll64"' -- $h100 --algo ring:ll64
want 2 "by simple only" -- $h100 --algo nvls:ll

# --env: honoured, refused, unknown; the process's own variables are not read.
NCCL_ALGO=Ring want 0 - -- $h100 -b 8
chooses 8 tree ll
want 0 - -- $h100 -b 8 --env NCCL_ALGO=Ring
chooses 8 ring ll
has "# env NCCL_ALGO=Ring"
want 0 - -- $h100 -b 8 --env NCCL_ALGO='Tree;allreduce:Ring' --env NCCL_PROTO=^LL
chooses 8 ring ll128
want 2 '"Rong" is no algorithm' -- $h100 -b 8 --env NCCL_ALGO=Rong
want 0 - -- predict --topo dgx-h100:2 --library nccl-2.23 -b 8 --env NCCL_ALGO=Rong
chooses 8 tree ll # 2.23 knows no such name and goes back to ring and tree
want 2 "ncclInvalidUsage" -- $h100 -b 8 --env NCCL_ALGO=PAT
want 2 "NCCL_NTHREADS=many: must be" -- $h100 -b 8 --env NCCL_NTHREADS=many
want 2 "must be NAME=VALUE" -- $h100 -b 8 --env NCCL_ALGO
want 2 "must be NAME=VALUE" -- $h100 -b 8 --env =Ring
want 0 - -- $h100 -b 8 --env NCCL_AGLO=Ring
grep -q 'NCCL_AGLO changes nothing here (did you mean NCCL_ALGO?)' stderr || fail "$(cat stderr)"
want 2 "goes with --library nccl" -- predict --topo dgx-h100:2 -b 8 --env NCCL_ALGO=Ring
# Graphs written and read back choose alike, on every command that searches; bad files are one line.
want 0 - -- $h100 -b 8 -e 64M -f 8
grep -v '^# env' stdout >found.keep
want 0 - -- $h100 -b 8 -e 64M -f 8 --env NCCL_GRAPH_DUMP_FILE=graphs.keep
grep -v '^# env' stdout | cmp -s - found.keep || fail "writing graphs changes the answer"
grep -q '<graph id="3" pattern="5"' graphs.keep || fail "no NVLS graph: $(head -c 300 graphs.keep)"
want 3 'NCCL_GRAPH_FILE: ' -- $h100 -b 8 --env NCCL_GRAPH_FILE=none.xml
want 3 'no-such-folder' -- $h100 -b 8 --env NCCL_GRAPH_DUMP_FILE=no-such-folder/graphs.xml
if ! "$TUTTI" topo show ./graphs.keep 2>&1 | grep -q 'reads no XML'; then
    want 0 - -- $h100 -b 8 -e 64M -f 8 --env NCCL_GRAPH_FILE=graphs.keep
    grep -v '^# env' stdout | cmp -s - found.keep || fail "graphs of a file change the answer"
    want 0 - -- verify --topo dgx-h100:2 --library nccl-2.27.7 -b 4096 --env NCCL_GRAPH_FILE=graphs.keep
    want 3 'graph 0: channel 0: 8 GPUs, and the node has 4' -- predict --topo a100-4:2 --library nccl -b 8 \
        --env NCCL_GRAPH_FILE=graphs.keep
fi
# Fewer channels are fewer.
want 0 - -- $h100 -b 1G --algo ring --env NCCL_MAX_NCHANNELS=4
grep -Eq ' ring +(ll128|simple) +4 ' stdout || fail "4 channels: $(tail -1 stdout)"

# --explain-choice: every part is there; the star of each size is the row's choice.
want 0 - -- $h100 -b 8 -e 8G -f 32 --explain-choice
for words in "# Communicator" "16 on 2 nodes, 8 a node" "# Graphs" "# Orders" "NET 0 > GPU 0 " \
    "head GPU 7" "# Table: latency (us) / bandwidth (GB/s)" "# Off for AllReduce of float sum" \
    "NVLS across nodes needs CollNet" "# Believed time (us) by size" "# Shape" "# Choice by size"; do
    has "$words"
done
# 8.4 + 2 (7 x 4 + 14) us; min(0.92 x 384, 8 x 41.4) x 0.85 x 0.5 GB/s
grep -q 'AllReduce .* 92\.4/140\.8 ' stdout || fail "Tree Simple: $(grep AllReduce stdout)"
[ "$(grep -c '\*' stdout)" -ge 6 ] || fail "a star for each of 6 sizes"
awk '/^#/ && !/busiest$/ && length > 132 { print; bad = 1 } END { exit bad }' stdout >long.keep ||
    fail "long lines: $(cat long.keep)"
grep -q ' $' stdout && fail "blanks at ends of lines"
want 0 - -- predict --topo dgx-h100 --set node.gpus=1 -b 8 --library nccl --explain-choice
grep -qw inf stdout && fail "one GPU: $(grep -w inf stdout)"
want 0 - -- $h100 -b 8 -e 1K -i 8 --explain-choice
grep -q '# Believed' stdout && fail "128 sizes one by one"
has "8 B to 1 KiB"
want 2 "goes with --library nccl" -- predict --topo dgx-h100:2 -b 8 --explain-choice
want 2 "no CSV form" -- $h100 -b 8 --explain-choice --csv

# Programs read the same.
want 0 - -- $h100 -b 1M --csv
head -1 stdout | grep -q '^collective,algorithm,protocol,channels,' || fail "CSV: $(cat stdout)"
grep -q '^allreduce,nvls-tree,simple,16,' stdout || fail "CSV: $(cat stdout)"
want 0 - -- $h100 -b 8 -e 8G -f 32 --explain-choice --json
cp stdout choice.keep
if command -v python3 >/dev/null && python3 -c 0 2>/dev/null; then
    python3 - <<'PY' || fail "the JSON is not what it should be"
import json
d = json.load(open("choice.keep"))
c = d["choice"]
assert c["nccl_version"] == "2.27.7" and c["communicator"]["ranks"] == 16
assert [g["graph"] for g in c["graphs"]] == ["ring", "tree", "nvls"]
assert all(sorted(o["gpus"]) == list(range(8)) for o in c["graphs"][0]["orders"])
assert len(c["table"]) == 5 * 7 * 3 and len(c["sizes"]) == len(d["results"])
for cell in c["table"]:
    assert cell["enabled"] == (cell["why_not"] is None) == (cell["bw_gbps"] is not None)
for size, row in zip(c["sizes"], d["results"]):
    times = {(x["algorithm"], x["protocol"]): x["time_us"] for x in size["candidates"]}
    best = min((t, p) for p, t in times.items() if t is not None)
    assert best[1] == (size["algorithm"], size["protocol"]) == (row["algorithm"], row["protocol"])
    assert size["used_channels"] == row["channels"]
PY
fi

# docs/nccl.md shows this output: every line of its blocks is there.
want 0 - -- predict --topo dgx-a100:2 -b 64K -e 64M -f 32 --library nccl-2.27.7 --explain-choice
grep -qF 'predict --topo dgx-a100:2 -b 64K -e 64M -f 32 --library nccl-2.27.7 --explain-choice' \
    "$TT_SOURCE_DIR/docs/nccl.md" || fail "docs/nccl.md shows another command"
sed -n '/^```$/,/^```$/p' "$TT_SOURCE_DIR/docs/nccl.md" | grep -v '^```' >shown.keep
[ "$(wc -l <shown.keep)" -ge 10 ] || fail "docs/nccl.md shows nothing"
while IFS= read -r line; do
    grep -qxF -- "$line" stdout || fail "docs/nccl.md, not in the output: $line"
done <shown.keep
# Every variable there is has its place on the page.
"$TUTTI" completion bash | grep -oE 'NCCL_[A-Z0-9_]+=' | tr -d = | sort -u >variables.keep
[ "$(wc -l <variables.keep)" -ge 20 ] || fail "too few variables: $(cat variables.keep)"
while read -r variable; do
    grep -q "\`$variable\`" "$TT_SOURCE_DIR/docs/nccl.md" || fail "docs/nccl.md: no $variable"
done <variables.keep

nothing_left
finish
