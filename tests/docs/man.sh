#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The man pages and the programs' --help name the same options, and `man` has nothing to complain about.
set -euo pipefail
bin=$TALLY_BUILD/bin pages=$TALLY_SOURCE/docs/man failed=0

complain() {
	echo "FAILED: $*" >&2
	failed=1
}

# Long options and one-letter ones, as they stand at a word's beginning.
options() {
	grep -oE -- '(^|[][ |"(,])(--[a-z][a-z-]+|-[A-Za-z])\b' | grep -oE -- '--?[A-Za-z][a-z-]*' | sort -u
}

# page FILE COMMAND...: each COMMAND (a string) is asked for its --help; together they have what FILE has.
page() {
	local file=$pages/$1 only
	shift
	[ -f "$file" ] || { complain "$file is missing"; return; }
	local command help=
	for command in "$@"; do help+=$'\n'$($bin/$command --help); done
	# Without the examples and the notes: there are other programs' options in them.
	local described
	described=$(awk '/^\.SH/ { skip = $2 == "EXAMPLES" || $2 == "NOTES" } !skip' "$file" |
		sed -e 's/\\f[A-Z]//g; s/\\-/-/g; s/nvcc -[a-z]*/nvcc/')
	only=$(comm -23 <(options <<<"$help") <(options <<<"$described") | tr '\n' ' ')
	[ -z "$only" ] || complain "${file##*/} does not describe $only(of: $*)"
	only=$(comm -13 <(options <<<"$help") <(options <<<"$described") | tr '\n' ' ')
	[ -z "$only" ] || complain "${file##*/} describes $only, which --help does not name (of: $*)"
}

page tally.1 tally "tally run" "tally status" "tally top" "tally trace" "tally profile" "tally cache"
page tallyd.8 tallyd
page tally-lower.1 tally-lower

for file in "$pages"/*.[1-9]; do
	warnings=$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings=w -E UTF-8 -l "$file" 2>&1 >/dev/null) || complain "man cannot show $file"
	[ -z "$warnings" ] || complain "$warnings"
done

# The conformance runner's reference is the manual.
only=$(comm -23 <("$bin/conformance" --help | options) <(tr '`' ' ' <"$TALLY_SOURCE/docs/manual.md" | options) | tr '\n' ' ')
[ -z "$only" ] || complain "manual.md does not describe $only(of conformance)"
exit $failed
