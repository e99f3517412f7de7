# SPDX-License-Identifier: Apache-2.0
# levels.sh PROGRAM: runs it with a tallyd of its own; what its kernels run as is Tally's choice.
set -eu
scratch=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -9 $daemon 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache TALLY_LOWER=$TALLY_BUILD/bin/tally-lower
export LD_LIBRARY_PATH=$TALLY_BUILD/lib TALLY_PRIORITY=best-effort TALLY_CPU_WORKERS=2
. "$TALLY_SOURCE/tests/daemon.sh"
start_daemon "$scratch/log"
"$TALLY_BUILD/tests/$1"
