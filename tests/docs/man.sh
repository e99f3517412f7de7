#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The man pages, the programs' --help and what the programs read name the same options, and `man` has nothing to complain about.
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

# table FILE COMMAND: the table of options in FILE and the --help of COMMAND name the same. Every table has --help,
# -h and --version without a row (base/options.h); the comparison is of what each option's own line begins with.
table() {
	local in_code in_help only
	in_code=$(grep -oE '\b(TALLY_OPTION_[A-Z]+|FLAG|TEXT)\("[a-z-]+"(, '"'.'"')?' "$TALLY_SOURCE/$1" |
		sed -E "s/^[A-Z_]*\(\"([a-z-]*)\"(, '(.)')?/--\1 -\3/; s/ -\$//" | tr ' ' '\n' | sort -u) || true
	[ -n "$in_code" ] || [ "$1" = cli/cache.c ] || complain "$1 has no table of options that this test can read"
	in_help=$("$bin"/$2 --help | grep -oE -- '^ {2,6}(-., )?--?[a-z-]+' | grep -oE -- '--?[A-Za-z][a-z-]*' |
		grep -vxE -- '--help|--version' | sort -u) || true
	only=$(comm -23 <(echo "$in_code") <(echo "$in_help") | tr '\n' ' ')
	[ -z "$only" ] || complain "$2 --help does not name $only(of $1)"
	only=$(comm -13 <(echo "$in_code") <(echo "$in_help") | tr '\n' ' ')
	[ -z "$only" ] || complain "$2 --help names $only, which $1 does not read"
}

for command in run status top trace profile cache; do table cli/$command.c "tally $command"; done
table cli/tallyd.c tallyd
table cli/lower_options.c tally-lower
table conformance/main.c conformance
# And there is no other table.
only=$(cd "$TALLY_SOURCE" && grep -l 'tally_options_read(' -r cli conformance bench demo profiler sched backends frontend |
	grep -vxE 'cli/(run|status|top|trace|profile|cache|tallyd|lower_options)\.c|conformance/main\.c' || true)
[ -z "$only" ] || complain "$only: a table of options that nothing compares with its --help"

for file in "$pages"/*.[1-9]; do
	warnings=$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings=w -E UTF-8 -l "$file" 2>&1 >/dev/null) || complain "man cannot show $file"
	[ -z "$warnings" ] || complain "$warnings"
done

# The conformance runner's reference is the manual.
only=$(comm -23 <("$bin/conformance" --help | options) <(tr '`' ' ' <"$TALLY_SOURCE/docs/manual.md" | options) | tr '\n' ' ')
[ -z "$only" ] || complain "manual.md does not describe $only(of conformance)"
exit $failed
