/* SPDX-License-Identifier: Apache-2.0 */
/* llvm.nvvm.* on half and bfloat, single and packed. */
#include "frontend/bitcode/mapping.h"

/* clang-format off */
#define N "llvm.nvvm."

/* fma of one type: .relu clamps below at 0 and keeps NaN; .sat clamps to [0, 1], NaN to 0. The .ftz
 * forms are not here: 16-bit denormals have no neutral flush. */
#define FMA16(suffix, code, type, im, zero, one)                                                  \
	{N "fma.rn." suffix, code code code code, "llvm.fma." im},                                \
	{N "fma.rn.relu." suffix, code code code code,                                            \
	 "%x = call " type " @llvm.fma." im "(" type " %a, " type " %b, " type " %c) "            \
	 "%r = call " type " @llvm.maximum." im "(" type " %x, " type " " zero ")"},              \
	{N "fma.rn.sat." suffix, code code code code,                                             \
	 "%x = call " type " @llvm.fma." im "(" type " %a, " type " %b, " type " %c) "            \
	 "%y = call " type " @llvm.maxnum." im "(" type " %x, " type " " zero ") "                \
	 "%r = call " type " @llvm.minnum." im "(" type " %y, " type " " one ")"}

#define MINMAX16(suffix, code, type, im)                                                          \
	{N "fmax." suffix, code code code, "llvm.maxnum." im},                                    \
	{N "fmin." suffix, code code code, "llvm.minnum." im},                                    \
	{N "fmax.nan." suffix, code code code, "llvm.maximum." im},                               \
	{N "fmin.nan." suffix, code code code, "llvm.minimum." im}

/* f32 to 16 bits, one and two values (the first argument is the upper half), .relu or not. */
#define CVT16(name, code, type, im, d, cvt)                                                       \
	{N "f2" name "." d, code "f", cvt("r", "a")},                                             \
	{N "f2" name "." d ".relu", code "f", cvt("x", "a")                                       \
	 " %r = call " type " @llvm.maximum." im "(" type " %x, " type " 0.0)"}
#define CVT16X2(name, code, type, im, d, cvt)                                                     \
	{N "ff2" name "x2." d, code "ff", cvt("x", "a") " " cvt("y", "b")                         \
	 " %v = insertelement <2 x " type "> undef, " type " %y, i32 0 "                          \
	 "%r = insertelement <2 x " type "> %v, " type " %x, i32 1"},                             \
	{N "ff2" name "x2." d ".relu", code "ff", cvt("x", "a") " " cvt("y", "b")                 \
	 " %v = insertelement <2 x " type "> undef, " type " %y, i32 0 "                          \
	 "%w = insertelement <2 x " type "> %v, " type " %x, i32 1 "                              \
	 "%r = call <2 x " type "> @llvm.maximum.v2" im "(<2 x " type "> %w, <2 x " type "> zeroinitializer)"}
#define HALF_RN(r, x) "%" r " = fptrunc float %" x " to half"
#define HALF_RZ(r, x) "%" r " = call half @tally.cvt.rz.f16.f32(float %" x ")"
#define BF_RN(r, x)   "%" r " = fptrunc float %" x " to bfloat"
#define BF_RZ(r, x)   "%" r " = call bfloat @tally.cvt.rz.bf16.f32(float %" x ")"

#define SPLAT(type) "<" type " 1.0, " type " 1.0>"

static const struct bitcode_mapping rows[] = {
	FMA16("f16", "h", "half", "f16", "0.0", "1.0"),
	FMA16("f16x2", "H", "<2 x half>", "v2f16", "zeroinitializer", SPLAT("half")),
	FMA16("bf16", "y", "bfloat", "bf16", "0.0", "1.0"),
	FMA16("bf16x2", "Y", "<2 x bfloat>", "v2bf16", "zeroinitializer", SPLAT("bfloat")),
	MINMAX16("f16", "h", "half", "f16"), MINMAX16("f16x2", "H", "<2 x half>", "v2f16"),
	MINMAX16("bf16", "y", "bfloat", "bf16"), MINMAX16("bf16x2", "Y", "<2 x bfloat>", "v2bf16"),
	{N "neg.bf16", "yy", "%r = fneg bfloat %a"},
	{N "neg.bf16x2", "YY", "%r = fneg <2 x bfloat> %a"},
	{N "fabs.f16", "hh", "llvm.fabs.f16"}, {N "fabs.v2f16", "HH", "llvm.fabs.v2f16"},
	{N "fabs.bf16", "yy", "llvm.fabs.bf16"}, {N "fabs.v2bf16", "YY", "llvm.fabs.v2bf16"},
	{N "ex2.approx.f16", "hh", "llvm.exp2.f16"}, {N "ex2.approx.v2f16", "HH", "llvm.exp2.v2f16"},
	{N "ex2.approx.ftz.bf16", "yy", "llvm.exp2.bf16"},
	{N "ex2.approx.ftz.v2bf16", "YY", "llvm.exp2.v2bf16"},
	CVT16("f16", "h", "half", "f16", "rn", HALF_RN), CVT16("f16", "h", "half", "f16", "rz", HALF_RZ),
	CVT16("bf16", "y", "bfloat", "bf16", "rn", BF_RN), CVT16("bf16", "y", "bfloat", "bf16", "rz", BF_RZ),
	CVT16X2("f16", "H", "half", "f16", "rn", HALF_RN), CVT16X2("f16", "H", "half", "f16", "rz", HALF_RZ),
	CVT16X2("bf16", "Y", "bfloat", "bf16", "rn", BF_RN), CVT16X2("bf16", "Y", "bfloat", "bf16", "rz", BF_RZ),
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_nvvm_half, "nvvm half", rows);
