#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every program of figures has a row in README.md and in the manual; every file of results has one that says what made it.
set -euo pipefail
cd "$TALLY_SOURCE"
failed=0 count=0

for name in $(grep -oP 'tally_bench\(\K\w+' bench/CMakeLists.txt) $(ls bench/*.sh.in | sed 's,.*/,,; s,\..*,,'); do
	count=$((count + 1))
	for page in README.md docs/manual.md; do
		if ! grep -q "^| [^|]*\`$name\`" "$page"; then
			echo "FAILED: $page: no row for \`./dev bench $name\`" >&2
			failed=1
		fi
	done
done
[ "$count" -gt 8 ] || { echo "FAILED: only $count programs found: this test does not see them" >&2; exit 1; }

# Every file of results has a row that says what made it, and every row its file.
for table in bench/results/*/README.md; do
	folder=$(dirname "$table")
	rows=$(sed -n 's/^| \(`[^|]*\) |.*/\1/p' "$table" | grep -o '`[^`]*`' | tr -d '`' | sort)
	files=$(git ls-files "$folder" 2>/dev/null || true)
	[ -n "$files" ] || files=$(ls -d "$folder"/*) # not a checkout
	files=$(sed 's,.*/,,' <<<"$files" | grep -vx README.md | sort)
	if ! diff <(echo "$files") <(echo "$rows") >&2; then
		echo "FAILED: $table: its rows (>) are not the files of its folder (<)" >&2
		failed=1
	fi
done
exit $failed
