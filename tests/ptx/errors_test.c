/* SPDX-License-Identifier: Apache-2.0 */
/* Bad PTX gets one error with its place; vendor instructions lock their kernel by name. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "frontend/frontend.h"
#include "ir_passes/contract.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define KERNEL                                                                                     \
	HEAD ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred "  \
	     "%p<3>;\n"

static LLVMModuleRef lift(LLVMContextRef context, const char *text, struct tally_error *error)
{
	struct tally_lift_options options = {.file = "x.ptx"};

	return tally_ptx_lift(context, text, strlen(text), &options, error);
}

static const struct {
	const char *text;
	unsigned line, column;
	const char *message; /* a part of it */
} bad[] = {
	{"", 1, 1, "is this PTX?"},
	{"hello", 1, 1, "is this PTX?"},
	{HEAD "nonsense", 4, 1, "expected a directive"},
	{HEAD ".visible .entry k(\n", 5, 1, "before the end of the file"},
	{HEAD ".address_size 32", 4, 15, "32-bit PTX is not supported"},
	{KERNEL "frob.b32 %r1, %r2;\n}", 7, 1, "kernel 'k': unknown instruction 'frob.b32'"},
	{KERNEL "add.frob.u32 %r1, %r2, %r3;\n}", 7, 1,
	 "kernel 'k': instruction 'add.frob.u32' is not known in this form"},
	{KERNEL "  add.u32 %r1, %r2;\n}", 7, 3, "'add.u32' does not take these operands"},
	{KERNEL "add.u32 %r1, %r2, %r99;\n}", 7, 19, "'%r99' is not declared"},
	{KERNEL "add.u32 %r1, %r2, %p1;\n}", 7, 1, "register '%p1' is of type .pred"},
	{KERNEL "bra NOWHERE;\n}", 7, 5, "label 'NOWHERE' is not defined"},
	{KERNEL "L: L: ret;\n}", 7, 4, "label 'L' is defined twice"},
	{KERNEL "call foo, (%r1);\n}", 7, 1, "function 'foo' is not declared"},
	{KERNEL "mov.u32 %r1, 99999999999999999999;\n}", 7, 14, "does not fit into 64 bits"},
	{KERNEL "mov.u32 %r1, 1/0;\n}", 7, 17, "division by zero"},
	{KERNEL "mov.u32 %r1, `;\n}", 7, 14, "unexpected character '`'"},
	{KERNEL "ret;\n", 8, 1, "expected '}'"},
	{KERNEL ".pragma \"x\n;}", 7, 9, "string without a closing quote"},
	{KERNEL "setp.num.u32 %p1, %r1, %r2;\n}", 7, 1,
	 "comparison .num is not for operands of type .u32"},
	/* What the ISA has in other forms. */
	{KERNEL "setp.lt.b32 %p1, %r1, %r2;\n}", 7, 1, "is not for operands of type .b32"},
	{KERNEL "setp.lo.s32 %p1, %r1, %r2;\n}", 7, 1, "is not for operands of type .s32"},
	{KERNEL "setp.lo.f32 %p1, %r1, %r2;\n}", 7, 1, "is not for operands of type .f32"},
	{KERNEL "setp.eq.f16 %p1|%p2, %r1, %r2;\n}", 7, 1, "one half has one destination"},
	{KERNEL "min.relu.u32 %r1, %r2, %r3;\n}", 7, 1, "is not known in this form"},
	{KERNEL "div.f32 %r1, %r2, %r3;\n}", 7, 1, "is not known in this form"},
	{KERNEL "mad.f32 %r1, %r2, %r3, %r4;\n}", 7, 1, "is not known in this form"},
	{KERNEL "add.ftz.bf16x2 %r1, %r2, %r3;\n}", 7, 1, "is not known in this form"},
	{KERNEL "fma.rn.sat.relu.f16x2 %r1, %r2, %r3, %r4;\n}", 7, 1, "not known in this form"},
	{KERNEL "set.eq.f16x2 %r1, %r2, %r3;\n}", 7, 1, "is not known in this form"},
	{KERNEL "set.lt.f32.f16 %r1, %r2, %r3;\n}", 7, 1, "is not known in this form"},
	{KERNEL "lop3.xor.b32 %r1|%p1, %r2, %r3, %r4, 1, %p2;\n}", 7, 1, "not known in this form"},
	{KERNEL "ld.relaxed.global.b32 %r1, [%d1];\n}", 7, 1, "is not known in this form"},
	{KERNEL "ld.global.wb.b32 %r1, [%d1];\n}", 7, 1, "is not known in this form"},
	{KERNEL "st.global.ca.b32 [%d1], %r1;\n}", 7, 1, "is not known in this form"},
	{KERNEL "st.const.b32 [%d1], %r1;\n}", 7, 1, "is not known in this form"},
	{KERNEL "prefetch.shared.L1 [%d1];\n}", 7, 1, "is not known in this form"},
	{KERNEL "mov.v4.u32 {%r1, %r2}, %tid;\n}", 7, 1, "2 elements where 4 are moved"},
	{KERNEL "mov.v4.u32 {%r1, %r2, %r3, %r4}, %nothing;\n}", 7, 1,
	 "'%nothing' is not declared"},
	{KERNEL "st.global.v4.b32 [%d1], {%r1, _, %r2, _};\n}", 7, 1, "a sink in a vector of less"},
	{KERNEL "mov.u64 %d1, (.u64)1.5;\n}", 7, 23, "cannot be cast"},
	{HEAD ".global .u8 a[] = {0xffff(1)};\n", 4, 27, "the mask is not one byte"},
	{HEAD ".global .u32 a[2][2] = {{1}, 2};\n", 4, 30, "needs braces for dimension 2"},
	{HEAD ".global .u32 a[2][2] = {{1, 2, 3}};\n", 4, 32,
	 "more than 2 elements in dimension 2"},
	{HEAD ".global .u32 a = {3};\n", 4, 18, "more braces than dimensions"},
	{KERNEL "shfl.up.b32 %r1|%p1, %r2, 1, 0;\n}", 7, 1, "taken out of PTX 6.4 for sm_70"},
	{KERNEL "vote.ballot.b32 %r1, %p1;\n}", 7, 1, "write .sync and a mask"},
	{HEAD ".extern .global .u32 there;\n", 4, 22, "declared but not defined"},
	{HEAD ".global .u32 a[2] = {1, 2, 3};\n", 4, 28, "more than 2 elements in dimension 1"},
	{HEAD ".global .u64 a = nobody;\n", 4, 18, "'nobody' is no variable"},
	{HEAD ".shared .texref t;\n", 4, 17, ".texref variables are .global"},
	{HEAD ".visible .entry k(.param .surfref t) { ret; }\n", 4, 35, "no launch sets"},
	{HEAD ".global .samplerref t = 1;\n", 4, 25, "expected '{'"},
	{HEAD ".global .align 3 .b8 a[4];\n", 4, 18, "no power of two"},
	{HEAD ".visible .entry k() { ret; }\n.visible .entry k() { ret; }", 5, 17, "defined twice"},
	{HEAD ".extern .func f();\n.visible .entry k() { call f; ret; }", 5, 23,
	 "function 'f' is not defined in this file"},
};

static void errors(void **state)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct tally_error error = {0};
		LLVMContextRef context = LLVMContextCreate();
		assert_null(lift(context, bad[i].text, &error));
		if (error.line != bad[i].line || error.column != bad[i].column ||
		    !strstr(error.message, bad[i].message) || strcmp(error.file, "x.ptx"))
			fail_msg("case %zu: %s:%u:%u: %s", i, error.file, error.line, error.column,
				 error.message);
		LLVMContextDispose(context);
	}
}

/* Without .sync the lanes are those that have come together; sm_70 has it up to PTX 6.3. */
static void old_lanes(void **state)
{
	static const char *const heads[] = {".version 6.0\n.target sm_60\n",
					    ".version 8.0\n.target sm_61\n",
					    ".version 6.3\n.target sm_70\n"};

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		struct tally_error error = {0};
		LLVMContextRef context = LLVMContextCreate();
		char text[1024], *printed;
		LLVMModuleRef module;

		snprintf(text, sizeof text,
			 "%s.address_size 64\n.visible .entry k(.param .u64 a) {\n"
			 ".reg .b32 %%r<4>; .reg .pred %%p<3>; .reg .b64 %%d<2>;\n"
			 "ld.param.u64 %%d0, [a]; ld.global.u32 %%r0, [%%d0];\n"
			 "shfl.bfly.b32 %%r1|%%p1, %%r0, 1, 31;\n"
			 "vote.any.pred %%p2, !%%p1; vote.ballot.b32 %%r2, %%p2;\n"
			 "add.u32 %%r1, %%r1, %%r2; st.global.u32 [%%d0], %%r1; ret; }",
			 heads[i]);
		module = lift(context, text, &error);
		if (!module)
			fail_msg("%s: %s", heads[i], error.message);
		printed = LLVMPrintModuleToString(module);
		assert_non_null(strstr(printed, "@tally.shuffle.xor(i32 %"));
		assert_non_null(strstr(printed, "@tally.vote.any(i32 %"));
		assert_non_null(strstr(printed, "@tally.vote.ballot(i32 %"));
		assert_non_null(strstr(printed, "call i32 @tally.active.mask()"));
		LLVMDisposeMessage(printed);
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

/* Every prefix of a real file, and nesting without end: an error or a module, never a crash. */
static void truncated(void **state)
{
	static const char text[] =
		KERNEL "ld.param.u64 %d1, [a]; cvta.to.global.u64 %d2, %d1;\n"
		       "{ .param .b32 p; st.param.b32 [p], %r1; }\n"
		       "@%p1 bra L; mov.b64 {%r1, %r2}, %d2; L: ret; }\n"
		       ".global .align 4 .b8 t[6] = {1, 2, {3, 4}, (1 + 2) * 3};\n";

	for (size_t n = 0; n < sizeof text - 1; n++) {
		struct tally_error error = {0};
		LLVMContextRef context = LLVMContextCreate();
		char *copy = malloc(n + 1);
		memcpy(copy, text, n);
		copy[n] = '\0';
		LLVMModuleRef module = lift(context, copy, &error);
		assert_true(module || (error.message[0] && error.line));
		if (module)
			LLVMDisposeModule(module);
		free(copy);
		LLVMContextDispose(context);
	}
}

static void nesting(void **state)
{
	static const char *const start[] = {KERNEL, KERNEL "mov.u32 %r1, ",
					    HEAD ".global .u32 a[] = ", KERNEL "mov.b64 %d1, "};
	static const char open[] = "{({";

	for (size_t i = 0; i < 4; i++) {
		struct tally_error error = {0};
		LLVMContextRef context = LLVMContextCreate();
		size_t head = strlen(start[i]);
		char *text = malloc(head + 100001);
		strcpy(text, start[i]);
		memset(text + head, open[i == 3 ? 2 : i], 100000);
		text[head + 100000] = '\0';
		assert_null(lift(context, text, &error));
		assert_non_null(strstr(error.message, "nested too deeply"));
		free(text);
		LLVMContextDispose(context);
	}
}

/* Vendor instructions stay, and the kernels that reach them say which and where. */
static void locks(void **state)
{
	static const struct {
		const char *code, *locked, *text;
	} cases[] = {
		{"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 1;",
		 "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 at x.ptx:8:1",
		 "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [$0], 1;"},
		{"mbarrier.try_wait.acquire.cluster.shared.b64 %p1, [%r1], %d1;",
		 "mbarrier.try_wait.acquire.cluster.shared.b64 at x.ptx:8:1",
		 "mbarrier.try_wait.acquire.cluster.shared.b64 $0, [$1], $2;"},
		{"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3+16];",
		 "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 at x.ptx:8:1",
		 "{$0, $1}, [$2+16];"},
		{"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, "
		 "1, 1, "
		 "1, 0, 0;",
		 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 at x.ptx:8:1",
		 "{$0, $1, $2, $3}, $8, $9, 1, 1, 1, 0, 0;"},
		{"mov.u32 %r1, %cluster_ctarank;", "%cluster_ctarank at x.ptx:8:1",
		 "mov.b32 $0, %cluster_ctarank;"},
		{"fence.acq_rel.cluster;", "fence.acq_rel.cluster at x.ptx:8:1",
		 "fence syncscope(\\22cluster\\22) acq_rel"},
		{"ld.shared::cluster.u32 %r1, [%r2];", "ld.shared::cluster.u32 at x.ptx:8:1",
		 "ld.shared::cluster.u32 $0, [$1];"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[1024], *ir;
		struct tally_error error = {0};
		LLVMContextRef context = LLVMContextCreate();
		snprintf(text, sizeof text,
			 HEAD
			 ".func f()\n{\n.reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg .pred %%p<3>; "
			 ".reg .f32 %%f<9>;\n\n%s\nret; }\n"
			 ".visible .entry k() { call f; ret; }\n"
			 ".visible .entry other() { ret; }\n",
			 cases[i].code);
		LLVMModuleRef module = lift(context, text, &error);
		if (!module || !tally_contract_verify(module, &error))
			fail_msg("%s: %u:%u: %s", cases[i].code, error.line, error.column,
				 error.message);
		LLVMValueRef kernel = LLVMGetNamedFunction(module, "k");
		assert_string_equal(tally_attribute(kernel, TALLY_ATTR_VENDOR), "nvidia");
		assert_string_equal(tally_attribute(kernel, TALLY_ATTR_LOCKED), cases[i].locked);
		assert_null(
			tally_attribute(LLVMGetNamedFunction(module, "other"), TALLY_ATTR_VENDOR));
		ir = LLVMPrintModuleToString(module);
		if (!strstr(ir, cases[i].text) && !strstr(cases[i].text, "syncscope"))
			fail_msg("'%s' is not in\n%s", cases[i].text, ir);
		LLVMDisposeMessage(ir);
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

/* What the kernel's directives and parameters become. */
static void attributes(void **state)
{
	static const char text[] = HEAD
		".visible .entry k(.param .u32 n, .param .align 8 .b8 s[24], .param .u64 .ptr "
		".global .align 4 "
		"p,\n.param .u64 q)\n.maxntid 256, 2\n.minnctapersm 3\n.reqnctapercluster 2, 1, 1\n"
		"{ .reg .b64 %d<3>; .reg .b32 %r<2>; ld.param.u64 %d1, [q]; ld.global.u32 %r1, "
		"[%d1]; ret; }";
	struct tally_error error = {0};
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = lift(context, text, &error);
	LLVMValueRef k;
	char *type;

	assert_non_null(module);
	assert_true(tally_contract_verify(module, &error));
	k = LLVMGetNamedFunction(module, "k");
	assert_string_equal(tally_attribute(k, TALLY_ATTR_MAXNTID), "256,2,1");
	assert_string_equal(tally_attribute(k, TALLY_ATTR_MINCTAPERSM), "3");
	assert_string_equal(tally_attribute(k, TALLY_ATTR_CLUSTER), "2,1,1");
	assert_null(tally_attribute(k, TALLY_ATTR_REQNTID));
	type = LLVMPrintTypeToString(LLVMGlobalGetValueType(k));
	assert_string_equal(type, "void (i32, ptr, ptr, ptr)");
	LLVMDisposeMessage(type);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text++;
		n++;
	}
	return n;
}

/* Addresses are pointers again, shared variables in their space; .ftz flushes once a value. */
static void shape(void **state)
{
	static const char text[] =
		HEAD ".visible .entry k(.param .u64 q, .param .u32 n)\n"
		     "{ .reg .b64 %d<5>; .reg .b32 %r<5>; .reg .f32 %f<5>; .reg .pred %p<2>;\n"
		     ".shared .align 4 .b8 s[64];\n"
		     "ld.param.u64 %d1, [q]; cvta.to.global.u64 %d2, %d1; mov.u32 %r1, s; mov.u32 "
		     "%r2, 0;\n"
		     "L: ld.global.f32 %f1, [%d2]; mul.ftz.f32 %f2, %f1, %f1; add.ftz.f32 %f3, "
		     "%f2, %f2;\n"
		     "add.u32 %r3, %r1, 8; st.shared.f32 [%r3+-4], %f3;\n"
		     "add.u64 %d2, %d2, 4; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra "
		     "L; ret; }";
	struct tally_error error = {0};
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = lift(context, text, &error);
	char *ir;

	assert_non_null(module);
	ir = LLVMPrintModuleToString(module);
	assert_int_equal(count(ir, "inttoptr"), 0);
	assert_int_equal(count(ir, "ptrtoint"), 0);
	assert_int_equal(count(ir, "phi ptr"), 1);
	/* one for the loaded value, one for each of the two results, and the declaration */
	assert_int_equal(count(ir, "@tally.ftz.f32("), 3 + 1);
	assert_non_null(strstr(ir, "\"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\""));
	LLVMDisposeMessage(ir);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

/* p + (q - p) points into q: it stays an integer, so that nobody thinks it points into p. */
static void differences(void **state)
{
	static const char text[] =
		HEAD ".global .align 4 .u32 a; .global .align 4 .u32 b;\n"
		     ".visible .entry k(.param .u64 q)\n"
		     "{ .reg .b64 %d<7>; .reg .b32 %r<5>; ld.param.u64 %d1, [q]; mov.u64 %d2, a;\n"
		     "sub.u64 %d3, %d1, %d2; add.u64 %d4, %d2, %d3; st.global.u32 [%d4], 5; ret; }";
	struct tally_error error = {0};
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = lift(context, text, &error);
	char *ir;

	assert_non_null(module);
	ir = LLVMPrintModuleToString(module);
	assert_null(strstr(ir, "getelementptr"));
	LLVMDisposeMessage(ir);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors),    cmocka_unit_test(old_lanes),
		cmocka_unit_test(truncated), cmocka_unit_test(nesting),
		cmocka_unit_test(locks),     cmocka_unit_test(attributes),
		cmocka_unit_test(shape),     cmocka_unit_test(differences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
