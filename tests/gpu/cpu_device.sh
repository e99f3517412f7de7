#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The steps of steps.py that need no GPU, on the CPU device.
set -euo pipefail
exec python3 -B "$(dirname "$0")/run.py" --build "$TALLY_BUILD" --device cpu
