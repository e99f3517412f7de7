# SPDX-License-Identifier: Apache-2.0
# A program dies with work that cannot be stopped in the queue: nothing of it stays on the board.
set -eu
scratch=$(mktemp -d)
daemon= victim=
trap 'kill -9 $daemon $victim 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache TALLY_LOWER=$TALLY_BUILD/bin/tally-lower
export LD_LIBRARY_PATH=$TALLY_BUILD/lib TALLY_PRIORITY=best-effort TALLY_CPU_WORKERS=2
. "$TALLY_SOURCE/tests/daemon.sh"
start_daemon "$scratch/log"

TALLY_NAME=killed "$TALLY_BUILD/tests/depth_test" endless >"$scratch/out" &
victim=$!
await grep -q running "$scratch/out" || { echo "FAILED: it never ran" >&2; exit 1; }
kill -9 $victim
wait $victim || true
victim=
off_board() { ! "$TALLY_BUILD/bin/tally" status --json | grep '"name": "killed"' | grep -qv finished_ns_ago; }
await off_board || { echo "FAILED: it is still on the board: $("$TALLY_BUILD/bin/tally" status --json)" >&2; exit 1; }
