#!/usr/bin/env bash
# tutti run as one of many processes: by launchers, by hand, by a hostfile, over hosts of a lab. Results are checked,
# rank 0 alone prints, all end alike.
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1
unset TUTTI_SECRET TUTTI_ROOT TUTTI_INTERFACE

sweep="-b 8 -e 32K -f 64 --algo ring,tree -n 3 -w 1 -T 20"
# good FILE RANKS HOW: six rows, none wrong, one heading, which says how the ranks were found.
good() {
    awk '/^ *[0-9]/ { n++; if (NF != 14 || $9 != 0 || $13 != 0) bad = 1 } END { exit bad || n != 6 }' "$1" ||
        fail "$3: $(head -c 600 "$1")"
    [ "$(grep -c '^# tutti' "$1")" -eq 1 ] || fail "$3: not one heading: $(grep '^# tutti' "$1")"
    grep -q "^# ranks $2 by $3 transport" "$1" || fail "not \"ranks $2 by $3\": $(grep '^# ranks' "$1")"
}

# --- real launchers ----------------------------------------------------------------------------------------

# launched HOW COMMAND...: good runs, one that is refused, one in which a rank dies.
launched() {
    local how=$1 transport code
    shift
    for transport in shm tcp; do
        timeout 60 "$@" "$TUTTI" run $sweep --transport $transport >stdout 2>stderr </dev/null
        [ $? -eq 0 ] || fail "$how, $transport: exit $?: $(head -c 600 stderr)"
        good stdout 4 "$how"
        [ ! -s stderr ] || fail "$how, $transport: $(cat stderr)"
    done
    timeout 60 "$@" "$TUTTI" run $sweep --ranks 3 >stdout 2>stderr </dev/null
    [ $? -eq 2 ] || fail "$how, --ranks 3: exit $?"
    grep -q "^tutti run: --ranks 3, but $how started 4" stderr || fail "$how: $(cat stderr)"
    timeout 60 "$@" "$TUTTI" run -b 64K -n 100000000 --transport tcp -T 20 --fault kill:rank=2 \
        >stdout 2>stderr </dev/null
    code=$?
    [ $code -eq 4 ] || fail "$how, a killed rank: exit $code: $(head -c 600 stderr)"
    grep -q "^tutti run: died: rank 2 died of signal 9" stderr || fail "$how: $(cat stderr)"
}
if command -v mpiexec.mpich >/dev/null; then
    launched MPICH mpiexec.mpich -n 4
else
    echo "mpiexec.mpich is not installed: skipped"
fi
if command -v mpirun.openmpi >/dev/null; then
    launched "Open MPI" mpirun.openmpi --allow-run-as-root --oversubscribe -n 4
else
    echo "mpirun.openmpi is not installed: skipped"
fi

# --- by hand -----------------------------------------------------------------------------------------------

# together N COMMAND: processes 0 to N - 1, COMMAND with $i in it; their output in files $i.out and $i.err
together() {
    local n=$1 command=$2 pids=() i
    for ((i = n - 1; i >= 0; i--)); do
        (eval "exec $command") >$i.out 2>$i.err </dev/null &
        pids[i]=$!
    done
    for ((i = 0; i < n; i++)); do
        wait ${pids[i]}
        codes[i]=$?
        [ ! -s $i.err ] || fail "$command: process $i: $(cat $i.err)"
        [ ${codes[i]} -eq 0 ] || fail "$command: process $i: exit ${codes[i]}"
        [ $i -eq 0 ] || [ ! -s $i.out ] || fail "$command: process $i prints: $(head -3 $i.out)"
    done
}
codes=()
for transport in shm tcp shm,tcp; do
    port=$(free_port)
    together 4 "\"$TUTTI\" run $sweep --transport $transport --meet 127.0.0.1:$port --rank \$i --ranks 4"
    good 0.out 4 --meet
done
# Several ranks in a process.
ranges=(0-2 3-4) halves=(0-1 2-3)
port=$(free_port)
together 2 "\"$TUTTI\" run $sweep --transport tcp --meet 127.0.0.1:$port --rank \${ranges[\$i]} --ranks 5"
good 0.out 5 --meet
# Over processes nobody plays switches: all but those algorithms, with a word from rank 0.
port=$(free_port)
together 2 "\"$TUTTI\" run -b 1K -n 2 --algo all --transport tcp --meet 127.0.0.1:$port --rank \$i --ranks 2 2>\$i.said"
grep -q "nvls left out: nvls has switches that reduce, which only a run on one machine by one process" 0.said || fail "all: $(cat 0.said)"
[ ! -s 1.said ] || fail "all, rank 1: $(cat 1.said)"
grep -q " ring$" 0.out || fail "all: $(cat 0.out)"
# Groups in processes of their own, each in turn so slow that the other waits for it beyond the time-out.
for slow in 0 2; do
    port=$(free_port)
    together 2 "\"$TUTTI\" run -b 1K -n 50 -T 1 --transport tcp --groups 2 --start-offset $slow:30ms --meet 127.0.0.1:$port --rank \${halves[\$i]} --ranks 4"
done
# As torchrun sets it: a process for each rank, on this machine and, by port, anywhere.
together 3 "env RANK=\$i WORLD_SIZE=3 LOCAL_RANK=\$i LOCAL_WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \"$TUTTI\" run $sweep"
good 0.out 3 torchrun
together 2 "env RANK=\$i WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port) \"$TUTTI\" run $sweep --transport tcp"
good 0.out 2 torchrun
# A hostfile of this machine alone: one process, which runs all.
echo "127.0.0.1 slots=3" >hosts.keep
want 0 - -- run $sweep --hostfile hosts.keep
good stdout 3 --hostfile
# Another size on one process: both say so, with the code for wrong arguments.
port=$(free_port)
"$TUTTI" run -b 1K -n 2 --transport tcp --meet 127.0.0.1:$port --rank 1 --ranks 2 >1.out 2>1.err </dev/null &
want 2 - -- run -b 2K -n 2 --transport tcp --meet 127.0.0.1:$port --rank 0 --ranks 2
grep -q "^tutti run: wrong arguments: " stderr || fail "rank 0: $(cat stderr)"
wait $!
[ $? -eq 2 ] || fail "rank 1 with another size: exit $?"
grep -q "^tutti run: wrong arguments: " 1.err || fail "rank 1: $(cat 1.err)"
# One has an algorithm less to run.
port=$(free_port)
"$TUTTI" run -b 1K -n 2 --algo ring --transport tcp --meet 127.0.0.1:$port --rank 1 --ranks 2 >1.out 2>1.err </dev/null &
pid=$!
"$TUTTI" run -b 1K -n 2 --algo ring,tree --transport tcp --meet 127.0.0.1:$port --rank 0 --ranks 2 >stdout 2>stderr
[ $? -eq 2 ] || fail "rank 0, told more: $(cat stderr)"
wait $pid
[ $? -eq 2 ] || fail "rank 1, told less: $(cat 1.err)"
grep -q "rank 1 has no more to run, rank 0 was told allreduce of 256 float elements" 1.err || fail "less: $(cat 1.err)"

# --- two ranks a host, over a lab --------------------------------------------------------------------------

name=l$$
trap '"$TUTTI" lab down $name 2>/dev/null; rm -rf "$work"' EXIT
"$TUTTI" lab up "$TT_SOURCE_DIR/tests/labs/two-rails.ini:2" --name $name >stdout 2>stderr
code=$?
if [ $code -eq 0 ]; then
    for transport in tcp shm,tcp; do
        want 0 - -- lab exec $name -- "$TUTTI" run $sweep --transport $transport
        good stdout 4 torchrun
    done
    # Groups of what is hierarchical are the ranks of a host, unless told.
    want 0 - -- lab exec $name -- "$TUTTI" run -b 64K -n 1 -w 0 --algo hierarchical --json
    has '"nodes" : 2'
    want 0 - -- lab down $name
elif [ $code -eq 77 ]; then
    echo "no lab: $(cat stderr)"
else
    fail "lab up: exit $code: $(cat stderr)"
fi
rm -f ./*.keep ./*.out ./*.err ./*.said
nothing_left
finish
