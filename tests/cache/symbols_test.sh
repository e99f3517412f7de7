#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cache goes into the preload library, which has to load where glibc is 2.31.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc -shared -o "$folder/libcache.so" -Wl,--whole-archive "$TALLY_BUILD/archive/libtally_cache.a" \
	-Wl,--no-whole-archive -Wl,--gc-sections
newest=$(objdump -T "$folder/libcache.so" | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n | tail -1)
[ "${newest#GLIBC_2.}" -le 31 ] || {
	echo "needs $newest:"
	objdump -T "$folder/libcache.so" | grep -E 'GLIBC_2\.(3[2-9]|[4-9][0-9])'
	exit 1
}
echo "newest glibc symbol: $newest"
