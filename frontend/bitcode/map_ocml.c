/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's maths library (__ocml_*) in neutral IR. Meanings: ROCm-Device-Libs, OCML.md. Half precision
 * goes through float, whose results are exact enough to be rounded once more; pairs of halves
 * element by element.
 */
#include "frontend/bitcode/mapping.h"

/* clang-format off */
#define OCML "__ocml_"
#define UP(r, x)    "%" r " = fpext half %" x " to float "
#define DOWN(r, x)  "%" r " = fptrunc float %" x " to half"
#define GET(r, x, n)  "%" r " = extractelement <2 x half> %" x ", i32 " n " "
#define PUT(x, y)     "%v = insertelement <2 x half> undef, half %" x ", i32 0 %r = insertelement <2 x half> %v, half %" y ", i32 1"

/* One, two and three operands of one type; `op` without the type. */
#define ONE(name, op)                                                                             \
	{OCML name "_f32", "ff", op ".f32"}, {OCML name "_f64", "dd", op ".f64"},                 \
	{OCML name "_f16", "hh", UP("x", "a") "%y = call float @" op ".f32(float %x) " DOWN("r", "y")}, \
	{OCML name "_2f16", "HH", GET("a0", "a", "0") GET("a1", "a", "1") UP("x0", "a0") UP("x1", "a1") \
	 "%y0 = call float @" op ".f32(float %x0) %y1 = call float @" op ".f32(float %x1) "       \
	 DOWN("z0", "y0") DOWN("z1", "y1") PUT("z0", "z1")}
#define BINARY(name, op)                                                                          \
	{OCML name "_f32", "fff", op ".f32"}, {OCML name "_f64", "ddd", op ".f64"},               \
	{OCML name "_f16", "hhh", UP("x", "a") UP("y", "b") "%z = call float @" op ".f32(float %x, float %y) " DOWN("r", "z")}, \
	{OCML name "_2f16", "HHH", GET("a0", "a", "0") GET("a1", "a", "1") UP("x0", "a0") UP("x1", "a1") \
	 GET("b0", "b", "0") GET("b1", "b", "1") UP("y0", "b0") UP("y1", "b1")                    \
	 "%z0 = call float @" op ".f32(float %x0, float %y0) %z1 = call float @" op ".f32(float %x1, float %y1) " \
	 DOWN("w0", "z0") DOWN("w1", "z1") PUT("w0", "w1")}
#define TERNARY(name)                                                                             \
	{OCML name "_f32", "ffff", "llvm.fma.f32"}, {OCML name "_f64", "dddd", "llvm.fma.f64"},   \
	{OCML name "_f16", "hhhh", "llvm.fma.f16"}, {OCML name "_2f16", "HHHH", "llvm.fma.v2f16"}, \
	{OCML name "_2f32", "FFFF", "llvm.fma.v2f32"}

/* A body written once for f32 and f64 and used for f16 through float: `b` names its result %q. */
#define BODY1(name, b32, b64)                                                                     \
	{OCML name "_f32", "ff", "%p = fadd float %a, -0.0 " b32 "%r = fadd float %q, -0.0"},     \
	{OCML name "_f64", "dd", "%p = fadd double %a, -0.0 " b64 "%r = fadd double %q, -0.0"},   \
	{OCML name "_f16", "hh", UP("p", "a") b32 DOWN("r", "q")}
#define INV_PI_f32 "0x3FD45F3060000000"
#define INV_PI_f64 "0x3FD45F306DC9C883"

/* A second result through a private pointer: value and place as in C, ours through a generic one. */
#define OUT(p)  "%g = addrspacecast ptr addrspace(5) %" p " to ptr "
#define SINCOS(name, op)                                                                          \
	{OCML name "_f32", "ffP", OUT("b") "%s = alloca float, align 4 call void @" op ".f32(float %a, ptr %s, ptr %g) %r = load float, ptr %s, align 4"}, \
	{OCML name "_f64", "ddP", OUT("b") "%s = alloca double, align 8 call void @" op ".f64(double %a, ptr %s, ptr %g) %r = load double, ptr %s, align 8"}, \
	{OCML name "_f16", "hhP", OUT("b") UP("x", "a") "%s = alloca float, align 4 %c = alloca float, align 4 " \
	 "call void @" op ".f32(float %x, ptr %s, ptr %c) %y = load float, ptr %s, align 4 %z = load float, ptr %c, align 4 " \
	 DOWN("w", "z") " store half %w, ptr %g, align 2 " DOWN("r", "y")}
/* To an int, and tests. */
#define TEST3(name, b32, b64)                                                                     \
	{OCML name "_f32", "if", "%p = fadd float %a, -0.0 " b32 "%r = zext i1 %t to i32"},       \
	{OCML name "_f64", "id", "%p = fadd double %a, -0.0 " b64 "%r = zext i1 %t to i32"},      \
	{OCML name "_f16", "ih", UP("p", "a") b32 "%r = zext i1 %t to i32"}
#define CLASS(name, mask)                                                                         \
	{OCML name "_f32", "if", "%t = call i1 @llvm.is.fpclass.f32(float %a, i32 " mask ") %r = zext i1 %t to i32"}, \
	{OCML name "_f64", "id", "%t = call i1 @llvm.is.fpclass.f64(double %a, i32 " mask ") %r = zext i1 %t to i32"}, \
	{OCML name "_f16", "ih", "%t = call i1 @llvm.is.fpclass.f16(half %a, i32 " mask ") %r = zext i1 %t to i32"}
/* C's FP_NAN 0, FP_INFINITE 1, FP_ZERO 2, FP_SUBNORMAL 3, FP_NORMAL 4. */
#define FPCLASSIFY(code, type, im)                                                                \
	{OCML "fpclassify_" im, "i" code,                                                         \
	 "%n = call i1 @llvm.is.fpclass." im "(" type " %a, i32 264) %z = call i1 @llvm.is.fpclass." im "(" type " %a, i32 96) " \
	 "%s = call i1 @llvm.is.fpclass." im "(" type " %a, i32 144) %i = call i1 @llvm.is.fpclass." im "(" type " %a, i32 516) " \
	 "%w = select i1 %n, i32 4, i32 0 %x = select i1 %z, i32 2, i32 %w %y = select i1 %s, i32 3, i32 %x %r = select i1 %i, i32 1, i32 %y"}
/* With an int operand. */
#define WITH_INT(name, op)                                                                        \
	{OCML name "_f32", "ffi", "llvm." op ".f32.i32"}, {OCML name "_f64", "ddi", "llvm." op ".f64.i32"}, \
	{OCML name "_f16", "hhi", UP("x", "a") "%y = call float @llvm." op ".f32.i32(float %x, i32 %b) " DOWN("r", "y")}

/* Fast forms: f32 by approximation, f64 and f16 as the exact function. */
#define NATIVE(name, b32, op)                                                                     \
	{OCML "native_" name "_f32", "ff", b32}, {OCML "native_" name "_f64", "dd", op ".f64"},   \
	{OCML "native_" name "_f16", "hh", UP("x", "a") "%y = call float @" op ".f32(float %x) " DOWN("r", "y")}

#define TEXT_PI(op, t, im, inv)  "%k = call " t " @llvm." op "." im "(" t " %p) %q = fmul " t " %k, " inv " "
#define PI1(name, op)  BODY1(name, TEXT_PI(op, "float", "f32", INV_PI_f32), TEXT_PI(op, "double", "f64", INV_PI_f64))
/* tan(pi x) as sinpi / cospi. */
#define TANPI(t, im)  "%m = call " t " @tally.math.sinpi." im "(" t " %p) %n = call " t " @tally.math.cospi." im "(" t " %p) %q = fdiv " t " %m, %n "

/* The operand of larger (smaller) magnitude; of equal ones the larger (smaller). */
#define MAG(name, code, t, im, cmp, pick)                                                         \
	{OCML name "_" im, code, "%x = call " t " @llvm.fabs." im "(" t " %a) %y = call " t " @llvm.fabs." im "(" t " %b) " \
	 "%g = fcmp " cmp " " t " %x, %y %h = fcmp " cmp " " t " %y, %x %m = call " t " @llvm." pick "." im "(" t " %a, " t " %b) " \
	 "%z = select i1 %h, " t " %b, " t " %m %r = select i1 %g, " t " %a, " t " %z"}
#define MAGS(name, cmp, pick)                                                                     \
	MAG(name, "fff", "float", "f32", cmp, pick), MAG(name, "ddd", "double", "f64", cmp, pick), MAG(name, "hhh", "half", "f16", cmp, pick)

/* Arithmetic in every direction: OpenCL's rte rtn rtp rtz are the contract's nearest, rm, rp, rz. */
#define ROUNDED(op, code, im)                                                                     \
	{OCML op "_rtn_" im, code, "tally.round." op ".rm." im}, {OCML op "_rtp_" im, code, "tally.round." op ".rp." im}, \
	{OCML op "_rtz_" im, code, "tally.round." op ".rz." im}
#define DIRECTED2(op, inst)                                                                       \
	{OCML op "_rte_f32", "fff", "%r = " inst " float %a, %b"}, ROUNDED(op, "fff", "f32"),      \
	{OCML op "_rte_f64", "ddd", "%r = " inst " double %a, %b"}, ROUNDED(op, "ddd", "f64")
/* A test of each half: all ones where it holds. */
#define CLASS2(name, mask)                                                                        \
	{OCML name "_2f16", "IH", "%t = call <2 x i1> @llvm.is.fpclass.v2f16(<2 x half> %a, i32 " mask ") %r = sext <2 x i1> %t to <2 x i16>"}

static const struct bitcode_mapping rows[] = {
	DIRECTED2("add", "fadd"), DIRECTED2("sub", "fsub"), DIRECTED2("mul", "fmul"), DIRECTED2("div", "fdiv"),
	{OCML "fma_rte_f32", "ffff", "llvm.fma.f32"}, ROUNDED("fma", "ffff", "f32"),
	{OCML "fma_rte_f64", "dddd", "llvm.fma.f64"}, ROUNDED("fma", "dddd", "f64"),
	{OCML "sqrt_rte_f32", "ff", "llvm.sqrt.f32"}, ROUNDED("sqrt", "ff", "f32"),
	{OCML "sqrt_rte_f64", "dd", "llvm.sqrt.f64"}, ROUNDED("sqrt", "dd", "f64"),
	{OCML "cvtrtn_f16_f32", "hf", "tally.cvt.rm.f16.f32"}, {OCML "cvtrtp_f16_f32", "hf", "tally.cvt.rp.f16.f32"},
	{OCML "cvtrtz_f16_f32", "hf", "tally.cvt.rz.f16.f32"},
	CLASS2("isnan", "3"), CLASS2("isinf", "516"), CLASS2("isfinite", "504"), CLASS2("isnormal", "264"),
	{OCML "pown_2f16", "HHI", GET("a0", "a", "0") GET("a1", "a", "1") UP("x0", "a0") UP("x1", "a1")
	 "%b0 = extractelement <2 x i16> %b, i32 0 %b1 = extractelement <2 x i16> %b, i32 1 %n0 = sext i16 %b0 to i32 %n1 = sext i16 %b1 to i32 "
	 "%y0 = call float @llvm.powi.f32.i32(float %x0, i32 %n0) %y1 = call float @llvm.powi.f32.i32(float %x1, i32 %n1) "
	 DOWN("z0", "y0") DOWN("z1", "y1") PUT("z0", "z1")},
	ONE("acos", "llvm.acos"), ONE("asin", "llvm.asin"), ONE("atan", "llvm.atan"), BINARY("atan2", "llvm.atan2"),
	ONE("ceil", "llvm.ceil"), BINARY("copysign", "llvm.copysign"), ONE("cos", "llvm.cos"), ONE("cosh", "llvm.cosh"),
	ONE("exp", "llvm.exp"), ONE("exp10", "llvm.exp10"), ONE("exp2", "llvm.exp2"), ONE("fabs", "llvm.fabs"),
	ONE("floor", "llvm.floor"), BINARY("fmax", "llvm.maxnum"), BINARY("fmin", "llvm.minnum"),
	BINARY("max", "llvm.maxnum"), BINARY("min", "llvm.minnum"), ONE("log", "llvm.log"), ONE("log10", "llvm.log10"),
	ONE("log2", "llvm.log2"), ONE("nearbyint", "llvm.nearbyint"), BINARY("pow", "llvm.pow"), BINARY("powr", "llvm.pow"),
	ONE("rint", "llvm.rint"), ONE("round", "llvm.round"), ONE("sin", "llvm.sin"), ONE("sinh", "llvm.sinh"),
	ONE("sqrt", "llvm.sqrt"), ONE("tan", "llvm.tan"), ONE("tanh", "llvm.tanh"), ONE("trunc", "llvm.trunc"),
	TERNARY("fma"), TERNARY("fmuladd"), TERNARY("mad"),
	ONE("acosh", "tally.math.acosh"), ONE("asinh", "tally.math.asinh"), ONE("atanh", "tally.math.atanh"),
	ONE("cbrt", "tally.math.cbrt"), ONE("cospi", "tally.math.cospi"), ONE("erf", "tally.math.erf"),
	ONE("erfc", "tally.math.erfc"), ONE("erfcinv", "tally.math.erfcinv"), ONE("erfcx", "tally.math.erfcx"),
	ONE("erfinv", "tally.math.erfinv"), ONE("expm1", "tally.math.expm1"), BINARY("fdim", "tally.math.fdim"),
	BINARY("fmod", "tally.math.fmod"), BINARY("hypot", "tally.math.hypot"), ONE("i0", "tally.math.cyl_bessel_i0"),
	ONE("i1", "tally.math.cyl_bessel_i1"), ONE("j0", "tally.math.j0"), ONE("j1", "tally.math.j1"),
	ONE("lgamma", "tally.math.lgamma"), ONE("log1p", "tally.math.log1p"), ONE("logb", "tally.math.logb"),
	ONE("ncdf", "tally.math.normcdf"), ONE("ncdfinv", "tally.math.normcdfinv"), ONE("rcbrt", "tally.math.rcbrt"),
	BINARY("remainder", "tally.math.remainder"), BINARY("rhypot", "tally.math.rhypot"), ONE("rsqrt", "tally.math.rsqrt"),
	ONE("sinpi", "tally.math.sinpi"), ONE("tgamma", "tally.math.tgamma"), ONE("y0", "tally.math.y0"), ONE("y1", "tally.math.y1"),
	{OCML "nextafter_f32", "fff", "tally.math.nextafter.f32"}, {OCML "nextafter_f64", "ddd", "tally.math.nextafter.f64"},
	{OCML "len3_f32", "ffff", "tally.math.norm3d.f32"}, {OCML "len3_f64", "dddd", "tally.math.norm3d.f64"},
	{OCML "len4_f32", "fffff", "tally.math.norm4d.f32"}, {OCML "len4_f64", "ddddd", "tally.math.norm4d.f64"},
	{OCML "rlen3_f32", "ffff", "tally.math.rnorm3d.f32"}, {OCML "rlen3_f64", "dddd", "tally.math.rnorm3d.f64"},
	{OCML "rlen4_f32", "fffff", "tally.math.rnorm4d.f32"}, {OCML "rlen4_f64", "ddddd", "tally.math.rnorm4d.f64"},
	PI1("acospi", "acos"), PI1("asinpi", "asin"), PI1("atanpi", "atan"),
	BODY1("tanpi", TANPI("float", "f32"), TANPI("double", "f64")),
	{OCML "atan2pi_f32", "fff", "%x = call float @llvm.atan2.f32(float %a, float %b) %r = fmul float %x, " INV_PI_f32},
	{OCML "atan2pi_f64", "ddd", "%x = call double @llvm.atan2.f64(double %a, double %b) %r = fmul double %x, " INV_PI_f64},
	MAGS("maxmag", "ogt", "maxnum"), MAGS("minmag", "olt", "minnum"),
	WITH_INT("ldexp", "ldexp"), WITH_INT("scalbn", "ldexp"), WITH_INT("pown", "powi"),
	{OCML "ilogb_f32", "if", "tally.math.ilogb.f32"}, {OCML "ilogb_f64", "id", "tally.math.ilogb.f64"},
	{OCML "ilogb_f16", "ih", UP("x", "a") "%r = call i32 @tally.math.ilogb.f32(float %x)"},
	{OCML "scalb_f32", "fff", "%i = call i32 @llvm.fptosi.sat.i32.f32(float %b) %r = call float @llvm.ldexp.f32.i32(float %a, i32 %i)"},
	{OCML "scalb_f64", "ddd", "%i = call i32 @llvm.fptosi.sat.i32.f64(double %b) %r = call double @llvm.ldexp.f64.i32(double %a, i32 %i)"},
	{OCML "nan_f32", "fi", "%x = and i32 %a, 4194303 %y = or i32 %x, 2143289344 %r = bitcast i32 %y to float"},
	{OCML "nan_f64", "dl", "%x = and i64 %a, 2251799813685247 %y = or i64 %x, 9221120237041090560 %r = bitcast i64 %y to double"},

	/* Two results. */
	SINCOS("sincos", "tally.math.sincos"), SINCOS("sincospi", "tally.math.sincospi"),
	{OCML "modf_f32", "ffP", OUT("b") "%r = call float @tally.math.modf.f32(float %a, ptr %g)"},
	{OCML "modf_f64", "ddP", OUT("b") "%r = call double @tally.math.modf.f64(double %a, ptr %g)"},
	{OCML "frexp_f32", "ffP", OUT("b") "%r = call float @tally.math.frexp.f32(float %a, ptr %g)"},
	{OCML "frexp_f64", "ddP", OUT("b") "%r = call double @tally.math.frexp.f64(double %a, ptr %g)"},
	{OCML "frexp_f16", "hhP", OUT("b") UP("x", "a") "%y = call float @tally.math.frexp.f32(float %x, ptr %g) " DOWN("r", "y")},
	{OCML "remquo_f32", "fffP", OUT("c") "%r = call float @tally.math.remquo.f32(float %a, float %b, ptr %g)"},
	{OCML "remquo_f64", "dddP", OUT("c") "%r = call double @tally.math.remquo.f64(double %a, double %b, ptr %g)"},
	{OCML "fract_f32", "ffP", "%f = call float @llvm.floor.f32(float %a) store float %f, ptr addrspace(5) %b, align 4 %x = fsub float %a, %f %r = call float @llvm.minnum.f32(float %x, float 0x3FEFFFFFE0000000)"},
	{OCML "fract_f64", "ddP", "%f = call double @llvm.floor.f64(double %a) store double %f, ptr addrspace(5) %b, align 8 %x = fsub double %a, %f %r = call double @llvm.minnum.f64(double %x, double 0x3FEFFFFFFFFFFFFF)"},

	/* Tests. */
	CLASS("isnan", "3"), CLASS("isinf", "516"), CLASS("isfinite", "504"), CLASS("isnormal", "264"),
	TEST3("signbit", "%w = bitcast float %p to i32 %t = icmp slt i32 %w, 0 ", "%w = bitcast double %p to i64 %t = icmp slt i64 %w, 0 "),
	FPCLASSIFY("f", "float", "f32"), FPCLASSIFY("d", "double", "f64"), FPCLASSIFY("h", "half", "f16"),

	/* Fast forms. */
	NATIVE("sin", "tally.approx.sin.f32", "llvm.sin"), NATIVE("cos", "tally.approx.cos.f32", "llvm.cos"),
	NATIVE("exp2", "tally.approx.ex2.f32", "llvm.exp2"), NATIVE("log2", "tally.approx.lg2.f32", "llvm.log2"),
	NATIVE("exp", "%x = fmul float %a, 0x3FF7154760000000 %r = call float @tally.approx.ex2.f32(float %x)", "llvm.exp"),
	NATIVE("log", "%x = call float @tally.approx.lg2.f32(float %a) %r = fmul float %x, 0x3FE62E4300000000", "llvm.log"),
	NATIVE("log10", "%x = call float @tally.approx.lg2.f32(float %a) %r = fmul float %x, 0x3FD3441360000000", "llvm.log10"),
	NATIVE("sqrt", "tally.approx.sqrt.f32", "llvm.sqrt"), NATIVE("rsqrt", "tally.approx.rsqrt.f32", "tally.math.rsqrt"),
	{OCML "native_exp10_f32", "ff", "%x = fmul float %a, 0x400A934F00000000 %r = call float @tally.approx.ex2.f32(float %x)"},
	{OCML "native_recip_f32", "ff", "tally.approx.rcp.f32"}, {OCML "native_recip_f64", "dd", "%r = fdiv double 1.0, %a"},
	{OCML "native_rcp_f16", "hh", "%r = fdiv half 1.0, %a"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_ocml, "ocml", rows);
