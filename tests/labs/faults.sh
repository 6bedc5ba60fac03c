#!/usr/bin/env bash
# The quick part of the matrix of faults over RDMA, and bad input there, in the guest: faults.sh TUTTI [OPTION...]. 77 if there can be none.
# Emulated, all takes its time: starting takes seconds, and a time-out must be long enough for a pause of the guest's.
# The whole, in the guest's own time: TT_GUEST_LIMIT=3600 TT_GUEST_OWN_TIME=1 faults.sh TUTTI --timeout 1
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tutti=$1
shift
"$here/verbs-guest" --check || exit $?
"$here/verbs-guest" --prepare || exit $?
[ $# -gt 0 ] ||
    set -- --timeout 5 --slack 15 --repeats 1 --algorithms ring --faults "kill exit mismatch corrupt cut half-open stranger"
cd "$here/../faults" || exit 1
"$here/verbs-guest" ${TT_GUEST_OWN_TIME:+--own-time} --time-out "${TT_GUEST_LIMIT:-280}" bash -c '
    export TUTTI=/tmp/tutti
    cp "$1" /tmp/tutti && cp matrix verbs-bad-input /tmp && shift &&
        ../labs/verbs-guest-near bash env awk cat cut grep head ip ls mktemp mv paste rdma rm sed seq sleep tail touch tr wc /tmp/tutti &&
        /tmp/matrix --transports verbs --launches fork "$@" && /tmp/verbs-bad-input' faults "$tutti" "$@"
