# SPDX-License-Identifier: Apache-2.0
# An unmodified CUDA program under an artificial rival: what it computes is what it computes alone, however
# often it is stopped, in every kind of stream, and whoever dies meanwhile.
set -eu
tests=$TALLY_BUILD/tests/interpose
scratch=$(mktemp -d)
daemon=
finish() {
	[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || true
	rm -rf "$scratch"
}
trap finish EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache
export TALLY_LOWER=$TALLY_BUILD/bin/tally-lower LD_LIBRARY_PATH=$TALLY_BUILD/lib

fail() {
	echo "$*"
	exit 1
}

. "$TALLY_SOURCE/tests/sanitizer.sh"
. "$TALLY_SOURCE/tests/daemon.sh"

# alone ARGUMENTS...: the program without the preload.
alone() { env LD_PRELOAD="$sanitizer" "$tests/victim" "$@"; }
# under ARGUMENTS...: preloaded, of lowest priority.
under() {
	env LD_PRELOAD="$sanitizer $TALLY_BUILD/lib/libtally.so" TALLY_PRIORITY=best-effort \
		TALLY_NAME=victim "$tests/victim" "$@"
}

# stops OUTPUT: how often the rival's victim was stopped.
number() { sed -n "s/.* $1 \([0-9]*\).*/\1/p" "$scratch/rival"; }

start_daemon "$scratch/log"
# Streams, rounds, blocks, work, kind; at least so many stops.
while read -r streams rounds blocks work kind least; do
	want=$(alone "$streams" "$rounds" "$blocks" "$work" "$kind")
	total=0
	for seed in 1 2 3 4 5 6 7 8; do
		start_rival victim 300 600 $seed
		got=$(under "$streams" "$rounds" "$blocks" "$work" "$kind" 2>"$scratch/err") ||
			fail "$kind, $streams streams: exit status $?: $(cat "$scratch/err")"
		[ "$got" = "$want" ] || fail "$kind, $streams streams: $got, alone $want"
		[ ! -s "$scratch/err" ] || fail "said: $(cat "$scratch/err")"
		wait $rival || fail "the rival failed"
		total=$((total + $(number stops)))
		[ "$(number guarded)" -gt 0 ] || fail "nothing was guarded: $(cat "$scratch/rival")"
		[ $total -lt "$least" ] || break
	done
	echo "$kind, $streams streams: $total stops; $(tail -n 1 "$scratch/rival")"
	[ $total -ge "$least" ] || fail "stopped only $total times"
done <<-END
	1 60 40 20000 nonblocking 50
	4 60 40 10000 nonblocking 100
	16 40 24 5000 nonblocking 300
	3 60 24 10000 blocking 50
	2 60 24 10000 default 50
	3 30 24 10000 perthread 10
END

# Programs that give the device work in every way that there is, graphs among them, and check what comes of it.
while read -r graphs program parts; do
	start_rival victim 300 600 3
	# shellcheck disable=SC2086
	got=$(env LD_PRELOAD="$sanitizer $TALLY_BUILD/lib/libtally.so" TALLY_PRIORITY=best-effort TALLY_NAME=victim \
		TALLY_LEVEL=guard TALLY_GRAPHS=$graphs "$TALLY_BUILD/tests/cudart/$program" $parts 2>"$scratch/err") ||
		fail "$program, graphs $graphs: exit status $?: $(cat "$scratch/err")"
	[ "$got" = ok ] || fail "$program, graphs $graphs: $got"
	wait $rival || fail "the rival failed"
	[ "$graphs" = whole ] || [ "$(number guarded)" -gt 100 ] || fail "too little was guarded: $(cat "$scratch/rival")"
	echo "$program, graphs $graphs: $(tail -n 1 "$scratch/rival")"
done <<-END
	auto graphs_nvcc
	whole graphs_nvcc
	nodes graphs_nvcc
	auto doors_nvcc copies pools host_functions cooperative values events many_streams memory start_over
END

# Children: one that uses the device before its parent does, one that comes after; and a program that
# ends with work under way, stopped or not, ends.
start_rival victim 300 600 1
want=$(alone 3 40 24 10000 nonblocking)
got=$(under 3 40 24 10000 nonblocking fork 2>"$scratch/err") || fail "fork: $(cat "$scratch/err")"
[ "$got" = "$want" ] || fail "fork: $got, alone $want"
[ ! -s "$scratch/err" ] || fail "fork: said: $(cat "$scratch/err")"
wait $rival || fail "the rival failed"
for seed in 1 2 3; do
	start_rival victim 5000 300 $seed
	under 3 7 24 100000 nonblocking leave >"$scratch/out" 2>"$scratch/err" ||
		fail "leave: exit status $?: $(cat "$scratch/err")"
	grep -q ok "$scratch/out" || fail "leave: no output"
	wait $rival || fail "the rival failed"
done

# held: the victim is on the board, and the rival holds it.
held() { "$TALLY_BUILD/bin/tally" status --json | grep '"name": "victim"' | grep -q '"state": "held"'; }
joined() { "$TALLY_BUILD/bin/tally" status --json | grep '"name": "victim"' | grep -qv finished_ns_ago; }

# The rival is killed while it is active: nobody holds us up any more.
want=$(alone 2 40 24 20000)
start_rival victim ever 0 1
under 2 40 24 20000 >"$scratch/out" 2>"$scratch/err" &
victim=$!
await held || fail "the rival holds nobody: $(cat "$scratch/err")"
kill -9 $rival
wait $victim || fail "after the rival's death: $(cat "$scratch/err")"
[ "$(cat "$scratch/out")" = "$want" ] || fail "after the rival's death: $(cat "$scratch/out")"
[ ! -s "$scratch/err" ] || fail "said: $(cat "$scratch/err")"

# The victim is killed in the middle of being stopped: the others and the daemon go on.
start_rival victim 300 300 1
under 4 2000 24 20000 >"$scratch/out" 2>"$scratch/err" &
victim=$!
await joined || fail "the victim does not join: $(cat "$scratch/err")"
sleep 0.3
kill -9 $victim
wait $victim 2>/dev/null || true
wait $rival || fail "the rival does not go on"
"$TALLY_BUILD/bin/tally" status >"$scratch/status" || fail "the daemon does not go on"

# The daemon is killed while the victim is stopped, and comes back: one warning, and it is scheduled again.
want=$(alone 2 600 24 40000)
start_rival victim ever 0 1
under 2 600 24 40000 >"$scratch/out" 2>"$scratch/err" &
victim=$!
await held || fail "the rival holds nobody: $(cat "$scratch/err")"
kill -9 $daemon
wait $daemon 2>/dev/null || true
start_daemon "$scratch/log"
await joined || fail "does not join again"
wait $victim || fail "after the daemon's death: $(cat "$scratch/err")"
[ "$(cat "$scratch/out")" = "$want" ] || fail "after the daemon's death: $(cat "$scratch/out")"
[ "$(grep -c 'tallyd is gone' "$scratch/err")" = 1 ] || fail "warnings: $(cat "$scratch/err")"
kill -9 $rival 2>/dev/null || true

# Without a daemon: one warning, the same result.
kill -9 $daemon
daemon=
want=$(alone 2 20 24 1000)
[ "$(under 2 20 24 1000 2>"$scratch/err")" = "$want" ] || fail "without a daemon"
[ "$(wc -l <"$scratch/err")" = 1 ] || fail "without a daemon: $(cat "$scratch/err")"
