#!/usr/bin/env bash
# tutti compare inside a lab: predicted for its topology, measured over its links, by ranks that a launcher started. How
# near the two are is not this test's matter: bench/labs says.
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1
name=cmp$$
lab=$TT_SOURCE_DIR/tests/labs/two-rails.ini

"$TUTTI" lab up "$lab" --name $name >stdout 2>stderr
code=$?
[ $code -eq 77 ] && { cat stderr >&2; exit 77; }
[ $code -eq 0 ] || fail "up: $(cat stderr)"
trap '"$TUTTI" lab down $name >/dev/null 2>&1; rm -rf "$work"' EXIT

compare() { # compare ROWS TRANSPORT OPTION...
    local rows=$1 transport=$2
    shift 2
    timeout 120 "$TUTTI" lab exec $name -- "$TUTTI" compare --topo "$lab" --profile ideal --transport "$transport" \
        --algo ring,double-tree -b 64K -f 4 --csv -q "$@" >stdout 2>stderr ||
        fail "$transport $*: exit code $?: $(cat stderr)"
    # One table, rank 0's: a header and rows, each with both times and no wrong element.
    awk -F, -v rows=$rows 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { n++; bad += !($at["predicted_us"] > 0 && $at["measured_us"] > 0 && $at["wrong"] == 0) }
             END { exit !(n == rows && bad == 0) }' stdout || fail "$transport: $(cat stdout stderr)"
}
compare 4 tcp -e 256K
compare 2 shm,tcp
compare 2 tcp --streams 2 --checksum

# What is asked for must be what is there.
timeout 60 "$TUTTI" lab exec $name -- "$TUTTI" compare --topo hosts:3 --transport tcp -b 1K >stdout 2>stderr
[ $? -eq 2 ] || fail "another topology: $(cat stderr)"
grep -q "give the topology they run on" stderr || fail "another topology: $(cat stderr)"
finish
