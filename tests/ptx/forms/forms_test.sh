# SPDX-License-Identifier: Apache-2.0
# What ptxas takes of forms.txt, the lifter takes, and ptxas takes what comes out: each 97th form
# (EVERY=1: all) for each architecture.
set -euo pipefail
if [ -z "${TALLY_PTXAS:-}" ] || [ ! -x "$TALLY_PTXAS" ]; then
	echo "skipped: no ptxas"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for arch in ${ARCHES:-sm_90a sm_100a}; do
	"$TALLY_BUILD"/tests/ptx_forms "$TALLY_SOURCE"/tests/ptx/forms/forms.txt "$arch" "$TALLY_PTXAS" \
		"$TALLY_BUILD"/bin/tally-lower "$work" "${EVERY:-97}" || status=1
done
exit $status
