# SPDX-License-Identifier: Apache-2.0
# What nvcc makes of the files in cuda/ is lifted for every architecture, and keeps the contract.
# Kernels of vendor.cu, and only they, are locked.
set -euo pipefail
if [ -z "${TALLY_NVCC:-}" ] || [ ! -x "$TALLY_NVCC" ]; then
	echo "skipped: no nvcc"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in "$TALLY_SOURCE"/tests/ptx/cuda/*.cu; do
	name=$(basename "$source" .cu)
	for arch in ${ARCHES:-75 80 90 100}; do
		"$TALLY_NVCC" -O3 -std=c++17 -arch=compute_$arch -lineinfo -ptx "$source" -o "$work/$name.ptx" \
			2>"$work/log" || { cat "$work/log"; exit 1; }
		"$TALLY_BUILD"/tests/ptx_lift_tool "$work/$name.ptx" >"$work/$name.ll"
		locked=$(grep -c '"tally.kernel".*"tally.locked"' "$work/$name.ll" || true)
		if [ "$name" = vendor ] && [ "$locked" = 0 ]; then
			echo "$name for sm_$arch: no kernel is locked"
			exit 1
		fi
		if [ "$name" != vendor ] && [ "$locked" != 0 ]; then
			echo "$name for sm_$arch: locked:"
			grep '"tally.locked"' "$work/$name.ll"
			exit 1
		fi
	done
done
