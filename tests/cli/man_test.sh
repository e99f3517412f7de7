# SPDX-License-Identifier: Apache-2.0
# The man pages name every option that --help names, and hold no formatting errors.
. "$(dirname "$0")/lib.sh"

check() {
    local page=$TALLY_SOURCE/docs/man/$1 options option
    shift
    [ -f "$page" ] || fail "$page is missing"
    options=$("$@" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u)
    [ -n "$options" ] || fail "$* --help names no options"
    for option in $options; do
        grep -qF -- "${option//-/\\-}" "$page" || fail "$page does not mention $option of $*"
    done
    if command -v groff >/dev/null; then
        local complaints
        complaints=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
        [ -z "$complaints" ] || fail "$complaints"
    fi
}

check tally.1 "$bin/tally"
for command in run status cache; do
    check tally.1 "$bin/tally" $command
done
check tallyd.8 "$bin/tallyd"
