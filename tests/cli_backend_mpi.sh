#!/usr/bin/env bash
# tutti run --backend mpi under the launchers of the MPIs that are installed.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK MV2_COMM_WORLD_SIZE PMI_SIZE PMI_RANK PMIX_RANK TUTTI_BACKENDS
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # the MPIs' own

# What needs no MPI.
want 2 "type mpirun -np N tutti run --backend mpi -b 8" -- run --backend mpi -b 8
want 2 "--algo does not apply to --backend mpi" -- run --backend mpi --algo ring
want 2 "--transport does not apply" -- run --backend mpi --transport shm
want 2 "--ranks does not apply" -- run --backend mpi --ranks 2
want 2 "unknown backend \"ncc\" (one of: tutti, mpi, nccl)" -- run --backend ncc
want 0 - -- run --backend tutti --ranks 1 -b 8 -n 1

launch() { # launch RANKS COMMAND...: with the MPI in $mpi
    local n=$1
    shift
    case $mpi in
    openmpi) timeout 120 mpirun.openmpi --oversubscribe --bind-to none -np "$n" "$@" ;;
    mpich) timeout 120 mpiexec.mpich -n "$n" "$@" ;;
    esac
}

# mpi_want RANKS CODE WORDS ARGUMENT...: as want, under the launcher, whose own words may be there too.
mpi_want() {
    local n=$1 code=$2 words=$3
    shift 3
    launch "$n" "$TUTTI" run --backend mpi "$@" >stdout 2>stderr </dev/null
    local got=$?
    # mpirun ends all ranks when the first leaves with a code, now and then before it has passed on what rank 0 said.
    if [ "$words" != - ] && ! grep -q '^tutti run:' stderr; then
        launch "$n" "$TUTTI" run --backend mpi "$@" >stdout 2>stderr </dev/null
        got=$?
    fi
    [ $got -eq "$code" ] || fail "$mpi $n: $*: exit $got, wanted $code: $(head -c 500 stderr)"
    [ "$code" -eq 2 ] && [ -s stdout ] && [ $mpi != mpich ] && fail "$mpi $n: $*: half an answer: $(head -c 300 stdout)"
    [ "$words" = - ] && return
    [ "$(grep -c '^tutti run:' stderr)" -eq 1 ] || fail "$mpi $n: $*: wanted one line: $(cat stderr)"
    grep -qF -- "$words" stderr || fail "$mpi $n: $*: \"$words\" not in: $(cat stderr)"
}

rows() { grep -vcE '^#|^[^ ]' stdout; }

# A module whose MPI errs: DEFINITIONS replace MPI_Allreduce.
bad_module() { # bad_module FOLDER STATEMENT
    mkdir -p "$1"
    cat >"$1/module.keep" <<END
#include <mpi.h>
#include <unistd.h>
static int
bad_allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int rank, code = MPI_Allreduce(in, out, n, type, op, comm);

    MPI_Comm_rank(comm, &rank);
    if (rank == 1) { $2; }
    return code;
}
#define MPI_Allreduce bad_allreduce
#include "exec/backends/mpi_module.c"
END
    mpicc.$mpi -shared -fPIC -I"$TT_SOURCE_DIR" -o "$1/tutti_mpi_$mpi.so.keep" -x c "$1/module.keep" &&
        ln -sf "tutti_mpi_$mpi.so.keep" "$1/tutti_mpi_$mpi.so"
}

test_mpi() {
    local library
    case $mpi in openmpi) library="Open MPI" ;; mpich) library=MPICH ;; esac

    for n in 2 4; do
        mpi_want $n 0 - -b 8 -e 8K -f 32 -n 3 -w 1
        has "# library $library"
        has "# Out of bounds values : 0 OK"
        [ "$(grep -c '# *Rank' stdout)" -eq $n ] || fail "$mpi: $n ranks: $(cat stdout)"
        awk '!/^#/ { n++; if (NF != 14 || $9 != 0 || $13 != 0 || $6 <= 0 || $14 != "mpi") bad = 1 }
             END { exit bad || n != 3 }' stdout || fail "$mpi: table: $(cat stdout)"
        for collective in reduce-scatter allgather broadcast reduce; do
            mpi_want $n 0 - -b 1000 -n 2 --collective $collective -r 1
            has "# Out of bounds values : 0 OK"
        done
    done
    mpi_want 3 0 - -b 20 -n 1 -d float,double,int8,int32,int64 -o sum,prod,min,max
    [ "$(rows)" -eq 20 ] || fail "$mpi: types x reductions: $(cat stdout)"
    has "# Out of bounds values : 0 OK"
    mpi_want 1 0 - -b 0 -n 1 -c 0
    grep -q "Out of bounds" stdout && fail "$mpi: -c 0 cannot know of wrong values"
    mpi_want 2 0 - -b 8 -n 1 --csv
    [ "$(wc -l <stdout)" -eq 3 ] || fail "$mpi: CSV: $(cat stdout)"
    mpi_want 2 0 - -b 8 -n 1 -J rows.keep
    if grep -q '"backend" : "mpi"' rows.keep; then rm rows.keep; else fail "$mpi: JSON: $(cat rows.keep)"; fi

    # Errors are said once, by rank 0, and everybody leaves.
    mpi_want 2 2 "MPI has no type half" -b 8 -d half
    mpi_want 2 2 "MPI has no reduction avg" -b 8 -o avg
    mpi_want 2 2 "--channels does not apply" -b 8 --channels 2
    mpi_want 2 2 "root" -b 8 --collective reduce -r 7
    mpi_want 2 3 "no/such/folder" -b 8 -J no/such/folder/x
    launch 1 "$TUTTI" run --backend mpi -b 8 : -n 2 "$TUTTI" run --backend mpi -b 16 >stdout 2>stderr
    [ $? -eq 2 ] || fail "$mpi: a mismatch: $(cat stderr)"
    grep -q "ranks 1 and 2 have sizes=16, rank 0 has sizes=8" stderr ||
        fail "$mpi: a mismatch: $(cat stderr)"
    TUTTI_BACKENDS=$work mpi_want 1 77 "install" -b 8

    # An MPI that errs.
    bad_module wrong.keep "if (n > 0) ((char *)out)[0] ^= 1" || fail "$mpi: no module"
    TUTTI_BACKENDS=$work/wrong.keep mpi_want 2 1 - -b 8 -n 1
    has "# Out of bounds values : 2 FAILED"
    bad_module stuck.keep "sleep(100)" || fail "$mpi: no module"
    TUTTI_BACKENDS=$work/stuck.keep mpi_want 2 4 - -b 8 -n 1 -T 4
    grep -q "no progress for 4 s in MPI" stderr || fail "$mpi: a hang: $(cat stderr)"
    rm -r wrong.keep stuck.keep
}

tested=
for mpi in openmpi mpich; do
    [ -e "$(dirname "$TUTTI")/backends/tutti_mpi_$mpi.so" ] || continue
    launch 1 true >/dev/null 2>stderr || { echo "$mpi cannot start anything here: $(cat stderr)" >&2; continue; }
    tested="$tested $mpi"
    test_mpi
done
nothing_left
if [ -z "$tested" ] && [ $bad -eq 0 ]; then
    echo "no MPI to test: install openmpi-bin libopenmpi-dev or mpich libmpich-dev"
    exit 77
fi
echo "tested:$tested"
finish
