#!/usr/bin/env bash
# tutti compare over RDMA, in the guest: compare.sh TUTTI. 77 if there can be none. The guest is emulated, so how near
# prediction and measurement are means nothing there; that both come out, and the data is right, does.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/verbs-guest" --check || exit $?
"$here/verbs-guest" --prepare || exit $?
cd "$here" || exit 1
"$here/verbs-guest" --time-out 240 "$1" compare --topo this --ranks 2 --profile ideal \
    --transport verbs --algo ring,tree -b 4K --csv -q | tee /dev/stderr |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { n++; bad += !($at["predicted_us"] > 0 && $at["measured_us"] > 0 && $at["wrong"] == 0) }
             END { exit !(n == 2 && bad == 0) }'
