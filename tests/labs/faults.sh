#!/usr/bin/env bash
# The quick part of the matrix of faults over RDMA, and bad input there, in the guest: faults.sh TUTTI [OPTION...]. 77 if there can be none.
# Emulated, all takes its time: starting takes seconds, and a time-out must be long enough for a pause of the guest's.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tutti=$1
shift
"$here/verbs-guest" --check || exit $?
"$here/verbs-guest" --prepare || exit $?
[ $# -gt 0 ] ||
    set -- --timeout 5 --slack 15 --repeats 1 --algorithms ring --faults "kill exit mismatch corrupt cut half-open stranger"
cd "$here/../faults" || exit 1
"$here/verbs-guest" --time-out "${TT_GUEST_LIMIT:-280}" \
    env TUTTI="$tutti" bash -c './matrix --transports verbs --launches fork "$@" && ./verbs-bad-input' matrix "$@"
