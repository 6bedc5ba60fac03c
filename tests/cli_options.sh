#!/usr/bin/env bash
# Help, version, and every way to ask for what cannot be: one line, exit 2 or 3, nothing half-written.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

want 0 - -- --version
has "tutti "
want 0 - -- --help
has "Examples:"
for command in $(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' stdout); do
    want 0 - -- "$command" --help
    has "Examples:"
    grep -q '[^ -~]' stdout && fail "$command --help is not plain ASCII"
    awk 'length > 110 { exit 1 }' stdout || fail "$command --help has very long lines"
    want 0 - -- help "$command"
    want 2 "Unknown option --no-such" -- "$command" --no-such
done

want 2 "a command is needed" --
want 2 "did you mean predict?" -- predit
want 2 "one of: " -- xyzzy
want 2 "one of: " -- help xyzzy
want 2 "unexpected argument" -- predict ring --topo hosts:2

p="predict --topo hosts:4 --algo ring"
want 2 "-b 2M is above -e 1M" -- $p -b 2M -e 1M
want 2 '-f "1" must be a whole number, 2' -- $p -b 1 -e 8 -f 1
want 2 '-f "x"' -- $p -b 1 -e 8 -f x
want 2 '-i "0"' -- $p -b 1 -e 8 -i 0
want 2 "-f and -i exclude" -- $p -b 1 -e 8 -i 1 -f 2
want 2 "more than 65536 sizes" -- $p -b 1 -e 1G -i 1
want 2 "-b 0 never grows" -- $p -b 0 -e 8 -f 2
want 2 "-b:" -- $p -b 12parsecs
want 2 "-b:" -- $p -b 99999999T
want 2 "-b:" -- $p -b -5
want 2 "-b:" -- $p -b ''
want 2 "overflow" -- $p -b 16383P
want 2 "Missing argument for -b" -- $p -b
want 2 "unknown data type" -- $p -d quad
want 2 "empty entry" -- $p -d float,,half
want 2 "unknown reduction" -- $p -o xor
want 2 "unknown collective" -- $p --collective gossip
want 2 '"auto" stands alone' -- predict --topo hosts:4 --algo auto,ring
want 2 'unknown algorithm "rong" (all, auto, or some of: ' -- predict --topo hosts:4 --algo ring,rong
want 2 "empty entry" -- predict --topo hosts:4 --algo ring,
want 2 "root" -- $p --collective broadcast -r 4
want 2 '-r "-1"' -- $p -r -1
want 2 '--channels "0"' -- $p --channels 0
want 2 '--slots "99999999999999999999"' -- $p --slots 99999999999999999999
want 2 "--chunk-bytes:" -- $p --chunk-bytes much
want 2 "whole groups" -- $p --group 3
want 2 '--ranks must be one number, 1 .. 4' -- $p --ranks 5
want 2 '--ranks must be one number' -- $p --ranks 2,3
want 2 '--ranks "4-2"' -- $p --ranks 4-2
want 2 '--ranks "x"' -- $p --ranks x
want 2 '-n "0"' -- $p -n 0
want 2 "--json and --csv exclude" -- $p --json --csv
want 2 "level" -- $p --level quantum
want 2 "--topo is needed" -- predict -b 1M
want 2 "nosuch" -- predict --topo nosuch:2
want 2 "SECTION.KEY=VALUE" -- $p --set bandwidth
want 3 "missing.ini" -- predict --topo missing.ini
want 3 "missing-profile" -- $p --profile ./missing-profile.ini
want 2 "one algorithm" -- predict --topo hosts:4 --algo ring,tree --timeline t.csv
want 2 "one data type" -- $p -d all --plot x

want 2 "list, discover, show, lint, draw or export is needed" -- topo
want 2 'cannot "dance"' -- topo dance
want 2 "needs the name" -- topo show
want 2 "not also" -- topo show hosts:2 hosts:3
want 2 "--ranks is needed" -- verify
want 2 '--count "1.5"' -- verify --ranks 2 --count 1.5
want 2 "nothing was proved" -- verify -q --ranks 4 --algo tree --collective allgather
want 2 "a shell is needed" -- completion
want 2 "a shell is needed" -- completion tcsh

want 2 '-n "0"' -- run --ranks 2 -n 0
want 2 '-c "2"' -- run --ranks 2 -c 2
want 2 '--timeout "0"' -- run --ranks 2 --timeout 0
want 2 '--timeout "nan"' -- run --ranks 2 --timeout nan
want 2 '--ranks "0"' -- run --ranks 0
want 2 "one number" -- run --ranks 2,3
want 2 "carrier-pigeon" -- run --ranks 2 -b 8 --transport carrier-pigeon
want 2 "cannot do" -- run --ranks 2 -b 8 --algo tree --collective allgather

# Where results cannot go is said before the work, and no file appears.
for option in -J --trace --timeline; do
    want 3 "cannot write" -- $p -b 8 $option /no/such/folder/file
    want 3 "cannot write" -- $p -b 8 $option .
done
want 3 "cannot write" -- $p -b 8 --plot /no/such/folder/plot
nothing_left

# two outputs in one file would leave one of them; a measurement is not written over
want 2 '--trace and --timeline both write "same"' -- predict --topo dgx-h100 -b 8 --algo ring --trace same --timeline same
want 2 '-J and --trace both write "./same"' -- predict --topo dgx-h100 -b 8 --algo ring -J ./same --trace same
nothing_left
cp "$TT_SOURCE_DIR/bench/measurements/dgxh100-1x8-ar.json" log.keep
want 2 'is one of the measurements' -- calibrate --from log.keep -O ./log.keep
cmp -s log.keep "$TT_SOURCE_DIR/bench/measurements/dgxh100-1x8-ar.json" || fail "a measurement was written over"
cp "$TT_SOURCE_DIR/bench/measurements/a100-1x8-sr.json" other.keep
want 3 'nothing to fit on' -- calibrate --from other.keep
nothing_left

# A full disk is not success.
if [ -w /dev/full ]; then
    "$TUTTI" topo list >/dev/full 2>stderr
    [ $? -eq 1 ] || fail "a full standard output passed for success"
    grep -q "cannot write to standard output" stderr || fail "a full output went unsaid: $(cat stderr)"
fi
finish
