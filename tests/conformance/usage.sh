# SPDX-License-Identifier: Apache-2.0
# What conformance does not understand is one line and status 1, before anything is compiled.
set -eu
refused() {
	local output
	if output=$("$TALLY_BUILD/bin/conformance" "$@" 2>&1); then echo "accepted: $*"; exit 1; fi
	[ "$(wc -l <<<"$output")" = 1 ] && grep -q '^conformance: error: ' <<<"$output" || { echo "$*: $output"; exit 1; }
}
refused --nonsense
refused --filter
refused --filter 'no case is called so'
refused --list --filter 'no case is called so'
refused --jobs many
refused --jobs 0
refused --live -1
refused --device tpu
refused extra
# A folder that is no build tree is not made one.
elsewhere=$(mktemp -d)
refused --build "$elsewhere" --filter vadd
[ -z "$(ls -A "$elsewhere")" ] || { echo "--build: something was written"; exit 1; }
rmdir "$elsewhere"
