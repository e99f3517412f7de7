# SPDX-License-Identifier: Apache-2.0
# Unmodified CUDA programs, many at once and at several levels, some of them stopped by a signal, on the CPU
# device: each computes what it computes alone, a stopped one holds nobody for long, and goes on.
set -eu
tests=$TALLY_BUILD/tests/interpose
scratch=$(mktemp -d)
pids=
daemon=
finish() {
	for pid in $pids $daemon; do kill -9 "$pid" 2>/dev/null || true; done
	rm -rf "$scratch"
}
trap finish EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache TALLY_CPU_WORKERS=1
export TALLY_LOWER=$TALLY_BUILD/bin/tally-lower LD_LIBRARY_PATH=$TALLY_BUILD/lib
. "$TALLY_SOURCE/tests/sanitizer.sh"
. "$TALLY_SOURCE/tests/daemon.sh"

fail() {
	echo "$*"
	cat "$scratch"/err.* 2>/dev/null || true
	exit 1
}

# under NAME LEVEL ARGUMENTS...: in the background; its process id is $pid.
under() {
	name=$1
	level=$2
	shift 2
	env LD_PRELOAD="$sanitizer $TALLY_BUILD/lib/libtally.so" TALLY_PRIORITY="$level" TALLY_NAME="$name" \
		"$tests/victim" "$@" >"$scratch/out.$name" 2>"$scratch/err.$name" &
	pid=$!
	pids="$pids $pid"
}

# ends PID NAME WANT: well, and with that output.
ends() {
	wait "$1" || fail "$2: exit status $?"
	[ "$(cat "$scratch/out.$2")" = "$3" ] || fail "$2: $(cat "$scratch/out.$2"), alone $3"
}

# comes NAME EXPRESSION: waits until it is true.
comes() { await so "$@" || fail "$1: never $2: $("$TALLY_BUILD/bin/tally" status --why)"; }
so() {
	"$TALLY_BUILD/bin/tally" status --json | python3 -c "
import json, sys
p = ([p for p in json.load(sys.stdin)['programs'] if p['name'] == '$1'] or [None])[0]
sys.exit(not (p is not None and bool($2)))"
}

start_daemon "$scratch/log"
alone() { env LD_PRELOAD="$sanitizer" "$tests/victim" "$@"; }
want=$(alone 2 6 8 3000)

# Twenty at five levels, the daemon killed and back under them.
all=
for i in $(seq 20); do
	under "crowd$i" $((i % 5 * 25)) 2 6 8 3000
	all="$all $pid:crowd$i"
done
sleep 0.5
kill -9 $daemon
wait $daemon 2>/dev/null || true
sleep 0.3
start_daemon "$scratch/log"
for entry in $all; do ends "${entry%%:*}" "${entry#*:}" "$want"; done

# A best-effort program is stopped by a signal in the middle of its work: an equal goes on without it,
# and when it is continued its results are what they are alone.
long=$(alone 2 3000 16 20000)
short=$(alone 2 200 16 20000)
under first 0 2 3000 16 20000
first=$pid
comes first "p['launches'] > 20"
kill -STOP $first
under second 0 2 200 16 20000
ends $pid second "$short"
kill -CONT $first
ends $first first "$long"

# A program of high priority is stopped while it is active: the one below is held, then let go, and
# computes what it does alone.
start_rival below ever 0 1
pids="$pids $rival"
under below 0 2 200 16 20000
below=$pid
comes rival "p['active']"
comes below "p['state'] == 'held'"
kill -STOP $rival
ends $below below "$short"
comes rival "p['stopped_by_signal']"
# Killed while it is stopped, it leaves nothing: one that comes after runs.
kill -9 $rival
wait $rival 2>/dev/null || true
under after 0 2 200 16 20000
ends $pid after "$short"

# The one that is stopped by the protocol (held) is stopped by a signal too, and killed: the one above
# never notices.
start_rival killed 300 300 1
pids="$pids $rival"
under killed 0 2 4000 16 20000
killed=$pid
comes killed "p['stops'] > 3"
kill -STOP $killed
sleep 0.2
kill -9 $killed
wait $killed 2>/dev/null || true
wait $rival || fail "the rival does not go on"
