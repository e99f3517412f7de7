/* SPDX-License-Identifier: Apache-2.0 */
/* What no table row says: modules in, neutral IR out, and the refusals by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/IRReader.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir_passes/contract.h"

#define NVIDIA "target triple = \"nvptx64-nvidia-cuda\"\n"
#define AMD                                                                                        \
	"target datalayout = \"e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-"   \
	"p7:160:256:256:32-p8:128:128-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-"       \
	"v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\"\n"   \
	"target triple = \"amdgcn-amd-amdhsa\"\n"
#define V(n)                                                                                       \
	"!llvm.module.flags = !{!0}\n!0 = !{i32 1, !\"amdhsa_code_object_version\", i32 " #n "}\n"

static LLVMModuleRef lift(LLVMContextRef context, const char *text, struct tally_error *error)
{
	const struct tally_lift_options options = {.file = "in.ll"};

	return tally_bitcode_lift(context, text, strlen(text), true, &options, error);
}

/* What comes out, as text lines that must be there, and one that must not. */
static const struct {
	const char *what, *in, *out[6], *not;
} lifts[] = {
	{"kernel marks and bounds",
	 NVIDIA "define ptx_kernel void @k(ptr %p) \"nvvm.maxntid\"=\"128,2\" "
		"\"nvvm.minctasm\"=\"3\" \"target-cpu\"=\"sm_90a\" { ret void }\n",
	 {"define void @k(ptr %p)", "\"tally.kernel\"", "\"tally.warp\"=\"32\"",
	  "\"tally.maxntid\"=\"128,2,1\"", "\"tally.minctapersm\"=\"3\""},
	 "nvvm."},
	{"kernels of older clang are marked by metadata",
	 NVIDIA "define void @k() { ret void }\n!nvvm.annotations = !{!0, !1}\n"
		"!0 = !{ptr @k, !\"kernel\", i32 1}\n!1 = !{ptr @k, !\"reqntidx\", i32 64}\n",
	 {"\"tally.kernel\"", "\"tally.reqntid\"=\"64,1,1\""},
	 NULL},
	{"generic variables become global ones under their own name",
	 NVIDIA "@v = externally_initialized global i32 7, align 4\n"
		"@s = internal addrspace(3) global [4 x i32] zeroinitializer\n"
		"@d = external addrspace(3) global [0 x i8]\n"
		"define ptx_kernel void @k() { store i32 1, ptr @v, align 4 "
		"store i32 1, ptr addrspace(3) @s, align 4 "
		"store i8 1, ptr addrspace(3) @d, align 1 ret void }\n",
	 {"@v = addrspace(1) externally_initialized global i32 7, align 4",
	  "@s = internal addrspace(3) global [4 x i32] undef",
	  "@d = external addrspace(3) global [0 x i8]"},
	 NULL},
	{"libdevice with a body is taken by its name",
	 NVIDIA "define linkonce_odr float @__nv_sinf(float %x) {\n br label %b\nb:\n"
		"  %y = phi float [%x, %0], [%z, %b]\n  %z = fadd float %y, 1.0\n"
		"  br label %b\n}\n"
		"define ptx_kernel void @k(ptr %p) { %x = load float, ptr %p, align 4 "
		"%y = call float @__nv_sinf(float %x) store float %y, ptr %p, align 4 ret void }\n",
	 {"call float @llvm.sin.f32(float %x)"},
	 "__nv_sinf"},
	{"reflection answers for the source's architecture",
	 NVIDIA "@n = private constant [12 x i8] c\"__CUDA_ARCH\\00\"\n"
		"@f = private constant [11 x i8] c\"__CUDA_FTZ\\00\"\n"
		"declare i32 @__nvvm_reflect(ptr)\n"
		"define ptx_kernel void @k(ptr %p, ptr %q) \"target-cpu\"=\"sm_90a\" { "
		"%x = call i32 @__nvvm_reflect(ptr @n) store i32 %x, ptr %p, align 4 "
		"%y = call i32 @__nvvm_reflect(ptr @f) store i32 %y, ptr %q, align 4 ret void }\n"
		"!llvm.module.flags = !{!0}\n!0 = !{i32 4, !\"nvvm-reflect-ftz\", i32 1}\n",
	 {"store i32 900, ptr %p", "store i32 1, ptr %q"},
	 "reflect("},
	{"scoped atomics",
	 NVIDIA "declare i32 @llvm.nvvm.atomic.add.gen.i.cta.i32.p0(ptr, i32)\n"
		"declare i32 @llvm.nvvm.atomic.cas.gen.i.sys.i32.p0(ptr, i32, i32)\n"
		"define ptx_kernel void @k(ptr %p) { "
		"%x = call i32 @llvm.nvvm.atomic.add.gen.i.cta.i32.p0(ptr %p, i32 1) "
		"%y = call i32 @llvm.nvvm.atomic.cas.gen.i.sys.i32.p0(ptr %p, i32 1, i32 2) "
		"ret void }\n",
	 {"atomicrmw add ptr %p, i32 1 syncscope(\"block\") monotonic",
	  "cmpxchg ptr %p, i32 1, i32 2 monotonic monotonic"},
	 "nvvm"},
	{"printf and assertions",
	 NVIDIA "declare i32 @vprintf(ptr, ptr)\n"
		"declare void @__assertfail(ptr, ptr, i32, ptr, i64)\n"
		"define ptx_kernel void @k(ptr %p) { %x = call i32 @vprintf(ptr %p, ptr null) "
		"call void @__assertfail(ptr %p, ptr %p, i32 3, ptr %p, i64 1) unreachable }\n",
	 {"call i32 @tally.printf(ptr %p, ptr null)",
	  "call void @tally.assert.fail(ptr %p, ptr %p, i32 3, ptr %p)"},
	 NULL},
	{"inline PTX goes through the PTX frontend",
	 NVIDIA "define ptx_kernel void @k(ptr %p) { %x = call i32 asm \"mov.u32 $0, %laneid;\", "
		"\"=r\"() store i32 %x, ptr %p, align 4 ret void }\n",
	 {"@tally.lane.id()"},
	 "asm"},
	{"an intrinsic without neutral meaning locks its kernel",
	 NVIDIA "declare void @llvm.nvvm.fence.sc.cluster()\n"
		"define internal void @f() noinline { call void @llvm.nvvm.fence.sc.cluster() "
		"ret void }\n"
		"define ptx_kernel void @k() { call void @f() ret void }\n"
		"define ptx_kernel void @free() { ret void }\n",
	 {"\"tally.vendor\"=\"nvidia\"",
	  "\"tally.locked\"=\"llvm.nvvm.fence.sc.cluster in function f\"", "define void @free() #"},
	 "noinline"},

	{"AMD's block and grid sizes, code object 5",
	 AMD
	 "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	 "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n"
	 "  %a = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	 "  %g = load i32, ptr addrspace(4) %a, align 4\n"
	 "  %i = getelementptr i8, ptr addrspace(4) %a, i64 14\n"
	 "  %s = load i16, ptr addrspace(4) %i, align 2\n  %z = zext i16 %s to i32\n"
	 "  %m = mul i32 %g, %z\n  store i32 %m, ptr addrspace(1) %p, align 4\n  ret void\n}\n" V(
		 500),
	 {"call i32 @tally.grid.size.x()", "call i32 @tally.block.size.y()"},
	 "llvm.amdgcn"},
	{"the device library's choice between the last block and the others",
	 AMD "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p, i1 %c) {\n"
	     "  %a = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "  %o = select i1 %c, i64 6, i64 9\n"
	     "  %i = getelementptr inbounds i16, ptr addrspace(4) %a, i64 %o\n"
	     "  %s = load i16, ptr addrspace(4) %i, align 2\n"
	     "  store i16 %s, ptr addrspace(1) %p, align 2\n  ret void\n}\n" V(500),
	 {"call i32 @tally.block.size.x()", "i16 0"},
	 "llvm.amdgcn"},
	{"AMD's dispatch packet, code object 4",
	 AMD "%pkt = type { i16, i16, i16, i16, i16, i16, i32, i32, i32 }\n"
	     "declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n"
	     "  %a = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()\n"
	     "  %i = getelementptr %pkt, ptr addrspace(4) %a, i64 0, i32 7\n"
	     "  %s = load i32, ptr addrspace(4) %i, align 4\n"
	     "  store i32 %s, ptr addrspace(1) %p, align 4\n  ret void\n}\n" V(400),
	 {"call i32 @tally.grid.size.y()", "call i32 @tally.block.size.y()", "mul i32"},
	 "llvm.amdgcn"},
	{"private memory, scopes, by-value structures",
	 AMD "%s = type { i32, [4 x i32] }\n"
	     "define amdgpu_kernel void @k(ptr addrspace(4) byref(%s) align 8 %b, "
	     "ptr addrspace(1) %p) \"amdgpu-flat-work-group-size\"=\"1,256\" {\n"
	     "  %l = alloca i32, align 4, addrspace(5)\n"
	     "  %f = addrspacecast ptr addrspace(5) %l to ptr\n"
	     "  call void @llvm.lifetime.start.p5(ptr addrspace(5) %l)\n"
	     "  %e = getelementptr %s, ptr addrspace(4) %b, i64 0, i32 1, i64 2\n"
	     "  %v = load i32, ptr addrspace(4) %e, align 4\n"
	     "  store i32 %v, ptr %f, align 4\n"
	     "  store i32 %v, ptr addrspace(5) %l, align 4\n"
	     "  %o = atomicrmw add ptr addrspace(1) %p, i32 %v syncscope(\"agent-one-as\") "
	     "monotonic, align 4\n"
	     "  fence syncscope(\"workgroup\") release\n  ret void\n}\n"
	     "declare void @llvm.lifetime.start.p5(ptr addrspace(5))\n",
	 {"define void @k(ptr byval(%s) align 8 %b, ptr addrspace(1) %p)", "alloca i32, align 4\n",
	  "syncscope(\"device\") monotonic", "fence syncscope(\"block\") release",
	  "\"tally.maxntid\"=\"256,1,1\"", "\"tally.warp\"=\"32\""},
	 "lifetime"},
	{"lane numbers of a wavefront of 64",
	 AMD "declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)\n"
	     "declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p) \"target-cpu\"=\"gfx90a\" {\n"
	     "  %a = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)\n"
	     "  %b = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %a)\n"
	     "  store i32 %b, ptr addrspace(1) %p, align 4\n  ret void\n}\n",
	 {"call i32 @tally.lane.id()", "\"tally.warp\"=\"64\""},
	 "tally.vendor"},
	{"lane operations of a wavefront of 64 lock",
	 AMD "declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p) \"target-cpu\"=\"gfx90a\" {\n"
	     "  %a = call i32 @llvm.amdgcn.ds.bpermute(i32 4, i32 1)\n"
	     "  store i32 %a, ptr addrspace(1) %p, align 4\n  ret void\n}\n",
	 {"\"tally.locked\"=\"llvm.amdgcn.ds.bpermute in function k\"", "\"tally.vendor\"=\"amd\"",
	  "\"tally.warp\"=\"64\""},
	 NULL},
	{"lane operations of a wavefront of 32",
	 AMD "declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)\n"
	     "declare i32 @llvm.amdgcn.icmp.i32.i32(i32, i32, i32 immarg)\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %v) "
	     "\"target-cpu\"=\"gfx1100\" {\n"
	     "  %a = call i32 @llvm.amdgcn.ds.bpermute(i32 4, i32 %v)\n"
	     "  %b = call i32 @llvm.amdgcn.icmp.i32.i32(i32 %a, i32 %v, i32 33)\n"
	     "  store i32 %b, ptr addrspace(1) %p, align 4\n  ret void\n}\n",
	 {"call { i32, i1 } @tally.shuffle.idx(", "icmp ne i32", "call i32 @tally.vote.ballot(",
	  "\"tally.warp\"=\"32\""},
	 "tally.vendor"},
	{"HIP's fences",
	 AMD "declare void @__atomic_work_item_fence(i32, i32, i32)\n"
	     "define amdgpu_kernel void @k() { "
	     "call void @__atomic_work_item_fence(i32 1, i32 3, i32 1) "
	     "call void @__atomic_work_item_fence(i32 1, i32 5, i32 2) ret void }\n",
	 {"fence syncscope(\"block\") release", "fence syncscope(\"device\") seq_cst"},
	 "work_item"},
	{"HIP's printf in pieces",
	 AMD "@f = private addrspace(4) constant [16 x i8] c\"%d %% %*s %lx%f\\00\"\n"
	     "@s = private addrspace(4) constant [2 x i8] c\"s\\00\"\n"
	     "declare i64 @__ockl_printf_begin(i64)\n"
	     "declare i64 @__ockl_printf_append_args(i64, i32, i64, i64, i64, i64, i64, i64, i64, "
	     "i32)\n"
	     "declare i64 @__ockl_printf_append_string_n(i64, ptr, i64, i32)\n"
	     "define amdgpu_kernel void @k(i64 %a, i64 %b, i64 %c, i64 %d) {\n"
	     "  %1 = call i64 @__ockl_printf_begin(i64 0)\n"
	     "  %2 = call i64 @__ockl_printf_append_string_n(i64 %1, ptr addrspacecast (ptr "
	     "addrspace(4) @f to ptr), i64 15, i32 0)\n"
	     "  %3 = call i64 @__ockl_printf_append_args(i64 %2, i32 2, i64 %a, i64 %b, i64 0, "
	     "i64 0, i64 0, i64 0, i64 0, i32 0)\n"
	     "  %4 = call i64 @__ockl_printf_append_string_n(i64 %3, ptr addrspacecast (ptr "
	     "addrspace(4) @s to ptr), i64 2, i32 0)\n"
	     "  %5 = call i64 @__ockl_printf_append_args(i64 %4, i32 2, i64 %c, i64 %d, i64 0, "
	     "i64 0, i64 0, i64 0, i64 0, i32 1)\n  ret void\n}\n",
	 /* %d at 0, the width at 4, the string at 8, %lx at 16, %f at 24 */
	 {"alloca [32 x i8], align 8", "i32 4", "i32 8", "i32 16", "i32 24",
	  "call i32 @tally.printf(ptr addrspacecast (ptr addrspace(4) @f to ptr)"},
	 "ockl"},
};

static void modules_lift(void **state)
{
	for (size_t i = 0; i < sizeof(lifts) / sizeof(*lifts); i++) {
		LLVMContextRef context = LLVMContextCreate();
		struct tally_error error = {0};
		LLVMModuleRef module = lift(context, lifts[i].in, &error);
		char *text;

		if (!module)
			fail_msg("%s: %u:%u %s", lifts[i].what, error.line, error.column,
				 error.message);
		text = LLVMPrintModuleToString(module);
		for (size_t k = 0; k < 6 && lifts[i].out[k]; k++)
			if (!strstr(text, lifts[i].out[k]))
				fail_msg("%s: no '%s' in\n%s", lifts[i].what, lifts[i].out[k],
					 text);
		if (lifts[i].not && strstr(text, lifts[i].not))
			fail_msg("%s: '%s' in\n%s", lifts[i].what, lifts[i].not, text);
		LLVMDisposeMessage(text);
		if (!tally_contract_verify(module, &error))
			fail_msg("%s: %s", lifts[i].what, error.message);
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

static const struct {
	const char *what, *in, *message;
} refusals[] = {
	{"syntax", NVIDIA "define ptx_kernel void @k() { foo }\n", "expected instruction opcode"},
	{"host code", "target triple = \"x86_64-pc-linux-gnu\"\ndefine void @f() { ret void }\n",
	 "LLVM IR for 'x86_64-pc-linux-gnu', not for a GPU"},
	{"no kernel", NVIDIA "define void @f() { ret void }\n", "there is no kernel in it"},
	{"broken module",
	 NVIDIA "define ptx_kernel void @k() { br label %b\nb: %y = add i32 %x, 1\n"
		"%x = add i32 %y, 1\nret void }\n",
	 "broken LLVM module"},
	{"undefined function",
	 NVIDIA "declare void @foo()\ndefine ptx_kernel void @k() { call void @foo() ret void }\n",
	 "function 'k': calls 'foo': neither defined in the module nor known"},
	{"grid synchronisation",
	 NVIDIA "declare i32 @cudaCGSynchronize(i64, i32)\n"
		"define ptx_kernel void @k() { %x = call i32 @cudaCGSynchronize(i64 0, i32 0) "
		"ret void }\n",
	 "calls 'cudaCGSynchronize': grid-wide synchronisation"},
	{"another type",
	 NVIDIA "declare double @__nv_sinf(double)\ndefine ptx_kernel void @k() { "
		"%x = call double @__nv_sinf(double 1.0) ret void }\n",
	 "function '__nv_sinf' has type 'double (double)', but 'float (float)' is known"},
	{"module assembly", NVIDIA "module asm \"foo\"\ndefine ptx_kernel void @k() { ret void }\n",
	 "module-level assembly"},
	{"constructors",
	 NVIDIA "define internal void @i() { ret void }\n"
		"@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
		"{ i32 65535, ptr @i, ptr null }]\ndefine ptx_kernel void @k() { ret void }\n",
	 "constructors"},
	{"reflection of no constant",
	 NVIDIA "declare i32 @__nvvm_reflect(ptr)\ndefine ptx_kernel void @k(ptr %p) { "
		"%x = call i32 @__nvvm_reflect(ptr %p) ret void }\n",
	 "__nvvm_reflect of something that is no constant"},
	{"host calls",
	 AMD "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n"
	     "  %a = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "  %i = getelementptr i8, ptr addrspace(4) %a, i64 80\n"
	     "  %s = load i64, ptr addrspace(4) %i, align 8\n"
	     "  store i64 %s, ptr addrspace(1) %p, align 8\n  ret void\n}\n" V(500),
	 "reads 8 bytes at 80 of AMD's implicit arguments (code object version 5), which cannot be "
	 "lifted: host calls"},
	{"kept address",
	 AMD "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n"
	     "  %a = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
	     "  store ptr addrspace(4) %a, ptr addrspace(1) %p, align 8\n  ret void\n}\n",
	 "address in AMD's implicit arguments is kept"},
	{"buffered printf",
	 AMD "declare ptr addrspace(1) @__printf_alloc(i32)\n"
	     "define amdgpu_kernel void @k() { %x = call ptr addrspace(1) @__printf_alloc(i32 8) "
	     "ret void }\n",
	 "printf over AMD's buffer cannot be lifted"},
};

static void refusals_name_what(void **state)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		LLVMContextRef context = LLVMContextCreate();
		struct tally_error error = {0};

		if (lift(context, refusals[i].in, &error))
			fail_msg("%s: lifted", refusals[i].what);
		if (!strstr(error.message, refusals[i].message))
			fail_msg("%s: '%s'", refusals[i].what, error.message);
		assert_string_equal(error.file, "in.ll");
		LLVMContextDispose(context);
	}
}

static void syntax_errors_have_a_place(void **state)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_error error = {0};

	assert_null(lift(context, NVIDIA "\n\ndefine void @f() {\n  %x = foo i32 1\n}\n", &error));
	assert_int_equal(error.line, 5);
	assert_int_equal(error.column, 8);
	LLVMContextDispose(context);
}

static void locked_instruction_has_a_place(void **state)
{
	static const char text[] = NVIDIA
		"declare void @llvm.nvvm.fence.sc.cluster()\n"
		"define ptx_kernel void @k() !dbg !4 {\n"
		"  call void @llvm.nvvm.fence.sc.cluster(), !dbg !5\n  ret void, !dbg !5\n}\n"
		"!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2}\n"
		"!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, "
		"emissionKind: FullDebug)\n"
		"!1 = !DIFile(filename: \"a.cu\", directory: \"/d\")\n"
		"!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n"
		"!3 = !DISubroutineType(types: !{})\n"
		"!4 = distinct !DISubprogram(name: \"k\", file: !1, line: 1, type: !3, "
		"unit: !0, spFlags: DISPFlagDefinition)\n"
		"!5 = !DILocation(line: 7, column: 3, scope: !4)\n";
	LLVMContextRef context = LLVMContextCreate();
	struct tally_error error = {0};
	LLVMModuleRef module = lift(context, text, &error);

	if (!module)
		fail_msg("%s", error.message);
	assert_non_null(
		strstr(tally_attribute(LLVMGetNamedFunction(module, "k"), TALLY_ATTR_LOCKED),
		       "llvm.nvvm.fence.sc.cluster at a.cu:7:3"));
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

/* Bitcode that is cut off anywhere is an error and nothing else. */
static void cut_off_bitcode_is_an_error(void **state)
{
	const struct tally_lift_options options = {.file = "cut.bc"};
	LLVMContextRef context = LLVMContextCreate();
	LLVMMemoryBufferRef memory, bitcode;
	LLVMModuleRef module;
	char *message;
	size_t size;

	memory = LLVMCreateMemoryBufferWithMemoryRangeCopy(lifts[0].in, strlen(lifts[0].in), "in");
	assert_false(LLVMParseIRInContext(context, memory, &module, &message));
	bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
	size = LLVMGetBufferSize(bitcode);
	for (size_t n = 4; n < size; n += 4) {
		char *cut = malloc(n);
		struct tally_error error = {0};

		memcpy(cut, LLVMGetBufferStart(bitcode), n);
		assert_null(tally_bitcode_lift(context, cut, n, false, &options, &error));
		assert_true(tally_failed(&error));
		assert_string_equal(error.file, "cut.bc");
		free(cut);
	}
	LLVMDisposeMemoryBuffer(bitcode);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_lift),
		cmocka_unit_test(refusals_name_what),
		cmocka_unit_test(syntax_errors_have_a_place),
		cmocka_unit_test(locked_instruction_has_a_place),
		cmocka_unit_test(cut_off_bitcode_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
