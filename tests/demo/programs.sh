#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo's programs: bad options get one line and status 1; nothing of Tally is in them.
set -euo pipefail
demo=$TALLY_BUILD/demo
export LD_LIBRARY_PATH=$TALLY_BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
. "$TALLY_SOURCE/tests/sanitizer.sh"
refused() {
	local output
	if output=$(LD_PRELOAD=$sanitizer "$@" 2>&1); then echo "accepted: $*"; exit 1; fi
	[ "$(wc -l <<<"$output")" = 1 ] && grep -q '^error: ' <<<"$output" || { echo "$*: $output"; exit 1; }
}
refused "$demo/server" --nonsense 1
refused "$demo/server" --rate
refused "$demo/server" --rate fast
refused "$demo/server" --width 0
refused "$demo/trainer" --steps 1
refused "$demo/trainer" --size 100
LD_PRELOAD=$sanitizer "$demo/server" --help | grep -q -- --rate
LD_PRELOAD=$sanitizer "$demo/trainer" --help | grep -q -- --steps
if grep -qi tally "$TALLY_SOURCE"/demo/*.cu "$TALLY_SOURCE"/demo/common.h; then echo "found"; exit 1; fi
if strings "$demo/server" "$demo/trainer" | grep -qi tally; then echo "found"; exit 1; fi
