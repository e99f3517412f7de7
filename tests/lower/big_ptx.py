# SPDX-License-Identifier: Apache-2.0
"""big_ptx.py BYTES: PTX of about so many bytes on stdout: kernels as a compiler writes them, with variables, a function that is
called, one that reads block ids, dynamic shared memory, lines of a source file and printf."""

import sys

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 counter[4];
.visible .const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.global .align 1 .b8 text[4] = {37, 100, 10, 0};
.func (.param .b32 out) mix(.param .b32 a, .param .b32 b)
{
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [a];
	ld.param.u32 %r2, [b];
	mad.lo.u32 %r3, %r1, 1664525, %r2;
	st.param.b32 [out], %r3;
	ret;
}
.func (.param .b32 out) linear()
{
	.reg .b32 %r<8>;
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	st.param.b32 [out], %r4;
	ret;
}
"""

KERNEL = """
.visible .entry kernel_{n}(.param .u64 out, .param .u32 count)
.maxntid 256, 1, 1
{{
	.reg .pred %p<4>;
	.reg .b32 %r<40>;
	.reg .f32 %f<8>;
	.reg .b64 %rd<12>;
	.shared .align 4 .b8 tile[1024];
	.loc 1 {n} 3
	{{
	.param .b32 back;
	call.uni (back), linear, ();
	ld.param.b32 %r1, [back];
	}}
	ld.param.u32 %r2, [count];
	setp.ge.u32 %p1, %r1, %r2;
	@%p1 bra DONE;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	mov.u32 %r3, %tid.x;
	shl.b32 %r4, %r3, 2;
	mov.u32 %r5, tile;
	add.s32 %r6, %r5, %r4;
	mov.u32 %r7, dynamic;
	add.s32 %r8, %r7, %r4;
	st.shared.u32 [%r6], %r1;
	st.shared.u32 [%r8], {n};
	bar.sync 0;
	ld.shared.u32 %r9, [%r6+4];
	ld.const.f32 %f1, [table+{word}];
	.loc 1 {n} 9
{work}	{{
	.param .b32 x;
	.param .b32 y;
	.param .b32 back;
	st.param.b32 [x], %r9;
	st.param.b32 [y], %r20;
	call.uni (back), mix, (x, y);
	ld.param.b32 %r10, [back];
	}}
	cvt.rn.f32.u32 %f2, %r10;
	fma.rn.f32 %f3, %f1, %f2, %f1;
	st.global.f32 [%rd4], %f3;
	mov.u64 %rd5, counter;
	atom.global.add.u32 %r11, [%rd5], 1;
DONE:
	ret;
}}
"""


def main():
    size, written, n = int(sys.argv[1]), 0, 0
    sys.stdout.write(HEAD)
    while written < size or n < 2:
        work = "\tmov.u32 %r20, 1;\n" + "".join(
            f"\txor.b32 %r21, %r20, %r9;\n\tmad.lo.u32 %r20, %r21, {k * 2 + 3}, %r4;\n" for k in range(n % 40 + 10))
        written += sys.stdout.write(KERNEL.format(n=n, word=n % 4 * 4, work=work))
        n += 1
    sys.stdout.write('\t.file 1 "big.cu"\n')


main()
