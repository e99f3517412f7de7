#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what a machine with a GPU needs of the build, stripped, into one file that unpack.sh there puts back:
#   bench/gpu/pack.sh [FILE]     default build/carry/tally.tar.xz; prints its size
# For machines that cannot build: no LLVM, no CMake. Any x86-64 Linux with glibc 2.36 or newer will do.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${TALLY_BUILD:-$PWD/build}
file=${1:-$build/carry/tally.tar.xz}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

cd "$build"
parts=(bin/tally bin/tallyd bin/tally-lower bin/conformance lib/libtally.so lib/libcuda.so.1 lib/libcudart.so.13
	demo/server demo/trainer)
for part in "${parts[@]}"; do
	[ -e "$part" ] || { echo "pack: error: $build/$part is missing: ./dev build makes it" >&2; exit 1; }
done
# What the GPU's own benches and tests are, and the kernels of the conformance suite.
mapfile -t more < <(find gpu conformance -type f \( -perm -u+x -o -name '*.ptx' -o -name '*.bc' -o -name '*.so' \) ! -name '*.o' ! -path '*/CMakeFiles/*' 2>/dev/null | sort)
tar -c "${parts[@]}" "${more[@]}" | tar -x -C "$stage"
find "$stage" -type f -perm -u+x -exec strip --strip-unneeded {} + 2>/dev/null || true
mkdir -p "$(dirname "$file")"
tar -c -C "$stage" --owner=0 --group=0 . | xz -T0 -4 >"$file.new"
mv "$file.new" "$file"
printf '%s: %s, %d files\n' "$file" "$(du -h "$file" | cut -f1)" "$(find "$stage" -type f | wc -l)"
