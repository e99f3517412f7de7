# SPDX-License-Identifier: Apache-2.0
# A latency budget end to end on the CPU device: a program that works in bursts, measured by libtally.so,
# and a best-effort program that costs it nothing. Without a budget that one is held whenever the
# program works; with one it is let run beside it, but not while the program measures itself alone.
set -eu
tests=$TALLY_BUILD/tests/interpose
scratch=$(mktemp -d)
daemon=
program=
finish() {
	[ -z "$program" ] || kill -9 "$program" 2>/dev/null || true
	[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || true
	rm -rf "$scratch"
}
trap finish EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache LD_LIBRARY_PATH=$TALLY_BUILD/lib
. "$TALLY_SOURCE/tests/sanitizer.sh"

fail() {
	echo "$*"
	exit 1
}

# status EXPRESSION: of the program's entry p in `tally status --json --why`.
status() {
	"$TALLY_BUILD/bin/tally" status --json --why | python3 -c "
import json, sys
d = json.load(sys.stdin)
p = [p for p in d['programs'] + d['finished'] if p['name'] == 'bursts'][0]
print($1)"
}

# start PRIORITY SLO: the program, in the background, until stop.
start() {
	mkfifo "$scratch/input"
	env LD_PRELOAD="$sanitizer $TALLY_BUILD/lib/libtally.so" TALLY_PRIORITY="$1" TALLY_SLO="$2" \
		TALLY_NAME=bursts TALLY_CPU_WORKERS=2 "$tests/bursts" <"$scratch/input" 2>"$scratch/err" &
	program=$!
	exec 3>"$scratch/input"
}
stop() {
	exec 3>&-
	wait $program || fail "exit status $?: $(cat "$scratch/err")"
	program=
	rm "$scratch/input"
}

. "$TALLY_SOURCE/tests/daemon.sh"
start_daemon "$scratch/log"

start high ""
"$tests/beside" bursts 20 0 || fail "without a budget somebody ran beside the program"
[ "$(status "p['slo']")" = None ] || fail "a budget from nowhere: $(status p)"
stop

# A wide one: on a busy machine some bursts take many times as long, beside somebody or not.
start high 3
"$tests/beside" bursts 20 10 || fail "with a budget: $(status p)"
[ "$(status "p['slo']['budget']")" = 3.0 ] || fail "the budget: $(status p)"
is() { [ "$(status "$1" 2>/dev/null)" = True ]; }
await is "p['slo']['judged'] > 60 and p['slo']['overlap_ns'] > 0" || fail "nothing was measured: $(status p)"
[ "$(status "0.05 < p['slo']['slowdown_mean'] < 20 and p['slo']['slowdown_p99'] > 0")" = True ] ||
	fail "slowdown: $(status p)"
[ "$(status "p['sharing']")" = cpu-device ] || fail "sharing: $(status p)"
"$TALLY_BUILD/bin/tally" status --why | grep -q "budget 3," || fail "nothing about the budget"
# Stopped and continued in the middle of it, and the daemon killed and back: it goes on.
kill -STOP $program
sleep 0.3
kill -CONT $program
"$tests/beside" bursts 5 5 || fail "after a stop: $(status p)"
kill -9 $daemon
wait $daemon 2>/dev/null || true
start_daemon "$scratch/log"
joined() { "$TALLY_BUILD/bin/tally" status | grep -q bursts; }
await joined || fail "it does not join again"
"$tests/beside" bursts 5 5 || fail "under a new daemon: $(status p)"
[ "$(status "p['slo']['budget']")" = 3.0 ] || fail "under a new daemon: $(status p)"
stop
[ "$(grep -cv 'tallyd is gone' "$scratch/err")" = 0 ] || fail "said: $(cat "$scratch/err")"

# Levels below high have no budget, and what is none is said.
start best-effort 1.05
await is "p['priority'] == 0 and p['bursts'] > 3" || fail "it does not work: $(status p)"
[ "$(status "p['slo']")" = None ] || fail "best effort with a budget: $(status p)"
stop
[ ! -s "$scratch/err" ] || fail "said: $(cat "$scratch/err")"
start high 0.9
"$tests/beside" bursts 20 0 || fail "with no budget: $(status p)"
stop
grep -q 'TALLY_SLO is "0.9"' "$scratch/err" || fail "a bad budget: $(cat "$scratch/err")"
