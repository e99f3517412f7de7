# SPDX-License-Identifier: Apache-2.0
# What the command-line tests share: a private folder that is removed, and checks that say what failed.
set -uo pipefail

bin=$TALLY_BUILD/bin
lib=$TALLY_BUILD/lib
work=$(mktemp -d /tmp/tally-cli-XXXXXX)
export TALLY_SOCKET=$work/s/d.sock
unset TALLY_PRIORITY TALLY_NAME LD_PRELOAD
. "$TALLY_SOURCE/tests/sanitizer.sh"

# Pid of the daemon that serves, empty when none does.
daemon_pid() {
    "$bin/tally" status --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["daemon"].get("pid", ""))'
}

# Killed and not yet reaped is dead.
dead() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# Kills PID at once and waits until it is dead: until then a daemon serves, on a busy machine for a while.
kill_dead() {
    kill -9 "$1"
    until_true dead "$1"
}

finish() {
    local status=$? pid
    pid=$(daemon_pid 2>/dev/null)
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    [ -z "${holder:-}" ] || kill -9 "$holder" 2>/dev/null
    rm -rf "$work"
    exit $status
}
trap finish EXIT

fail() {
    echo "FAILED (line ${BASH_LINENO[1]}): $*" >&2
    exit 1
}

# run STATUS COMMAND...: runs it and compares its exit status; output is in $out, errors in $err.
run() {
    local want=$1 got
    shift
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    out=$(cat "$work/out") err=$(cat "$work/err")
    [ $got -eq "$want" ] || fail "$*: exit status $got, not $want; $err"
}

# has TEXT PART: TEXT holds PART.
has() {
    case $1 in
    *"$2"*) ;;
    *) fail "\"$1\" does not hold \"$2\"" ;;
    esac
}

# same A B
same() {
    [ "$1" = "$2" ] || fail "\"$1\" is not \"$2\""
}

# until_true COMMAND...: waits until the command succeeds, for as long as a busy machine may look elsewhere.
until_true() {
    local end=$((SECONDS + 60))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "never: $*"
        sleep 0.02
    done
}

# hold IDLE: a tallyd that ends after IDLE seconds without programs, and a program that keeps it until release.
hold() {
    [ -p "$work/nothing" ] || mkfifo "$work/nothing"
    while :; do
        "$bin/tallyd" --idle-timeout "$1" || fail "tallyd does not start"
        : >"$work/holder"
        "$TALLY_BUILD/tests/tally_test_client" 0 holder idle <>"$work/nothing" >"$work/holder" 2>&1 &
        holder=$!
        disown $holder # nobody who waits for all waits for it
        until grep -q joined "$work/holder" || dead $holder; do sleep 0.02; done
        # On a busy machine tallyd may have been alone for too long: then another one.
        ! grep -q joined "$work/holder" || return 0
    done
}
release() { kill $holder; }

# json EXPRESSION: of `tally status --json --why`, which must be valid; d is the object.
json() {
    "$bin/tally" status --json --why | python3 -c "
import json, sys
d = json.load(sys.stdin)
print(($1))" || fail "no valid JSON, or no $1"
}
