# SPDX-License-Identifier: Apache-2.0
# For tests with a tallyd of their own: sourced, when $TALLY_SOCKET is set.

# await COMMAND...: until it succeeds, for as long as a busy machine may look elsewhere; fails then.
await() {
	local end=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

# start_daemon LOG: in the background, $daemon is its process; it serves when this returns.
start_daemon() {
	# Nobody else's pipe is kept open by it.
	"$TALLY_BUILD/bin/tallyd" --foreground --idle-timeout 0 2>>"$1" 3>&- &
	daemon=$!
	await daemon_answers || { echo "FAILED: tallyd does not start: $(cat "$1")" >&2; exit 1; }
}
daemon_answers() { "$TALLY_BUILD/bin/tally" status --json 2>/dev/null | grep -q '"daemon": {"running": true'; }

# start_rival NAME ACTIVE_US QUIET_US SEED: tests/interpose/rival.c in the background, $rival is its process and its output
# in $scratch/rival; it looks for NAME when this returns.
start_rival() {
	"$TALLY_BUILD/tests/interpose/rival" "$@" >"$scratch/rival" 2>&1 3>&- &
	rival=$!
	await grep -q looking "$scratch/rival" || { echo "FAILED: the rival does not look: $(cat "$scratch/rival")" >&2; exit 1; }
}
