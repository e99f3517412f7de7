# SPDX-License-Identifier: Apache-2.0
# Runs images_test with libtally.so preloaded and a compiler that puts a line in front of what it is given.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/lower" <<'LOWER'
#!/bin/sh
echo "// transformed"
cat "$1"
LOWER
chmod +x "$scratch/lower"
export TALLY_CACHE_DIR=$scratch/cache TALLY_LOWER=$scratch/lower TALLY_PRIORITY=best-effort
export TALLY_SOCKET=$scratch/none LD_LIBRARY_PATH=$TALLY_BUILD/tests/interpose
env LD_PRELOAD="$TALLY_BUILD/lib/libtally.so" "$TALLY_BUILD/tests/interpose/images_test"
