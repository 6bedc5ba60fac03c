#!/usr/bin/env bash
# tutti topo: every preset is listed, shown, and can be predicted on.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

want 0 - -- topo list
has "this"
presets=$(awk '$1 != "this" { print $1 }' stdout)
[ -n "$presets" ] || fail "no presets"
for preset in $presets; do
    want 0 - -- topo show "$preset"
    [ "$(wc -l <stdout)" -gt 3 ] || fail "$preset: little to show"
    want 0 - -- topo show "$preset" --json
    head -c 1 stdout | grep -q '{' || fail "$preset: not JSON"
    want 0 - -- predict --topo "$preset" -b 1M --algo ring -q
done
want 2 "nosuch" -- topo show nosuch
want 3 "broken.keep" -- topo show ./broken.keep.ini
nothing_left
# A FIFO without a writer is an empty file, not a wait for ever; <(...) works.
mkfifo pipe.keep
timeout 5 "$TUTTI" topo show ./pipe.keep >stdout 2>stderr </dev/null
[ $? -eq 3 ] || fail "a FIFO: wanted 3: $(cat stderr)"
"$TUTTI" topo show <(sleep 0.2; cat "$TT_SOURCE_DIR/topologies/presets/hosts.ini") >stdout 2>stderr ||
    fail "<(...): $(cat stderr)"
finish
