# SPDX-License-Identifier: Apache-2.0
# docs/ptx-coverage.md is what the instruction table says now.
set -euo pipefail
if ! diff -u "$TALLY_SOURCE/docs/ptx-coverage.md" <("$TALLY_BUILD/tests/ptx_coverage"); then
	echo "docs/ptx-coverage.md is stale: run ninja ptx_coverage_page"
	exit 1
fi
