#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs bench_interpose (or the program named: bench_$1) on the
# CPU device with a tallyd of its own.
set -euo pipefail
scratch=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/s"
export TALLY_SOCKET=$scratch/s/d.sock LD_LIBRARY_PATH=$TALLY_BUILD/lib
export TALLY_LOWER=$TALLY_BUILD/bin/tally-lower TALLY_CACHE_DIR=$scratch/cache
export BENCH_PRELOAD=$TALLY_BUILD/lib/libtally.so
"$TALLY_BUILD/bin/tallyd" --foreground --idle-timeout 0 2>"$scratch/log" &
daemon=$!
for _ in $(seq 200); do [ -S "$TALLY_SOCKET" ] && break; sleep 0.02; done
"$TALLY_BUILD/bench/bench_${1:-interpose}"
