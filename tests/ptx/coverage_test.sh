# SPDX-License-Identifier: Apache-2.0
# docs/ptx-coverage.md is what the instruction table and the tests say now; with a file's name as the
# argument the page is written there instead.
set -euo pipefail
cd "$TALLY_SOURCE"
page() {
	"$TALLY_BUILD/tests/ptx_coverage" cpu tests/ptx/{integer,float,edges,memory,narrow,wide}_test.c conformance/kernels/*.cu \
		h200 bench/results/h200/instructions.txt
}
if [ -n "${1:-}" ]; then
	page >"$TALLY_BUILD/ptx-coverage.md"
	mv "$TALLY_BUILD/ptx-coverage.md" "$1"
elif ! diff -u docs/ptx-coverage.md <(page); then
	echo "docs/ptx-coverage.md is stale: run ninja ptx_coverage_page"
	exit 1
fi
