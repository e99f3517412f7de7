#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Barriers behind conditions in a loop: each region holds the whole loop, so code grows with the square
# of their number. A few run as regions, many as coroutines, and --stats says why.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

# kernel BARRIERS
kernel() {
	cat <<'END'
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
	.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;
	.shared .align 4 .b8 tile[4096];
	ld.param.u64 %d0, [p];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %tid.x;
	mov.u32 %r5, 0;
	mov.u32 %r3, tile;
	shl.b32 %r4, %r1, 2;
	add.u32 %r3, %r3, %r4;
	mov.u32 %r6, 0;
LOOP:
END
	for i in $(seq "$1"); do
		cat <<END
	and.b32 %r7, %r0, $i;
	setp.eq.u32 %p0, %r7, 0;
	st.shared.u32 [%r3], %r5;
	@%p0 bra L$i;
	bar.sync 0;
L$i:	ld.shared.u32 %r2, [tile+$((i % 64 * 4))];
	mad.lo.u32 %r5, %r2, $((i + 2)), %r5;
	xor.b32 %r5, %r5, %r1;
END
	done
	cat <<'END'
	add.u32 %r6, %r6, 1;
	setp.lt.u32 %p1, %r6, %r0;
	@%p1 bra LOOP;
	mul.wide.u32 %d1, %r1, 4;
	add.u64 %d0, %d0, %d1;
	st.global.u32 [%d0], %r5;
	ret;
}
END
}

kernel 4 >few.ptx
"$lower" few.ptx --target x86-64 --stats -o few.so 2>stats.txt || fail "few barriers"
grep -qx 'k: 5 regions' stats.txt || fail "few barriers: $(grep '^k:' stats.txt)"
kernel 60 >many.ptx
"$lower" many.ptx --target x86-64 --stats -o many.so 2>stats.txt || fail "many barriers"
grep -qx 'k: coroutines: barriers whose regions would copy too much code' stats.txt ||
	fail "many barriers: $(grep '^k:' stats.txt)"
echo ok
