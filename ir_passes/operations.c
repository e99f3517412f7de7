/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the neutral IR contract as one table, and their declarations. */
#include <string.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"

/* clang-format off */
#define PURE(name, signature)	     {"tally." name, signature, TALLY_OP_PURE}
#define READ(name, signature)	     {"tally." name, signature, TALLY_OP_READ}
#define EFFECT(name, signature)	     {"tally." name, signature, TALLY_OP_EFFECT}
#define CONVERGENT(name, signature)  {"tally." name, signature, TALLY_OP_CONVERGENT}
#define NORETURN(name, signature)    {"tally." name, signature, TALLY_OP_NORETURN}

#define XYZ(name)  PURE(name ".x", "i"), PURE(name ".y", "i"), PURE(name ".z", "i")

/* One rounding direction's arithmetic and conversions. */
#define DIRECTED(d)                                                                               \
	PURE("round.add." d ".f32", "fff"), PURE("round.add." d ".f64", "ddd"),                   \
	PURE("round.sub." d ".f32", "fff"), PURE("round.sub." d ".f64", "ddd"),                   \
	PURE("round.mul." d ".f32", "fff"), PURE("round.mul." d ".f64", "ddd"),                   \
	PURE("round.div." d ".f32", "fff"), PURE("round.div." d ".f64", "ddd"),                   \
	PURE("round.fma." d ".f32", "ffff"), PURE("round.fma." d ".f64", "dddd"),                 \
	PURE("round.sqrt." d ".f32", "ff"), PURE("round.sqrt." d ".f64", "dd"),                   \
	PURE("round.rcp." d ".f32", "ff"), PURE("round.rcp." d ".f64", "dd"),                     \
	PURE("cvt." d ".f32.f64", "fd"), PURE("cvt." d ".f16.f32", "hf"),                         \
	PURE("cvt." d ".bf16.f32", "yf"), PURE("cvt." d ".f32.i32", "fi"),                        \
	PURE("cvt." d ".f32.u32", "fi"), PURE("cvt." d ".f32.i64", "fl"),                         \
	PURE("cvt." d ".f32.u64", "fl"), PURE("cvt." d ".f64.i64", "dl"),                         \
	PURE("cvt." d ".f64.u64", "dl")

/* Maths by the shape of its arguments: T is the type of the name's suffix. */
#define MATH(kind, name, s32, s64) kind("math." name ".f32", s32), kind("math." name ".f64", s64)
#define MATH1(name)	MATH(PURE, name, "ff", "dd")
#define MATH2(name)	MATH(PURE, name, "fff", "ddd")
#define MATH3(name)	MATH(PURE, name, "ffff", "dddd")
#define MATH4(name)	MATH(PURE, name, "fffff", "ddddd")
#define MATH_TO_I(name)	MATH(PURE, name, "if", "id")
#define MATH_TO_L(name)	MATH(PURE, name, "lf", "ld")
#define MATH_T_I(name)	MATH(PURE, name, "ffi", "ddi")
#define MATH_T_L(name)	MATH(PURE, name, "ffl", "ddl")
#define MATH_I_T(name)	MATH(PURE, name, "fif", "did")
#define MATH_V_PP(name)	MATH(EFFECT, name, "vfpp", "vdpp")
#define MATH_T_P(name)	MATH(EFFECT, name, "ffp", "ddp")
#define MATH_TT_P(name)	MATH(EFFECT, name, "fffp", "dddp")
#define MATH_N_P(name)	MATH(PURE, name, "fip", "dip")

/* A copy of all its bytes, or of the first few with zeros behind; what the L2 cache may fetch. */
#define COPY(what)	 EFFECT("copy.async." what, "vqg"), EFFECT("copy.async." what ".part", "vqgi")
#define COPIES(what)	 COPY(what), COPY(what ".64"), COPY(what ".128"), COPY(what ".256")
#define POLICY(what)	 PURE("cache.policy.fractional." what, "lf"), PURE("cache.policy.range." what, "lpii")
#define POLICIES(what)	 POLICY(what), POLICY(what ".evict_first"), POLICY(what ".evict_unchanged")

#define RELU(words, types, s)	 PURE("narrow." words "." types, s), PURE("narrow." words ".relu." types, s)
#define NARROW(type)		 RELU("rn.satfinite", type "x2.f32", "sff"), RELU("rn", "f16x2." type "x2", "is")
#define RANDOM(types, s)		 RELU("rs.satfinite", types ".f32", s)
#define RANDOM_PAIR(type)	 RELU("rs", type "x2.f32", "iffi"), RANDOM(type "x2", "iffi")
#define POWERS(d)		 PURE("narrow." d ".ue8m0x2.f32", "sff"), PURE("narrow." d ".ue8m0x2.bf16x2", "si")
#define FLOATS(op)		 CONVERGENT("reduce." op ".f32", "fif"), CONVERGENT("reduce." op ".NaN.f32", "fif")
#define PACK(bits)								\
	PURE("narrow.pack.sat.u" bits ".s32.b32", "iiii"), PURE("narrow.pack.sat.s" bits ".s32.b32", "iiii")

static const struct tally_operation operations[] = {
	/* Threads and grid. */
	XYZ("thread.id"), XYZ("block.id"), XYZ("block.size"), XYZ("grid.size"),
	PURE("lane.id", "i"), PURE("warp.id", "i"), PURE("warp.count", "i"), PURE("warp.size", "i"),
	PURE("sm.id", "i"), PURE("sm.count", "i"), PURE("grid.id", "l"), PURE("grid.workspace", "l"),
	PURE("shared.total.size", "i"), PURE("shared.dynamic.size", "i"),
	PURE("lanemask.eq", "i"), PURE("lanemask.le", "i"), PURE("lanemask.lt", "i"),
	PURE("lanemask.ge", "i"), PURE("lanemask.gt", "i"),

	/* Synchronisation and lanes. */
	CONVERGENT("barrier", "vii"), CONVERGENT("barrier.popc", "iiib"),
	CONVERGENT("barrier.and", "biib"), CONVERGENT("barrier.or", "biib"),
	CONVERGENT("barrier.arrive", "vii"), CONVERGENT("warp.sync", "vi"),
	CONVERGENT("active.mask", "i"),
	CONVERGENT("vote.all", "bib"), CONVERGENT("vote.any", "bib"), CONVERGENT("vote.uni", "bib"),
	CONVERGENT("vote.ballot", "iib"),
	CONVERGENT("shuffle.up", "{ib}iiii"), CONVERGENT("shuffle.down", "{ib}iiii"),
	CONVERGENT("shuffle.xor", "{ib}iiii"), CONVERGENT("shuffle.idx", "{ib}iiii"),
	CONVERGENT("match.any.i32", "iii"), CONVERGENT("match.any.i64", "iil"),
	CONVERGENT("match.all.i32", "{ib}ii"), CONVERGENT("match.all.i64", "{ib}il"),
	CONVERGENT("reduce.add", "iii"), CONVERGENT("reduce.min", "iii"),
	CONVERGENT("reduce.max", "iii"), CONVERGENT("reduce.umin", "iii"),
	CONVERGENT("reduce.umax", "iii"), CONVERGENT("reduce.and", "iii"),
	CONVERGENT("reduce.or", "iii"), CONVERGENT("reduce.xor", "iii"),
	FLOATS("min"), FLOATS("max"), FLOATS("min.abs"), FLOATS("max.abs"),
	CONVERGENT("elect", "{ib}i"),
	CONVERGENT("guard.enter", "bpi"), CONVERGENT("persist.next", "ipii"),
	CONVERGENT("persist.meet", "vb"), CONVERGENT("persist.finish", "v"),

	/* Matrices of a warp. */
#define FORM(name, signature, ...) {name, signature, TALLY_OP_CONVERGENT},
#include "ir_passes/matrix.def"
#undef FORM

	/* mbarrier objects: their words in shared memory change, and threads wait for that. */
	CONVERGENT("mbarrier.init", "vqi"), CONVERGENT("mbarrier.inval", "vq"),
	CONVERGENT("mbarrier.arrive", "lqi"), CONVERGENT("mbarrier.arrive.some", "lqi"),
	CONVERGENT("mbarrier.arrive.drop", "lqi"), CONVERGENT("mbarrier.arrive.expect", "lqi"),
	CONVERGENT("mbarrier.expect", "vqi"), CONVERGENT("mbarrier.complete", "vqi"),
	CONVERGENT("mbarrier.test", "bql"), CONVERGENT("mbarrier.test.parity", "bqi"),
	CONVERGENT("mbarrier.try", "bql"), CONVERGENT("mbarrier.try.parity", "bqi"),
	PURE("mbarrier.pending.count", "il"),

	/* Copies from global to shared memory that other work may overtake, and cache policies. */
	COPIES("ca.4"), COPIES("ca.8"), COPIES("ca.16"), COPIES("cg.16"),
	EFFECT("copy.commit", "v"), EFFECT("copy.wait", "vi"), EFFECT("copy.wait.all", "v"),
	EFFECT("copy.arrive", "vq"), EFFECT("copy.arrive.own", "vq"),
	POLICIES("evict_last"), POLICIES("evict_normal"), POLICIES("evict_first"),
	POLICIES("evict_unchanged"), PURE("cache.policy.cvt", "ll"),

	/* Memory. */
	PURE("is.global", "bp"), PURE("is.shared", "bp"), PURE("is.constant", "bp"),
	PURE("is.local", "bp"), EFFECT("malloc", "pl"), EFFECT("free", "vp"),

	/* Integers. */
	PURE("prmt", "iiii"),
	PURE("bfe.u32", "iiii"), PURE("bfe.s32", "iiii"),
	PURE("bfe.u64", "llii"), PURE("bfe.s64", "llii"),
	PURE("bfi.b32", "iiiii"), PURE("bfi.b64", "lllii"),
	PURE("bfind.u32", "ii"), PURE("bfind.s32", "ii"),
	PURE("bfind.u64", "il"), PURE("bfind.s64", "il"),
	PURE("bfind.shiftamt.u32", "ii"), PURE("bfind.shiftamt.s32", "ii"),
	PURE("bfind.shiftamt.u64", "il"), PURE("bfind.shiftamt.s64", "il"),
	PURE("bmsk.clamp", "iii"), PURE("bmsk.wrap", "iii"), PURE("fns", "iiii"),
	PURE("dp4a.uu", "iiii"), PURE("dp4a.us", "iiii"), PURE("dp4a.su", "iiii"), PURE("dp4a.ss", "iiii"),
	PURE("dp2a.lo.uu", "iiii"), PURE("dp2a.lo.us", "iiii"), PURE("dp2a.lo.su", "iiii"), PURE("dp2a.lo.ss", "iiii"),
	PURE("dp2a.hi.uu", "iiii"), PURE("dp2a.hi.us", "iiii"), PURE("dp2a.hi.su", "iiii"), PURE("dp2a.hi.ss", "iiii"),
	PURE("sad.u32", "iiii"), PURE("sad.s32", "iiii"),

	/* Approximate, directed and flushing arithmetic. */
	PURE("approx.rcp.f32", "ff"), PURE("approx.sqrt.f32", "ff"), PURE("approx.rsqrt.f32", "ff"),
	PURE("approx.ex2.f32", "ff"), PURE("approx.lg2.f32", "ff"), PURE("approx.sin.f32", "ff"),
	PURE("approx.cos.f32", "ff"), PURE("approx.tanh.f32", "ff"), PURE("approx.div.f32", "fff"),
	PURE("approx.div.full.f32", "fff"),
	PURE("approx.rcp.ftz.f64", "dd"), PURE("approx.rsqrt.ftz.f64", "dd"),
	DIRECTED("rz"), DIRECTED("rm"), DIRECTED("rp"),
	PURE("ftz.f32", "ff"),

	/* Conversions to and from narrow formats, named as the instruction. */
	NARROW("e4m3"), NARROW("e5m2"), NARROW("e2m3"), NARROW("e3m2"), NARROW("e2m1"),
	RELU("rn.satfinite", "e4m3x2.f16x2", "si"), RELU("rn.satfinite", "e5m2x2.f16x2", "si"),
	PURE("narrow.rn.bf16x2.ue8m0x2", "is"), RELU("rn", "tf32.f32", "if"), RELU("rz", "tf32.f32", "if"),
	RELU("rn.satfinite", "tf32.f32", "if"), RELU("rz.satfinite", "tf32.f32", "if"),
	PURE("narrow.rna.satfinite.tf32.f32", "if"),
	PURE("narrow.pack.sat.u16.s32", "iii"), PURE("narrow.pack.sat.s16.s32", "iii"),
	PACK("8"), PACK("4"), PACK("2"),
	RANDOM_PAIR("f16"), RANDOM_PAIR("bf16"), RANDOM("e4m3x4", "iffffi"), RANDOM("e5m2x4", "iffffi"),
	RANDOM("e2m3x4", "iffffi"), RANDOM("e3m2x4", "iffffi"), RANDOM("e2m1x4", "sffffi"),
	POWERS("rz"), POWERS("rp"), POWERS("rz.satfinite"), POWERS("rp.satfinite"),

	/* Other. */
	READ("clock", "l"), READ("clock32", "i"), READ("global.timer", "l"),
	EFFECT("nanosleep", "vi"), NORETURN("trap", "v"), NORETURN("exit", "v"),
	EFFECT("breakpoint", "v"), EFFECT("printf", "ipp"), NORETURN("assert.fail", "vppip"),

	/* Maths. */
	MATH1("acos"), MATH1("acosh"), MATH1("asin"), MATH1("asinh"), MATH1("atan"), MATH1("atanh"),
	MATH1("cbrt"), MATH1("ceil"), MATH1("cos"), MATH1("cosh"), MATH1("cospi"),
	MATH1("cyl_bessel_i0"), MATH1("cyl_bessel_i1"), MATH1("erf"), MATH1("erfc"),
	MATH1("erfcinv"), MATH1("erfcx"), MATH1("erfinv"), MATH1("exp"), MATH1("exp10"),
	MATH1("exp2"), MATH1("expm1"), MATH1("fabs"), MATH1("floor"), MATH1("j0"), MATH1("j1"),
	MATH1("lgamma"), MATH1("log"), MATH1("log10"), MATH1("log1p"), MATH1("log2"),
	MATH1("logb"), MATH1("nearbyint"), MATH1("normcdf"), MATH1("normcdfinv"), MATH1("rcbrt"),
	MATH1("rint"), MATH1("round"), MATH1("rsqrt"), MATH1("sin"), MATH1("sinh"),
	MATH1("sinpi"), MATH1("sqrt"), MATH1("tan"), MATH1("tanh"), MATH1("tanpi"),
	MATH1("tgamma"), MATH1("trunc"), MATH1("y0"), MATH1("y1"),
	MATH2("atan2"), MATH2("copysign"), MATH2("fdim"), MATH2("fdivide"), MATH2("fmax"),
	MATH2("fmin"), MATH2("fmod"), MATH2("hypot"), MATH2("nextafter"), MATH2("pow"),
	MATH2("remainder"), MATH2("rhypot"),
	MATH3("fma"), MATH3("norm3d"), MATH3("rnorm3d"), MATH4("norm4d"), MATH4("rnorm4d"),
	MATH_TO_I("ilogb"), MATH_TO_L("llrint"), MATH_TO_L("llround"),
	MATH_T_I("ldexp"), MATH_T_I("scalbn"), MATH_T_L("scalbln"), MATH_T_I("powi"),
	MATH_I_T("jn"), MATH_I_T("yn"),
	MATH_V_PP("sincos"), MATH_V_PP("sincospi"), MATH_T_P("modf"), MATH_T_P("frexp"),
	MATH_TT_P("remquo"), MATH_N_P("norm"), MATH_N_P("rnorm"),
};
/* clang-format on */

const struct tally_operation *tally_operation_find(const char *name)
{
	if (strncmp(name, "tally.", 6))
		return NULL;
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return NULL;
}

const struct tally_operation *tally_operation_at(size_t index)
{
	return index < sizeof operations / sizeof *operations ? &operations[index] : NULL;
}

static LLVMTypeRef type_of_code(LLVMContextRef context, char code)
{
	switch (code) {
	case 'b':
		return LLVMInt1TypeInContext(context);
	case 'i':
		return LLVMInt32TypeInContext(context);
	case 's':
		return LLVMInt16TypeInContext(context);
	case 'l':
		return LLVMInt64TypeInContext(context);
	case 'h':
		return LLVMHalfTypeInContext(context);
	case 'y':
		return LLVMBFloatTypeInContext(context);
	case 'f':
		return LLVMFloatTypeInContext(context);
	case 'd':
		return LLVMDoubleTypeInContext(context);
	case 'p':
		return LLVMPointerTypeInContext(context, TALLY_AS_GENERIC);
	case 'g':
		return LLVMPointerTypeInContext(context, TALLY_AS_GLOBAL);
	case 'q':
		return LLVMPointerTypeInContext(context, TALLY_AS_SHARED);
	default:
		return LLVMVoidTypeInContext(context);
	}
}

/* Reads one type of a signature and moves `*code` behind it. */
static LLVMTypeRef next_type(LLVMContextRef context, const char **code)
{
	LLVMTypeRef members[TALLY_OPERATION_RESULTS];
	unsigned count = 0;

	if (**code != '{')
		return type_of_code(context, *(*code)++);
	for (++*code; **code != '}'; ++*code)
		members[count++] = type_of_code(context, **code);
	++*code;
	return LLVMStructTypeInContext(context, members, count, 0);
}

static const struct tally_matrix_form matrix_forms[] = {
#define FORM TALLY_MATRIX_FORM
#include "ir_passes/matrix.def"
#undef FORM
};

const struct tally_matrix_form *tally_matrix_find(const char *name, unsigned *index)
{
	for (unsigned i = 0; i < sizeof matrix_forms / sizeof *matrix_forms; i++) {
		if (strcmp(matrix_forms[i].name, name))
			continue;
		if (index)
			*index = i;
		return &matrix_forms[i];
	}
	return NULL;
}

LLVMTypeRef tally_operation_type(LLVMContextRef context, const struct tally_operation *operation)
{
	LLVMTypeRef arguments[TALLY_OPERATION_ARGUMENTS];
	unsigned count = 0;
	const char *code = operation->signature;
	LLVMTypeRef result = next_type(context, &code);

	while (*code)
		arguments[count++] = next_type(context, &code);
	return LLVMFunctionType(result, arguments, count, 0);
}

/*
 * memory(...) as LLVM encodes it: two bits a location, argument memory first, then memory that no
 * pointer of the program reaches. Clocks read and write the latter, so that two reads are not one.
 */
enum { MEMORY_NONE = 0, MEMORY_INACCESSIBLE = 3 << 2 };

static void add_attributes(LLVMValueRef function, enum tally_operation_kind kind)
{
	tally_add_attribute(function, "nounwind", 0);
	tally_add_attribute(function, "nocallback", 0);
	switch (kind) {
	case TALLY_OP_PURE:
		tally_add_attribute(function, "willreturn", 0);
		tally_add_attribute(function, "nosync", 0);
		tally_add_attribute(function, "speculatable", 0);
		tally_add_attribute(function, "memory", MEMORY_NONE);
		break;
	case TALLY_OP_READ:
		tally_add_attribute(function, "willreturn", 0);
		tally_add_attribute(function, "memory", MEMORY_INACCESSIBLE);
		break;
	case TALLY_OP_EFFECT:
		tally_add_attribute(function, "willreturn", 0);
		break;
	case TALLY_OP_CONVERGENT:
		tally_add_attribute(function, "convergent", 0);
		break;
	case TALLY_OP_NORETURN:
		tally_add_attribute(function, "noreturn", 0);
		break;
	}
}

LLVMValueRef tally_operation_declare(LLVMModuleRef module, const char *name)
{
	LLVMValueRef function = LLVMGetNamedFunction(module, name);
	const struct tally_operation *operation;
	LLVMTypeRef type;

	if (function)
		return function;
	operation = tally_operation_find(name);
	if (!operation)
		return NULL;
	type = tally_operation_type(LLVMGetModuleContext(module), operation);
	function = LLVMAddFunction(module, name, type);
	tally_operation_attributes(function, operation);
	return function;
}

void tally_operation_attributes(LLVMValueRef function, const struct tally_operation *operation)
{
	/* norm(n, p) and rnorm(n, p) read an array: they are pure but for that. */
	bool reads = strchr(operation->signature, 'p') && operation->kind == TALLY_OP_PURE &&
		     !strncmp(operation->name, "tally.math.", 11);

	add_attributes(function, reads ? TALLY_OP_EFFECT : operation->kind);
}
