#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts down works by itself: an unmodified CUDA program runs on the CPU device from it,
# compiled and guarded by the installed compiler.
set -euo pipefail
scratch=$(mktemp -d)
trap 'stop_daemon; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/socket"
export TALLY_SOCKET=$scratch/socket/tallyd.sock TALLY_CACHE_DIR=$scratch/cache
unset LD_LIBRARY_PATH LD_PRELOAD TALLY_LOWER
prefix=$scratch/prefix

fail() {
	echo "FAILED: $*" >&2
	exit 1
}
status() { "$prefix/bin/tally" status --json; }
stop_daemon() {
	local pid
	pid=$(status 2>/dev/null | sed -n 's/.*"daemon": {"running": true.*"pid": \([0-9]*\).*/\1/p')
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
}

cmake --install "$TALLY_BUILD" --prefix "$prefix" >"$scratch/log" || fail "cmake --install: $(tail -1 "$scratch/log")"
for file in bin/tally bin/tallyd bin/tally-lower lib/tally/libtally.so lib/tally/libcuda.so.1 lib/tally/libcudart.so.13 \
	share/man/man1/tally.1 share/man/man1/tally-lower.1 share/man/man7/libtally.7 share/man/man8/tallyd.8; do
	[ -s "$prefix/$file" ] || fail "$file is not installed"
done
# Nothing may point back into the build tree.
for file in bin/tally bin/tallyd bin/tally-lower lib/tally/libtally.so lib/tally/libcuda.so.1 lib/tally/libcudart.so.13; do
	path=$(readelf -d "$prefix/$file" | sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/\2/p')
	[ -z "$path" ] || fail "$file looks for libraries in $path"
done

TALLY_LEVEL=guard "$prefix/bin/tally" run --device cpu --priority best-effort --name installed -- \
	"$TALLY_BUILD/demo/trainer" --size 64 --steps 4 >"$scratch/out" 2>"$scratch/err" || fail "trainer: $(cat "$scratch/err")"
grep -q 'checksum' "$scratch/out" || fail "the trainer said: $(cat "$scratch/out")"
[ ! -s "$scratch/err" ] || fail "on stderr: $(cat "$scratch/err")"
for _ in $(seq 100); do
	status | grep -q '"name": "installed".*"finished_ns_ago"' && break
	sleep 0.05
done
guarded=$(status | sed -n 's/.*"name": "installed".*"guarded": \([0-9]*\),.*/\1/p')
[ "${guarded:-0}" -ge 20 ] || fail "of the trainer's launches ${guarded:-0} were guarded"
