#!/usr/bin/env bash
# The design's "who may know whom", as a test: run from the top of the tree.
set -u
bad=0

forbid() { # forbid FOLDER PATTERN: no file of FOLDER includes a header that matches PATTERN
    if grep -rnE "#include \"($2)" "$1" --include='*.[ch]' --include='*.cu' --include='*.cuh'; then
        echo "error: $1/ must not include $2"
        bad=1
    fi
}

forbid algos 'sim/|exec/|topologies/|models/|plots/|cli/'
forbid exec 'sim/|topologies/|models/|plots/|cli/'
forbid sim 'exec/|plots/|cli/'
forbid topologies 'algos/|sim/|exec/|plots/|cli/|models/([^u]|u[^n])'
forbid models 'algos/|sim/|exec/|plots/|cli/'
forbid plots 'sim/|exec/|topologies/|models/|cli/'
exit $bad
