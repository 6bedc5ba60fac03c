#!/usr/bin/env bash
# The script `tutti completion bash` writes completes commands, options, their values and lists.
. "$TT_SOURCE_DIR/tests/cli_common.inc"

want 0 - -- completion bash
. ./stdout || fail "the script has a syntax error"

complete_line() { # complete_line WORD...: the candidates for the last word
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _tutti
    echo " ${COMPREPLY[*]} "
}
completes() { # completes CANDIDATE WORD...
    local candidate=$1 got
    shift
    got=$(complete_line "$@")
    case $got in *" $candidate "*) ;; *) fail "$*: \"$candidate\" not among$got" ;; esac
}

completes predict tutti pre
completes --version tutti --v
completes --topo tutti predict --t
completes --iters tutti predict --it
completes --timeout tutti run --ti
completes ring tutti predict --algo r
completes all tutti predict -a ''
completes ring,tree tutti predict --algo ring,t
completes bfloat16 tutti run -d b
completes f8e5m2 tutti run -d f8e5
completes nccl tutti run --backend n
completes flow tutti predict --level f
completes show tutti topo s
completes hosts tutti topo show h
completes lint tutti topo l
completes dgx-h100 tutti topo draw d
completes --format tutti topo export x --f
completes bash tutti completion ''
[ "$(complete_line tutti topo list x)" = "  " ] || fail "something completes x"
# Options a command has not are not offered.
case $(complete_line tutti topo --) in *--minbytes*) fail "topo has no --minbytes" ;; esac
finish
