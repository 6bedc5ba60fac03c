#!/usr/bin/env bash
# tutti lab: what it would build, refuses, builds for real, runs inside, and leaves behind (nothing).
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1
labs=$TT_SOURCE_DIR/tests/labs

# --- what it would do: needs nothing -----------------------------------------------------------------------

# The commands for small versions of the three labs, without IPv6's, which some kernels lack.
golden() { # golden LAB NODES OPTION...
    local file=$TT_SOURCE_DIR/tests/data/lab-$1.txt lab=$1 nodes=$2
    shift 2
    want 0 - -- lab up "$labs/$lab.ini:$nodes" "$@" --dry-run
    grep -v ' addr add fd74' stdout >commands.keep
    [ -z "${TT_GOLDEN:-}" ] || cp commands.keep "$file"
    diff "$file" commands.keep >&2 || fail "$lab: other commands (TT_GOLDEN=1 keeps them)"
    want 0 - -- predict --topo "$labs/$lab.ini" --ranks 8 -b 1M --algo ring,tree -q
}
golden one-switch 2
golden two-leaves 3 --set fabric.nodes-per-leaf=2
golden two-rails 2
rm -f ./*.keep*

want 2 "up, exec, down or list is needed" -- lab
want 2 "cannot \"start\"" -- lab start
want 2 "up needs a topology" -- lab up
want 2 "up takes one topology" -- lab up a b
want 2 "without --topo" -- lab up --topo hosts:2
want 2 "up has no --host" -- lab up hosts:2 --host 0
want 2 "list has no --set" -- lab list --set nic.bandwidth=1
want 2 "down needs a lab's name, or --all" -- lab down
want 2 "not both" -- lab down x --all
want 2 "exec needs a command" -- lab exec x
want 2 "nosuch" -- lab up nosuch
want 3 "nosuch.ini" -- lab up ./nosuch.ini
want 2 "cannot be a lab's name" -- lab up "$labs/one-switch.ini" --name ../x
want 2 "its ranks are on GPUs" -- lab up dgx-h100:2
want 2 "it is one node" -- lab up hosts
want 2 "65 nodes are too many" -- lab up hosts:65
want 2 "a NIC of 100 Gbit/s" -- lab up hosts:4
want 2 "2 NICs per node need fabric rail" -- lab up "$labs/two-rails.ini" --set fabric.type=single-switch
want 2 "rails of more than one leaf" -- lab up "$labs/two-rails.ini" --set fabric.nodes-per-leaf=2
want 2 "pattern = each-to-all" -- lab up "$labs/two-rails.ini" --set "link driver.pattern=each-to-own"
want 2 "NICs of its own" -- lab up "$labs/two-rails.ini" --set node.hosts=1
# One NIC of each host degraded: its two cable ends, no other.
want 0 - -- lab up "$labs/two-rails.ini" --set "nic.degraded=1: 50 Mbit/s" --dry-run
[ "$(grep -c 'dev nic1 root .* rate 50000000bit' stdout)" -eq 4 ] || fail "nic1 is not degraded"
[ "$(grep -c 'dev h.n1 root .* rate 50000000bit' stdout)" -eq 4 ] || fail "nic1's far end is not degraded"
[ "$(grep -c 'rate 100000000bit' stdout)" -eq 8 ] || fail "nic0 is degraded too"
# Its rank keeps it, for nobody knows.
want 0 - -- topo show "$labs/two-rails.ini" --set "nic.degraded=1: 50 Mbit/s"
has "host 0 -> nic 1 -> rail 1 leaf 0 -> nic 1 -> host 1"
want 0 - -- topo show "$labs/two-rails.ini" --set "nic.slower=1: 50 Mbit/s"
has "host 0 -> nic 0 -> rail 0 leaf 0 -> nic 0 -> host 1"
# With several spines each host is reached by one of them, the topology's own.
want 0 - -- lab up "$labs/two-leaves.ini" --set fabric.spines=2 --dry-run
grep -q 'fdb add 02:74:74:00:00:05 dev l0s0' stdout || fail "host 4 is not behind spine 0"
grep -q 'fdb add 02:74:74:00:00:06 dev l0s1' stdout || fail "host 5 is not behind spine 1"
[ "$(grep -c 'fdb add' stdout)" -eq 16 ] || fail "not two ways per host"

# --- for real ----------------------------------------------------------------------------------------------

# Not root, or no namespaces: skipped, if that is what it says.
"$TUTTI" lab exec nosuch -- true >stdout 2>stderr
code=$?
if [ $code -eq 77 ]; then
    [ $bad -eq 0 ] || finish
    cat stderr
    exit 77
fi
[ $code -eq 2 ] || fail "exec without a lab: exit $code: $(cat stderr)"

name=t$$
other=u$$
trap '"$TUTTI" lab down $name 2>/dev/null; "$TUTTI" lab down $other 2>/dev/null; rm -rf "$work"' EXIT
machine() { # all that could be left: namespaces, interfaces, state
    ip netns list 2>/dev/null | sort
    ip -o link 2>/dev/null | cut -d: -f2
    ls /run/tutti-labs 2>/dev/null
}
mine() { # mine WHAT: the same, of this test alone, for others may run labs beside it
    machine | grep -E "$name|$other|^ h[0-9]+n|^ nic[0-9]"
}
# reach HOST ADDRESS: nobody listens there, and it is the far end that says so.
reach() {
    timeout 10 "$TUTTI" lab exec $name --host "$1" -- bash -c "exec 3<>/dev/tcp/$2/9" 2>&1 |
        grep -q "Connection refused" || fail "host $1 does not reach $2"
}

want 0 - -- lab up "$labs/two-rails.ini" --name $name
has "4 hosts, 8 ranks"
has "4 x nic1 of 100 Mbit/s"
want 0 - -- lab list
has "$name"
want 2 "is up already" -- lab up "$labs/two-rails.ini" --name $name
want 0 - -- lab exec $name --host 2 -- ip -o addr
has "10.0.0.3/24"
has "10.1.0.3/24"
reach 0 10.0.0.4
reach 3 10.1.0.1
if [ -e /proc/sys/net/ipv6 ]; then reach 1 fd74:7469:1::3; fi

# Every rank's environment, in its own host.
want 0 - -- lab exec $name --all-output -- sh -c \
    'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $TUTTI_INTERFACE ${#TUTTI_SECRET}" $(ip -o -4 addr show nic0 | grep -o "10[0-9.]*/")'
sed 's/^rank [0-9]*: //' stdout | sort >got.keep
for rank in 0 1 2 3 4 5 6 7; do
    echo "$rank 8 $((rank % 2)) 2 10.0.0.1 nic$((rank % 2)) 32 10.0.0.$((rank / 2 + 1))/"
done | diff - got.keep >&2 || fail "the ranks' environment"
# A host has a name of its own, and knows the others.
want 0 - -- lab exec $name --host 2 -- sh -c 'cat /proc/sys/kernel/hostname; getent hosts '$name'-h3 '$name'-h0-nic1'
[ "$(awk '{ print $1 }' stdout | tr '\n' ' ')" = "$name-h2 10.0.0.4 10.1.0.1 " ] || fail "names: $(cat stdout)"
# Rank 0's output as it is, the others' only on standard error, and marked.
want 0 - -- lab exec $name --ranks 3 -- sh -c 'echo out; echo err >&2; echo $LOCAL_WORLD_SIZE >&2'
[ "$(cat stdout)" = out ] || fail "standard output: $(cat stdout)"
[ "$(sort stderr | tr '\n' ' ')" = "2 err rank 1: 2 rank 1: err rank 2: 1 rank 2: err " ] ||
    fail "standard error: $(cat stderr)"
want 3 "rank 2: exit code 3" -- lab exec $name -- sh -c '[ $RANK != 2 ] || exit 3'
want 9 - -- lab exec $name -- sh -c 'exit $((RANK == 6 ? 9 : RANK == 1))'
want 0 - -- lab exec $name --host 1 -- true
want 5 - -- lab exec $name --host 1 -- sh -c 'exit 5'
want 2 "there is no such program" -- lab exec $name -- nosuch
want 2 "has hosts 0 to 3" -- lab exec $name --host 4 -- true
want 2 "has 1 to 8" -- lab exec $name --ranks 9 -- true
# A failed rank ends those that hang, whatever they started.
want 4 - -- lab exec $name --grace 1 -- sh -c '[ $RANK != 5 ] || exit 4; trap "" TERM; sleep 1000 & wait'
grep -q "7 ranks still run 1 s later: killed" stderr || fail "nobody was killed: $(cat stderr)"
want 139 "rank 1: signal 11" -- lab exec $name --ranks 2 -- sh -c '[ $RANK = 0 ] || kill -SEGV $$'
# Ctrl-C reaches all.
"$TUTTI" lab exec $name -- sh -c 'trap "exit 0" INT; echo up; while :; do sleep 0.1; done' >out.keep 2>stderr &
pid=$!
for _ in $(seq 100); do [ -s out.keep ] && break; sleep 0.1; done
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fail "Ctrl-C: not 130"
for namespace in $(ip netns list | awk -v n="ttlab-$name-" 'index($1, n) == 1 { print $1 }'); do
    [ -z "$(ip netns pids "$namespace")" ] || fail "processes left in $namespace"
done

# Down, also with somebody inside; other labs stay.
want 0 - -- lab up "$labs/two-leaves.ini:5" --set fabric.spines=3 --name $other
"$TUTTI" lab exec $name --host 0 -- sleep 1000 2>/dev/null &
for _ in $(seq 100); do [ -n "$(ip netns pids ttlab-$name-h0)" ] && break; sleep 0.1; done
want 0 - -- lab down $name
wait
want 2 "no lab \"$name\" is up" -- lab down $name
want 0 - -- lab list
has "$other"
name=$other
reach 0 10.0.0.5
reach 4 10.0.0.1
want 0 - -- lab down $other
[ -z "$(mine)" ] || fail "left behind: $(mine)"

# What fails half-way leaves nothing: a tool that gives up, and names that are taken.
mkdir bin.keep
printf '#!/bin/sh\ncase "$*" in *switches*) echo "RTNETLINK answers: No such luck" >&2; exit 2;; esac\nexec %s "$@"\n' \
    "$(PATH=$PATH:/usr/sbin:/sbin command -v tc)" >bin.keep/tc
chmod +x bin.keep/tc
PATH=$PWD/bin.keep:$PATH want 1 "No such luck" -- lab up "$labs/one-switch.ini" --name $name
[ -z "$(mine)" ] || fail "half of a lab: $(mine)"
ip netns add "ttlab-$name-h1"
want 1 "is there already" -- lab up "$labs/one-switch.ini" --name $name
ip netns list | grep -q "ttlab-$name-h1" || fail "a stranger's namespace was removed"
ip netns del "ttlab-$name-h1"
[ -z "$(mine)" ] || fail "left behind: $(mine)"
rm -rf ./*.keep
finish
