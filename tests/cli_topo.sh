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
finish
