#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that a kernel stays whole, with the reason, where there is no room for what a variant adds to it: a name
# that something else has, a parameter beyond what the machines take. The module with it assembles as it did.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

# kernel VERSION TARGET BYTES [NAME]: one kernel with BYTES and 8 bytes of parameters.
kernel() {
	cat <<END
.version $1
.target $2
.address_size 64
.visible .entry ${4:-k}(
	.param .align 1 .b8 many[$3],
	.param .u64 .ptr .global .align 16 out
)
{
	.reg .u64 %rd<3>;
	.reg .u32 %r<2>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u8 %r1, [many+$(($3 - 1))];
	st.global.u32 [%rd2], %r1;
	ret;
}
END
}

no_room='its parameters leave no room for another'

# fits VERSION TARGET BYTES: the kernel has its variant by either way, and ptxas takes it.
fits() {
	local way
	kernel "$@" >in.ptx
	"$lower" in.ptx --classify >classes.txt || fail "$*: --classify"
	holds classes.txt 'transforms: slice, guard, persist'
	for way in '' --lift; do
		# shellcheck disable=SC2086
		works in.ptx --target "$2" --transform slice,guard $way -o out.ptx
		holds out.ptx 'k$slice_guard('
		assemble out.ptx "$2"
	done
}

# full VERSION TARGET BYTES: the kernel takes all there is.
full() {
	local way transforms
	kernel "$@" >in.ptx
	assemble in.ptx "$2"
	for way in '' "--target $2"; do
		# shellcheck disable=SC2086
		"$lower" in.ptx --classify $way >classes.txt || fail "$*: --classify"
		holds classes.txt "runs whole: $no_room"
	done
	for transforms in slice guard slice,guard persist; do
		for way in '' --lift; do
			# shellcheck disable=SC2086
			refused "kernel 'k' cannot be transformed: $no_room" in.ptx --target "$2" --transform $transforms $way -o out
			# shellcheck disable=SC2086
			"$lower" in.ptx --target "$2" --transform $transforms $way --keep-going -o out.ptx 2>stderr.txt || fail "$*"
			holds stderr.txt "kernel 'k' stays whole: $no_room"
			lacks out.ptx 'k$'
			assemble out.ptx "$2"
		done
	done
}

# 32 bytes at the next multiple of 8: up to the first limit, and to that of PTX 8.1.
fits 7.0 sm_80 4312
full 7.0 sm_80 4313
full 7.0 sm_80 4344
fits 8.1 sm_80 4345
fits 8.1 sm_90 32720
full 8.1 sm_90 32721
full 8.1 sm_90 32752
# Another machine has no such limit.
kernel 8.1 sm_90 32752 >in.ptx
works in.ptx --target x86-64 --transform slice,guard -o out.so
# What needs a version gets it, or hears of it.
refused "kernel 'k' has 32760 bytes of parameters; PTX 8.0 takes 4352, 8.1 takes 32764" in.ptx --target sm_90 --ptx-version 8.0 -o out
kernel 8.1 sm_90 32760 >beyond.ptx
refused "kernel 'k' has 32768 bytes of parameters; NVIDIA's machines take 32764" beyond.ptx --target sm_90 -o out
# The others of its module are transformed.
{ kernel 7.0 sm_80 4344 && kernel 7.0 sm_80 16 other | sed '/^\./{/entry/!d}'; } >two.ptx
for way in '' --lift; do
	# shellcheck disable=SC2086
	"$lower" two.ptx --target sm_80 --transform slice,guard --keep-going $way -o out.ptx 2>stderr.txt || fail "two kernels"
	holds out.ptx 'other$slice_guard('
	lacks out.ptx 'k$'
	assemble out.ptx sm_80
done

# named DECLARATION: a module with a kernel `k` and something called k$slice_guard.
named() {
	kernel 7.8 sm_80 16 | sed "s/^.address_size.*/&\n$1/"
}

for declaration in '.visible .global .align 4 .u32 k$slice_guard;' '.global .align 4 .u32 k$slice_guard;' \
	'.visible .const .align 4 .u32 k$slice_guard = 5;' '.shared .align 4 .u32 k$slice_guard;' \
	'.visible .func k$slice_guard() { ret; }'; do
	named "$declaration" >in.ptx
	assemble in.ptx sm_80
	for target in sm_80 gfx90a x86-64; do
		for way in '' --lift; do
			[ $target = sm_80 ] || [ -z "$way" ] || continue
			# shellcheck disable=SC2086
			refused "kernel 'k' cannot be transformed: the name 'k\$slice_guard' is taken" in.ptx --target $target --transform slice,guard $way -o out
			# shellcheck disable=SC2086
			"$lower" in.ptx --target $target --transform slice,guard $way --keep-going -o out.$target 2>stderr.txt || fail "$declaration"
			holds stderr.txt "kernel 'k' stays whole: the name 'k\$slice_guard' is taken"
		done
	done
	assemble out.sm_80 sm_80
	# Another form's name is free.
	works in.ptx --target sm_80 --transform guard -o out.ptx
	holds out.ptx 'k$guard('
	assemble out.ptx sm_80
done
named '.global .align 4 .u32 k$persist;' >in.ptx
refused "the name 'k\$persist' is taken" in.ptx --target sm_80 --transform persist -o out
# Names that copies of text have inside.
for name in 'tally$launch' '%tally_block_x' '$tally$done'; do
	kernel 7.8 sm_80 16 | sed "s/many/$name/" >in.ptx
	case $name in
	%*) kernel 7.8 sm_80 16 | sed "s/%r1/$name/; s/%r<2>/u32 $name/; s/.u32 u32/.u32/; s/%r1/$name/g" >in.ptx ;;
	esac
	assemble in.ptx sm_80
	works in.ptx --target sm_80 --transform slice,guard -o out.ptx
	holds out.ptx 'k$slice_guard('
	assemble out.ptx sm_80
done

# A name of any length keeps its end.
long=$(printf 'k%.0s' $(seq 5000))
kernel 7.8 sm_80 16 "$long" >in.ptx
for way in '' --lift; do
	# shellcheck disable=SC2086
	works in.ptx --target sm_80 --transform slice,guard $way -o out.ptx
	holds out.ptx "entry $long("
	holds out.ptx "entry $long\$slice_guard("
	assemble out.ptx sm_80
done
works in.ptx --target sm_80 --transform persist -o out.ptx
holds out.ptx "entry $long\$persist("
works in.ptx --target x86-64 --transform slice,guard -o out.so
grep -aqF "$long\$slice_guard" out.so || fail "the CPU device's module has not the whole name"
echo ok
