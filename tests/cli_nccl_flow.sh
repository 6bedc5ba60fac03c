#!/usr/bin/env bash
# tutti predict --library nccl: times by level, bounds, traces; tutti verify --library nccl.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

h100="predict --topo dgx-h100:2 --library nccl-2.27.7"

# column NAME FILE: that column of a CSV without commas in its fields before it.
column() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$2"
}

# Levels: the simulator and the closed form agree; the bound is below both.
want 0 - -- $h100 -b 8 -e 8G -f 8 --csv
cp stdout flow.csv
want 0 - -- $h100 -b 8 -e 8G -f 8 --csv --level flow
cmp -s stdout flow.csv || fail "flow is not the default"
want 0 - -- $h100 -b 8 -e 8G -f 8 --csv --level loggp
cp stdout closed.csv
want 0 - -- $h100 -b 8 -e 8G -f 8 --csv --level bound
cp stdout bound.csv
for file in flow closed bound; do
    column time_us $file.csv >$file.us
    column bound_us $file.csv >$file.bound
    cmp -s $file.bound flow.bound || fail "$file: other bounds"
done
paste flow.us closed.us bound.us | awk '
    { r = $1 / $2 - 1 }
    r < -0.1 || r > 0.1 || $3 <= 0 || $3 >= $1 { print "row " NR ": " $0; bad = 1 }
    END { exit bad || NR != 11 }' >differ || fail "levels: $(cat differ)"
cmp -s bound.us bound.bound || fail "the bound is not its own time"
want 2 "level hockney has no figures for NCCL" -- $h100 -b 8 --level hockney
want 2 "one of: bound, hockney, loggp, flow" -- $h100 -b 8 --level guess
want 2 "goes with --library nccl" -- predict --topo dgx-h100:2 -b 8 --algo ring --level loggp

# The table says how, what was busiest, and how it could be at best.
want 0 - -- $h100 -b 1G
has "# times by simulating the plan NCCL would run"
has "bound  busiest"
grep -Eq ' nvls-tree +simple +16 +64 .*link node 0: gpu 0 -> nvswitch 0, [0-9]+ % busy$' stdout ||
    fail "busiest: $(tail -2 stdout)"
want 0 - -- $h100 -b 1G --level loggp
has "# times by the closed form"
want 0 - -- $h100 -b 1G --json
has '"bottleneck"' && has '"limit"' && has '"level"'

# A timeline is the plan's: as many messages received as it has, and the row as without.
want 0 - -- $h100 -b 64K --csv
cp stdout plain.keep
want 0 - -- $h100 -b 64K --csv --timeline t.csv --trace t.json
cmp -s stdout plain.keep || fail "recording changes the row"
[ "$(grep -c ',recv' t.csv)" -gt 100 ] || fail "timeline: $(head -3 t.csv)"
grep -q '"traceEvents"' t.json || fail "trace: $(head -c 200 t.json)"
want 2 "use --level flow" -- $h100 -b 8 --level loggp --trace t2.json
[ -e t2.json ] && fail "a trace of nothing"
want 2 "holds one algorithm" -- $h100 -b 8 --algo ring,tree --timeline t2.csv

# Every algorithm can be asked for; those without a closed form say so.
want 0 - -- $h100 -b 1M --algo all --env NCCL_COLLNET_ENABLE=1
for algo in ring tree collnet-direct collnet-chain nvls nvls-tree; do
    grep -q " $algo " stdout || fail "no $algo: $(cat stdout)"
done
want 2 "no closed form for collnet-chain" -- $h100 -b 1M --algo collnet-chain --env NCCL_COLLNET_ENABLE=1 --level loggp
want 2 "loggp may do without" -- $h100 -b 1M --algo nvls --collective allgather --env NCCL_COLLNET_ENABLE=1
want 0 - -- $h100 -b 1M --algo nvls --collective allgather --env NCCL_COLLNET_ENABLE=1 --level loggp
for collective in reduce-scatter allgather broadcast reduce; do
    want 0 - -- $h100 -b 8 -e 64M -f 64 --collective $collective -r 0
done

# What the search does not know: few uplinks are slower.
want 0 - -- predict --topo dgx-h100:64 --library nccl-2.27 -b 1G --csv
column time_us stdout >full.us
want 0 - -- predict --topo dgx-h100:64 --library nccl-2.27 -b 1G --csv --set fabric.oversubscription=64
column time_us stdout >few.us
paste full.us few.us | awk '$2 <= $1 { exit 1 }' || fail "oversubscribed: $(paste full.us few.us)"

# Proofs.
want 0 - -- verify --library nccl-2.27 --topo dgx-h100:2 -b 8 -e 1G -f 32
[ "$(grep -c ' PASS$' stdout)" -eq 6 ] || fail "six sizes: $(cat stdout)"
has "the plans NCCL 2.27.7 would run"
want 0 - -- verify --library nccl-2.27 --topo dgx-a100:2 -b 1M --collective all --algo all --csv
[ "$(grep -c ',PASS,' stdout)" -eq 18 ] || fail "18 pairs: $(cat stdout)"
want 0 - -- verify --library nccl --topo dgx1-v100:3 -b 4K --algo ring:ll,tree
[ "$(grep -c ' PASS$' stdout)" -eq 2 ] || fail "two pairs: $(cat stdout)"
want 2 "nothing was proved" -- verify --library nccl --topo dgx-h100:2 -b 1M --collective allgather --algo nvls --env NCCL_COLLNET_ENABLE=1
want 2 "count goes without --library" -- verify --library nccl --topo dgx-h100:2 --count 5
want 2 "go together" -- verify --topo dgx-h100:2 --ranks 4
want 2 "root 99 must be below 16" -- verify --library nccl --topo dgx-h100:2 --collective broadcast -r 99
