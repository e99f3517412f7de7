#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/compatibility.md is what table.py makes of the steps and of the last results.
set -euo pipefail
exec python3 -B "$(dirname "$0")/table.py" --check
