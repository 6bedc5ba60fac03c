#!/usr/bin/env bash
# tutti predict: the table, its other forms, the files beside it; the same bytes every time.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

sweep="predict --topo hosts:4 -b 1K -e 1M -f 32 --algo ring,tree"
want 0 - -- $sweep
has "size         count      type   redop"
has "# Fastest at the sizes asked: "
[ "$(grep -vc '^#' stdout)" -eq 6 ] || fail "wanted 3 sizes x 2 algorithms: $(cat stdout)"
[ "$(grep -c ' \* ' stdout)" -eq 3 ] || fail "wanted one fastest per size"
grep -v '^#' stdout | awk '{ for (i = 6; i <= NF; i++) if ($i ~ /^[0-9.]+$/) n++ } END { exit n < 36 }' ||
    fail "numbers are missing in: $(cat stdout)"
cp stdout first.keep
want 0 - -- $sweep
cmp -s stdout first.keep || fail "two runs differ"
[ -s stderr ] && fail "something on standard error: $(cat stderr)"

# auto prints the fastest of all, only.
want 0 - -- predict -q --topo hosts:4 -b 1K -e 1M -f 32 --algo auto
[ "$(grep -vc '^#' stdout)" -eq 3 ] || fail "auto: wanted a row a size: $(cat stdout)"
# all leaves out what cannot, says so once, and goes on.
want 0 - -- predict --topo hosts:4 -b 1K -e 1M -f 32 --algo all --collective allgather
has "ring"
[ "$(grep -c 'tree left out' stderr)" -ge 1 ] || fail "nothing said of trees: $(cat stderr)"
[ "$(sort stderr | uniq -d | wc -l)" -eq 0 ] || fail "said twice: $(cat stderr)"
want 2 "cannot do allgather" -- predict --topo hosts:4 -b 1K --algo tree --collective allgather

# Sizes: nccl-tests rounds allgather's parts down to 16 bytes, so 1000 B over 4 ranks are 4 x 240.
want 0 - -- predict --topo hosts:4 -b 1000 --algo ring --collective allgather
grep -Eq '^ +960 +60 ' stdout || fail "allgather's size and count: $(tail -1 stdout)"
want 0 - -- predict --topo hosts:4 -b 0 --algo ring
want 0 - -- predict --topo hosts:4 -b 4 -e 20 -i 8 --algo ring -d half -o max
[ "$(grep -c ' half     max' stdout)" -eq 3 ] || fail "step: $(cat stdout)"
want 0 - -- predict --topo hosts:4 -b 64 --algo ring -d all -o all
[ "$(grep -vc '^#' stdout)" -eq 45 ] || fail "9 types x 5 reductions"

# CSV: the names are the design's.
want 0 - -- $sweep --csv
head -1 stdout | tr , '\n' | sort >names.keep
for name in collective algorithm protocol channels ranks bytes count type redop time_us algbw_gbps \
    busbw_gbps bound_us limit; do
    grep -qx "$name" names.keep || fail "no column $name"
done
[ "$(wc -l <stdout)" -eq 7 ] || fail "CSV rows: $(cat stdout)"
cp stdout csv.keep

# JSON on standard output and in a file is the same object, whatever the file was before.
echo old >j.keep
want 0 - -- $sweep --json -J j.keep
cmp -s stdout j.keep || fail "--json and -J differ"
has '"schema" : "tutti/1"'
has '"seed" : 0'
for name in version command topology config warnings results collective algorithm time_us bound_us; do
    has "\"$name\""
done
if command -v python3 >/dev/null && python3 -c 0 2>/dev/null; then
    python3 - <<'PY' || fail "JSON and CSV disagree"
import csv, json
rows = json.load(open("j.keep"))["results"]
table = list(csv.DictReader(open("csv.keep")))
assert len(rows) == len(table) == 6
for r, t in zip(rows, table):
    assert r["algorithm"] == t["algorithm"] and r["time_us"] == float(t["time_us"])
    assert abs(r["algbw_gbps"] - r["bytes"] / r["time_us"] / 1e3) < 1e-9 * r["algbw_gbps"]
    assert abs(r["busbw_gbps"] - 1.5 * r["algbw_gbps"]) < 1e-9 * r["busbw_gbps"]   # 2(4-1)/4
    assert r["time_us"] >= r["bound_us"] > 0
PY
fi

# Files: a trace of several algorithms, a timeline of one.
want 0 - -- $sweep --trace trace.keep
grep -q '"traceEvents":\[' trace.keep || fail "no trace"
[ "$(grep -c '"ph":"s"' trace.keep)" -gt 0 ] || fail "no arrows"
[ "$(grep -c '"ph":"s"' trace.keep)" -eq "$(grep -c '"ph":"f"' trace.keep)" ] || fail "half an arrow"
want 0 - -- predict --topo hosts:4 -b 1K --algo ring --timeline timeline.keep
head -1 timeline.keep | grep -q '^rank,lane,round,step,op,' || fail "timeline: $(head -1 timeline.keep)"
# 4 ranks take 2P - 1 = 7 steps each.
[ "$(wc -l <timeline.keep)" -eq 29 ] || fail "timeline: $(wc -l <timeline.keep) lines, wanted 1 + 4 * 7"
want 0 - -- predict --topo hosts:4 -b 1K --algo ring --trace /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"

if command -v gnuplot >/dev/null; then
    want 0 - -- $sweep --plot curve
    [ -s curve.png ] && [ -s curve.svg ] || fail "no plot"
    rm -f curve.png curve.svg
fi
nothing_left

# A reader that leaves early ends it without a word.
( "$TUTTI" predict --topo hosts:4 -b 64 -e 1M -i 64 --algo ring 2>stderr; echo $? >code.keep ) | head -2 >/dev/null
[ -s stderr ] && fail "SIGPIPE: $(cat stderr)"
[ "$(cat code.keep)" -ne 0 ] || fail "a closed pipe ended well?"

# Closed form and simulation agree where nothing is shared; a bound is a bound.
want 0 - -- predict --topo hosts:4 -b 1M --algo ring --level hockney --csv
want 0 - -- predict --topo hosts:4 -b 1M --algo ring --level bound --csv
# On a terminal, a long prediction says that it is still at work.
if command -v script >/dev/null; then
    timeout 3 script -qec "'$TUTTI' predict --topo hosts:100000 -b 1M --algo ring" /dev/null \
        </dev/null >stdout 2>&1
    has "to go"
fi

finish
