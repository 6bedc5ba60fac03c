#!/usr/bin/env bash
# The figures docs/accuracy.md claims: the fit repeats, and predictions stay as close to published measurements as
# they were. The cross-validated run takes half a minute; builds with sanitizers leave it out.
set -u
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT
bad=0
measurements=$TT_SOURCE_DIR/bench/measurements
bench=$(dirname "$TUTTI")/bench/bench_accuracy

fail() {
    echo "FAIL: $*"
    bad=1
}

# limit NAME VALUE MOST
limit() {
    awk -v v="$2" -v m="$3" 'BEGIN { exit !(v != "" && v + 0 <= m + 0) }' || fail "$1 is $2 %, at most $3 % wanted"
}

# scores MODEL: "median p95" of the scored section, a line for each half of the sizes
scores() {
    "$bench" --model "$1" "$measurements" | awk '
        /quality A and B, not/ { on = 1; next }
        on && /median \|error\|/ { gsub(",", ""); for (i = 1; i < NF; i++) { if ($i == "|error|") m = $(i + 1); if ($i == "p95") p = $(i + 1) }; print m, p; if (++n == 2) exit }'
}

# --- the fit repeats -------------------------------------------------------------------------------------------
if "$TUTTI" calibrate --from "$measurements" --output again.ini 2>err; then
    paste <(sed -n 's/^\([a-z][^ ]*\) = \([^ ]*\).*/\1 \2/p' "$TT_SOURCE_DIR/models/constants/nccl.ini") \
        <(sed -n 's/^\([a-z][^ ]*\) = \([^ ]*\).*/\1 \2/p' again.ini) |
        awk '$1 != $3 || $2 - $4 > $2 / 50 || $4 - $2 > $2 / 50 { print; bad = 1 } END { exit bad || NR < 100 }' >off ||
        fail "models/constants/nccl.ini is not what calibrate --from gives: $(head -3 off)"
    "$TUTTI" predict --topo dgx-h100:2 --library nccl-2.27 -b 1M --constants again.ini >/dev/null 2>err ||
        fail "constants cannot be used: $(cat err)"
elif ! grep -q GSL err; then
    fail "calibrate --from: $(cat err)"
fi

# --- seen and unseen -------------------------------------------------------------------------------------------
[ -x "$bench" ] || exit $bad
read -r below below95 from from95 < <(scores built-in | tr '\n' ' ')
limit "built in, below 1 MiB: median" "$below" 15
limit "built in, 1 MiB and more: median" "$from" 9
if [ -z "${TT_SANITIZE:-}" ] && ! grep -q GSL err; then
    read -r below below95 from from95 < <(scores tutti | tr '\n' ' ')
    limit "cross-validated, below 1 MiB: median" "$below" 22
    limit "cross-validated, below 1 MiB: p95" "$below95" 75
    limit "cross-validated, 1 MiB and more: median" "$from" 11.5
    limit "cross-validated, 1 MiB and more: p95" "$from95" 55
fi

# --- a preset and a measurement of the same machine are predicted alike -----------------------------------------
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }'; }
for pair in mi300x-8:mi300x-1x8-ar dgx-h100:dgxh100-1x8-ar p5-h100:2:p5-h100-2x8-ar-nccl222; do
    preset=${pair%:*} file=${pair##*:}
    a=$("$TUTTI" predict --topo "$preset" --library nccl-2.22 --level loggp -b 1G --csv 2>/dev/null | column time_us)
    b=$("$TUTTI" compare --measured "$measurements/$file.json" --library nccl-2.22 -b 1G --csv 2>/dev/null | column predicted_us)
    awk -v a="$a" -v b="$b" 'BEGIN { exit !(a > 0 && b > 0 && a / b < 1.1 && b / a < 1.1) }' || fail "$preset is predicted $a us, $file $b us"
done

# --- how it was launched ---------------------------------------------------------------------------------------
time_of() { "$TUTTI" predict --topo dgx-a100:1 --library nccl -b 8 --csv "$@" 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time_us") c = i } NR == 2 { print $c }'; }
awk -v one="$(time_of --launch one-process)" -v each="$(time_of)" 'BEGIN { exit !(one > 1.5 * each && each > 1) }' ||
    fail "one process for eight GPUs does not take longer"
"$TUTTI" predict --topo dgx-a100:1 -b 8 --launch graph >/dev/null 2>err
[ $? -eq 2 ] && grep -q "go with --library nccl" err || fail "--launch without NCCL: $(cat err)"
"$TUTTI" predict --topo dgx-a100:1 --library nccl -b 8 --launch all >/dev/null 2>err
[ $? -eq 2 ] && grep -q "must be process-per-gpu" err || fail "--launch all: $(cat err)"
echo "start = 5 us" >bad.ini
"$TUTTI" predict --topo dgx-a100:1 --library nccl -b 8 --constants bad.ini >/dev/null 2>err
[ $? -eq 3 ] && [ "$(wc -l <err)" -eq 1 ] || fail "bad constants: $(cat err)"
exit $bad
