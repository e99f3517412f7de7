#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Our libcudart.so.13 exports exactly what the toolkit's does, with the same version node and soname.
set -euo pipefail
ours=$TALLY_BUILD/lib/libcudart.so.13
toolkit=$(dirname "$(dirname "$(readlink -f "$TALLY_NVCC")")")
for folder in lib64 lib targets/x86_64-linux/lib; do
	theirs=$toolkit/$folder/libcudart.so.13
	[ ! -e "$theirs" ] || break
done
[ -e "$theirs" ] || { echo "no libcudart.so.13 in $toolkit to compare with"; exit 1; }

exports() { nm -D --defined-only "$1" | awk '$2 == "T" || $2 == "W" { print $3 }' | sort -u; }
exports "$theirs" >"$TALLY_BUILD/tests/cudart-theirs.txt"
exports "$ours" >"$TALLY_BUILD/tests/cudart-ours.txt"
count=$(wc -l <"$TALLY_BUILD/tests/cudart-theirs.txt")
[ "$count" -gt 400 ] || { echo "only $count names in $theirs"; exit 1; }
diff "$TALLY_BUILD/tests/cudart-theirs.txt" "$TALLY_BUILD/tests/cudart-ours.txt" ||
	{ echo "exports differ (<: toolkit only, >: ours only)"; exit 1; }

soname() { readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'; }
[ "$(soname "$ours")" = libcudart.so.13 ] || { echo "soname is $(soname "$ours")"; exit 1; }
[ "$(readlink -f "$TALLY_BUILD/lib/libcudart.so")" = "$(readlink -f "$ours")" ]

# It reaches the driver through dlopen alone, so that a preload can come between.
! readelf -d "$ours" | grep -q 'NEEDED.*libcuda'
! nm -D --undefined-only "$ours" | grep -E ' cu[A-Z]'
