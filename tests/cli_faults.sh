#!/usr/bin/env bash
# The quick part of the matrix of faults; tests/faults/matrix without --quick is the whole.
# Here, with other tests beside it, 4 s beyond the time-out are let pass; the whole allows 2.
set -u
"$TT_SOURCE_DIR/tests/faults/matrix" --quick --timeout 1 --slack 4
