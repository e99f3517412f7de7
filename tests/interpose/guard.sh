# SPDX-License-Identifier: Apache-2.0
# guard.sh GROUP[:PRIORITY] [PROGRAM]: runs one group of guard_test (or of the program that is named) with a tallyd of
# its own.
set -eu
scratch=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -9 $daemon 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache
export LD_LIBRARY_PATH=$TALLY_BUILD/lib TALLY_PRIORITY=${1#*:} TALLY_CPU_WORKERS=2
# The protocol is tested with kernels that are always stoppable, whatever the machine's speed.
[ "${1%:*}" != best-effort ] || export TALLY_LEVEL=guard TALLY_GUARD=1
. "$TALLY_SOURCE/tests/daemon.sh"
start_daemon "$scratch/log"
TEST_DAEMON=$daemon "$TALLY_BUILD/tests/${2:-guard_test}" "${1%:*}"
