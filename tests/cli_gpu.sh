#!/usr/bin/env bash
# tutti run, calibrate and compare on GPUs, with the kernels on the CPU: results, protocols, placements, processes, faults, words.
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1
"$TUTTI" run --transport cuda --gpus host --ranks 2 -b 8 -n 1 -w 0 >stdout 2>stderr || {
    grep -q "install a C++ compiler" stderr && { echo "SKIP: $(cat stderr)"; exit 77; }
    fail "$(cat stderr)"
}
has "GPUs 0 the host's processor (ranks 0-1)"
has "ranks 2 by one process transport cuda"

# right CASES ARGUMENT...: every case there, out of place and in place, and no wrong element.
right() {
    local rows=$1
    shift
    timeout 120 "$TUTTI" run --transport cuda --gpus host -n 2 -w 1 -T 20 --csv -q "$@" >stdout 2>stderr </dev/null ||
        { fail "run $*: exit $?: $(head -c 300 stderr)"; return; }
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { n++; bad += $at["wrong"] != 0 }
             END { exit !(n == 2 * '"$rows"' && bad == 0) }' stdout || fail "run $*: $(head -c 600 stdout)"
}

# --- results -----------------------------------------------------------------------------------------------

for protocol in simple ll ll128 auto; do
    right 10 --ranks 5 --algo ring,tree,double-tree,direct,two-shot --protocol $protocol -b 20 -e 20020 -i 20000
done
right 1 --ranks 2 --algo ring --protocol ll128 -b 4K
has "allreduce,ring,ll128,"
for placement in write read host; do
    right 2 --ranks 4 --gpus host:2 --placement $placement --algo ring,tree -b 10000
done
TUTTI_HOST_PEER=0 right 1 --ranks 4 --gpus host:2 --algo ring -b 4K
right 1 --ranks 2 --gpus host:1,4 --algo ring -b 10000 # blocks of four threads
right 9 --ranks 3 --algo ring -b 1024 -d all
right 5 --ranks 3 --algo tree -b 1000 -o all
for collective in reduce-scatter allgather broadcast reduce; do
    right 1 --ranks 3 --collective $collective -b 3000
done
right 1 --ranks 16 --algo hierarchical --group 4 -b 4K
right 1 --ranks 8 --algo nvls -b 4K # a switch that reduces is a few blocks, too
right 1 --ranks 4 --algo ring -b 4K --in-flight 3
right 1 --ranks 4 --algo ring -b 4K --groups 2
right 1 --ranks 2 --algo ring -b 4K --per-iteration

# --- processes ---------------------------------------------------------------------------------------------

# together PLACEMENT ARGUMENT...: four processes of one rank each; what rank 0 said is in stdout.
together() {
    local port r pids=()
    port=$(free_port)
    for r in 3 2 1 0; do
        timeout 60 "$TUTTI" run --transport cuda --gpus host --ranks 4 --rank $r --meet 127.0.0.1:$port -n 5 \
            --algo ring,tree -b 4K -c 1 "$@" >out$r.keep 2>err$r.keep </dev/null &
        pids[r]=$!
    done
    codes=
    for r in 0 1 2 3; do
        wait "${pids[r]}"
        codes+="$? "
    done
}
for placement in auto read host; do
    together --placement $placement
    [ "$codes" = "0 0 0 0 " ] || fail "four processes, --placement $placement: $codes $(cat err?.keep)"
    grep -q "Out of bounds values : 0 OK" out0.keep || fail "four processes: $(cat out0.keep)"
done
port=$(free_port)
timeout 60 "$TUTTI" run --transport cuda --gpus host --ranks 2 --rank 1 --meet 127.0.0.1:$port -b 1K >out1.keep 2>err1.keep &
timeout 60 "$TUTTI" run --transport cuda --gpus host --ranks 2 --rank 0 --meet 127.0.0.1:$port -b 1K --placement read >out0.keep 2>err0.keep
wait
grep -q "^tutti run: wrong arguments: .*placement read" err0.keep || fail "two placements: $(cat err0.keep)"
together -n 100000 --fault kill:rank=1,after=3 -T 5
for r in 0 2 3; do
    grep -q "^tutti run: died: rank 1" err$r.keep || fail "rank $r of a dead rank 1: $(cat err$r.keep)"
done
together -n 100000 --fault exit:rank=2,after=3 -T 5
grep -q "rank 2" err0.keep || fail "rank 0 of a rank 2 that left: $(cat err0.keep)"

"$TUTTI" run --transport cuda --gpus host --ranks 4 -q --algo ring -b 64K -T 2 -n 1000 --fault delay:rank=1,time=30s >stdout 2>stderr
[ $? -eq 4 ] && grep -q "slow: no progress for 2 s; rank 1 is stuck" stderr && ! grep -q "rank [023] is stuck" stderr ||
    fail "a rank late on a GPU that others share: $(cat stderr)"

# --- what cannot be ----------------------------------------------------------------------------------------

cuda="run --transport cuda --gpus host --ranks 2 -b 1K"
want 2 'unknown protocol "x" (one of: auto, simple, ll, ll128)' -- $cuda --protocol x
want 2 'unknown placement "x" (one of: auto, write, read, host)' -- $cuda --placement x
want 2 '"host:N" or "host:N,THREADS"' -- run --transport cuda --gpus host:0 --ranks 2 -b 1K
for list in 0,0 -1 x 0, "" 1-2; do
    want 2 'neither numbers of GPUs as in 0,2' -- run --transport cuda --gpus "$list" --ranks 2 -b 1K
done
want 1 'that GPU 0 has free' -- run --transport cuda --gpus host --ranks 2 -b 16T
want 2 'go with --transport cuda' -- run --ranks 2 -b 1K --protocol ll
want 2 'kernels do not look at messages' -- $cuda --checksum
want 2 'kernels do not spoil messages' -- $cuda --fault corrupt:rank=1
want 2 'start one process per rank' -- $cuda --fault kill:rank=1
want 2 'collectives on GPUs begin together' -- $cuda --start-offset 1:1ms
want 2 'not counted on GPUs' -- $cuda --arrivals
want 77 'fit GPU 0 at the same time (use fewer channels' -- run --transport cuda --gpus host --ranks 8 -b 16M --channels 512 --algo ring
want 2 'ranks are measured in pairs' -- calibrate --transport cuda --gpus host --ranks 3
want 2 'ranks are measured in pairs' -- calibrate --transport cuda --gpus host --ranks 0
want 2 'go with --transport cuda' -- calibrate --gpus host
if [ ! -e /dev/nvidiactl ]; then
    "$TUTTI" run --transport cuda --ranks 2 -b 1K >stdout 2>stderr
    [ $? -eq 77 ] && [ "$(wc -l <stderr)" -eq 1 ] || fail "without a GPU: $(cat stderr)"
fi

# --- predicted and measured --------------------------------------------------------------------------------

want 0 - -- calibrate --transport cuda --gpus host --ranks 2 --quick --quiet --max-bytes 16K --output gpu.keep
grep -q "^machine = GPU 0 the host's processor (ranks 0-1), cuda$" gpu.keep || fail "profile: $(head -5 gpu.keep)"
want 0 - -- calibrate --transport cuda --gpus host:2 --ranks 2 --quick --quiet --max-bytes 1K --output pair.keep
grep -Eq "^# GPU 1, the host's processor: a launch [0-9.e+]+ us; a flag [0-9.e+]+ us; copies" pair.keep || fail "two GPUs: $(grep '^#' pair.keep)"
grep -Eq "^# to GPU 1: [0-9.e+]+ GB/s, a flag [0-9.e+]+ us$" pair.keep || fail "a pair of GPUs: $(grep '^#' pair.keep)"
want 0 - -- compare --transport cuda --gpus host --topo this --ranks 2 --profile gpu.keep --algo ring -b 4K -n 2 --csv -q
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { n++; bad += !($at["predicted_us"] > 0 && $at["measured_us"] > 0 && $at["wrong"] == 0 && $at["diverges"] != "") }
         END { exit !(n == 1 && bad == 0) }' stdout || fail "compare: $(cat stdout)"
want 0 "calibrated with 2 ranks, protocol auto, placement auto; this run is of 2 ranks, protocol ll," -- compare --transport cuda \
    --gpus host --topo this --ranks 2 --profile gpu.keep --algo ring -b 4K -n 2 --csv --protocol ll
nothing_left
finish
