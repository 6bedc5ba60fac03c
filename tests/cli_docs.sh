#!/usr/bin/env bash
# docs/commands.md knows every command, every option and every field there is.
. "$TT_SOURCE_DIR/tests/cli_common.inc"
page=$TT_SOURCE_DIR/docs/commands.md

"$TUTTI" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >commands.keep
[ "$(wc -l <commands.keep)" -ge 5 ] || fail "too few commands: $(cat commands.keep)"
while read -r command; do
    grep -q "^| \`tutti $command\`" "$page" || fail "the command $command is not described"
    "$TUTTI" "$command" --help | grep -oE -- '--[a-z][a-z_-]+' | sort -u >options.keep
    while read -r option; do
        [ "$option" = --help ] && continue
        grep -qF -- "$option" "$page" || fail "$command $option is not described"
    done <options.keep
done <commands.keep
for command in "predict --topo hosts:2" "run --ranks 2 -n 1" "run --ranks 2 -n 1 -I --in-flight 2" "verify --ranks 2"; do
    # shellcheck disable=SC2086
    "$TUTTI" $command --algo ring --csv 2>/dev/null | head -1 | tr , '\n' >fields.keep
    [ -s fields.keep ] || fail "$command: no fields"
    while read -r field; do
        grep -q "\`$field\`" "$page" || fail "the field $field is not described"
    done <fields.keep
done
finish
