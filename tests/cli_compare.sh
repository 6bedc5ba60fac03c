#!/usr/bin/env bash
# calibrate and compare from outside: the whole loop on this machine, small. How good the predictions are is
# not asked here: other programs share the cores.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

"$TUTTI" calibrate --quick --quiet --max-bytes 1M --output this.ini >calibrate.out 2>calibrate.err ||
    fail "calibrate: $(cat calibrate.err)"
grep -q '^\[op recv-reduce\]' this.ini || fail "no costs in the profile"
grep -q 'recv-reduce-copy-send' calibrate.out || fail "no table of costs"

"$TUTTI" compare --topo this --profile this.ini --ranks 2 --algo ring,tree,direct -b 1K -e 256K -f 16 --csv \
    >compare.csv 2>compare.err || fail "compare: $(cat compare.err)"
[ "$(wc -l <compare.csv)" -eq 10 ] || fail "wanted 9 rows and a header: $(cat compare.csv)"
head -1 compare.csv | grep -q 'predicted_us,measured_us,error' || fail "header: $(head -1 compare.csv)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { p = $at["predicted_us"]; m = $at["measured_us"]; e = $at["error"]
           if (!(p > 0 && m > 0 && (p - m) / m - e < 1e-6 && e - (p - m) / m < 1e-6)) exit 1
           if ($at["wrong"] != 0) exit 1 }' compare.csv || fail "a row does not add up: $(cat compare.csv)"

"$TUTTI" compare --topo this --profile this.ini --ranks 2 --algo ring -b 4K --trace trace.json --quiet \
    >compare.out 2>&1 || fail "compare --trace: $(cat compare.out)"
grep -q 'differs most at' compare.out || fail "no step named: $(cat compare.out)"
grep -q 'med |error|' compare.out || fail "no summary: $(cat compare.out)"
grep -q 'predicted' trace.json && grep -q 'measured' trace.json || fail "the trace lacks a side"

# a device is written into, never replaced
if mknod device c 1 3 2>/dev/null; then
    "$TUTTI" calibrate --quick --quiet --max-bytes 4K --output device >calibrate.out 2>&1 ||
        fail "calibrate into a device: $(cat calibrate.out)"
    [ -c device ] || fail "a device was replaced by a file"
    rm device
fi
# more ranks than cores share them
"$TUTTI" compare --topo this --profile this.ini --ranks $(($(nproc) + 1)) --algo ring -b 1K --quiet >compare.out 2>&1 ||
    fail "compare with a crowded core: $(cat compare.out)"
printf '[profile]\nnonsense = 1\n' >bad.ini
want 3 'bad.ini' -- compare --topo this --profile bad.ini --ranks 2 --algo ring -b 4K
want 2 'dgx-h100' -- compare --topo dgx-h100 --profile this.ini --ranks 2 --algo ring -b 4K
want 2 '--max-bytes' -- calibrate --max-bytes 12Q
finish
