#!/usr/bin/env bash
# tutti verify: a line per algorithm and collective; ranges; what cannot be is passed over, not passed.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

want 0 - -- verify --algo all --ranks 1-9
has " ring "
has "PASS"
grep -q FAIL stdout && fail "a built-in plan fails: $(grep -A1 FAIL stdout)"
want 0 - -- verify --algo ring --ranks 1-4,8 --count 0,5 --collective allreduce
# 5 rank counts x 2 counts x (in place, out of place)
grep -Eq 'ring +allreduce +1-8 +20 ' stdout || fail "cases: $(cat stdout)"
want 0 - -- verify --algo ring --ranks 3 --collective allreduce,broadcast --csv
[ "$(wc -l <stdout)" -eq 3 ] || fail "CSV: $(cat stdout)"
head -1 stdout | grep -q '^collective,algorithm,cases,steps,messages,seconds,verdict,message$' ||
    fail "CSV header: $(head -1 stdout)"
want 0 - -- verify --algo ring --ranks 3 --json
has '"verdict" : "PASS"'
has '"command" : "tutti verify --algo ring --ranks 3 --json"'
want 0 - -- verify --algo tree --ranks 7 --slots 1 --chunk-bytes 256 --channels 2 --count 5000
nothing_left
finish
