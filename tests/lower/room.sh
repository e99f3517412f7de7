#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels at the edges of what a target takes: shared memory that leaves no room for a worker's word, names of
# thousands of characters, what a preprocessor leaves, comments that never end, variables of a body's own.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

# kernel VERSION NAME BYTES SHARED: a kernel with so many bytes of parameters beside a pointer, and of shared memory.
kernel() {
	cat <<-EOF
	.version $1
	.target sm_80
	.address_size 64
	.visible .entry $2(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 b[$3])
	{ .shared .align 4 .b8 s[$4]; .reg .b32 %r; .reg .b64 %p; ld.param.u64 %p, [a]; mov.u32 %r, %ctaid.x;
	  st.shared.u32 [s], %r; ld.shared.u32 %r, [s]; st.global.u32 [%p], %r; ret; }
	EOF
}
# stays FILE REASON OPTIONS...: the kernel has no variant and is there, ptxas takes the file; an error without --keep-going.
stays() {
	local file=$1 reason=$2
	shift 2
	"$lower" "$file" --target sm_80 --keep-going "$@" -o out.ptx 2>stderr.txt || { cat stderr.txt >&2; fail "$file $*"; }
	lacks out.ptx "k\$"
	assemble out.ptx sm_80
	refused "$reason" "$file" --target sm_80 "$@" -o out
}
has_form() { # FILE VERSION OPTIONS...: the kernel has a variant that ptxas takes
	local file=$1 version=$2
	shift 2
	works "$file" --target sm_80 "$@" -o out.ptx
	holds out.ptx "entry k\$"
	holds out.ptx ".version $version"
	assemble out.ptx sm_80
}

kernel 7.8 k 4 $((48 * 1024)) >shared.ptx
has_form shared.ptx 7.8 --transform slice,guard
stays shared.ptx 'its shared memory leaves no room for another word' --transform persist
kernel 7.8 k 4 $((48 * 1024 - 32)) >shared.ptx
has_form shared.ptx 8 --transform persist

name=k$(printf '%05000d' 0)
kernel 7.8 "$name" 4 4 >long.ptx
for way in guard guard:--lift persist; do
	transform=${way%:*}
	# shellcheck disable=SC2086
	works long.ptx --target sm_80 --transform "$transform" $(cut -s -d: -f2 <<<"$way") -o out.ptx
	holds out.ptx "entry $name("
	holds out.ptx "entry $name\$$transform("
done

# What cpp leaves: before everything, and indented.
{ echo '# 1 "a.cu"'; kernel 7.8 k 4 4 | sed 's/^{/  # 7 "b {.h"\n{/'; } >markers.ptx
"$TALLY_PTXAS" -arch=sm_80 markers.ptx -o out.cubin || fail "ptxas has no such lines"
has_form markers.ptx 7.8 --transform slice,guard
has_form markers.ptx 8 --transform persist
works markers.ptx --target x86-64 -o out.so
{ kernel 7.8 k 4 4; echo '  /* never closed'; } >open.ptx
for way in guard persist; do
	refused 'open.ptx:7:3: error: comment without an end' open.ptx --target sm_80 --transform $way -o out
done
# What a body declares is nobody else's, and has a name that PTX has.
kernel 7.8 k 4 4 | sed 's/^{/{ .global .align 4 .b32 hidden; .const .align 4 .b32 fixed = 7;/; s/ret;/st.global.u32 [hidden], %r; ld.const.u32 %r, [fixed]; st.global.u32 [%p], %r; ret;/' >own.ptx
has_form own.ptx 8 --transform guard
echo ok
