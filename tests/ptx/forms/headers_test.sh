# SPDX-License-Identifier: Apache-2.0
# Each 7th inline assembly statement of the toolkit's own headers (EVERY=1: all) goes the way of
# forms.txt: cuda::ptx and the rest of libcu++, CUB, cooperative groups, narrow floats, mma.h.
set -euo pipefail
if [ ! -x "${TALLY_NVCC:-}" ] || [ ! -x "${TALLY_PTXAS:-}" ]; then
	echo "skipped: no CUDA toolkit"
	exit 0
fi
here="$TALLY_SOURCE"/tests/ptx/forms
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for arch in ${ARCHES:-sm_90a sm_100a}; do
	# shellcheck disable=SC2086
	python3 "$here"/headers.py "$TALLY_NVCC" "$arch" ${HEADERS:-cuda/ptx cuda/atomic cuda/barrier \
		cuda/pipeline cooperative_groups.h cooperative_groups/reduce.h \
		cooperative_groups/memcpy_async.h cuda_awbarrier.h cuda_pipeline.h cuda_fp16.h cuda_bf16.h \
		cuda_fp8.h cuda_fp6.h cuda_fp4.h mma.h cub/cub.cuh} >"$work"/list
	if [ -z "${HEADERS:-}" ] && [ "$(wc -l <"$work"/list)" -lt 2000 ]; then
		echo "headers.py found too little in the headers"
		status=1
	fi
	"$TALLY_BUILD"/tests/ptx_forms "$work"/list "$arch" "$TALLY_PTXAS" \
		"$TALLY_BUILD"/bin/tally-lower "$work" "${EVERY:-7}" || status=1
done
exit $status
