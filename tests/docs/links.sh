#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every link of README.md and docs/*.md to a file of the tree, and to a heading, leads somewhere.
set -euo pipefail
cd "$TALLY_SOURCE"
failed=0 count=0

# anchors FILE: of its headings, as GitHub makes them
anchors() {
	sed -n 's/^##* *//p' "$1" | tr 'A-Z' 'a-z' | sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

for file in README.md docs/*.md; do
	while read -r link; do
		count=$((count + 1))
		path=${link%%#*} anchor=
		case $link in
		http://* | https://* | mailto:*) continue ;;
		*'#'*) anchor=${link#*#} ;;
		esac
		target=$file
		[ -z "$path" ] || target=$(dirname "$file")/$path
		if [ ! -e "$target" ]; then
			echo "FAILED: $file: ($link): no such file" >&2
			failed=1
		elif [ -n "$anchor" ] && ! anchors "$target" | grep -qxF -- "$anchor"; then
			echo "FAILED: $file: ($link): no such heading in $target" >&2
			failed=1
		fi
	done < <(sed '/^    /d' "$file" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
done
[ "$count" -gt 10 ] || { echo "FAILED: only $count links found: this test does not see them" >&2; exit 1; }
exit $failed
