#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every function of cuda.h through which work comes to a stream is hooked, or doors.txt says why it need not be.
set -euo pipefail
declarations=$TALLY_BUILD/backends/cpu/driver/declarations.i # cuda.h, all versions, preprocessed
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk 'BEGIN { RS = ";" }
match($0, /CUresult[ \t\n]+cu[A-Z][A-Za-z0-9_]* *\(/) && !/typedef/ {
	name = substr($0, RSTART, RLENGTH)
	rest = substr($0, RSTART + RLENGTH)
	gsub(/CUresult[ \t\n]+| *\(/, "", name)
	# A stream that is handed in, not one that is handed out.
	if (rest ~ /CUstream[ \n]+[a-zA-Z]/ || name ~ /^cu(Memcpy|Memset|Launch|Graph|CtxRecord|CtxWait|GreenCtxRecord|GreenCtxWait)/)
		print name
}' "$declarations" | sort -u >"$scratch/doors"
nm -D --defined-only "$TALLY_BUILD/lib/libtally.so" | awk '$3 ~ /^cu/ { print $3 }' | sort -u >"$scratch/hooked"
[ "$(wc -l <"$scratch/doors")" -gt 200 ] || { echo "found only $(wc -l <"$scratch/doors") doors in cuda.h"; exit 1; }
failed=0
comm -23 "$scratch/doors" "$scratch/hooked" >"$scratch/rest"
while IFS=$'\t' read -r expression reason; do
	case $expression in '' | '#'*) continue ;; esac
	[ -n "$reason" ] || { echo "doors.txt: no reason for $expression"; failed=1; }
	grep -qxP "$expression" "$scratch/rest" || { echo "doors.txt: nothing unhooked fits $expression"; failed=1; }
	grep -vxP "$expression" "$scratch/rest" >"$scratch/next" || true
	mv "$scratch/next" "$scratch/rest"
done <"$TALLY_SOURCE/tests/interpose/doors.txt"
if [ -s "$scratch/rest" ]; then
	echo "neither hooked (backends/cuda/interpose/hooks.def) nor in tests/interpose/doors.txt:"
	cat "$scratch/rest"
	failed=1
fi
exit $failed
