#!/usr/bin/env bash
# Plans on GPUs of two machines, over RDMA with GPUDirect, in the guest: gpu-direct.sh TUTTI. 77 if there can be none. The GPUs
# are the CPU (--gpus host), a machine is a namespace of processes: ranks of two share no memory.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# --- in the guest --------------------------------------------------------------------------------

# both OPTION...: ranks 0 and 1 here, 2 and 3 "there"; what rank 0's process says.
both() {
    local code=0 common=(run --transport cuda,verbs --gpus host --ranks 4 --device rxe1,rxe2 --interface lo --timeout 60
                         --meet "127.0.0.1:$((port++))" -n 3 -w 1 -q "$@")
    unshare --pid --fork timeout 100 "$tutti" "${common[@]}" --rank 2-3 >there.out 2>&1 &
    timeout 100 "$tutti" "${common[@]}" --rank 0-1 >here.out 2>&1 || code=$?
    wait $! || code=$?
    cat here.out
    [ $code -eq 0 ] || { echo "exit code $code; the other process said:"; cat there.out; exit 1; }
}

# says WORDS: so does the run before.
says() {
    grep -qF -- "$1" here.out || { echo "\"$1\" is not said"; exit 1; }
}

if [ "${1-}" = guest ]; then
    tutti=$2 port=29500
    cd /tmp || exit 1
    both --algo ring -b 16 -e 64K -f 64 -d float,half
    says "# GPUDirect: as with nvidia-peermem (memory of the CPU)"
    both --algo tree -b 20000 --streams 2 --json
    says '"gpudirect" : "as with nvidia-peermem (memory of the CPU)"'
    both --algo ring -b 64K --placement host
    says "# GPUDirect: no (host memory: --placement host)"
    export TUTTI_DIRECT_FAILS=address
    both --algo ring -b 64K
    says "# GPUDirect: no (host memory: dma-buf: memory of the CPU is no dma-buf; nvidia-peermem: fails as"
    exit 0
fi

# --- here ----------------------------------------------------------------------------------------

"$here/verbs-guest" --check || exit $?
"$here/verbs-guest" --prepare || exit $?
cd "$here" || exit 1
"$here/verbs-guest" --time-out 280 bash "$here/gpu-direct.sh" guest "$1"
