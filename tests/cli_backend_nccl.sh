#!/usr/bin/env bash
# tutti run --backend nccl against stand-ins for NCCL and the CUDA runtime (tests/fakes), which work on host memory:
# every collective, type and reduction, one process and several; what goes wrong is said once, and nothing hangs.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

unset OMPI_COMM_WORLD_SIZE PMI_SIZE PMI_RANK PMIX_RANK SLURM_NTASKS RANK WORLD_SIZE TUTTI_ROOT TUTTI_SECRET
for name in $(compgen -e NCCL_) $(compgen -e FAKE_) CUDA_VISIBLE_DEVICES; do unset "$name"; done
export TUTTI_NCCL_LIBRARY=$FAKES/libfake_nccl.so TUTTI_CUDART_LIBRARY=$FAKES/libfake_cudart.so
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # of a thread that is left where it hangs
nccl="run --backend nccl -w 1 -n 2 -T 20"

rows() { grep -c '^ ' stdout; }
all_right() { # all_right ROWS WHAT
    [ "$(rows)" -eq "$1" ] || fail "$2: $(rows) rows, wanted $1: $(head -c 400 stdout)"
    awk '/^ / { if (NF != 14 || $9 != 0 || $13 != 0 || $6 <= 0 || $14 != "nccl") bad = 1 } END { exit bad }' stdout ||
        fail "$2: $(cat stdout)"
    has "# Out of bounds values : 0 OK"
}

# --- one process -------------------------------------------------------------------------------------------

NCCL_PROTO=LL NCCL_ALGO=Ring want 0 - -- $nccl -b 8 -e 8K -f 32
all_right 3 "two GPUs"
has "# ranks 2 by one process backend nccl"
has "# library NCCL 2.28.9, CUDA runtime 13.0"
has "# environment NCCL_ALGO=Ring NCCL_PROTO=LL"
has "device 1 0000:11:00.0 Fake GPU"
want 0 - -- $nccl -b 20 -d all -o all
all_right 45 "types and reductions"
export FAKE_CUDA_DEVICES=4
for collective in reduce-scatter allgather broadcast reduce; do
    for ranks in 1 3 4; do
        want 0 - -- $nccl -b 1000 --collective $collective --ranks $ranks -r $((ranks - 1)) -d float,int8,half
        all_right 3 "$collective of $ranks"
    done
done
want 0 - -- $nccl -b 0 -e 2000 -i 1000 -o avg -d all
all_right 27 "averages of four, and nothing at all"
want 0 - -- $nccl -b 9M -e 9M -d float --collective allgather
all_right 1 "more than is compared at once"
want 0 - -- $nccl -b 8 --gpus 3,1
has "device 3 0000:13:00.0"
[ "$(grep -c '# *Rank' stdout)" -eq 2 ] || fail "--gpus 3,1: $(cat stdout)"
want 0 - -- $nccl -b 8 -c 0 -w 0
grep -q "Out of bounds" stdout && fail "-c 0 cannot know of wrong values"
want 0 - -- $nccl -b 8 --csv
[ "$(wc -l <stdout)" -eq 3 ] || fail "CSV: $(cat stdout)"
NCCL_DEBUG=WARN want 0 - -- $nccl -b 8 -J rows.keep
if grep -q '"environment" : "NCCL_DEBUG=WARN"' rows.keep; then rm rows.keep; else fail "JSON: $(cat rows.keep)"; fi
FAKE_NCCL_FAULT=wrong:2 want 1 - -- $nccl -b 8
has "FAILED"

# --- what is refused ---------------------------------------------------------------------------------------

want 2 "--algo does not apply to --backend nccl" -- $nccl --algo ring
want 2 "--transport does not apply" -- $nccl --transport shm
want 2 "5 ranks on $(hostname), which has 4 GPUs: NCCL refuses two ranks on one" -- $nccl -b 8 --ranks 5
want 2 "--gpus \"7\": $(hostname) has GPUs 0-3" -- $nccl -b 8 --gpus 7
want 2 "--gpus names 1 GPUs for the 2 ranks" -- $nccl -b 8 --gpus 1 --ranks 2
want 2 "ranks 0 and 1 would share GPU 0000:12:00.0" -- $nccl -b 8 --gpus 2,2
want 2 "root" -- $nccl -b 8 --collective reduce -r 7
FAKE_CUDA_MEMORY=1000 want 1 "has no room for a buffer of 1024 bytes: use a smaller -e" -- $nccl -b 1K
FAKE_CUDA_MAJOR=8 want 2 "NCCL reduces f8e4m3 from compute capability 9.0" -- $nccl -b 8 -d f8e4m3
FAKE_CUDA_MAJOR=8 want 0 - -- $nccl -b 64 -d f8e4m3 --collective allgather
FAKE_NCCL_VERSION=2907 want 2 "NCCL 2.9.7 has no bfloat16: 2.10.0 is the first" -- $nccl -b 8 -d bf16
FAKE_NCCL_VERSION=2804 want 2 "NCCL 2.8.4 has no average" -- $nccl -b 8 -o avg
FAKE_NCCL_VERSION=22005 want 2 "NCCL 2.20.5 has no f8e5m2" -- $nccl -b 8 -d f8e5m2
FAKE_NCCL_VERSION=2304 want 77 "is NCCL 2.3.4, too old" -- $nccl -b 8
TUTTI_NCCL_LIBRARY=$FAKES/libfake_nccl_bare.so want 1 "has no function ncclReduce: it is not NCCL, or too old" -- $nccl -b 8
TUTTI_NCCL_LIBRARY=/none/libnccl.so want 77 "TUTTI_NCCL_LIBRARY: cannot load /none/libnccl.so" -- $nccl -b 8
TUTTI_CUDART_LIBRARY=$FAKES/libfake_nccl.so want 1 "has no function cudaGetDeviceCount" -- $nccl -b 8
FAKE_CUDA_DEVICES=0 want 77 "has no GPU" -- $nccl -b 8
CUDA_VISIBLE_DEVICES=9 FAKE_CUDA_DEVICES=0 want 77 "no GPU that CUDA_VISIBLE_DEVICES=9 leaves visible" -- $nccl -b 8
FAKE_CUDA_ERROR=999 want 77 "cudaGetDeviceCount: a fake error" -- $nccl -b 8
ldconfig -p | grep -q libcuda.so.1 || FAKE_CUDA_ERROR=35 want 77 "has no NVIDIA driver" -- $nccl -b 8
if ldconfig -p | grep -q libnccl.so.2; then
    if ! ldconfig -p | grep -q libcuda.so.1 && ldconfig -p | grep -q libcudart.so; then
        (unset TUTTI_NCCL_LIBRARY TUTTI_CUDART_LIBRARY
        want 77 "has no NVIDIA driver (no libcuda.so.1)" -- $nccl -b 8
        exit $bad) || bad=1
    fi
else
    (unset TUTTI_NCCL_LIBRARY
    want 77 "NCCL is not here (no libnccl.so.2 where the dynamic linker looks" -- $nccl -b 8
    exit $bad) || bad=1
fi

# --- what goes wrong at one of four ------------------------------------------------------------------------

FAKE_NCCL_FAULT=init want 4 "ncclCommInitAll: unhandled system error: the fake cannot begin" -- $nccl -b 8
FAKE_NCCL_FAULT=system want 4 "ranks 0-3: ncclAllReduce: unhandled system error: the fake does not like this" -- $nccl -b 8
FAKE_NCCL_FAULT=async want 4 "ncclAllReduce: remote process exited or there was a network error: the fake's peer has gone" -- $nccl -b 8
hurry="run --backend nccl -b 8 -n 20 -T 1"
FAKE_NCCL_FAULT=hang:2:5 want 4 "ranks 0-3: no progress for 1 s in ncclAllReduce" -- $hurry
FAKE_NCCL_FAULT=stuck want 4 "ranks 0-3: no progress for 1 s in ncclAllReduce" -- $hurry
FAKE_NCCL_FAULT=deaf want 4 "ranks 0-3: no progress for 1 s in ncclAllReduce" -- $hurry

# --- several processes -------------------------------------------------------------------------------------

# processes N RANKS [PIPE]: `tutti run --backend nccl $arguments`, N of them; codes and what they say in $i.out, $i.err
processes() {
    local n=$1 pids=() i port
    port=$(free_port)
    for ((i = n - 1; i >= 0; i--)); do
        (eval "${per_process:-}"
        exec timeout 60 "$TUTTI" run --backend nccl --meet 127.0.0.1:$port --ranks "$2" --rank ${ranges[i]} $arguments) \
            >$i.out 2>$i.err </dev/null &
        pids[i]=$!
    done
    codes=()
    for ((i = 0; i < n; i++)); do
        wait ${pids[i]}
        codes[i]=$?
    done
    cp 0.out stdout
    cat ./*.err >stderr
    rm -f ./[0-9].out ./[0-9].err
}
# together CODE WORDS N RANKS: all end with CODE, and say WORDS in one line together (-: nothing)
together() {
    local code=$1 words=$2 i
    shift 2
    processes "$@"
    for ((i = 0; i < $1; i++)); do
        [ "${codes[i]}" -eq "$code" ] || fail "$* of $arguments: process $i: exit ${codes[i]}: $(cat stderr)"
    done
    if [ "$words" = - ]; then
        [ ! -s stderr ] || fail "$arguments: $(cat stderr)"
    else
        [ "$(wc -l <stderr)" -eq 1 ] || fail "$arguments: wanted one line: $(cat stderr)"
        grep -qF -- "$words" stderr || fail "$arguments: \"$words\" not in: $(cat stderr)"
    fi
}

ranges=(0 1 2)
arguments="-b 8 -e 8K -f 32 -n 3 -T 20"
together 0 - 3 3
all_right 3 "three processes"
has "# ranks 3 by --meet backend nccl"
has "device 2 0000:12:00.0"
for collective in reduce-scatter allgather broadcast reduce; do
    arguments="-b 1000 --collective $collective -r 1 -n 2 -d float,bfloat16 -T 20"
    together 0 - 3 3
    all_right 2 "$collective by three processes"
done
ranges=(0-2 3)
arguments="-b 1000 -o all -n 2 -T 20"
together 0 - 2 4
all_right 5 "three ranks and one"
has "device 3 0000:13:00.0"
# Each sees a GPU of its own, as Slurm can have it; or all see the same one.
ranges=(0 1)
arguments="-b 1000 -n 2 -T 20"
per_process='export FAKE_CUDA_DEVICES=1 FAKE_CUDA_FIRST=$i' together 0 - 2 2
has "device 0 0000:11:00.0"
per_process='export FAKE_CUDA_DEVICES=1' together 2 "ranks 0 and 1 would share GPU 0000:10:00.0" 2 2
FAKE_CUDA_DEVICES=2
ranges=(0-1 2)
together 2 "rank 2: 3 ranks on $(hostname), which has 2 GPUs" 2 3
FAKE_CUDA_DEVICES=4
# As torchrun sets it.
port=$(free_port)
for i in 1 0; do
    RANK=$i WORLD_SIZE=2 LOCAL_RANK=$i LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$TUTTI" $nccl -b 8 >$i.keep 2>stderr </dev/null &
done
wait || fail "torchrun: $(cat stderr)"
cp 0.keep stdout
all_right 1 torchrun
has "# ranks 2 by torchrun backend nccl"
[ -s 1.keep ] && fail "rank 1 prints: $(cat 1.keep)"
rm ./*.keep

ranges=(0 1 2)
arguments="-b 8 -n 20 -T 20"
per_process='[ $i -eq 2 ] && export TUTTI_NCCL_LIBRARY=/none.so' together 77 "rank 2: TUTTI_NCCL_LIBRARY: cannot load /none.so" 3 3
per_process='[ $i -eq 1 ] && export FAKE_NCCL_VERSION=22703' together 2 "rank 1 found NCCL 2.27.3, rank 0 NCCL 2.28.9" 3 3
per_process='[ $i -eq 1 ] && arguments="-b 16 -n 20 -T 20"' together 2 "ranks disagree: rank 1 has sizes=16, rank 0 has sizes=8" 3 3
per_process='[ $i -eq 2 ] && export FAKE_CUDA_MEMORY=7' together 1 "rank 2: GPU 2 on $(hostname) has no room" 3 3
per_process='[ $i -eq 2 ] && export NCCL_PROTO=LL' together 0 - 3 3
has "# environment  (others have other NCCL_ variables)"
FAKE_NCCL_FAULT=init:1 together 4 "rank 1: ncclCommInitRank: unhandled system error: the fake cannot begin" 3 3
FAKE_NCCL_FAULT=system:2 together 4 "rank 2: ncclAllReduce: unhandled system error" 3 3
FAKE_NCCL_FAULT=system:0 together 4 "rank 0: ncclAllReduce: unhandled system error" 3 3
FAKE_NCCL_FAULT=async:1 together 4 "rank 1: ncclAllReduce: remote process exited" 3 3
arguments="-b 8 -n 20 -T 2"
FAKE_NCCL_FAULT=hang:1 together 4 "no progress for 2 s in ncclAllReduce" 3 3
# One dies: the others say so, and end.
for rank in 2 0; do
    FAKE_NCCL_FAULT=die:$rank:9 processes 3 3
    for ((i = 0; i < 3; i++)); do
        [ "${codes[i]}" -eq $([ $i -eq $rank ] && echo 137 || echo 4) ] || fail "rank $rank dies: process $i: ${codes[i]}: $(cat stderr)"
    done
    grep -q "rank $rank at .* died, or its connection broke" stderr || fail "rank $rank dies: $(cat stderr)"
done
[ "$(ls /dev/shm/tutti-fake-nccl-* 2>/dev/null | wc -l)" -eq 0 ] || fail "left in /dev/shm: $(ls /dev/shm)"

# --- the interface as NVIDIA's headers have it ---------------------------------------------------------------

for folder in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include /usr/local/cuda*/include; do
    [ -e "$folder/nccl.h" ] && [ -e "$folder/cuda_runtime_api.h" ] || continue
    cat >abi.keep <<'END'
#include <nccl.h>
#include "exec/nccl_abi.h"
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(TT_NCCL_SUCCESS, ncclSuccess); SAME(TT_NCCL_IN_PROGRESS, ncclInProgress);
SAME(TT_NCCL_INT8, ncclInt8); SAME(TT_NCCL_INT32, ncclInt32); SAME(TT_NCCL_INT64, ncclInt64);
SAME(TT_NCCL_FLOAT16, ncclFloat16); SAME(TT_NCCL_FLOAT32, ncclFloat32); SAME(TT_NCCL_FLOAT64, ncclFloat64);
SAME(TT_NCCL_BFLOAT16, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22403
SAME(TT_NCCL_FLOAT8E4M3, ncclFloat8e4m3); SAME(TT_NCCL_FLOAT8E5M2, ncclFloat8e5m2);
#endif
SAME(TT_NCCL_SUM, ncclSum); SAME(TT_NCCL_PROD, ncclProd); SAME(TT_NCCL_MAX, ncclMax); SAME(TT_NCCL_MIN, ncclMin);
SAME(TT_NCCL_AVG, ncclAvg);
SAME(sizeof(TtNcclId), sizeof(ncclUniqueId));
SAME(TT_CUDA_MEMORY, cudaErrorMemoryAllocation); SAME(TT_CUDA_STUB, cudaErrorStubLibrary);
SAME(TT_CUDA_DRIVER_TOO_OLD, cudaErrorInsufficientDriver); SAME(TT_CUDA_NO_DEVICE, cudaErrorNoDevice);
SAME(TT_CUDA_NOT_READY, cudaErrorNotReady); SAME(TT_CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(TT_CUDA_TO_HOST, cudaMemcpyDeviceToHost); SAME(TT_CUDA_ATTRIBUTE_MAJOR, cudaDevAttrComputeCapabilityMajor);
SAME(TT_CUDA_STREAM_NON_BLOCKING, cudaStreamNonBlocking); SAME(TT_CUDA_EVENT, cudaEventDisableTiming);
_Static_assert(sizeof(struct cudaDeviceProp) <= TT_CUDA_PROPERTIES_BYTES, "cudaDeviceProp");
_Static_assert(sizeof(((struct cudaDeviceProp *)0)->name) == TT_CUDA_NAME_BYTES, "name");
END
    cc -std=gnu11 -fsyntax-only -I"$TT_SOURCE_DIR" -I"$folder" -x c abi.keep 2>stderr || fail "$folder: $(cat stderr)"
    echo "compared with $folder/nccl.h"
    break
done
nothing_left
finish
