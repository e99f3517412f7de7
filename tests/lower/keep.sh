#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PTX for NVIDIA's own machines stays as its compiler wrote it: sliceable and stoppable forms hold the
# original's text, so that ptxas gives them the original's registers and instructions. What cannot be
# copied goes through IR.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
here=$TALLY_SOURCE/tests/lower

# keeps INPUT TARGET TRANSFORM: the output begins with the input, and has forms behind it.
keeps() {
	"$lower" "$1" --target "$2" --transform "$3" --keep-going --verify -o out.ptx 2>stderr.txt || { cat stderr.txt >&2; fail "$*"; }
	cmp -s -n "$(stat -c %s "$1")" "$1" out.ptx || fail "$*: the original's text is not the output's beginning"
	holds out.ptx 'tally$launch'
	assemble out.ptx "$2"
}
# lifts INPUT TARGET OPTIONS...: through IR, and forms are there all the same.
lifts() {
	local input=$1 target=$2
	shift 2
	"$lower" "$input" --target "$target" --transform slice,guard --keep-going "$@" -o out.ptx 2>stderr.txt || { cat stderr.txt >&2; fail "$input $*"; }
	lacks out.ptx 'tally$launch'
	holds out.ptx '$slice_guard('
	assemble out.ptx "$target"
}

for pair in slice:slice guard:guard slice,guard:slice_guard; do
	keeps "$here/kept.ptx" sm_90 "${pair%%:*}"
	holds out.ptx ".weak .entry kept\$${pair##*:}("
	holds out.ptx ".visible .entry bare\$${pair##*:}("
	lacks out.ptx "follows\$"
	holds stderr.txt "warning: kernel 'follows' stays whole: it orders itself with the next launch"
	# Blocks are moved where they are sliced, and only in the copies.
	moved=$(grep -c 'mov.*tally_block_x; mov.*tally_block_y; mov.*tally_grid_x;' out.ptx)
	case $pair in slice*) [ "$moved" = 1 ] ;; *) [ "$moved" = 0 ] ;; esac || fail "$pair: $moved copies read other block ids"
	[ "$(grep -c 'bar.red.or.pred' out.ptx)" = "$(case $pair in *guard*) echo 2 ;; *) echo 0 ;; esac)" ] || fail "$pair: not an aligned decision a copy"
done
keeps "$here/kept.ptx" sm_120 slice,guard
holds out.ptx '.target sm_90'

# What was transformed before has the names already.
sed '/entry follows/,$d' "$here/kept.ptx" >plain.ptx
works plain.ptx --target sm_90 --transform slice,guard -o once.ptx
for way in '' --lift '-O 3' --keep-going; do
	# shellcheck disable=SC2086
	refused "kernel 'kept\$slice_guard' exists already" once.ptx --target sm_90 --transform slice,guard $way -o out
done
works once.ptx --target sm_90 -o out.ptx
assemble out.ptx sm_90

# The limit of what a copy may be.
refused "kernel 'follows' cannot be transformed" "$here/kept.ptx" --target sm_90 --transform slice,guard -o out
lifts "$here/kept.ptx" sm_90 --lift
sed '/entry follows/,$d' "$here/kept.ptx" >older.ptx
lifts older.ptx sm_80
lifts "$here/kept.ptx" sm_90 -O3
lifts "$here/kept.ptx" sm_90 --kernel kept
sed 's/^.version 7.8/.version 8.2/' "$here/kept.ptx" >newer.ptx
lifts newer.ptx sm_90 --ptx-version 8.0
keeps newer.ptx sm_90 slice,guard
sed 's/add.s32 %twice, %v, %v;/{ .reg .b32 %b; mov.u32 %b, %nctaid.x; add.s32 %twice, %v, %b; }/' "$here/kept.ptx" >reads.ptx
lifts reads.ptx sm_90
sed 's/mov.u32 %r1, %ctaid.x;/{ .reg .b16 %h; mov.u16 %h, %ctaid.x; cvt.u32.u16 %r1, %h; }/' "$here/kept.ptx" >narrow.ptx
lifts narrow.ptx sm_90
sed 's/mov.u32 %r1, %ctaid.x;/{ .reg .b16 %h; mov .u16 %h, %ctaid.x; cvt.u32.u16 %r1, %h; }/' "$here/kept.ptx" >spaced.ptx
lifts spaced.ptx sm_90
# Names that copies have: of registers that would be read for block ids, of their parameter, of other forms.
sed 's/.reg .b32 %r<12>;/& .reg .b32 %tally_block_x;/' "$here/kept.ptx" >register.ptx
lifts register.ptx sm_90
keeps "$here/kept.ptx" sm_90 slice,guard
mv out.ptx twice.ptx
refused "kernel 'kept\$slice_guard' exists already" twice.ptx --target sm_90 --transform slice,guard --keep-going -o out
sed '/tally\$launch/!s/kept_out/tally$launch/' "$here/kept.ptx" >parameter.ptx
"$lower" parameter.ptx --target sm_90 --transform slice,guard --keep-going -o out.ptx 2>stderr.txt || fail "a parameter of our name"
lacks out.ptx 'tally$launch['
assemble out.ptx sm_90
# The device runtime launches kernels and synchronises grids under several names.
for callee in cudaLaunchDeviceV2 __cudaCDP2LaunchDeviceV2 cudaCGSynchronize; do
	{
		cat "$here/kept.ptx"
		echo ".extern .func $callee; .visible .entry calls() { call $callee; ret; }"
	} >calls.ptx
	"$lower" calls.ptx --target sm_90 --transform slice,guard --keep-going -o out.ptx 2>stderr.txt || { cat stderr.txt >&2; fail "$callee"; }
	holds stderr.txt "kernel 'calls' stays whole"
	lacks out.ptx 'calls$'
done
works "$here/kept.ptx" --target sm_90 --transform none -o out.ptx
lacks out.ptx '$slice'

# Real files. The copy has the original's code: no spill that the original has not, hardly a register
# more than the decision itself needs, and as many instructions but for it.
for source in dense cub_block tensor library; do
	"$TALLY_NVCC" -arch=compute_80 -std=c++17 -lineinfo -ptx "$TALLY_SOURCE/corpus/cuda/$source.cu" -o $source.ptx 2>nvcc.log ||
		{ cat nvcc.log >&2; fail "nvcc on $source"; }
	keeps $source.ptx sm_80 slice,guard
	"$TALLY_PTXAS" -arch=sm_80 -v out.ptx -o out.cubin 2>ptxas.log || fail ptxas
	python3 "$TALLY_SOURCE/corpus/resources.py" --pairs ptxas.log out.cubin >pairs.txt || fail "resources.py"
	[ -s pairs.txt ] || fail "no kernel in $source.ptx"
	awk -v source=$source '$7 > $6 { print "spills: " $0; bad = 1 }
		$3 > $2 + 40 || $3 > 1.2 * $2 && $3 > $2 + 16 { print "registers: " $0; bad = 1 }
		$5 > 1.1 * $4 + 140 { print "instructions: " $0; bad = 1 }
		END { exit bad }' pairs.txt || fail "the copies of $source are worse than their originals"
done
echo ok
