# SPDX-License-Identifier: Apache-2.0
# The tables of cases through the CPU device's driver: every one compiles, and gives what is expected.
set -euo pipefail
export TALLY_TEST_DRIVER=$TALLY_BUILD/lib/libcuda.so.1
for name in integer float edges narrow wide matrix matrix_more; do
	"$TALLY_BUILD/tests/ptx_${name}_device" >"${TMPDIR:-/tmp}/ptx_device.$$" 2>&1 || status=1
	cat "${TMPDIR:-/tmp}/ptx_device.$$"
	! grep -q "not taken: " "${TMPDIR:-/tmp}/ptx_device.$$" || status=1
	rm -f "${TMPDIR:-/tmp}/ptx_device.$$"
done
exit "${status:-0}"
