#!/usr/bin/env bash
# Short soaks over tcp with 4 ranks: memory and descriptors do not grow. bench/soak.c says more.
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1
soak=$(dirname "$TUTTI")/bench/bench_soak
[ -x "$soak" ] || { echo "bench_soak is not built"; exit 77; }
# A sanitizer keeps what was freed: memory grows by design.
(ulimit -v 700000; "$TUTTI" --version) >/dev/null 2>&1 || { echo "a sanitizer's build"; exit 77; }
for what in "allreduces 20000" "jobs 100" "teams 20"; do
    timeout 120 "$soak" $what >stdout 2>stderr || fail "soak $what: exit $?: $(cat stdout stderr)"
    has "no growth"
    grep -q GREW stdout && fail "soak $what: $(cat stdout)"
done
finish
