#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rules of the house that a reader cannot see at a glance (docs/architecture.md): who may include
# whom, who may know LLVM, a vendor or the environment, and what every file looks like.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$TALLY_SOURCE}"
faults=$(mktemp)
trap 'rm -f "$faults"' EXIT

# Without git (an unpacked archive) everything but build folders is the tree.
files=$({ git ls-files -z 2>/dev/null || find . -name 'build*' -prune -o -type f -print0; } |
	tr '\0' '\n' | sed 's|^\./||' | while read -r f; do [ ! -f "$f" ] || echo "$f"; done)
ours() { grep -E "$1" <<<"$files" || true; }
fault() { sed "s|\$|: $1|" >>"$faults"; }

# includes.txt: FOLDER: what it may include, by prefix of path; the longest FOLDER that fits counts.
# A folder may always include its own files and base/.
ours '\.(c|h|def|cu|cuh)$' | xargs grep -nE '^[[:space:]]*#[[:space:]]*include "' /dev/null |
	awk -v table="$here/includes.txt" '
	BEGIN {
		while ((getline line < table) > 0) {
			if (line ~ /^#/ || line !~ /:/) continue
			split(line, half, ":"); allowed[half[1]] = half[2]
		}
	}
	{
		split($0, part, ":"); file = part[1]
		match($0, /"[^"]*"/); include = substr($0, RSTART + 1, RLENGTH - 2)
		folder = file; best = ""
		sub(/\/[^\/]*$/, "", folder)
		if (include !~ /\//) next
		for (f in allowed)
			if ((file == f || index(file, f "/") == 1) && length(f) > length(best)) best = f
		if (best == "") { print file ":" part[2] ": error: this folder has no line in tests/house/includes.txt"; next }
		if (index(include, folder "/") == 1 || index(include, "base/") == 1) next
		n = split(allowed[best], list, " "); good = 0
		for (k = 1; k <= n; k++) if (list[k] == "*" || index(include, list[k]) == 1) good = 1
		if (!good) print file ":" part[2] ": error: " best " may not include \"" include "\" (tests/house/includes.txt)"
	}' >>"$faults"

while IFS=$'\t' read -r in but text why; do
	[[ $in != \#* && -n $in ]] || continue
	ours "$in" | { [ "$but" = - ] && cat || grep -vE "$but" || true; } |
		xargs -r grep -nHIP -e "$text" /dev/null | cut -c1-160 | fault "error: $why" || true
done <"$here/forbidden.txt"

# What every file of ours looks like.
ours '(\.(c|h|def|cu|cuh|ll|sh|awk|cmake|S)|CMakeLists\.txt|^dev|^\.ci/run)$' | grep -vE '/corpus/|^tests/lower/[a-z]+\.ll$' |
	while read -r f; do
		head -2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f:1: error: no SPDX line"
	done >>"$faults"
ours '\.(c|h|def|cu|cuh|ll|sh|S)$' | xargs wc -l | awk '
	# Tests and tables may be longer than what has to be understood as a whole.
	function most(file) {
		return file ~ /\.ll$/ ? 900 : file !~ /\.[ch]$/ || file ~ /^(tests|bench)\// ? 800 : 500
	}
	$2 != "total" && $1 > most($2) {
		print $2 ":1: error: " $1 " lines are too many (" most($2) "): split it by what its parts do" }' >>"$faults"

[ ! -s "$faults" ] || { cat "$faults"; exit 1; }
