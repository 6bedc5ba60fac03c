#!/usr/bin/env bash
# compare --measured from outside: logs in all states, other forms of output, bad input. Also bench/accuracy's folder.
. "$TT_SOURCE_DIR/tests/cli_common.inc"
data=$TT_SOURCE_DIR/tests/data/nccl-tests
published=$TT_SOURCE_DIR/bench/measurements
json=yes
"$TUTTI" compare --measured "$data/2025-report.json" 2>&1 | grep -q 'needs json-glib' && json=

"$TUTTI" compare --measured "$data/2023-wrong-and-cut.txt" >stdout 2>stderr || fail "a damaged log: $(cat stderr)"
grep -q 'line 11: 2048 B: wrong results' stderr || fail "wrong results are not told: $(cat stderr)"
grep -q 'line 12: a row of 4096 B cut short' stderr || fail "a cut row is not told: $(cat stderr)"
has 'up to 16 KiB'
has 'NCCL 2.'

# every row adds up, in both places
for place in "" --in-place; do
    # shellcheck disable=SC2086
    "$TUTTI" compare --measured "$data/2023-two-runs.txt" $place --csv --quiet >rows.csv 2>stderr || fail "$(cat stderr)"
    [ "$(wc -l <rows.csv)" -eq 5 ] || fail "wanted a header and 4 rows: $(cat rows.csv)"
    [ -s stderr ] && fail "--quiet is not: $(cat stderr)"
    awk -F, -v place="$place" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { p = $at["predicted_us"]; m = $at["measured_us"]; e = $at["error"]; d = (p - m) / m - e
          if (!(p > 0 && m > 0 && d * d < 1e-12)) exit 1
          if ($at["in_place"] != (place == "" ? "false" : "true")) exit 1
          if ($at["table"] != (NR <= 3 ? 1 : 2)) exit 1 }' rows.csv || fail "rows do not add up: $(cat rows.csv)"
done
head -1 rows.csv | tr , '\n' | while read -r field; do
    grep -q "\`$field\`" "$TT_SOURCE_DIR/docs/commands.md" || echo "$field"
done >missing.keep
[ -s missing.keep ] && fail "fields that docs/commands.md does not know: $(cat missing.keep)"
rm -f rows.csv missing.keep

# several files at once, a range of sizes, another version, a variable, a topology
if [ $json ]; then
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" "$published/abci2-v100-2x4-ar.json" -b 1M -e 4M --csv -q \
        >stdout 2>stderr || fail "two files: $(cat stderr)"
    [ "$(wc -l <stdout)" -eq 7 ] || fail "wanted 3 sizes of 2 files: $(cat stdout)"
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" --library nccl-2.27 --env NCCL_ALGO=Tree --csv -q >stdout
    grep -q ',tree,' stdout && ! grep -q ',nvls,' stdout || fail "NCCL_ALGO=Tree was not honoured: $(head -3 stdout)"
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" --topo dgx-h100 >stdout 2>stderr || fail "--topo: $(cat stderr)"
    has 'dgx-h100; NCCL'
fi

if "$TUTTI" compare --measured "$data/2025-report.json" --json -q >out.json 2>stderr; then
    grep -q '"predicted_busbw_gbps"' out.json || fail "JSON lacks a field: $(cat out.json)"
elif ! grep -q json-glib stderr; then
    fail "--json: $(cat stderr)"
fi
rm -f out.json
if command -v gnuplot >/dev/null; then
    "$TUTTI" compare --measured "$data/2026-gh200.txt" --plot one -q >stdout 2>stderr || fail "--plot: $(cat stderr)"
    [ -s one.png ] && [ -s one.svg ] || fail "nothing was drawn"
    "$TUTTI" compare --measured "$data/2023-two-runs.txt" --plot two -q >stdout 2>stderr || fail "--plot: $(cat stderr)"
    [ -s two-2023-two-runs-1.png ] && [ -s two-2023-two-runs-2.svg ] || fail "not one picture a table: $(ls)"
    rm -f ./*.png ./*.svg
fi

# what the numbers mean, in words; what was assumed and why
"$TUTTI" compare --measured "$data/2026-gh200.txt" -b 4M >stdout 2>stderr || fail "one size: $(cat stderr)"
has '# error > 0: predicted to take longer'
# by how much depends on the constants
grep -qE '^# measured is [0-9.]+x (faster|slower) than predicted .*: see whether' stdout || fail "no verdict: $(cat stdout)"
has 'pred.busbw  meas.busbw'
if [ $json ]; then
    "$TUTTI" compare --measured "$published/h100-2x4-ar-cloud.json" >stdout 2>stderr || fail "no date: $(cat stderr)"
    grep -q 'not stated: no date in the file: taken as 2.' stderr || fail "no date: $(cat stderr)"
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" -b 1M >stdout 2>stderr || fail "a date: $(cat stderr)"
    grep -q 'taken as 2.*, by date' stderr || fail "a date: $(cat stderr)"
    sed 's/"date": *"[^"]*"/"date": "2018-05"/' "$published/dgxh100-1x8-ar.json" >ancient.keep
    "$TUTTI" compare --measured ancient.keep -b 1M >stdout 2>stderr || fail "2018: $(cat stderr)"
    grep -q 'NCCL before 2.4 is not modelled' stderr || fail "2018: $(cat stderr)"
    # levels: a simulation needs a topology, bounds say nothing of a run
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" -b 64M --topo dgx-h100 --level flow -q >stdout 2>stderr ||
        fail "flow: $(cat stderr)"
    has 'times by simulating the plan'
    want 2 'give --topo, or --level loggp' -- compare --measured "$published/dgxh100-1x8-ar.json" --level flow
    want 2 'has loggp' -- compare --measured "$published/dgxh100-1x8-ar.json" --level bound
    want 3 'no times in it: nothing to compare' -- compare --measured "$published/summit-v100-ratio.json" -q
    want 2 'none of its sizes' -- compare --measured "$published/dgxh100-1x8-ar.json" -b 3 -q
    "$TUTTI" compare --measured "$published/dgxh100-1x8-ar.json" "$published/summit-v100-ratio.json" -b 1M \
        >stdout 2>stderr || fail "one of two has no times: $(cat stderr)"
    grep -q 'left out: .*summit.*no times in it' stderr || fail "no times: $(cat stderr)"
fi

# bad input: one line, an exit code by class, nothing on standard output
: >empty
head -c 100000 /dev/urandom >garbage.keep
printf 'a letter\nof two lines\n' >prose.keep
printf '{ "schema": "collective-measurement/1", "rows": [' >cut.keep
want 3 'empty' -- compare --measured empty
want 3 'no table of nccl-tests' -- compare --measured garbage.keep
want 3 'no table of nccl-tests' -- compare --measured prose.keep
want 3 'a directory' -- compare --measured .
want 3 'no-such-file' -- compare --measured no-such-file
mkfifo pipe && want 3 'empty' -- compare --measured pipe
want 3 'too large' -- compare --measured /dev/zero
[ $json ] && want 3 'cut.keep' -- compare --measured cut.keep
want 3 'no-such-file' -- compare --measured "$data/2026-gh200.txt" no-such-file
[ $json ] && want 2 '8 GPUs took part, and dgx-h100:2 has 16' -- compare --measured "$published/dgxh100-1x8-ar.json" --topo dgx-h100:2 -q
sed 's/NVIDIA GeForce RTX 4090/NVIDIA Z9/' "$data/2024-interleaved.txt" >strange.keep
want 2 '"NVIDIA Z9" is not known' -- compare --measured strange.keep -q
[ $json ] && want 2 'perftest' -- compare --measured "$published/h100-2x8-ibwrite-perftest.json" -q
want 2 'no GPU is named' -- compare --measured "$data/2024-srun-no-ranks.txt" -q
[ $json ] && want 2 'osu_allreduce' -- compare --measured "$published/abci2-a100-1x8-ar-osu.json" -q
[ $json ] && want 2 'sendrecv' -- compare --measured "$published/a100-1x8-sr.json" -q
want 2 'unexpected argument' -- compare "$data/2026-gh200.txt"
want 2 '--in-place goes with --measured' -- compare --in-place
want 2 '--ranks' -- compare --measured "$data/2026-gh200.txt" --ranks 2
want 2 '--algo' -- compare --measured "$data/2026-gh200.txt" --algo ring
want 2 '--measured FILE' -- compare --library nccl-2.27

# calibrate --from: figures no machine can have are no measurements; an id cannot write lines of its own
{
    echo '# Collective test starting: all_reduce_perf'
    echo '#  Rank  0 Group  0 Pid 1 on host device  0 [0x00] NVIDIA H100 80GB HBM3'
    echo '#  Rank  1 Group  0 Pid 2 on host device  1 [0x01] NVIDIA H100 80GB HBM3'
    echo '1024 256 float sum -1 1e-308 0.1 0.1 0 1e308 0.1 0.1 0'
} >damaged.keep
want 3 'damaged.keep' -- calibrate --from damaged.keep
if [ $json ]; then
    sed 's/"id": *"/&evil\\nstart = 999 us\\n/' "$published/dgxh100-1x8-ar.json" >lines.keep
    grep -q 'start = 999' lines.keep || fail "no id to change"
    "$TUTTI" calibrate --from lines.keep --output lines.ini >stdout 2>stderr || fail "calibrate --from: $(cat stderr)"
    grep -q '^start = 999' lines.ini && fail "an id wrote a line of its own"
    rm -f lines.ini
fi
esc=$(printf '\033')
want 2 'is no NCCL version' -- predict --topo dgx-h100 -b 8 --library "nccl-${esc}[31m"
grep -q "$esc" stderr && fail "an error holds an escape"
rm -f empty pipe ./*.keep
nothing_left
finish
