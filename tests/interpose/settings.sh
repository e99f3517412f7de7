# SPDX-License-Identifier: Apache-2.0
# Environment variables that make no sense: each is named once, on its own line, and the default used.
set -eu
tests=$TALLY_BUILD/tests/interpose
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock TALLY_CACHE_DIR=$scratch/cache LD_LIBRARY_PATH=$TALLY_BUILD/lib
. "$TALLY_SOURCE/tests/sanitizer.sh"

# program VARIABLE=VALUE...: its errors, but for the one that no daemon is here, are in $scratch/err.
program() {
	env LD_PRELOAD="$sanitizer $TALLY_BUILD/lib/libtally.so" TALLY_PRIORITY=high "$@" "$tests/bursts" \
		</dev/null 2>"$scratch/all" || { echo "$*: status $?: $(cat "$scratch/all")"; exit 1; }
	grep -v unscheduled "$scratch/all" >"$scratch/err" || true
}

bad="TALLY_SLO=0.9 TALLY_DEPTH=2x TALLY_AHEAD=65537 TALLY_BOUND_US=-1 TALLY_GUARD=maybe TALLY_LEVEL=none TALLY_COMPILE=later TALLY_GRAPHS=some
TALLY_OPAQUE=most TALLY_GRACE_US=soon TALLY_CPU_WORKERS=0 TALLY_CPU_DEVICES=two"
program $bad
for setting in $bad; do
	grep -qF "tally: ${setting%%=*} is \"${setting#*=}\", not " "$scratch/err" || { echo "nothing about $setting:"; cat "$scratch/err"; exit 1; }
done
[ "$(wc -l <"$scratch/err")" = "$(echo $bad | wc -w)" ] || { echo "more than was asked for:"; cat "$scratch/err"; exit 1; }

program TALLY_SLO=1.05 TALLY_DEPTH=2 TALLY_AHEAD=0 TALLY_BOUND_US=31.6 TALLY_GUARD=0 TALLY_LEVEL=gate TALLY_COMPILE=wait TALLY_GRAPHS=whole \
	TALLY_OPAQUE=all TALLY_GRACE_US=12.5 TALLY_CPU_WORKERS=2 TALLY_CPU_DEVICES=2
[ ! -s "$scratch/err" ] || { echo "on sound values:"; cat "$scratch/err"; exit 1; }
