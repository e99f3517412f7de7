#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one run of a real program measured is what the next one begins with: its kernels are chosen for from
# their first launch on.
set -euo pipefail
scratch=$(mktemp -d)
bin=$TALLY_BUILD/bin daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/socket"
export TALLY_SOCKET=$scratch/socket/tallyd.sock TALLY_CACHE_DIR=$scratch/cache
export TALLY_LOWER=$bin/tally-lower
. "$TALLY_SOURCE/tests/sanitizer.sh"
unset LD_PRELOAD TALLY_PRIORITY TALLY_NAME
fail() { echo "FAILED: $*" >&2; exit 1; }

. "$TALLY_SOURCE/tests/daemon.sh"
start_daemon "$scratch/log"

trainer() {
	LD_PRELOAD=$sanitizer "$bin/tally" run --device cpu --priority best-effort --name "$1" -- "$TALLY_BUILD/demo/trainer" --size 64 \
		--steps "$2" >"$scratch/out" 2>"$scratch/err" || fail "trainer: $(cat "$scratch/err")"
	[ ! -s "$scratch/err" ] || fail "on stderr: $(cat "$scratch/err")"
}

# said NAME: of the program of that name, for each kernel "symbol launches samples reason", sorted.
said() {
	"$bin/tally" profile --program "$1" --json | python3 -c '
import json, sys
for o in json.load(sys.stdin)["devices"]:
    for k in o["kernels"]:
        samples = sum(l["samples"] for l in k["levels"].values())
        print(k["symbol"], k["launches"], samples, k["reason"])' | sort
}

trainer first 40
first=$(said first)
[ "$(wc -l <<<"$first")" -ge 3 ] || fail "the first run has too few kernels: $first"
samples=$(awk '{ n += $3 } END { print n }' <<<"$first")
[ "$samples" -ge 20 ] || fail "the first run timed $samples launches: $first"

# Kept within a second or two, then offered to whoever comes.
kept() {
	"$bin/tally" profile --json | python3 -c '
import json, sys
print(sum(k["launches"] for o in json.load(sys.stdin)["devices"] for k in o["kernels"]))'
}
launches=$(awk '{ n += $2 } END { print n }' <<<"$first")
all_kept() { [ "$(kept)" = "$launches" ]; }
await all_kept || fail "$(kept) launches are kept, not $launches"
# Two launches of a kernel are too few to find anything out.
# known NAME: of how many kernels that program knew enough.
known() { said "$1" | grep -cvE ' (none|unmeasured|exploring|compiling)$' || true; }
all=$(wc -l <<<"$first")
for try in $(seq 10); do
	trainer second 2
	[ "$(known second)" != "$all" ] || break
done
[ "$(known second)" = "$all" ] || fail "the second run still had to find out: $(said second)"

# Another compiler makes other code: what was measured of the old one's is not used.
for try in $(seq 10); do
	cp "$bin/tally-lower" "$scratch/lower-$try"
	export TALLY_LOWER=$scratch/lower-$try
	trainer third 2
	[ "$(known third)" = "$all" ] || exit 0
	rm "$TALLY_LOWER"
done
fail "another compiler's measurements were used: $(said third)"
