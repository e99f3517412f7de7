# SPDX-License-Identifier: Apache-2.0
# bash completion: every command, and every option that --help names.
. "$(dirname "$0")/lib.sh"
. "$TALLY_SOURCE/cli/completion.bash"

# complete WORDS...: the last one is completed; the answers are in $got, sorted.
completions() {
    COMP_WORDS=("$bin/tally" "$@") COMP_CWORD=$#
    _tally
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')
}

completions ""
for command in run status top trace profile cache; do has " $got" " $command "; done
completions tr
same "$got" "trace "
completions run --pri
same "$got" "--priority "
completions run --device ""
same "$got" "auto cpu cuda "
completions run --mps ""
same "$got" "auto off on "
completions run --opaque ""
same "$got" "all off open "
completions top --sort ""
same "$got" "launches name priority stops time "
completions cache ""
same "$got" "--help --version clear status "
completions profile --sort ""
same "$got" "launches name stop time "
completions top --
for option in --interval --program --sort --totals --batch --frames --once --help --version; do
    has " $got" " $option "
done
completions nonsense --
same "$got" " "
exit 0
