# SPDX-License-Identifier: Apache-2.0
# tally trace of the demo's programs on the CPU device (trace_programs.py).
. "$(dirname "$0")/lib.sh"

export TALLY_CACHE_DIR=${TALLY_CACHE_DIR:-$TALLY_BUILD/test-cache}
# Compiled before anything is measured by the clock.
run 0 "$bin/tally" run --device cpu --name warm -- "$TALLY_BUILD/demo/trainer" --size 128 --steps 2
run 0 python3 "$(dirname "$0")/trace_programs.py" "$work"
exit 0
