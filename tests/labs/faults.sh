#!/usr/bin/env bash
# The quick part of the matrix of faults over RDMA, and bad input there, in the guest: faults.sh TUTTI [OPTION...]. 77 if there can be none.
# The guest keeps its own time, so a time-out of 1 s does; where this machine is too busy to wake it, its sleep lasts longer: 4 s
# beyond the time-out are let pass. The whole, a quarter of an hour or two: TT_GUEST_LIMIT=3600 faults.sh TUTTI --timeout 1
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tutti=$1
shift
"$here/verbs-guest" --check || exit $?
"$here/verbs-guest" --prepare || exit $?
[ $# -gt 0 ] ||
    set -- --timeout 1 --slack 4 --repeats 1 --algorithms ring --faults "kill stop exit mismatch corrupt cut half-open stranger unplug"
cd "$here/../faults" || exit 1
export TUTTI=/tmp/tutti
"$here/verbs-guest" --own-time --time-out "${TT_GUEST_LIMIT:-280}" bash -c '
    cp "$1" /tmp/tutti && cp matrix verbs-bad-input /tmp && shift &&
        ../labs/verbs-guest-near bash env awk cat cut grep head ip ls mktemp mv paste rdma rm sed seq sleep tail touch tr wc /tmp/tutti &&
        /tmp/matrix --transports verbs --launches fork "$@" && /tmp/verbs-bad-input' faults "$tutti" "$@"
