#!/usr/bin/env bash
# verbs.sh PROGRAM...: runs test programs that need RDMA cards in the verbs guest. 77, with the reason,
# where there can be no guest; a program that skips itself in there has failed.
set -uo pipefail
guest=$(cd "$(dirname "$0")" && pwd)/verbs-guest

"$guest" --check || exit $?
"$guest" --prepare || exit $?
for program in "$@"; do
    (cd "$(dirname "$program")" && "$guest" --time-out 240 "./$(basename "$program")")
    code=$?
    [ $code -eq 77 ] && { echo "$program found no cards in the guest" >&2; exit 1; }
    [ $code -eq 0 ] || exit $code
done
