/* SPDX-License-Identifier: Apache-2.0 */
/* libdevice (__nv_*) in neutral IR. Meanings: NVIDIA's Libdevice User's Guide. */
#include "frontend/bitcode/mapping.h"

/* clang-format off */
#define NV "__nv_"

/* A function of doubles and its float twin (…f), by the shape of its arguments. */
#define TWO(name, s32, s64, op)  {NV name, s64, op ".f64"}, {NV name "f", s32, op ".f32"}
#define LLVM1(name, op)	 TWO(name, "ff", "dd", "llvm." op)
#define LLVM2(name, op)	 TWO(name, "fff", "ddd", "llvm." op)
#define MATH1(name)	 TWO(name, "ff", "dd", "tally.math." name)
#define MATH2(name)	 TWO(name, "fff", "ddd", "tally.math." name)

/* Arithmetic in every direction: CUDA's rn rz rd ru are PTX's rn rz rm rp. */
#define DIR(f, name, s, args, d, ptx, suffix) {NV f name "_" d, s args, "tally.round." name "." ptx suffix}
#define DIRS(f, name, args, suffix)                                                               \
	DIR(f, name, args, "", "rz", "rz", suffix), DIR(f, name, args, "", "rd", "rm", suffix),   \
	DIR(f, name, args, "", "ru", "rp", suffix)
#define RN2(f, name, s, inst, type) {NV f name "_rn", s, "%r = " inst " " type " %a, %b"}
#define FMA_DIRS(name, s, suffix)                                                                 \
	{NV name "_rn", s, "llvm.fma" suffix}, {NV name "_rz", s, "tally.round.fma.rz" suffix},   \
	{NV name "_rd", s, "tally.round.fma.rm" suffix}, {NV name "_ru", s, "tally.round.fma.rp" suffix}

/* Float to integer. NaN: as in map_nvvm.c. */
#define F2I(name, code, ft, fm, d, round, sat, it, nan)                                           \
	{NV name "_" d, code, "%x = call " ft " @" round "." fm "(" ft " %a) "                    \
	 "%y = call " it " @llvm." sat ".sat." it "." fm "(" ft " %x) "                           \
	 "%n = fcmp uno " ft " %a, 0.0 %r = select i1 %n, " it " " nan ", " it " %y"}
#define F2I_DIRS(name, code, ft, fm, sat, it, nan)                                                \
	F2I(name, code, ft, fm, "rn", "llvm.roundeven", sat, it, nan),                            \
	F2I(name, code, ft, fm, "rz", "llvm.trunc", sat, it, nan),                                \
	F2I(name, code, ft, fm, "rd", "llvm.floor", sat, it, nan),                                \
	F2I(name, code, ft, fm, "ru", "llvm.ceil", sat, it, nan)
#define I2F(name, code, inst, it, ft, cvt)                                                        \
	{NV name "_rn", code, "%r = " inst " " it " %a to " ft},                                  \
	{NV name "_rz", code, "tally.cvt.rz." cvt}, {NV name "_rd", code, "tally.cvt.rm." cvt},   \
	{NV name "_ru", code, "tally.cvt.rp." cvt}
#define MIN32 "-2147483648"
#define MIN64 "-9223372036854775808"

#define BITCAST(name, code, from, to) {NV name, code, "%r = bitcast " from " %a to " to}
#define MULHI(name, code, t, wide, ext, bits)                                                     \
	{NV name, code, "%x = " ext " " t " %a to " wide " %y = " ext " " t " %b to " wide        \
	 " %z = mul " wide " %x, %y %w = lshr " wide " %z, " bits " %r = trunc " wide " %w to " t}
/* The mean of two integers, halves rounded down or (r) up, without overflow. */
#define MEAN(name, ext, one)                                                                      \
	{NV name, "iii", "%x = " ext " i32 %a to i64 %y = " ext " i32 %b to i64 %z = add i64 %x, %y " \
	 "%w = add i64 %z, " one " %s = ashr i64 %w, 1 %r = trunc i64 %s to i32"}
/* Tests answer an int. */
#define TEST(name, code, expr) {NV name, code, expr " %r = zext i1 %t to i32"}
#define FFS(name, code, t)                                                                        \
	{NV name, code, "%x = call " t " @llvm.cttz." t "(" t " %a, i1 false) %y = add " t " %x, 1 " \
	 "%z = icmp eq " t " %a, 0 %w = select i1 %z, " t " 0, " t " %y %r = "
#define LOG2E "0x3FF7154760000000"
#define LN2   "0x3FE62E4300000000"

static const struct bitcode_mapping rows[] = {
	LLVM1("acos", "acos"), LLVM1("asin", "asin"), LLVM1("atan", "atan"), LLVM2("atan2", "atan2"),
	LLVM1("ceil", "ceil"), LLVM2("copysign", "copysign"), LLVM1("cos", "cos"), LLVM1("cosh", "cosh"),
	LLVM1("exp", "exp"), LLVM1("exp10", "exp10"), LLVM1("exp2", "exp2"), LLVM1("fabs", "fabs"),
	LLVM1("floor", "floor"), LLVM2("fmax", "maxnum"), LLVM2("fmin", "minnum"), LLVM1("log", "log"),
	LLVM1("log10", "log10"), LLVM1("log2", "log2"), LLVM1("nearbyint", "nearbyint"),
	LLVM2("pow", "pow"), LLVM1("rint", "rint"), LLVM1("round", "round"), LLVM1("sin", "sin"),
	LLVM1("sinh", "sinh"), LLVM1("sqrt", "sqrt"), LLVM1("tan", "tan"), LLVM1("tanh", "tanh"),
	LLVM1("trunc", "trunc"), TWO("fma", "ffff", "dddd", "llvm.fma"),
	{NV "powi", "ddi", "llvm.powi.f64.i32"}, {NV "powif", "ffi", "llvm.powi.f32.i32"},
	{NV "ldexp", "ddi", "llvm.ldexp.f64.i32"}, {NV "ldexpf", "ffi", "llvm.ldexp.f32.i32"},
	{NV "scalbn", "ddi", "llvm.ldexp.f64.i32"}, {NV "scalbnf", "ffi", "llvm.ldexp.f32.i32"},
	MATH1("acosh"), MATH1("asinh"), MATH1("atanh"), MATH1("cbrt"), MATH1("cospi"),
	MATH1("cyl_bessel_i0"), MATH1("cyl_bessel_i1"), MATH1("erf"), MATH1("erfc"), MATH1("erfcinv"),
	MATH1("erfcx"), MATH1("erfinv"), MATH1("expm1"), MATH2("fdim"), MATH2("fmod"), MATH2("hypot"),
	MATH1("j0"), MATH1("j1"), MATH1("lgamma"), MATH1("log1p"), MATH1("logb"), MATH2("nextafter"),
	MATH1("normcdf"), MATH1("normcdfinv"), MATH1("rcbrt"), MATH2("remainder"), MATH2("rhypot"),
	MATH1("rsqrt"), MATH1("sinpi"), MATH1("tgamma"), MATH1("y0"), MATH1("y1"),
	TWO("norm3d", "ffff", "dddd", "tally.math.norm3d"), TWO("norm4d", "fffff", "ddddd", "tally.math.norm4d"),
	TWO("rnorm3d", "ffff", "dddd", "tally.math.rnorm3d"), TWO("rnorm4d", "fffff", "ddddd", "tally.math.rnorm4d"),
	TWO("ilogb", "if", "id", "tally.math.ilogb"), TWO("llrint", "lf", "ld", "tally.math.llrint"),
	TWO("llround", "lf", "ld", "tally.math.llround"), TWO("jn", "fif", "did", "tally.math.jn"),
	TWO("yn", "fif", "did", "tally.math.yn"), TWO("sincos", "vfpp", "vdpp", "tally.math.sincos"),
	TWO("sincospi", "vfpp", "vdpp", "tally.math.sincospi"), TWO("modf", "ffp", "ddp", "tally.math.modf"),
	TWO("frexp", "ffp", "ddp", "tally.math.frexp"), TWO("remquo", "fffp", "dddp", "tally.math.remquo"),
	TWO("norm", "fip", "dip", "tally.math.norm"), TWO("rnorm", "fip", "dip", "tally.math.rnorm"),

	/* Directed rounding. */
	RN2("d", "add", "ddd", "fadd", "double"), DIRS("d", "add", "ddd", ".f64"),
	RN2("d", "sub", "ddd", "fsub", "double"), DIRS("d", "sub", "ddd", ".f64"),
	RN2("d", "mul", "ddd", "fmul", "double"), DIRS("d", "mul", "ddd", ".f64"),
	RN2("d", "div", "ddd", "fdiv", "double"), DIRS("d", "div", "ddd", ".f64"),
	RN2("f", "add", "fff", "fadd", "float"), DIRS("f", "add", "fff", ".f32"),
	RN2("f", "sub", "fff", "fsub", "float"), DIRS("f", "sub", "fff", ".f32"),
	RN2("f", "mul", "fff", "fmul", "float"), DIRS("f", "mul", "fff", ".f32"),
	RN2("f", "div", "fff", "fdiv", "float"), DIRS("f", "div", "fff", ".f32"),
	{NV "dsqrt_rn", "dd", "llvm.sqrt.f64"}, DIRS("d", "sqrt", "dd", ".f64"),
	{NV "fsqrt_rn", "ff", "llvm.sqrt.f32"}, DIRS("f", "sqrt", "ff", ".f32"),
	{NV "drcp_rn", "dd", "%r = fdiv double 1.0, %a"}, DIRS("d", "rcp", "dd", ".f64"),
	{NV "frcp_rn", "ff", "%r = fdiv float 1.0, %a"}, DIRS("f", "rcp", "ff", ".f32"),
	FMA_DIRS("fma", "dddd", ".f64"), FMA_DIRS("fmaf", "ffff", ".f32"), FMA_DIRS("fmaf_ieee", "ffff", ".f32"),
	{NV "frsqrt_rn", "ff", "%x = fpext float %a to double %y = call double @llvm.sqrt.f64(double %x) %z = fdiv double 1.0, %y %r = fptrunc double %z to float"},
	{NV "rcp64h", "dd", "tally.approx.rcp.ftz.f64"},

	/* Fast forms. */
	{NV "fast_sinf", "ff", "tally.approx.sin.f32"}, {NV "fast_cosf", "ff", "tally.approx.cos.f32"},
	{NV "fast_tanf", "ff", "%x = call float @tally.approx.sin.f32(float %a) %y = call float @tally.approx.cos.f32(float %a) %r = call float @tally.approx.div.f32(float %x, float %y)"},
	{NV "fast_sincosf", "vfpp", "%x = call float @tally.approx.sin.f32(float %a) store float %x, ptr %b, align 4 %y = call float @tally.approx.cos.f32(float %a) store float %y, ptr %c, align 4"},
	{NV "fast_expf", "ff", "%x = fmul float %a, " LOG2E " %r = call float @tally.approx.ex2.f32(float %x)"},
	{NV "fast_exp10f", "ff", "%x = fmul float %a, 0x400A934F00000000 %r = call float @tally.approx.ex2.f32(float %x)"},
	{NV "fast_log2f", "ff", "tally.approx.lg2.f32"},
	{NV "fast_logf", "ff", "%x = call float @tally.approx.lg2.f32(float %a) %r = fmul float %x, " LN2},
	{NV "fast_log10f", "ff", "%x = call float @tally.approx.lg2.f32(float %a) %r = fmul float %x, 0x3FD3441360000000"},
	{NV "fast_powf", "fff", "%x = call float @tally.approx.lg2.f32(float %a) %y = fmul float %b, %x %r = call float @tally.approx.ex2.f32(float %y)"},
	{NV "fast_fdividef", "fff", "tally.approx.div.f32"}, {NV "fast_tanhf", "ff", "tally.approx.tanh.f32"},
	{NV "saturatef", "ff", "%x = call float @llvm.maxnum.f32(float %a, float 0.0) %r = call float @llvm.minnum.f32(float %x, float 1.0)"},

	/* Conversions. */
	F2I_DIRS("float2int", "if", "float", "f32", "fptosi", "i32", "0"),
	F2I_DIRS("float2uint", "if", "float", "f32", "fptoui", "i32", "0"),
	F2I_DIRS("float2ll", "lf", "float", "f32", "fptosi", "i64", MIN64),
	F2I_DIRS("float2ull", "lf", "float", "f32", "fptoui", "i64", MIN64),
	F2I_DIRS("double2int", "id", "double", "f64", "fptosi", "i32", MIN32),
	F2I_DIRS("double2uint", "id", "double", "f64", "fptoui", "i32", MIN32),
	F2I_DIRS("double2ll", "ld", "double", "f64", "fptosi", "i64", MIN64),
	F2I_DIRS("double2ull", "ld", "double", "f64", "fptoui", "i64", MIN64),
	I2F("int2float", "fi", "sitofp", "i32", "float", "f32.i32"), I2F("uint2float", "fi", "uitofp", "i32", "float", "f32.u32"),
	I2F("ll2float", "fl", "sitofp", "i64", "float", "f32.i64"), I2F("ull2float", "fl", "uitofp", "i64", "float", "f32.u64"),
	I2F("ll2double", "dl", "sitofp", "i64", "double", "f64.i64"), I2F("ull2double", "dl", "uitofp", "i64", "double", "f64.u64"),
	I2F("double2float", "fd", "fptrunc", "double", "float", "f32.f64"),
	{NV "int2double_rn", "di", "%r = sitofp i32 %a to double"}, {NV "uint2double_rn", "di", "%r = uitofp i32 %a to double"},
	{NV "float2half_rn", "sf", "%h = fptrunc float %a to half %r = bitcast half %h to i16"},
	{NV "half2float", "fs", "%h = bitcast i16 %a to half %r = fpext half %h to float"},
	BITCAST("double_as_longlong", "ld", "double", "i64"), BITCAST("longlong_as_double", "dl", "i64", "double"),
	BITCAST("float_as_int", "if", "float", "i32"), BITCAST("float_as_uint", "if", "float", "i32"),
	BITCAST("int_as_float", "fi", "i32", "float"), BITCAST("uint_as_float", "fi", "i32", "float"),
	{NV "double2hiint", "id", "%x = bitcast double %a to i64 %y = lshr i64 %x, 32 %r = trunc i64 %y to i32"},
	{NV "double2loint", "id", "%x = bitcast double %a to i64 %r = trunc i64 %x to i32"},
	{NV "hiloint2double", "dii", "%x = zext i32 %b to i64 %y = zext i32 %a to i64 %z = shl i64 %y, 32 %w = or i64 %x, %z %r = bitcast i64 %w to double"},

	/* Tests. */
	TEST("isnand", "id", "%t = fcmp uno double %a, 0.0"), TEST("isnanf", "if", "%t = fcmp uno float %a, 0.0"),
	TEST("isinfd", "id", "%x = call double @llvm.fabs.f64(double %a) %t = fcmp oeq double %x, 0x7FF0000000000000"),
	TEST("isinff", "if", "%x = call float @llvm.fabs.f32(float %a) %t = fcmp oeq float %x, 0x7FF0000000000000"),
	TEST("isfinited", "id", "%x = call double @llvm.fabs.f64(double %a) %t = fcmp olt double %x, 0x7FF0000000000000"),
	TEST("finitef", "if", "%x = call float @llvm.fabs.f32(float %a) %t = fcmp olt float %x, 0x7FF0000000000000"),
	TEST("signbitd", "id", "%x = bitcast double %a to i64 %t = icmp slt i64 %x, 0"),
	TEST("signbitf", "if", "%x = bitcast float %a to i32 %t = icmp slt i32 %x, 0"),
	{NV "nan", "dp", "%r = fadd double 0x7FF8000000000000, 0.0"}, {NV "nanf", "fp", "%r = fadd float 0x7FF8000000000000, 0.0"},

	/* Integers. */
	{NV "abs", "ii", "%r = call i32 @llvm.abs.i32(i32 %a, i1 false)"}, {NV "llabs", "ll", "%r = call i64 @llvm.abs.i64(i64 %a, i1 false)"},
	{NV "max", "iii", "llvm.smax.i32"}, {NV "min", "iii", "llvm.smin.i32"}, {NV "umax", "iii", "llvm.umax.i32"},
	{NV "umin", "iii", "llvm.umin.i32"}, {NV "llmax", "lll", "llvm.smax.i64"}, {NV "llmin", "lll", "llvm.smin.i64"},
	{NV "ullmax", "lll", "llvm.umax.i64"}, {NV "ullmin", "lll", "llvm.umin.i64"},
	{NV "brev", "ii", "llvm.bitreverse.i32"}, {NV "brevll", "ll", "llvm.bitreverse.i64"},
	{NV "popc", "ii", "llvm.ctpop.i32"}, {NV "popcll", "il", "%x = call i64 @llvm.ctpop.i64(i64 %a) %r = trunc i64 %x to i32"},
	{NV "clz", "ii", "%r = call i32 @llvm.ctlz.i32(i32 %a, i1 false)"},
	{NV "clzll", "il", "%x = call i64 @llvm.ctlz.i64(i64 %a, i1 false) %r = trunc i64 %x to i32"},
	FFS("ffs", "ii", "i32") "or i32 %w, 0"}, FFS("ffsll", "il", "i64") "trunc i64 %w to i32"},
	{NV "byte_perm", "iiii", "tally.prmt"},
	MULHI("mulhi", "iii", "i32", "i64", "sext", "32"), MULHI("umulhi", "iii", "i32", "i64", "zext", "32"),
	MULHI("mul64hi", "lll", "i64", "i128", "sext", "64"), MULHI("umul64hi", "lll", "i64", "i128", "zext", "64"),
	{NV "mul24", "iii", "%x = shl i32 %a, 8 %y = ashr i32 %x, 8 %z = shl i32 %b, 8 %w = ashr i32 %z, 8 %r = mul i32 %y, %w"},
	{NV "umul24", "iii", "%x = and i32 %a, 16777215 %y = and i32 %b, 16777215 %r = mul i32 %x, %y"},
	MEAN("hadd", "sext", "0"), MEAN("rhadd", "sext", "1"), MEAN("uhadd", "zext", "0"), MEAN("urhadd", "zext", "1"),
	{NV "sad", "iiii", "tally.sad.s32"}, {NV "usad", "iiii", "tally.sad.u32"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_libdevice, "libdevice", rows);
