/* SPDX-License-Identifier: Apache-2.0 */
/* One case of a table as the text of a kernel. */
#include "case.h"

void ptx_write_kernel(struct tally_buffer *out, size_t number, const struct ptx_case *c)
{
	static const char *const store[][2] = {
		{"d", "st.global.u64 [%d15], %d8;"},
		{"r", "cvt.u64.u32 %d8, %r8; st.global.u64 [%d15], %d8;"},
		{"h", "cvt.u64.u16 %d8, %h8; st.global.u64 [%d15], %d8;"},
		{"f", "mov.b32 %r8, %f8; cvt.u64.u32 %d8, %r8; st.global.u64 [%d15], %d8;"},
		{"e", "st.global.f64 [%d15], %e8;"},
		{"p", "selp.u64 %d8, 1, 0, %p8; st.global.u64 [%d15], %d8;"},
	};

	tally_buffer_print(out,
			   ".visible .entry k%zu(.param .u64 in, .param .u64 out)\n{\n"
			   ".reg .pred %%p<16>; .reg .b16 %%h<16>; .reg .b32 %%r<16>;\n"
			   ".reg .b64 %%d<16>; .reg .f32 %%f<16>; .reg .f64 %%e<16>;\n"
			   "ld.param.u64 %%d14, [in]; ld.param.u64 %%d15, [out];\n",
			   number);
	for (int i = 0; i < 4; i++)
		tally_buffer_print(out,
				   "ld.global.u64 %%d%d, [%%d14+%d]; cvt.u32.u64 %%r%d, %%d%d; "
				   "cvt.u16.u64 %%h%d, %%d%d;\n"
				   "mov.b32 %%f%d, %%r%d; mov.b64 %%e%d, %%d%d;\n",
				   i, i * 8, i, i, i, i, i, i, i, i);
	tally_buffer_print(out, "and.b32 %%r9, %%r3, 1; setp.ne.u32 %%p0, %%r9, 0;\n"
				"mov.u64 %%d8, 0; mov.u32 %%r8, 0; mov.u16 %%h8, 0;\n"
				"setp.ne.u32 %%p8, 0, 0;\n");
	tally_buffer_print(out, "%s\n", c->code);
	for (size_t i = 0; i < sizeof store / sizeof *store; i++)
		if (*store[i][0] == c->result)
			tally_buffer_print(out, "%s\n", store[i][1]);
	tally_buffer_print(out, "ret;\n}\n");
}
