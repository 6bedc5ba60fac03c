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
echo '<a/>' >bad.keep.ini.xml
echo '<system version="1"><gpu sm="1"/></system>' >place.keep.xml
printf '[node]\ngpus = 1\n' >plain.keep.ini
# The same node as NCCL sees it: written, checked, drawn, opened again.
for preset in $presets; do
    [ "$preset" = hosts ] && continue
    want 0 - -- topo export "$preset" -o node.keep.xml
    [ ! -s stdout ] || fail "$preset: -o and standard output"
    want 0 - -- topo show ./node.keep.xml:3
    want 0 - -- topo draw "$preset"
    has "</svg>"
    "$TUTTI" topo lint ./node.keep.xml >stdout 2>stderr || [ $? -eq 1 ] || fail "$preset: $(cat stderr)"
    want 0 - -- topo export "$preset:2" --format ini -o node.keep.ini
    "$TUTTI" topo show ./node.keep.ini 2>&1 | sed 1d >a.keep
    "$TUTTI" topo show "$preset:2" 2>&1 | sed 1d >b.keep
    tail -n +2 a.keep | grep -v 'source not stated' >c.keep
    tail -n +2 b.keep | grep -v 'source not stated' | cmp -s - c.keep || fail "$preset: its .ini differs"
done
want 0 - -- topo lint dgx-h100
[ "$(cat stdout)" = "no findings" ] || fail "findings on a good node: $(cat stdout)"
want 0 - -- topo export dgx-h100 -o good.keep.xml
want 0 - -- predict --topo ./good.keep.xml:4 -b 1M --algo ring -q --set fabric.oversubscription=2 \
    --set fabric.nodes-per-leaf=2
sed '0,/count="18"/s//count="12"/' good.keep.xml >bad.keep.xml
want 1 - -- topo lint ./bad.keep.xml
has "warning: gpu 0 (0000:02:00.0): 12 NVLinks; expected 18, as its peers have"
want 1 - -- topo lint ./bad.keep.xml --json
has '"rule" : "nvlink-fewer"'
want 3 "stands in the wrong place" -- topo lint ./place.keep.xml
want 3 "bad.keep.ini.xml:1: <a>: not an NCCL topology" -- topo draw ./bad.keep.ini.xml -o no.svg
want 2 "has no GPUs" -- topo export hosts -o no.xml
want 2 "sm = 90" -- topo draw ./plain.keep.ini
want 2 "--format dot is not one of nccl-xml, ini" -- topo export dgx-h100 --format dot
want 2 "show has no -o" -- topo show dgx-h100 -o x
"$TUTTI" topo export dgx-h100 | sed 's/speed="400000"/speed="-1"/' >unknown.keep.xml
want 0 - -- topo draw ./unknown.keep.xml
has "unknown speed"
grep -q -- '-0\.001' stdout && fail "a negative speed is drawn"
# A link is written through, not replaced (/dev/stdout is one; never try that as root with a build in doubt).
ln -s /proc/self/fd/1 out.keep
want 0 - -- topo export dgx-h100 -o out.keep
has "<system version"
[ -L out.keep ] || fail "-o replaced a link by a file"
rm -f out.keep
want 2 "draw has no --json" -- topo draw dgx-h100 --json
want 2 "lint has no --format" -- topo lint dgx-h100 --format ini
want 3 "/no/such" -- topo draw dgx-h100 -o /no/such/x.svg
want 2 "lint needs the name" -- topo lint
want 2 "list takes no options" -- topo list --json
rm -f ./*.keep.xml ./*.keep.ini*
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
