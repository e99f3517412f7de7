#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The manual's table of environment variables is complete (every getenv() of what ships) and true (each is read).
set -euo pipefail
cd "$TALLY_SOURCE"
failed=0
shipped=(base ir_passes frontend cache sched profiler backends runtimes cli conformance)

described=$(sed -n '/^## Environment/,/^## /p' docs/manual.md | sed -n 's/^| \(`[^|]*\) |.*/\1/p' | grep -oE '[A-Z][A-Z_]+' | sort -u)
read_names=$(grep -rhoE --include='*.[ch]' 'getenv\("[A-Z_]+"\)' "${shipped[@]}" | grep -oE '[A-Z][A-Z_]+' | sort -u)
[ -n "$described" ] && [ -n "$read_names" ] || { echo "FAILED: found no names: this test does not see them" >&2; exit 1; }

for name in $read_names; do
	grep -qxF "$name" <<<"$described" || { echo "FAILED: docs/manual.md does not describe $name" >&2; failed=1; }
done
for name in $described; do
	grep -rqF --include='*.[ch]' "\"$name\"" "${shipped[@]}" ||
		{ echo "FAILED: docs/manual.md describes $name, which nothing reads" >&2; failed=1; }
done
# getenv() of a name that is not written there would escape this test: these are known.
others=$(grep -rlE --include='*.[ch]' 'getenv\([^")]' "${shipped[@]}" | sort | tr '\n' ' ')
[ "$others" = "backends/cuda_toolkit.c cli/run.c " ] ||
	{ echo "FAILED: getenv() of a computed name in: $others" >&2; failed=1; }
exit $failed
