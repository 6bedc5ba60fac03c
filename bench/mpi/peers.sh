#!/usr/bin/env bash
# Allreduce (fp32 sum) of Tutti, Open MPI and MPICH side by side on this machine.
#
#   bench/mpi/peers.sh [-n RANKS] [-r ROUNDS] [-s "SIZES"] [BUILD]
#
# Every size is measured ROUNDS times by each in turn, so that all see the machine's moods alike; the
# medians over the rounds are compared. "flag" is the one-way latency of a flag between two ranks,
# measured in each run: figures of runs whose flags differ much do not compare. Targets, against the
# better peer at 2 ranks: 1.5x the time up to 8 KiB, 1x from 64 KiB, 0.5x from 2 MiB.
set -u
here=$(cd "$(dirname "$0")" && pwd)
ranks=2 rounds=5
sizes="8 64 512 2048 8192 32768 65536 262144 524288 2097152 8388608 33554432 134217728"
while getopts n:r:s: option; do
    case $option in
    n) ranks=$OPTARG ;;
    r) rounds=$OPTARG ;;
    s) sizes=$OPTARG ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
build=${1:-$here/../../build/release}
tutti=$build/bench/bench_exec_point
[ -x "$tutti" ] || { echo "peers.sh: no $tutti: build first" >&2; exit 2; }

declare -A run=([tutti]="$tutti $ranks")
names="tutti"
for mpi in openmpi mpich; do
    program=$build/bench/allreduce_$mpi
    if ! command -v mpicc.$mpi >/dev/null; then
        echo "# $mpi is not installed: left out" >&2
    elif mpicc.$mpi -O2 -o "$program" "$here/allreduce.c"; then
        case $mpi in
        openmpi) launch="mpirun.openmpi --allow-run-as-root --oversubscribe -np $ranks" ;;
        mpich) launch="mpiexec.mpich -n $ranks" ;;
        esac
        run[$mpi]="$launch $program"
        names="$names $mpi"
    fi
done

iterations() { # enough for a loop of some milliseconds
    local n
    if [ "$1" -le 8192 ]; then n=5000
    elif [ "$1" -le 131072 ]; then n=400
    elif [ "$1" -le 2097152 ]; then n=50
    elif [ "$1" -le 16777216 ]; then n=10
    else n=3; fi
    [ "$ranks" -gt "$(nproc)" ] && n=$((n / 50 + 2))
    echo $n
}

median() { # of a column of numbers
    sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

echo "# $ranks ranks, $rounds rounds, medians in us; ratio: tutti to the better peer"
printf '%10s %10s %10s %10s %7s %7s  %-20s %s\n' bytes tutti openmpi mpich ratio target "flags" algorithm
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
missed=0
for bytes in $sizes; do
    rm -f "$out"/*
    for ((round = 0; round < rounds; round++)); do
        for name in $names; do
            timeout 120 ${run[$name]} "$bytes" "$(iterations "$bytes")" 5 2>>"$out/errors" | tail -1 >>"$out/$name"
        done
    done
    declare -A us=() flag=()
    for name in $names; do
        us[$name]=$(awk '{ print $1 }' "$out/$name" | median)
        flag[$name]=$(awk '{ print $2 }' "$out/$name" | median)
    done
    if [ "$bytes" -le 8192 ]; then target=1.5
    elif [ "$bytes" -ge 2097152 ]; then target=0.5
    elif [ "$bytes" -ge 65536 ]; then target=1
    else target=-; fi
    ratio=$(awk -v t="${us[tutti]}" -v a="${us[openmpi]:-0}" -v b="${us[mpich]:-0}" \
        'BEGIN { best = a && (!b || a < b) ? a : b; if (best) printf "%.2f", t / best; else print "-" }')
    verdict=$(awk -v r="$ratio" -v t="$target" 'BEGIN { print (r != "-" && t != "-" && r > t) ? "  MISSED" : "" }')
    [ -n "$verdict" ] && missed=$((missed + 1))
    printf '%10d %10.3f %10s %10s %7s %7s  %-20s %s%s\n' "$bytes" "${us[tutti]}" "${us[openmpi]:--}" \
        "${us[mpich]:--}" "$ratio" "$target" \
        "${flag[tutti]} ${flag[openmpi]:-} ${flag[mpich]:-}" "$(awk 'END { print $3 }' "$out/tutti")" "$verdict"
    grep -v '^$' "$out/errors" | sort | uniq -c | head -3 >&2
done
echo "# targets missed: $missed"
[ "$missed" -eq 0 ]
