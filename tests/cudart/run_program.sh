#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a CUDA program of this folder on the CPU device: it has to print "ok" and nothing else on stdout,
# and each unsupported function it uses may be named once.
set -euo pipefail
program=$TALLY_BUILD/tests/cudart/$1
export TALLY_CACHE_DIR=$TALLY_BUILD/tests/cudart-cache
export LD_LIBRARY_PATH=$TALLY_BUILD/lib
# A library with sanitizers wants their runtime first in the process.
sanitizer=$(ldd "$TALLY_BUILD/lib/libcudart.so.13" | sed -n 's/.*=> \(.*lib[at]san.*\) (.*/\1/p')
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
output=$(LD_PRELOAD=$sanitizer "$program" 2>"$errors") || { echo "exit status $?"; cat "$errors"; exit 1; }
cat "$errors"
[ "$output" = ok ] || { echo "stdout: $output"; exit 1; }
[ -z "$(sort "$errors" | uniq -d)" ] || { echo "the same line twice on stderr"; exit 1; }
