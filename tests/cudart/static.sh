#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's static runtime asks the driver to prove whose it is, so it cannot run on the CPU device: the
# program has to fail by itself, and the user has to read what to do.
set -euo pipefail
export TALLY_CACHE_DIR=$TALLY_BUILD/tests/cudart-cache LD_LIBRARY_PATH=$TALLY_BUILD/lib
. "$TALLY_SOURCE/tests/sanitizer.sh"
if output=$(LD_PRELOAD=$sanitizer "$TALLY_BUILD/tests/cudart/static" 2>&1); then
	echo "it ran: $output"
	exit 1
fi
echo "$output"
grep -q -- '-cudart shared' <<<"$output"
