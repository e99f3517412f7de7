/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm.amdgcn.* and __ockl_* in neutral IR. Meanings: LLVM's AMDGPUUsage and the ISA manuals;
 * ROCm-Device-Libs, OCKL.md. What is missing here stays and locks its kernel.
 */
#include "frontend/bitcode/mapping.h"

/* clang-format off */
#define A  "llvm.amdgcn."
#define O  "__ockl_"

#define ID3(name, op)  {A name ".x", "i", op ".x"}, {A name ".y", "i", op ".y"}, {A name ".z", "i", op ".z"}

/* One of three by its dimension; `other` for any other dimension, as OpenCL has it. */
#define READ3(op)  "%x = call i32 @" op ".x() %y = call i32 @" op ".y() %z = call i32 @" op ".z() "
#define PICK3(r, x, y, z, other)                                                                  \
	"%is0 = icmp eq i32 %a, 0 %is1 = icmp eq i32 %a, 1 %is2 = icmp eq i32 %a, 2 "             \
	"%p2 = select i1 %is2, i32 %" z ", i32 " other " %p1 = select i1 %is1, i32 %" y ", i32 %p2 " \
	"%" r " = select i1 %is0, i32 %" x ", i32 %p1 "
#define BY_DIMENSION(name, op, other)                                                             \
	{O name, "li", READ3(op) PICK3("w", "x", "y", "z", other) "%r = zext i32 %w to i64"}

/* Block size, thread and block ids of all three dimensions. */
#define SIZES  "%sx = call i32 @tally.block.size.x() %sy = call i32 @tally.block.size.y() %sz = call i32 @tally.block.size.z() "
#define TIDS   "%tx = call i32 @tally.thread.id.x() %ty = call i32 @tally.thread.id.y() %tz = call i32 @tally.thread.id.z() "
#define BIDS   "%bx = call i32 @tally.block.id.x() %by = call i32 @tally.block.id.y() %bz = call i32 @tally.block.id.z() "
#define GRIDS  "%nx = call i32 @tally.grid.size.x() %ny = call i32 @tally.grid.size.y() %nz = call i32 @tally.grid.size.z() "
#define GLOBAL_IDS                                                                                \
	SIZES TIDS BIDS "%mx = mul i32 %bx, %sx %my = mul i32 %by, %sy %mz = mul i32 %bz, %sz "   \
	"%gx = add i32 %mx, %tx %gy = add i32 %my, %ty %gz = add i32 %mz, %tz "

#define MULHI(name, code, t, wide, ext, bits)                                                     \
	{O name, code, "%x = " ext " " t " %a to " wide " %y = " ext " " t " %b to " wide         \
	 " %z = mul " wide " %x, %y %w = lshr " wide " %z, " bits " %r = trunc " wide " %w to " t}
#define MULHI24(name, ext, l, s)                                                                  \
	{A name, "iii", "%x = shl i32 %a, 8 %y = " s " i32 %x, 8 %z = shl i32 %b, 8 %w = " s " i32 %z, 8 " \
	 "%p = " ext " i32 %y to i64 %q = " ext " i32 %w to i64 %m = mul i64 %p, %q %h = " l " i64 %m, 32 %r = trunc i64 %h to i32"}
#define MUL24(name, s)                                                                            \
	{name, "iii", "%x = shl i32 %a, 8 %y = " s " i32 %x, 8 %z = shl i32 %b, 8 %w = " s " i32 %z, 8 %r = mul i32 %y, %w"}
#define THREE(suffix, code, t, im, max, min)                                                      \
	{O "max3_" suffix, code, "%x = call " t " @llvm." max "." im "(" t " %a, " t " %b) %r = call " t " @llvm." max "." im "(" t " %x, " t " %c)"}, \
	{O "min3_" suffix, code, "%x = call " t " @llvm." min "." im "(" t " %a, " t " %b) %r = call " t " @llvm." min "." im "(" t " %x, " t " %c)"}, \
	{O "median3_" suffix, code, MEDIAN(t, im, max, min)}
#define MEDIAN(t, im, max, min)                                                                   \
	"%x = call " t " @llvm." min "." im "(" t " %a, " t " %b) %y = call " t " @llvm." max "." im "(" t " %a, " t " %b) " \
	"%z = call " t " @llvm." min "." im "(" t " %y, " t " %c) %r = call " t " @llvm." max "." im "(" t " %x, " t " %z)"
#define SAT(name, op)  {O name "_i32", "iii", "llvm.s" op ".sat.i32"}, {O name "_u32", "iii", "llvm.u" op ".sat.i32"}, \
	{O name "_i64", "lll", "llvm.s" op ".sat.i64"}, {O name "_u64", "lll", "llvm.u" op ".sat.i64"}
#define COUNT(name, op, suffix, code, t)  {O name suffix, code, "%r = call " t " @llvm." op "." t "(" t " %a, i1 false)"}
#define COUNTS(name, op)  COUNT(name, op, "_u8", "cc", "i8"), COUNT(name, op, "_u16", "ss", "i16"), \
	COUNT(name, op, "_u32", "ii", "i32"), COUNT(name, op, "_u64", "ll", "i64")

#define FDOT2                                                                     \
	"%a0 = extractelement <2 x half> %a, i32 0 %a1 = extractelement <2 x half> %a, i32 1 %b0 = extractelement <2 x half> %b, i32 0 %b1 = extractelement <2 x half> %b, i32 1 " \
	"%x0 = fpext half %a0 to float %x1 = fpext half %a1 to float %y0 = fpext half %b0 to float %y1 = fpext half %b1 to float " \
	"%p = call float @llvm.fma.f32(float %x0, float %y0, float %c) %q = call float @llvm.fma.f32(float %x1, float %y1, float %p) " \
	"%m = call float @llvm.maxnum.f32(float %q, float 0.0) %n = call float @llvm.minnum.f32(float %m, float 1.0) %r = select i1 %d, float %n, float %q"

/* Dot products, added to c in 64 bits and, where d asks for it, clamped. */
#define PRODUCT2(n, ext)                                                                          \
	"%a" n " = extractelement <2 x i16> %a, i32 " n " %x" n " = " ext " i16 %a" n " to i64 "  \
	"%b" n " = extractelement <2 x i16> %b, i32 " n " %y" n " = " ext " i16 %b" n " to i64 "  \
	"%m" n " = mul i64 %x" n ", %y" n " "
#define PRODUCT4(n, ext)                                                                          \
	"%a" n " = extractelement <4 x i8> %a, i32 " n " %x" n " = " ext " i8 %a" n " to i64 "    \
	"%b" n " = extractelement <4 x i8> %b, i32 " n " %y" n " = " ext " i8 %b" n " to i64 "    \
	"%m" n " = mul i64 %x" n ", %y" n " "
#define PRODUCT8(n, up, ext, down)                                                                \
	"%a" n " = shl i32 %a, " up " %c" n " = " down " i32 %a" n ", 28 %x" n " = " ext " i32 %c" n " to i64 " \
	"%b" n " = shl i32 %b, " up " %e" n " = " down " i32 %b" n ", 28 %y" n " = " ext " i32 %e" n " to i64 " \
	"%m" n " = mul i64 %x" n ", %y" n " "
#define PLUS(n, before)  "%s" n " = add i64 %s" before ", %m" n " "
#define FROM_C(ext)      "%sc = " ext " i32 %c to i64 "
#define CLAMP_s(last)                                                                             \
	"%lo = call i64 @llvm.smin.i64(i64 %s" last ", i64 2147483647) %hi = call i64 @llvm.smax.i64(i64 %lo, i64 -2147483648) " \
	"%q = select i1 %d, i64 %hi, i64 %s" last " %r = trunc i64 %q to i32"
#define CLAMP_u(last)                                                                             \
	"%lo = call i64 @llvm.umin.i64(i64 %s" last ", i64 4294967295) %q = select i1 %d, i64 %lo, i64 %s" last " %r = trunc i64 %q to i32"
#define DOTS(sign, ext, down)                                                                     \
	{O #sign "dot2", "iIIib", FROM_C(ext) PRODUCT2("0", ext) PRODUCT2("1", ext) PLUS("0", "c") PLUS("1", "0") CLAMP_##sign("1")}, \
	{O #sign "dot4", "iBBib", FROM_C(ext) PRODUCT4("0", ext) PRODUCT4("1", ext) PRODUCT4("2", ext) PRODUCT4("3", ext) \
	 PLUS("0", "c") PLUS("1", "0") PLUS("2", "1") PLUS("3", "2") CLAMP_##sign("3")},          \
	{O #sign "dot8", "iiiib", FROM_C(ext) PRODUCT8("0", "28", ext, down) PRODUCT8("1", "24", ext, down) PRODUCT8("2", "20", ext, down) \
	 PRODUCT8("3", "16", ext, down) PRODUCT8("4", "12", ext, down) PRODUCT8("5", "8", ext, down) PRODUCT8("6", "4", ext, down) \
	 PRODUCT8("7", "0", ext, down) PLUS("0", "c") PLUS("1", "0") PLUS("2", "1") PLUS("3", "2") PLUS("4", "3") PLUS("5", "4") \
	 PLUS("6", "5") PLUS("7", "6") CLAMP_##sign("7")}

/* A reduction over the block, bit by bit; where all threads bring 0 or 1, as HIP's headers do, by
 * the one barrier that is made for it. `barrier` gives %c of %t, of type `type`. */
#define WGRED(name, barrier)                                                                      \
	{O "wgred_" name "_i32", "ii",                                                            \
	 "%big = icmp ugt i32 %a, 1 %some = call i1 @tally.barrier.or(i32 0, i32 0, i1 %big) "    \
	 "%bits = select i1 %some, i32 32, i32 1 br label %loop\n"                                \
	 "loop:\n%k = phi i32 [ 0, %0 ], [ %k1, %loop ] %s = phi i32 [ 0, %0 ], [ %s1, %loop ] "  \
	 "%v = lshr i32 %a, %k %t = trunc i32 %v to i1 " barrier " %u = shl i32 %c, %k "          \
	 "%s1 = add i32 %s, %u %k1 = add i32 %k, 1 %m = icmp ult i32 %k1, %bits br i1 %m, label %loop, label %out\n" \
	 "out:\n%r = add i32 %s1, 0"}
#define TRUTH(op)  "%p = call i1 @tally.barrier." op "(i32 0, i32 0, i1 %t) %c = zext i1 %p to i32"

/* Nothing to do: hints to the scheduler of one machine. */
#define HINT(name, code)  {A name, code, ""}

static const struct bitcode_mapping rows[] = {
	/* Threads and grid. */
	ID3("workitem.id", "tally.thread.id"), ID3("workgroup.id", "tally.block.id"),
	BY_DIMENSION("get_local_id", "tally.thread.id", "0"), BY_DIMENSION("get_group_id", "tally.block.id", "0"),
	BY_DIMENSION("get_local_size", "tally.block.size", "1"), BY_DIMENSION("get_enqueued_local_size", "tally.block.size", "1"),
	BY_DIMENSION("get_num_groups", "tally.grid.size", "1"),
	{O "get_global_id", "li", GLOBAL_IDS PICK3("w", "gx", "gy", "gz", "0") "%r = zext i32 %w to i64"},
	{O "get_global_size", "li", SIZES GRIDS "%gx = mul i32 %nx, %sx %gy = mul i32 %ny, %sy %gz = mul i32 %nz, %sz "
	 PICK3("w", "gx", "gy", "gz", "1") "%r = zext i32 %w to i64"},
	{O "get_global_offset", "li", "%r = add i64 0, 0"}, {O "get_work_dim", "i", "%r = add i32 3, 0"},
	{O "get_local_linear_id", "l", SIZES TIDS "%u = mul i32 %tz, %sy %v = add i32 %u, %ty %w = mul i32 %v, %sx %s = add i32 %w, %tx %r = zext i32 %s to i64"},
	{O "get_global_linear_id", "l", GLOBAL_IDS GRIDS "%ex = mul i32 %nx, %sx %ey = mul i32 %ny, %sy "
	 "%lx = zext i32 %gx to i64 %ly = zext i32 %gy to i64 %lz = zext i32 %gz to i64 %fx = zext i32 %ex to i64 %fy = zext i32 %ey to i64 "
	 "%u = mul i64 %lz, %fy %v = add i64 %u, %ly %w = mul i64 %v, %fx %r = add i64 %w, %lx"},
	{A "wavefrontsize", "i", "tally.warp.size"}, {O "lane_u32", "i", "tally.lane.id"},
	{A "groupstaticsize", "i", "%x = call i32 @tally.shared.total.size() %y = call i32 @tally.shared.dynamic.size() %r = sub i32 %x, %y"},

	/* Synchronisation. The fences that order memory stand beside it. */
	{A "s.barrier", "v", "call void @tally.barrier(i32 0, i32 0)"},
	HINT("wave.barrier", "v"), HINT("sched.barrier", "vi"), HINT("sched.group.barrier", "viii"),
	HINT("iglp.opt", "vi"), HINT("s.nop", "vs"), HINT("s.setprio", "vs"), HINT("s.waitcnt", "vi"),
	{A "s.sleep", "vi", "%x = mul i32 %a, 40 call void @tally.nanosleep(i32 %x)"},
	{A "s.sleep.var", "vi", "%x = mul i32 %a, 40 call void @tally.nanosleep(i32 %x)"},
	{A "endpgm", "v", "tally.exit"},
	{A "s.memtime", "l", "tally.clock"}, {A "s.memrealtime", "l", "tally.global.timer"},
	{O "memtime_u64", "l", "tally.clock"}, {O "memrealtime_u64", "l", "tally.global.timer"},

	WGRED("add", "%c = call i32 @tally.barrier.popc(i32 0, i32 0, i1 %t)"), WGRED("and", TRUTH("and")), WGRED("or", TRUTH("or")),

	/* Memory. */
	{O "atomic_add_noret_f32", "vpf", "%x = atomicrmw fadd ptr %a, float %b syncscope(\"device\") monotonic, align 4"},
	{A "is.shared", "bp", "tally.is.shared"}, {A "is.private", "bp", "tally.is.local"},
	{O "is_local_addr", "bp", "tally.is.shared"}, {O "is_private_addr", "bp", "tally.is.local"},
	{O "to_global", "Gp", "%r = addrspacecast ptr %a to ptr addrspace(1)"},
	{O "to_local", "Sp", "%r = addrspacecast ptr %a to ptr addrspace(3)"},
	{O "to_private", "Pp", "%r = addrspacecast ptr %a to ptr addrspace(5)"},
	{O "dm_alloc", "Gl", "%x = call ptr @tally.malloc(i64 %a) %r = addrspacecast ptr %x to ptr addrspace(1)"},
	{O "dm_dealloc", "vl", "%x = inttoptr i64 %a to ptr call void @tally.free(ptr %x)"},

	/* Floating point. sin and cos take turns, not radians. */
	{A "rcp.f32", "ff", "%r = fdiv float 1.0, %a"}, {A "rcp.f64", "dd", "%r = fdiv double 1.0, %a"}, {A "rcp.f16", "hh", "%r = fdiv half 1.0, %a"},
	{A "rsq.f32", "ff", "tally.approx.rsqrt.f32"}, {A "rsq.f64", "dd", "tally.math.rsqrt.f64"},
	{A "sqrt.f32", "ff", "tally.approx.sqrt.f32"}, {A "sqrt.f64", "dd", "llvm.sqrt.f64"}, {A "sqrt.f16", "hh", "llvm.sqrt.f16"},
	{A "sin.f32", "ff", "%x = fmul float %a, 0x401921FB60000000 %r = call float @tally.approx.sin.f32(float %x)"},
	{A "cos.f32", "ff", "%x = fmul float %a, 0x401921FB60000000 %r = call float @tally.approx.cos.f32(float %x)"},
	{A "exp2.f32", "ff", "tally.approx.ex2.f32"}, {A "log.f32", "ff", "tally.approx.lg2.f32"},
	{A "fract.f32", "ff", "%f = call float @llvm.floor.f32(float %a) %x = fsub float %a, %f %r = call float @llvm.minnum.f32(float %x, float 0x3FEFFFFFE0000000)"},
	{A "fract.f64", "dd", "%f = call double @llvm.floor.f64(double %a) %x = fsub double %a, %f %r = call double @llvm.minnum.f64(double %x, double 0x3FEFFFFFFFFFFFFF)"},
	{A "frexp.mant.f32", "ff", "%x = call {float, i32} @llvm.frexp.f32.i32(float %a) %r = extractvalue {float, i32} %x, 0"},
	{A "frexp.mant.f64", "dd", "%x = call {double, i32} @llvm.frexp.f64.i32(double %a) %r = extractvalue {double, i32} %x, 0"},
	{A "frexp.exp.i32.f32", "if", "%x = call {float, i32} @llvm.frexp.f32.i32(float %a) %r = extractvalue {float, i32} %x, 1"},
	{A "frexp.exp.i32.f64", "id", "%x = call {double, i32} @llvm.frexp.f64.i32(double %a) %r = extractvalue {double, i32} %x, 1"},
	{A "fmed3.f32", "ffff", MEDIAN("float", "f32", "maxnum", "minnum")}, {A "fmed3.f16", "hhhh", MEDIAN("half", "f16", "maxnum", "minnum")},
	{A "fmul.legacy", "fff", "%x = fcmp oeq float %a, 0.0 %y = fcmp oeq float %b, 0.0 %z = or i1 %x, %y %m = fmul float %a, %b %r = select i1 %z, float 0.0, float %m"},
	{A "cvt.pkrtz", "Hff", "%x = call half @tally.cvt.rz.f16.f32(float %a) %y = call half @tally.cvt.rz.f16.f32(float %b) %v = insertelement <2 x half> undef, half %x, i32 0 %r = insertelement <2 x half> %v, half %y, i32 1"},
	{A "fdot2", "fHHfb", FDOT2}, {O "fdot2", "fHHfb", FDOT2}, DOTS(s, "sext", "ashr"), DOTS(u, "zext", "lshr"),

	/* Integers. */
	{A "ubfe.i32", "iiii", "%p = and i32 %b, 31 %w = and i32 %c, 31 %x = lshr i32 %a, %p %m = shl i32 1, %w %n = sub i32 %m, 1 %r = and i32 %x, %n"},
	{A "sbfe.i32", "iiii", "%p = and i32 %b, 31 %w = and i32 %c, 31 %x = ashr i32 %a, %p %z = icmp eq i32 %w, 0 %s = sub i32 32, %w %t = and i32 %s, 31 %l = shl i32 %x, %t %q = ashr i32 %l, %t %r = select i1 %z, i32 0, i32 %q"},
	MUL24(A "mul.u24.i32", "lshr"), MUL24(A "mul.i24.i32", "ashr"),
	MULHI24("mulhi.u24", "zext", "lshr", "lshr"), MULHI24("mulhi.i24", "sext", "ashr", "ashr"),
	{A "alignbyte", "iiii", "%x = and i32 %c, 3 %y = shl i32 %x, 3 %r = call i32 @llvm.fshr.i32(i32 %a, i32 %b, i32 %y)"},
	MUL24(O "mul24_u32", "lshr"), MUL24(O "mul24_i32", "ashr"),
	MULHI("mul_hi_i32", "iii", "i32", "i64", "sext", "32"), MULHI("mul_hi_u32", "iii", "i32", "i64", "zext", "32"),
	MULHI("mul_hi_i64", "lll", "i64", "i128", "sext", "64"), MULHI("mul_hi_u64", "lll", "i64", "i128", "zext", "64"),
	SAT("add_sat", "add"), SAT("sub_sat", "sub"), COUNTS("clz", "ctlz"), COUNTS("ctz", "cttz"),
	{O "popcount_u32", "ii", "llvm.ctpop.i32"}, {O "popcount_u64", "ll", "llvm.ctpop.i64"},
	THREE("f32", "ffff", "float", "f32", "maxnum", "minnum"), THREE("f16", "hhhh", "half", "f16", "maxnum", "minnum"),
	THREE("i32", "iiii", "i32", "i32", "smax", "smin"), THREE("u32", "iiii", "i32", "i32", "umax", "umin"),
	{O "bitalign_u32", "iiii", "%x = and i32 %c, 31 %r = call i32 @llvm.fshr.i32(i32 %a, i32 %b, i32 %x)"},
	{O "bytealign_u32", "iiii", "%x = and i32 %c, 3 %y = shl i32 %x, 3 %r = call i32 @llvm.fshr.i32(i32 %a, i32 %b, i32 %y)"},
	{O "bfm_u32", "iii", "%w = and i32 %a, 31 %p = and i32 %b, 31 %m = shl i32 1, %w %n = sub i32 %m, 1 %r = shl i32 %n, %p"},
	{O "sadd_u32", "iiii", "tally.sad.u32"},
};

/*
 * Lane operations of a wavefront of 32. The contract's masks have 32 lanes, so with a wavefront of
 * 64 the same intrinsics stay and lock their kernel to AMD.
 */
#define READ_LANE(r, v, lane)                                                                     \
	"%m = call i32 @tally.active.mask() %s = call {i32, i1} @tally.shuffle.idx(i32 %m, i32 %" v ", i32 %" lane ", i32 31) " \
	"%" r " = extractvalue {i32, i1} %s, 0"
#define FIRST_LANE  "%k = call i32 @tally.active.mask() %first = call i32 @llvm.cttz.i32(i32 %k, i1 true) "

static const struct bitcode_mapping wave32_rows[] = {
	{A "readfirstlane.i32", "ii", FIRST_LANE READ_LANE("r", "a", "first")},
	{A "readfirstlane.f32", "ff", FIRST_LANE "%i = bitcast float %a to i32 " READ_LANE("q", "i", "first") " %r = bitcast i32 %q to float"},
	{A "readlane.i32", "iii", "%lane = and i32 %b, 31 " READ_LANE("r", "a", "lane")},
	{A "ds.bpermute", "iii", "%w = lshr i32 %a, 2 %lane = and i32 %w, 31 " READ_LANE("r", "b", "lane")},
	{A "ballot.i32", "ib", "%m = call i32 @tally.active.mask() %r = call i32 @tally.vote.ballot(i32 %m, i1 %a)"},
	{A "ballot.i64", "lb", "%m = call i32 @tally.active.mask() %x = call i32 @tally.vote.ballot(i32 %m, i1 %a) %r = zext i32 %x to i64"},
	{O "activelane_u32", "i", "%m = call i32 @tally.active.mask() %l = call i32 @tally.lanemask.lt() %x = and i32 %m, %l %r = call i32 @llvm.ctpop.i32(i32 %x)"},
	{O "wfany_i32", "bi", "%p = icmp ne i32 %a, 0 %m = call i32 @tally.active.mask() %r = call i1 @tally.vote.any(i32 %m, i1 %p)"},
	{O "wfall_i32", "bi", "%p = icmp ne i32 %a, 0 %m = call i32 @tally.active.mask() %r = call i1 @tally.vote.all(i32 %m, i1 %p)"},
	{O "wfsame_i32", "bi", "%p = icmp ne i32 %a, 0 %m = call i32 @tally.active.mask() %r = call i1 @tally.vote.uni(i32 %m, i1 %p)"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_amdgcn, "amdgcn", rows);
BITCODE_TABLE(bitcode_table_wave32, "wave32", wave32_rows);
