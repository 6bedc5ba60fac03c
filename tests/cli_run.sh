#!/usr/bin/env bash
# tutti run: nccl-tests' table, checked data, the other forms.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

sweep="run --ranks 2 -b 8 -e 64K -f 64 --algo ring,tree -n 3 -w 1"
want 0 - -- $sweep
has "out-of-place"
has "# Out of bounds values : 0 OK"
has "# Avg bus bandwidth"
# size count type redop root | time algbw busbw #wrong | the same in place | algorithm
awk '!/^#/ { n++; if (NF != 14 || $9 != 0 || $13 != 0 || $6 <= 0 || $10 <= 0) bad = 1 }
     END { exit bad || n != 6 }' stdout || fail "table: $(cat stdout)"
want 0 - -- $sweep -c 0
awk '!/^#/ { if ($9 != "N/A") bad = 1 } END { exit bad }' stdout || fail "-c 0: $(cat stdout)"
grep -q "Out of bounds" stdout && fail "-c 0 cannot know of wrong values"
want 0 - -- run --ranks 1 -b 1K --algo ring -n 1
want 0 - -- run --ranks 3 -b 20 --algo ring -n 1 -d all -o all
[ "$(grep -vc '^#' stdout)" -eq 45 ] || fail "types x reductions: $(cat stdout)"
for ranks in 2 3 4; do
    for collective in allreduce reduce-scatter allgather broadcast reduce; do
        want 0 - -- run --ranks $ranks -b 1000 --algo ring -n 1 -o all --collective $collective -d f8e4m3,FP8_e5m2
    done
    want 0 - -- run --ranks $ranks -b 1000 --algo ring,tree,direct -n 1 -o all -d e4m3,float8_e5m2
    [ "$(grep -c ' f8e4m3 ' stdout)" -eq 15 ] || fail "fp8 on $ranks ranks: $(cat stdout)"
done
for collective in reduce-scatter allgather broadcast reduce; do
    want 0 - -- run --ranks 3 -b 1K --algo ring -n 1 --collective $collective
done
want 0 - -- run --ranks 2 -b 1K -n 2

want 0 - -- $sweep --csv
[ "$(wc -l <stdout)" -eq 13 ] || fail "CSV: a row per algorithm, size and placement: $(cat stdout)"
for name in time_us algbw_gbps busbw_gbps wrong in_place; do
    head -1 stdout | tr , '\n' | grep -qx $name || fail "no column $name"
done
want 0 - -- $sweep -I
[ "$(grep -c '^# .*place: *min .*p50 .*p95 .*p99 .*max .*cv .*%$' stdout)" -eq 12 ] || fail "-I: $(cat stdout)"
want 0 - -- $sweep -I --csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { if ($at["min_us"] > $at["p50_us"] || $at["p50_us"] > $at["p95_us"] || $at["p95_us"] > $at["p99_us"] ||
               $at["p99_us"] > $at["max_us"] || $at["min_us"] <= 0 || $at["cv"] < 0) bad = 1 }
         END { exit bad || NR != 13 }' stdout || fail "-I --csv: $(cat stdout)"
want 2 "can be told apart" -- run --ranks 2 -b 1K -n 100000000 -I
late="run --ranks 3 -b 1K --algo ring -n 8 --arrivals --fault delay:rank=2,time=60ms"
want 0 - -- $late
[ "$(grep -c '^#   *rank  *[012] ' stdout)" -eq 6 ] || fail "--arrivals: $(cat stdout)"
[ "$(grep -c '^# rank 2 was late in [5-8] of 8 iterations, by [0-9.]* ms in the median$' stdout)" -eq 2 ] ||
    fail "--arrivals, who was late: $(cat stdout)"
want 0 - -- $late --json
has '"arrivals" : ['
has '"waits_for" :'

# Several at once, in groups, late: all right, and counted as nccl-tests would.
several="run --ranks 4 -b 6000 -n 3 -w 1 --algo ring"
want 0 - -- $several --groups 2 --in-flight 3
has "# groups 2 of 2 ranks in flight 3 start offsets none"
has "Rank  3 Group  1 Pid"
has "# Out of bounds values : 0 OK"
want 0 - -- $several --groups mod:2 --in-flight 2 --start-offset 1:3ms,2:100us --csv --arrivals -I
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { algbw = 2 * $at["bytes"] / $at["time_us"] / 1e3; off = $at["algbw_gbps"] / algbw - 1
           if ($at["ranks"] != 2 || $at["groups"] != 2 || $at["in_flight"] != 2 || $at["wrong"] != 0 ||
               $at["time_us"] < 1500 || off * off > 1e-6 || $at["busbw_gbps"] != $at["algbw_gbps"]) bad = 1 }
         END { exit bad || NR != 3 }' stdout || fail "groups --csv: $(cat stdout)"
want 0 - -- run --ranks 3 -b 6000 -n 3 --algo ring+tree+direct,ring --transport tcp
awk '!/^#/ { n++; seen[$14]++; if ($9 != 0 || $13 != 0) bad = 1 }
     END { exit bad || n != 2 || !seen["ring+tree+direct"] || !seen["ring"] }' stdout || fail "ring+tree: $(cat stdout)"
for collective in reduce-scatter allgather broadcast reduce; do
    want 0 - -- $several --collective $collective --groups 2 --in-flight 2
done
want 0 - -- run --ranks 4 -b 64 -n 1 --algo all --in-flight 2 -q
want 2 "--groups 3 must divide the 4 ranks" -- $several --groups 3
want 2 "--start-offset \"4:1ms\" must be RANK:TIME" -- $several --start-offset 4:1ms
want 2 "--start-offset \"1:5\" must be RANK:TIME" -- $several --start-offset 1:5
want 2 "must be below the --timeout of 2 s" -- $several --start-offset 1:2s -T 2
want 2 "--in-flight 1 must be at least 2, for ring+tree" -- run --ranks 2 -b 8 --algo ring+tree --in-flight 1
want 2 "unknown algorithm \"ring+\"" -- run --ranks 2 -b 8 --algo ring+
want 2 "switches that reduce" -- run --ranks 4 -b 8 --algo nvls --group 4 --in-flight 2
want 0 - -- $sweep --json
has '"wrong" : 0'
want 0 - -- run --ranks 2 -b 64K --algo ring -n 2 --trace trace.keep --timeline timeline.keep
[ "$(grep -c '"ph":"s"' trace.keep)" -gt 0 ] || fail "no arrows"
head -1 timeline.keep | grep -q '^rank,lane,round,step,op,' || fail "timeline: $(head -1 timeline.keep)"

# Too little memory is refused, in the parent or in a rank, as processes and as threads.
for transport in shm threads; do
    (ulimit -v 700000; "$TUTTI" --version) >/dev/null 2>&1 || break # sanitizers want terabytes
    (ulimit -v 700000; "$TUTTI" run --ranks 2 -b 128M --algo ring -n 1 --transport $transport) \
        >stdout 2>stderr
    [ $? -eq 1 ] || fail "$transport, ulimit -v: wanted 1: $(cat stderr)"
    grep -q 'cannot map.*ulimit -v' stderr || fail "$transport, ulimit -v: $(cat stderr)"
done
want 1 "MiB of shared memory" -- \
    run --ranks 2 -b 16M --algo direct --chunk-bytes 0 --slots 65536 -n 1
room=$(sed -n 's/.* do not fit \([0-9]*\) MiB.*/\1/p' stderr)
[ "$room" -le "$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" ] ||
    fail "slots may take more than there is: $(cat stderr)"

# A rank that is killed ends the run within two seconds, is named, and leaves nobody behind.
ranks_of() { sed -n 's/^#  *Rank *[0-9]* Pid *\([0-9]*\) .*/\1/p' "$1"; }
started() { # started FILE: waits until the ranks are there
    for _ in $(seq 100); do
        grep -q '^# *size' "$1" && return
        sleep 0.05
    done
    fail "the run did not start: $(cat "$1")"
}
nobody_left() {
    for _ in $(seq 40); do
        alive=
        for pid in $1; do kill -0 "$pid" 2>/dev/null && alive="$alive $pid"; done
        [ -z "$alive" ] && return
        sleep 0.05
    done
    fail "still there:$alive"
}
"$TUTTI" run --ranks 3 -b 4M --algo ring -n 100000000 -q >killed.keep 2>stderr &
program=$!
started killed.keep
ranks=$(ranks_of killed.keep)
kill -9 "$(echo "$ranks" | sed -n 2p)"
begin=$(date +%s%N)
wait $program
code=$?
took_ms=$((($(date +%s%N) - begin) / 1000000))
[ $code -eq 4 ] || fail "a killed rank: exit $code, wanted 4: $(cat stderr)"
[ $took_ms -lt 2000 ] || fail "a killed rank: $took_ms ms"
grep -q "rank 1" stderr || fail "the killed rank is not named: $(cat stderr)"
[ "$(wc -l <stderr)" -eq 1 ] || fail "a killed rank: more than one line: $(cat stderr)"
nobody_left "$ranks"

# So does killing the program itself, and a reader that leaves early.
"$TUTTI" run --ranks 3 -b 4M --algo ring -n 100000000 -q >killed.keep 2>stderr &
program=$!
started killed.keep
ranks=$(ranks_of killed.keep)
kill -9 $program
wait $program 2>/dev/null || true
nobody_left "$ranks"
"$TUTTI" run --ranks 2 -b 8 -e 8K -i 8 --algo ring -n 10 -q 2>stderr | tee early.keep | head -12 >/dev/null
[ -s stderr ] && fail "SIGPIPE: $(cat stderr)"
nobody_left "$(ranks_of early.keep)"
nothing_left
finish
