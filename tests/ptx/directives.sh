# SPDX-License-Identifier: Apache-2.0
# Directives and declarations (directives/*.ptx): ptxas takes them, tally-lower takes them, and ptxas
# takes what comes out; those that are not the vendor's are compiled for the CPU as well.
set -euo pipefail
if [ -z "${TALLY_PTXAS:-}" ] || [ ! -x "$TALLY_PTXAS" ]; then
	echo "skipped: no ptxas"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lower=$TALLY_BUILD/bin/tally-lower
for source in "$TALLY_SOURCE"/tests/ptx/directives/*.ptx; do
	name=$(basename "$source" .ptx)
	"$TALLY_PTXAS" -arch=sm_90a "$source" -o "$work/cubin" 2>"$work/log" || { cat "$work/log"; echo "$name: ptxas"; exit 1; }
	"$lower" "$source" --target sm_90a -o "$work/$name.ptx" || { echo "$name: tally-lower"; exit 1; }
	"$TALLY_PTXAS" -arch=sm_90a "$work/$name.ptx" -o "$work/cubin" || { echo "$name: ptxas again"; exit 1; }
	case $name in
	wide) ;;
	textures*) # the vendor's own: refused by name elsewhere
		! "$lower" "$source" --target x86-64 -o "$work/$name.so" 2>"$work/log" || { echo "$name: taken for the CPU"; exit 1; }
		grep -q "locked to nvidia by 'tex.2d.v4.f32.f32'; target" "$work/log" || { cat "$work/log"; exit 1; }
		;;
	*) "$lower" "$source" --target x86-64 -o "$work/$name.so" || { echo "$name: for the CPU"; exit 1; } ;;
	esac
done
# The list of a variable length arrives: 2, and the 6 at its offset 4.
"$lower" "$TALLY_SOURCE/tests/ptx/directives/variadic.ptx" --target x86-64 --emit ir | grep -q 'store i32 8,' || { echo "variadic: not 8"; exit 1; }
# Fields and mode of textures are the source's.
grep -q '^.target sm_90a, texmode_independent$' "$work/textures_independent.ptx" || { echo "textures: mode"; exit 1; }
grep -q 'samplerref edge = { addr_mode_0 = clamp_to_border, addr_mode_1 = wrap,' "$work/textures_independent.ptx" || { echo "textures: fields"; exit 1; }
grep -q 'samplerref plain;' "$work/textures_independent.ptx" || { echo "textures: fields that nobody gave"; exit 1; }
