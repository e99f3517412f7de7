#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a CUDA program of this folder on the CPU device, `run_program.sh PROGRAM tally` under Tally: it has
# to print "ok" and nothing else on stdout, and no line twice on stderr.
set -euo pipefail
program=$TALLY_BUILD/tests/cudart/$1
export TALLY_CACHE_DIR=$TALLY_BUILD/tests/cudart-cache
export LD_LIBRARY_PATH=$TALLY_BUILD/lib
. "$TALLY_SOURCE/tests/sanitizer.sh"
private=$(mktemp -d)
errors=$private/errors
run=("$program")
if [ "${2:-}" = tally ]; then
	export TALLY_SOCKET=$private/tallyd.sock
	run=("$TALLY_BUILD/bin/tally" run --device cpu --priority best-effort -- "$program")
fi
finish() {
	local pid
	pid=$("$TALLY_BUILD/bin/tally" status --json 2>/dev/null | sed -n 's/.*"daemon": {"running": true.*"pid": \([0-9]*\).*/\1/p') || true
	[ "${TALLY_SOCKET:-}" != "$private/tallyd.sock" ] || [ -z "$pid" ] || kill "$pid"
	rm -rf "$private"
}
trap finish EXIT
output=$(LD_PRELOAD=$sanitizer "${run[@]}" 2>"$errors") || { echo "exit status $?"; cat "$errors"; exit 1; }
cat "$errors"
[ "$output" = ok ] || { echo "stdout: $output"; exit 1; }
[ -z "$(sort "$errors" | uniq -d)" ] || { echo "the same line twice on stderr"; exit 1; }
