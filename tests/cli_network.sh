#!/usr/bin/env bash
# Bad input of runs over a network: one line each, the right exit code, no hang.
. "$TT_SOURCE_DIR/tests/cli_common.inc" || exit 1

# --- refused before anything is started --------------------------------------------------------------------

want 2 "unknown transport \"smoke\" (one of: shm, tcp, verbs, threads, cuda; or two" -- run --ranks 2 --transport smoke
want 2 "unknown transport \"shm,smoke\"" -- run --ranks 2 --transport shm,smoke
want 2 "shm does not reach across machines" -- run --ranks 2 --transport shm,shm
want 2 "shm does not reach across machines" -- run --ranks 2 --transport cuda,shm
want 2 "go with --transport cuda" -- calibrate --ranks 8
want 2 "one transport is measured at a time" -- calibrate --transport shm,tcp
want 2 "no interface or address eth77; interfaces up: lo" -- run --ranks 2 --transport tcp --interface eth77
want 2 "--streams \"0\" must be a whole number, 1 .. 64" -- run --ranks 2 --transport tcp --streams 0
want 2 "--streams \"65\"" -- run --ranks 2 --transport tcp --streams 65
want 2 "--gid-index \"x\" must be a whole number" -- run --ranks 2 --transport verbs --gid-index x
want 2 "ranks 0-1 only" -- run --meet 127.0.0.1:2400 --rank 2 --ranks 2
want 2 "ranks 0-1 only" -- run --meet 127.0.0.1:2400 --rank 0-2 --ranks 2
want 2 "--rank x is not a rank (3) or a range (0-3)" -- run --meet 127.0.0.1:2400 --rank x --ranks 2
want 2 "is not a rank (3) or a range" -- run --meet 127.0.0.1:2400 --rank 1-0 --ranks 2
want 2 "--meet needs --rank and --ranks too" -- run --meet 127.0.0.1:2400
want 2 "--rank needs --meet HOST:PORT and --ranks too" -- run --rank 1 --ranks 2
want 2 "--rank needs --ranks too" -- run --meet 127.0.0.1:2400 --rank 1
want 2 "ports 1 to 65535" -- run --meet 127.0.0.1:99999 --rank 0 --ranks 2
want 2 "an IPv6 address needs brackets" -- run --meet ::1 --rank 0 --ranks 2
want 2 "need a secret (TUTTI_SECRET or --secret-file" -- run --meet 192.0.2.1:2400 --rank 1 --ranks 2
: >empty.keep
want 2 "--secret-file empty.keep is empty" -- run --ranks 2 --secret-file empty.keep
want 3 "--secret-file nosuch: No such file" -- run --ranks 2 --secret-file nosuch
want 2 "--secret-file /dev/zero is empty" -- run --ranks 2 --secret-file /dev/zero
want 2 "ranks here are threads of one" -- run --ranks 2 --transport threads --fault exit:rank=1
want 1 "does not resolve" -- run --meet nosuch.invalid:2400 --rank 1 --ranks 2 -T 1

# Who stands still is found while another group runs on.
timeout 20 "$TUTTI" run --ranks 4 -b 64K -n 100000000 --algo ring -T 1 --fault stop:rank=0 --groups 2 >stdout 2>stderr
[ $? -eq 4 ] || fail "a stopped rank of one group: exit $?"
grep -q "^tutti run: slow: no progress for 1 s; rank 0 is stopped by signal 19" stderr || fail "a stopped rank of one group: $(cat stderr)"

# Hostfiles.
want 3 "nosuch" -- run --hostfile nosuch
hosts() {
    printf "$1" >hosts.keep
}
hosts ''; want 3 "hosts.keep: no hosts" -- run --hostfile hosts.keep
hosts 'a slots=x\n'; want 3 'hosts.keep:1: "slots=x" is not' -- run --hostfile hosts.keep
hosts 'a\001b slots=\377\n'; want 3 'hosts.keep:1: "slots=\377" is not' -- run --hostfile hosts.keep
hosts '127.0.0.1 slots=2 max_slots=4\n'; want 0 - -- run --hostfile hosts.keep -b 8 -n 1
hosts 'a\nb:0\n'; want 3 "hosts.keep:2:" -- run --hostfile hosts.keep
hosts 'nosuch-host.invalid slots=2\n'; want 3 "no line is this machine, which is called" -- run --hostfile hosts.keep
hosts '127.0.0.1\n127.0.0.1\n'; want 3 "lines 1 and 2 are both this machine" -- run --hostfile hosts.keep
hosts '127.0.0.1 slots=2\n'; want 2 "--ranks 3, but hosts.keep has slots for 2" -- run --hostfile hosts.keep --ranks 3

# Launchers, by what they leave in the environment.
torchrun="RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port)"
under() { # under VARIABLES COMMAND...
    env $1 bash -c '. "$TT_SOURCE_DIR/tests/cli_common.inc"; '"$2"'; finish >/dev/null' || bad=1
}
export TUTTI TT_SOURCE_DIR
under "$torchrun OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4" \
    'want 2 "torchrun and Open MPI disagree: RANK=0, WORLD_SIZE=2, but OMPI_COMM_WORLD_RANK=1" -- run'
under "$torchrun" 'want 2 "--ranks 4, but torchrun started 2" -- run --ranks 4'
under "$torchrun" 'want 2 "--rank 1, but torchrun says that this is rank 0" -- run --rank 1'
under "$torchrun RANK=a" 'want 2 "RANK=a is not a number" -- run'
under "$torchrun RANK=2" 'want 2 "RANK" -- run'
under "$torchrun" 'want 2 "both say which ranks run here" -- run --hostfile nosuch'

# --fault.
want 2 'fault: unknown kind "smoke" (kill, stop, delay, exit, absent, mismatch, corrupt, cut, half-open, stranger)' -- \
    run --ranks 2 --fault smoke
want 2 'fault: rank must be 0 .. 1, not "2"' -- run --ranks 2 --fault kill:rank=2
want 2 'unknown setting "who" (rank=, peer=, after=, time=)' -- run --ranks 2 --fault kill:who=1
want 2 'unknown setting "rank"' -- run --ranks 2 --fault kill:rank
want 2 'time must be 0 s .. 3600 s with its unit (s, ms), not "5"' -- run --ranks 2 --fault delay:time=5
want 2 "peer must be another rank than 1" -- run --ranks 2 --fault cut:rank=1,peer=1
want 2 "fault cut needs connections over a network (--transport tcp or verbs)" -- run --ranks 2 --fault cut
"$TUTTI" run --ranks 4 -b 1K --transport tcp --algo tree -n 5 -w 0 --fault cut:peer=2,after=0 >stdout 2>stderr
[ $? -eq 2 ] || fail "cut without a connection: $(cat stderr)"
grep -q "in this plan rank 1 has no connection over a network with rank 2; it has some with" stderr ||
    fail "cut without a connection: $(cat stderr)"

# --- RDMA where there is none ------------------------------------------------------------------------------

if [ ! -e /sys/class/infiniband ] || [ -z "$(ls /sys/class/infiniband)" ]; then
    for more in "" "--device mlx5_9" "--gid-index 3"; do
        "$TUTTI" run --ranks 2 -b 8 -n 1 --transport verbs $more >stdout 2>stderr
        code=$?
        [ $code -eq 77 ] || fail "verbs without a card: exit $code"
        [ "$(wc -l <stderr)" -eq 1 ] || fail "verbs without a card: $(cat stderr)"
        grep -qE "modprobe rdma_rxe|libibverbs-dev" stderr || fail "verbs: says not what to load: $(cat stderr)"
    done
fi

# --- the meeting -------------------------------------------------------------------------------------------

# pair SECRET0 SECRET1 "ARGUMENTS of 0" "of 1": rank 0's and rank 1's process, in files 0.* and 1.*
port=$(free_port)
pair() {
    env TUTTI_SECRET="$1" "$TUTTI" run -b 1K -n 2 --algo ring --transport tcp --meet 127.0.0.1:$port $3 \
        >0.out 2>0.err </dev/null &
    local first=$!
    env TUTTI_SECRET="$2" "$TUTTI" run -b 1K -n 2 --algo ring --transport tcp --meet 127.0.0.1:$port $4 \
        >1.out 2>1.err </dev/null
    code1=$?
    wait $first
    code0=$?
}
says() { # says WHO CODE WORDS
    local code=code$1
    [ "${!code}" -eq "$2" ] || fail "rank $1: exit ${!code}, wanted $2: $(cat $1.err)"
    [ "$(wc -l <$1.err)" -eq 1 ] || fail "rank $1: wanted one line, got: $(cat $1.err)"
    grep -qF -- "$3" $1.err || fail "rank $1: \"$3\" not in: $(cat $1.err)"
}
pair good bad "--rank 0 --ranks 2 -T 2" "--rank 1 --ranks 2 -T 2"
says 0 4 "does not know the secret (TUTTI_SECRET or --secret-file must be the same everywhere)"
says 1 2 "wrong secret"
pair good "" "--rank 0 --ranks 2 -T 2" "--rank 1 --ranks 2 -T 2"
says 0 4 "does not know the secret"
says 1 2 "secret"
pair "" "" "--rank 0-1 --ranks 3 -T 5" "--rank 1-2 --ranks 3 -T 5"
says 0 2 "two processes run the same rank: ranks 0-1 at 127.0.0.1, and ranks 1-2"
says 1 2 "two processes run the same rank"
pair "" "" "--rank 0 --ranks 2 -T 5" "--rank 1 --ranks 3 -T 5"
says 0 2 "rank 1 at 127.0.0.1 counts 3 ranks, the root 2"
says 1 2 "counts 3 ranks"
pair "" "" "--rank 0 --ranks 2 -T 5" "--rank 1 --ranks 2 -T 5 --streams 2"
says 0 2 "wrong arguments: rank 0 was told transport tcp, 1 streams"
says 1 2 "wrong arguments: rank 0 was told transport tcp, 1 streams"
pair "" "" "--rank 0 --ranks 2 -T 5" "--rank 1 --ranks 2 -T 5 --checksum"
says 1 2 "checksum 1"

# A port in use: by a second rank 0.
"$TUTTI" run -b 1K --transport tcp --meet 127.0.0.1:$port --rank 0 --ranks 2 -T 20 >0.out 2>0.err </dev/null &
first=$!
for _ in $(seq 100); do
    grep -qi "^ *[0-9]*: 0100007F:$(printf %04X $port) 00000000:0000 0A" /proc/net/tcp && break
    sleep 0.05
done
want 1 "port 127.0.0.1:$port is in use, by another program or a second process for rank 0; choose another with --meet" -- \
    run -b 1K --transport tcp --meet 127.0.0.1:$port --rank 0 --ranks 2
kill $first
wait $first 2>/dev/null

# hello BYTES: what a process sends that is no Tutti like this one; it stays to hear the answer.
hello() {
    "$TUTTI" run -b 1K --transport tcp --meet 127.0.0.1:$port --rank 0 --ranks 2 -T 1 >stdout 2>stderr </dev/null &
    local root=$!
    for _ in $(seq 100); do
        { exec 3<>/dev/tcp/127.0.0.1/$port; } 2>/dev/null && break
        sleep 0.02
    done
    printf "$1" >&3 2>/dev/null
    timeout 5 head -c 8 <&3 >answer 2>/dev/null
    exec 3>&-
    wait $root
    code=$?
    [ $code -eq 4 ] || fail "a foreign peer: exit $code: $(cat stderr)"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "a foreign peer: $(cat stderr)"
    grep -qF -- "$2" stderr || fail "\"$2\" not in: $(cat stderr)"
}
version='9.9.9\0\0\0\0\0\0\0\0\0\0\0'
hello "TuttiCtl\4\3\2\1\1\0\0\0$version" "a process at 127.0.0.1 runs Tutti 9.9.9 (protocol 1), this is Tutti"
[ "$(cat answer)" = TuttiCtl ] || fail "another version gets no answer"
hello "TuttiCtl\4\3\2\1\7\0\0\0$version" "runs Tutti 9.9.9 (protocol 7)"
hello "TuttiCtl\1\2\3\4\0\0\0\1$version" "has the big-endian byte order, this machine the other"
hello 'GET / HTTP/1.1\r\n\r\n' "never arrived: rank 1 of 2 did not come within 1 s"
rm -f ./*.keep ./*.out ./*.err answer
nothing_left
finish
