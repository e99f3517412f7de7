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
refused --device none --target none
refused --target ''
# One line for a target that nobody knows, whatever the number of kernels, and before anything is compiled.
refused --target sm_42
refused --target sm_80,sm_42 --filter vadd
# What would be written at the end is looked at in the beginning.
refused_file() {
	local output
	if output=$("$TALLY_BUILD/bin/conformance" --filter vadd "$@" 2>&1); then echo "accepted: $*"; exit 1; fi
	[ "$(wc -l <<<"$output")" = 1 ] && grep -q 'error: cannot write' <<<"$output" || { echo "$*: $output"; exit 1; }
}
refused_file --junit /nowhere/results.xml
refused_file --junit ''
refused_file --table "$TALLY_BUILD"
for option in --help --version --list; do
	if "$TALLY_BUILD/bin/conformance" $option >/dev/full 2>/dev/null; then echo "$option: a full disk was not noticed"; exit 1; fi
done
# A folder that is no build tree is not made one.
elsewhere=$(mktemp -d)
refused --build "$elsewhere" --filter vadd
[ -z "$(ls -A "$elsewhere")" ] || { echo "--build: something was written"; exit 1; }
rmdir "$elsewhere"
