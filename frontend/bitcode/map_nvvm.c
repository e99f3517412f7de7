/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm.nvvm.* in neutral IR. Meanings: the PTX ISA, for the instruction that NVPTX makes of each.
 * What is missing here has no neutral meaning (matrix units, asynchronous copies, textures,
 * clusters): it stays and locks its kernel.
 */
#include "frontend/bitcode/mapping.h"
#include "ir_passes/contract.h"

/* clang-format off */
#define N "llvm.nvvm."

#define FTZ(r, x) "%" r " = call float @tally.ftz.f32(float %" x ") "
#define SAT32(r, x)                                                                               \
	"%sat = call float @llvm.maxnum.f32(float %" x ", float 0.0) "                            \
	"%" r " = call float @llvm.minnum.f32(float %sat, float 1.0)"

/* A register that is read. */
#define SREG(name, op)   {N "read.ptx.sreg." name, "i", op}
#define SREG3(name, op)  SREG(name ".x", op ".x"), SREG(name ".y", op ".y"), SREG(name ".z", op ".z")

/* Two operands, round to nearest: plain, flushing, saturating, both. */
#define RN2(name, inst)                                                                           \
	{N name ".rn.d", "ddd", "%r = " inst " double %a, %b"},                                   \
	{N name ".rn.f", "fff", "%r = " inst " float %a, %b"},                                    \
	{N name ".rn.ftz.f", "fff", FTZ("x", "a") FTZ("y", "b") "%z = " inst " float %x, %y " FTZ("r", "z")}
#define RN2_SAT(name, inst)                                                                       \
	{N name ".rn.sat.f", "fff", "%z = " inst " float %a, %b " SAT32("r", "z")},               \
	{N name ".rn.ftz.sat.f", "fff", FTZ("x", "a") FTZ("y", "b") "%z = " inst " float %x, %y " FTZ("w", "z") SAT32("r", "w")}
/* The same in a direction. */
#define CALL2(op, d, x, y) "call float @tally.round." op "." d ".f32(float %" x ", float %" y ") "
#define DIR2(name, d)                                                                             \
	{N name "." d ".d", "ddd", "tally.round." name "." d ".f64"},                             \
	{N name "." d ".f", "fff", "tally.round." name "." d ".f32"},                             \
	{N name "." d ".ftz.f", "fff", FTZ("x", "a") FTZ("y", "b") "%z = " CALL2(name, d, "x", "y") FTZ("r", "z")}
#define DIR2_SAT(name, d)                                                                         \
	{N name "." d ".sat.f", "fff", "%z = " CALL2(name, d, "a", "b") SAT32("r", "z")},         \
	{N name "." d ".ftz.sat.f", "fff", FTZ("x", "a") FTZ("y", "b") "%z = " CALL2(name, d, "x", "y") FTZ("w", "z") SAT32("r", "w")}
#define ALL2(name, inst)  RN2(name, inst), DIR2(name, "rz"), DIR2(name, "rm"), DIR2(name, "rp")
#define ALL2_SAT(name, inst)  RN2_SAT(name, inst), DIR2_SAT(name, "rz"), DIR2_SAT(name, "rm"), DIR2_SAT(name, "rp")

#define FMA_FTZ FTZ("x", "a") FTZ("y", "b") FTZ("z", "c")
#define FMA(d, op)                                                                                \
	{N "fma." d ".d", "dddd", op ".f64"},                                                     \
	{N "fma." d ".f", "ffff", op ".f32"},                                                     \
	{N "fma." d ".ftz.f", "ffff", FMA_FTZ "%w = call float @" op ".f32(float %x, float %y, float %z) " FTZ("r", "w")}, \
	{N "fma." d ".sat.f", "ffff", "%w = call float @" op ".f32(float %a, float %b, float %c) " SAT32("r", "w")}, \
	{N "fma." d ".ftz.sat.f", "ffff", FMA_FTZ "%w = call float @" op ".f32(float %x, float %y, float %z) " FTZ("q", "w") SAT32("r", "q")}

#define ROOT(name, d, op)                                                                         \
	{N name "." d ".d", "dd", op ".f64"},                                                     \
	{N name "." d ".f", "ff", op ".f32"},                                                     \
	{N name "." d ".ftz.f", "ff", FTZ("x", "a") "%z = call float @" op ".f32(float %x) " FTZ("r", "z")}

/* One f32 operand through an approximation, with and without flushing. */
#define APPROX(name, op)                                                                          \
	{N name ".f", "ff", "tally.approx." op ".f32"},                                           \
	{N name ".ftz.f", "ff", FTZ("x", "a") "%z = call float @tally.approx." op ".f32(float %x) " FTZ("r", "z")}

#define ROUNDING(name, op)                                                                        \
	{N name ".d", "dd", op ".f64"},                                                           \
	{N name ".f", "ff", op ".f32"},                                                           \
	{N name ".ftz.f", "ff", FTZ("x", "a") "%z = call float @" op ".f32(float %x) " FTZ("r", "z")}

/*
 * Float to integer: saturating. NaN gives 0 where both sides are of 32 bits and the smallest
 * integer (signed) or 1 << 63 (unsigned) where one is of 64 (PTX ISA, cvt).
 */
#define F2I(name, d, ft, fm, round, sat, code, it, im, nan)                                       \
	{N name "." d, code,                                                                      \
	 "%x = call " ft " @" round "." fm "(" ft " %a) "                                         \
	 "%y = call " it " @llvm." sat ".sat." im "." fm "(" ft " %x) "                           \
	 "%n = fcmp uno " ft " %a, 0.0 %r = select i1 %n, " it " " nan ", " it " %y"}
#define F2I_FTZ(name, d, round, sat, code, it, im, nan)                                           \
	{N name "." d ".ftz", code, FTZ("f", "a")                                                 \
	 "%x = call float @" round ".f32(float %f) "                                              \
	 "%y = call " it " @llvm." sat ".sat." im ".f32(float %x) "                               \
	 "%n = fcmp uno float %a, 0.0 %r = select i1 %n, " it " " nan ", " it " %y"}
#define MIN32 "-2147483648"
#define MIN64 "-9223372036854775808"
#define F2I_ALL(d, round)                                                                         \
	F2I("f2i", d, "float", "f32", round, "fptosi", "if", "i32", "i32", "0"),                  \
	F2I("f2ui", d, "float", "f32", round, "fptoui", "if", "i32", "i32", "0"),                 \
	F2I("f2ll", d, "float", "f32", round, "fptosi", "lf", "i64", "i64", MIN64),               \
	F2I("f2ull", d, "float", "f32", round, "fptoui", "lf", "i64", "i64", MIN64),              \
	F2I("d2i", d, "double", "f64", round, "fptosi", "id", "i32", "i32", MIN32),               \
	F2I("d2ui", d, "double", "f64", round, "fptoui", "id", "i32", "i32", MIN32),              \
	F2I("d2ll", d, "double", "f64", round, "fptosi", "ld", "i64", "i64", MIN64),              \
	F2I("d2ull", d, "double", "f64", round, "fptoui", "ld", "i64", "i64", MIN64),             \
	F2I_FTZ("f2i", d, round, "fptosi", "if", "i32", "i32", "0"),                              \
	F2I_FTZ("f2ui", d, round, "fptoui", "if", "i32", "i32", "0"),                             \
	F2I_FTZ("f2ll", d, round, "fptosi", "lf", "i64", "i64", MIN64),                           \
	F2I_FTZ("f2ull", d, round, "fptoui", "lf", "i64", "i64", MIN64)

/* Integer to float; i32 to f64 is exact in every direction. */
#define I2D(d)                                                                                    \
	{N "i2d." d, "di", "%r = sitofp i32 %a to double"}, {N "ui2d." d, "di", "%r = uitofp i32 %a to double"}
#define I2F_RN(name, code, inst, it, ft) {N name ".rn", code, "%r = " inst " " it " %a to " ft}
#define I2F(d)                                                                                    \
	{N "i2f." d, "fi", "tally.cvt." d ".f32.i32"}, {N "ui2f." d, "fi", "tally.cvt." d ".f32.u32"}, \
	{N "ll2f." d, "fl", "tally.cvt." d ".f32.i64"}, {N "ull2f." d, "fl", "tally.cvt." d ".f32.u64"}, \
	{N "ll2d." d, "dl", "tally.cvt." d ".f64.i64"}, {N "ull2d." d, "dl", "tally.cvt." d ".f64.u64"}, \
	{N "d2f." d, "fd", "tally.cvt." d ".f32.f64"},                                            \
	{N "d2f." d ".ftz", "fd", "%z = call float @tally.cvt." d ".f32.f64(double %a) " FTZ("r", "z")}

/* Shuffles: the plain forms give the value, the p forms the pair. Without .sync: all lanes. */
#define SHUFFLE(name, op)                                                                         \
	{N "shfl.sync." name ".i32", "iiiii",                                                     \
	 "%p = call {i32, i1} @tally.shuffle." op "(i32 %a, i32 %b, i32 %c, i32 %d) %r = extractvalue {i32, i1} %p, 0"}, \
	{N "shfl.sync." name ".f32", "fifii",                                                     \
	 "%i = bitcast float %b to i32 %p = call {i32, i1} @tally.shuffle." op "(i32 %a, i32 %i, i32 %c, i32 %d) " \
	 "%v = extractvalue {i32, i1} %p, 0 %r = bitcast i32 %v to float"},                       \
	{N "shfl.sync." name ".i32p", "{ib}iiii", "tally.shuffle." op},                           \
	{N "shfl.sync." name ".f32p", "{fb}ifii",                                                 \
	 "%i = bitcast float %b to i32 %p = call {i32, i1} @tally.shuffle." op "(i32 %a, i32 %i, i32 %c, i32 %d) " \
	 "%v = extractvalue {i32, i1} %p, 0 %f = bitcast i32 %v to float %q = extractvalue {i32, i1} %p, 1 " \
	 "%s = insertvalue {float, i1} undef, float %f, 0 %r = insertvalue {float, i1} %s, i1 %q, 1"}, \
	{N "shfl." name ".i32", "iiii",                                                           \
	 "%p = call {i32, i1} @tally.shuffle." op "(i32 -1, i32 %a, i32 %b, i32 %c) %r = extractvalue {i32, i1} %p, 0"}, \
	{N "shfl." name ".f32", "ffii",                                                           \
	 "%i = bitcast float %a to i32 %p = call {i32, i1} @tally.shuffle." op "(i32 -1, i32 %i, i32 %b, i32 %c) " \
	 "%v = extractvalue {i32, i1} %p, 0 %r = bitcast i32 %v to float"},                       \
	{N "shfl." name ".i32p", "{ib}iii",                                                       \
	 "%r = call {i32, i1} @tally.shuffle." op "(i32 -1, i32 %a, i32 %b, i32 %c)"}

#define BARRIER_RED(op, ret, type, aligned, mark)                                                       \
	{N "barrier.cta.red." op aligned ".all", ret "ib",                                        \
	 "%r = call " type " @tally.barrier." op "(i32 %a, i32 0, i1 %b)" mark},                  \
	{N "barrier.cta.red." op aligned ".count", ret "iib",                                     \
	 "%r = call " type " @tally.barrier." op "(i32 %a, i32 %b, i1 %c)" mark}

/* At the call, in IR text: the lanes of a warp meet it together. */
#define ALIGNED " \"" TALLY_ATTR_ALIGNED "\""

#define REDUX(name, op) {N "redux.sync." name, "iii", "%r = call i32 @tally.reduce." op "(i32 %b, i32 %a)"}
#define REDUX_FLOAT(op)                                                                           \
	{N "redux.sync.f" op, "ffi", "%r = call float @tally.reduce." op ".f32(i32 %b, float %a)"}

#define MULHI(name, code, t, wide, ext, bits)                                                     \
	{N name, code, "%x = " ext " " t " %a to " wide " %y = " ext " " t " %b to " wide         \
	 " %z = mul " wide " %x, %y %w = lshr " wide " %z, " bits " %r = trunc " wide " %w to " t}
#define SAD(name, code, t, im, max, min)                                                          \
	{N name, code, "%x = call " t " @llvm." max "." im "(" t " %a, " t " %b) "                \
	 "%y = call " t " @llvm." min "." im "(" t " %a, " t " %b) "                              \
	 "%z = sub " t " %x, %y %r = add " t " %z, %c"}

#define DP2A(a, b)                                                                                \
	{N "idp4a." a "." b, "iiii", "tally.dp4a." a b},                                          \
	{N "idp2a." a "." b, "iiibi",                                                             \
	 "%x = call i32 @tally.dp2a.lo." a b "(i32 %a, i32 %b, i32 %d) "                          \
	 "%y = call i32 @tally.dp2a.hi." a b "(i32 %a, i32 %b, i32 %d) %r = select i1 %c, i32 %y, i32 %x"}

#define COPY_ASYNC(way, bytes)                                                                     \
	{N "cp.async." way ".shared.global." bytes, "vSG", "tally.copy.async." way "." bytes},    \
	{N "cp.async." way ".shared.global." bytes ".s", "vSGi", "tally.copy.async." way "." bytes ".part"}
#define COPY_ARRIVE(kind, op)                                                                      \
	{N "cp.async.mbarrier.arrive" kind ".shared", "vS", "tally." op},                         \
	{N "cp.async.mbarrier.arrive" kind, "vp",                                                 \
	 "%x = addrspacecast ptr %a to ptr addrspace(3) call void @tally." op "(ptr addrspace(3) %x)"}

#define MBARRIER(name, ret, more, type, op, argument, result)                                      \
	{N "mbarrier." name, ret "p" more,                                                        \
	 "%x = addrspacecast ptr %a to ptr addrspace(3) " result "call " type                     \
	 " @tally.mbarrier." op "(ptr addrspace(3) %x" argument ")"},                       \
	{N "mbarrier." name ".shared", ret "S" more,                                              \
	 result "call " type " @tally.mbarrier." op "(ptr addrspace(3) %a" argument ")"}

#define FP8_RELU(type, relu)                                                                       \
	{N "ff.to." type ".rn" relu, "sff", "tally.narrow.rn.satfinite" relu "." type ".f32"},    \
	{N "f16x2.to." type ".rn" relu, "sH",                                                     \
	 "%x = bitcast <2 x half> %a to i32 %r = call i16 @tally.narrow.rn.satfinite" relu "."    \
	 type ".f16x2(i32 %x)"},                                                                  \
	{N type ".to.f16x2.rn" relu, "Hs",                                                        \
	 "%x = call i32 @tally.narrow.rn" relu ".f16x2." type "(i16 %a) "                         \
	 "%r = bitcast i32 %x to <2 x half>"}
#define FP8(type)	   FP8_RELU(type, ""), FP8_RELU(type, ".relu")
#define TF32(name, words)  {N "f2tf32." name, "if", "tally.narrow." words ".tf32.f32"}

static const struct bitcode_mapping rows[] = {
	/* Threads and grid. */
	SREG3("tid", "tally.thread.id"), SREG3("ntid", "tally.block.size"),
	SREG3("ctaid", "tally.block.id"), SREG3("nctaid", "tally.grid.size"),
	SREG("laneid", "tally.lane.id"), SREG("warpid", "tally.warp.id"),
	SREG("nwarpid", "tally.warp.count"), SREG("warpsize", "tally.warp.size"),
	SREG("smid", "tally.sm.id"), SREG("nsmid", "tally.sm.count"),
	SREG("total_smem_size", "tally.shared.total.size"),
	SREG("dynamic_smem_size", "tally.shared.dynamic.size"),
	SREG("lanemask.eq", "tally.lanemask.eq"), SREG("lanemask.le", "tally.lanemask.le"),
	SREG("lanemask.lt", "tally.lanemask.lt"), SREG("lanemask.ge", "tally.lanemask.ge"),
	SREG("lanemask.gt", "tally.lanemask.gt"),
	SREG("gridid", "%x = call i64 @tally.grid.id() %r = trunc i64 %x to i32"),
	SREG("envreg2", "%x = call i64 @tally.grid.workspace() %r = trunc i64 %x to i32"),
	SREG("envreg1", "%x = call i64 @tally.grid.workspace() %y = lshr i64 %x, 32 "
			"%r = trunc i64 %y to i32"),
	SREG("clock", "tally.clock32"), {N "read.ptx.sreg.clock64", "l", "tally.clock"},
	{N "read.ptx.sreg.globaltimer", "l", "tally.global.timer"},
	SREG("globaltimer.lo", "%x = call i64 @tally.global.timer() %r = trunc i64 %x to i32"),

	/* Synchronisation and lanes. */
	{N "barrier.cta.sync.aligned.all", "vi",
	 "call void @tally.barrier(i32 %a, i32 0)" ALIGNED},
	{N "barrier.cta.sync.all", "vi", "call void @tally.barrier(i32 %a, i32 0)"},
	{N "barrier.cta.sync.aligned.count", "vii",
	 "call void @tally.barrier(i32 %a, i32 %b)" ALIGNED},
	{N "barrier.cta.sync.count", "vii", "tally.barrier"},
	{N "barrier.cta.arrive.aligned.count", "vii",
	 "call void @tally.barrier.arrive(i32 %a, i32 %b)" ALIGNED},
	{N "barrier.cta.arrive.count", "vii", "tally.barrier.arrive"},
	BARRIER_RED("and", "b", "i1", ".aligned", ALIGNED), BARRIER_RED("and", "b", "i1", "", ""),
	BARRIER_RED("or", "b", "i1", ".aligned", ALIGNED), BARRIER_RED("or", "b", "i1", "", ""),
	BARRIER_RED("popc", "i", "i32", ".aligned", ALIGNED), BARRIER_RED("popc", "i", "i32", "", ""),
	{N "bar.warp.sync", "vi", "tally.warp.sync"}, {N "activemask", "i", "tally.active.mask"},
	{N "vote.all.sync", "bib", "tally.vote.all"}, {N "vote.any.sync", "bib", "tally.vote.any"},
	{N "vote.uni.sync", "bib", "tally.vote.uni"},
	{N "vote.ballot.sync", "iib", "tally.vote.ballot"},
	{N "vote.all", "bb", "%r = call i1 @tally.vote.all(i32 -1, i1 %a)"},
	{N "vote.any", "bb", "%r = call i1 @tally.vote.any(i32 -1, i1 %a)"},
	{N "vote.uni", "bb", "%r = call i1 @tally.vote.uni(i32 -1, i1 %a)"},
	{N "vote.ballot", "ib", "%r = call i32 @tally.vote.ballot(i32 -1, i1 %a)"},
	{N "match.any.sync.i32", "iii", "tally.match.any.i32"},
	{N "match.any.sync.i64", "iil", "tally.match.any.i64"},
	{N "match.all.sync.i32p", "{ib}ii", "tally.match.all.i32"},
	{N "match.all.sync.i64p", "{ib}il", "tally.match.all.i64"},
	REDUX("add", "add"), REDUX("min", "min"), REDUX("max", "max"), REDUX("umin", "umin"),
	REDUX_FLOAT("min"), REDUX_FLOAT("min.NaN"), REDUX_FLOAT("min.abs"), REDUX_FLOAT("min.abs.NaN"),
	REDUX_FLOAT("max"), REDUX_FLOAT("max.NaN"), REDUX_FLOAT("max.abs"), REDUX_FLOAT("max.abs.NaN"),
	REDUX("umax", "umax"), REDUX("and", "and"), REDUX("or", "or"), REDUX("xor", "xor"),
	{N "elect.sync", "{ib}i", "tally.elect"},
	SHUFFLE("up", "up"), SHUFFLE("down", "down"), SHUFFLE("bfly", "xor"), SHUFFLE("idx", "idx"),

	/* Copies that other work may overtake. */
	COPY_ASYNC("ca", "4"), COPY_ASYNC("ca", "8"), COPY_ASYNC("ca", "16"), COPY_ASYNC("cg", "16"),
	{N "cp.async.commit.group", "v", "tally.copy.commit"},
	{N "cp.async.wait.group", "vi", "tally.copy.wait"},
	{N "cp.async.wait.all", "v", "tally.copy.wait.all"},
	COPY_ARRIVE("", "copy.arrive"), COPY_ARRIVE(".noinc", "copy.arrive.own"),
	/* mbarrier objects, by generic and by shared address. */
	MBARRIER("init", "v", "i", "void", "init", ", i32 %b", ""), MBARRIER("inval", "v", "", "void", "inval", "", ""),
	MBARRIER("arrive", "l", "", "i64", "arrive", ", i32 1", "%r = "),
	MBARRIER("arrive.noComplete", "l", "i", "i64", "arrive.some", ", i32 %b", "%r = "),
	MBARRIER("arrive.drop", "l", "", "i64", "arrive.drop", ", i32 1", "%r = "),
	MBARRIER("test.wait", "b", "l", "i1", "test", ", i64 %b", "%r = "),
	{N "mbarrier.pending.count", "il", "tally.mbarrier.pending.count"},

	/* Memory. A membar orders all accesses of the thread. */
	{N "membar.cta", "v", "fence syncscope(\"block\") seq_cst"},
	{N "membar.gl", "v", "fence syncscope(\"device\") seq_cst"},
	{N "membar.sys", "v", "fence seq_cst"},
	{N "isspacep.global", "bp", "tally.is.global"}, {N "isspacep.shared", "bp", "tally.is.shared"},
	{N "isspacep.const", "bp", "tally.is.constant"}, {N "isspacep.local", "bp", "tally.is.local"},
	/* Hints to caches: allowed to do nothing. */
	{N "prefetch.L1", "vp", ""}, {N "prefetch.L2", "vp", ""}, {N "prefetchu.L1", "vp", ""},
	{N "prefetch.global.L1", "vG", ""}, {N "prefetch.global.L2", "vG", ""},
	{N "prefetch.global.L2.evict.last", "vG", ""}, {N "prefetch.global.L2.evict.normal", "vG", ""},
	{N "prefetch.local.L1", "vP", ""}, {N "prefetch.local.L2", "vP", ""},
	{N "applypriority.L2.evict.normal", "vpl", ""},
	{N "applypriority.global.L2.evict.normal", "vGl", ""},

	/* Floating point. */
	ALL2("add", "fadd"), ALL2_SAT("add", "fadd"), ALL2("mul", "fmul"), ALL2("div", "fdiv"),
	FMA("rn", "llvm.fma"), FMA("rz", "tally.round.fma.rz"), FMA("rm", "tally.round.fma.rm"),
	FMA("rp", "tally.round.fma.rp"),
	ROOT("sqrt", "rn", "llvm.sqrt"), ROOT("sqrt", "rz", "tally.round.sqrt.rz"),
	ROOT("sqrt", "rm", "tally.round.sqrt.rm"), ROOT("sqrt", "rp", "tally.round.sqrt.rp"),
	ROOT("rcp", "rz", "tally.round.rcp.rz"), ROOT("rcp", "rm", "tally.round.rcp.rm"),
	ROOT("rcp", "rp", "tally.round.rcp.rp"),
	{N "rcp.rn.d", "dd", "%r = fdiv double 1.0, %a"}, {N "rcp.rn.f", "ff", "%r = fdiv float 1.0, %a"},
	{N "rcp.rn.ftz.f", "ff", FTZ("x", "a") "%z = fdiv float 1.0, %x " FTZ("r", "z")},
	{N "sqrt.f", "ff", "llvm.sqrt.f32"},
	APPROX("sqrt.approx", "sqrt"), APPROX("rsqrt.approx", "rsqrt"), APPROX("sin.approx", "sin"),
	APPROX("cos.approx", "cos"), APPROX("lg2.approx", "lg2"),
	{N "ex2.approx.f32", "ff", "tally.approx.ex2.f32"},
	{N "ex2.approx.ftz.f32", "ff", FTZ("x", "a") "%z = call float @tally.approx.ex2.f32(float %x) " FTZ("r", "z")},
	{N "lg2.approx.d", "dd", "llvm.log2.f64"},
	{N "rcp.approx.ftz.f", "ff", FTZ("x", "a") "%z = call float @tally.approx.rcp.f32(float %x) " FTZ("r", "z")},
	{N "rcp.approx.ftz.d", "dd", "tally.approx.rcp.ftz.f64"},
	{N "rsqrt.approx.d", "dd", "tally.math.rsqrt.f64"},
	{N "rsqrt.approx.ftz.d", "dd", "tally.approx.rsqrt.ftz.f64"},
	{N "div.approx.f", "fff", "tally.approx.div.f32"},
	{N "div.approx.ftz.f", "fff", FTZ("x", "a") FTZ("y", "b") "%z = call float @tally.approx.div.f32(float %x, float %y) " FTZ("r", "z")},
	{N "div.full", "fff", "%r = fdiv float %a, %b"},
	{N "div.full.ftz", "fff", FTZ("x", "a") FTZ("y", "b") "%z = fdiv float %x, %y " FTZ("r", "z")},
	{N "saturate.f", "ff", SAT32("r", "a")},
	{N "saturate.ftz.f", "ff", FTZ("x", "a") SAT32("r", "x")},
	{N "saturate.d", "dd", "%x = call double @llvm.maxnum.f64(double %a, double 0.0) %r = call double @llvm.minnum.f64(double %x, double 1.0)"},
	ROUNDING("ceil", "llvm.ceil"), ROUNDING("floor", "llvm.floor"),
	ROUNDING("trunc", "llvm.trunc"), ROUNDING("round", "llvm.roundeven"),
	{N "fabs.f32", "ff", "llvm.fabs.f32"}, {N "fabs.f64", "dd", "llvm.fabs.f64"},
	{N "fabs.ftz.f32", "ff", FTZ("x", "a") "%r = call float @llvm.fabs.f32(float %x)"},
	{N "fmax.d", "ddd", "llvm.maxnum.f64"}, {N "fmin.d", "ddd", "llvm.minnum.f64"},
	{N "fmax.f", "fff", "llvm.maxnum.f32"}, {N "fmin.f", "fff", "llvm.minnum.f32"},
	{N "fmax.nan.f", "fff", "llvm.maximum.f32"}, {N "fmin.nan.f", "fff", "llvm.minimum.f32"},
	{N "fmax.ftz.f", "fff", FTZ("x", "a") FTZ("y", "b") "%r = call float @llvm.maxnum.f32(float %x, float %y)"},
	{N "fmin.ftz.f", "fff", FTZ("x", "a") FTZ("y", "b") "%r = call float @llvm.minnum.f32(float %x, float %y)"},
	{N "fmax.ftz.nan.f", "fff", FTZ("x", "a") FTZ("y", "b") "%r = call float @llvm.maximum.f32(float %x, float %y)"},
	{N "fmin.ftz.nan.f", "fff", FTZ("x", "a") FTZ("y", "b") "%r = call float @llvm.minimum.f32(float %x, float %y)"},

	/* Conversions. */
	F2I_ALL("rz", "llvm.trunc"), F2I_ALL("rn", "llvm.roundeven"), F2I_ALL("rm", "llvm.floor"),
	F2I_ALL("rp", "llvm.ceil"),
	I2D("rn"), I2D("rz"), I2D("rm"), I2D("rp"), I2F("rz"), I2F("rm"), I2F("rp"),
	I2F_RN("i2f", "fi", "sitofp", "i32", "float"), I2F_RN("ui2f", "fi", "uitofp", "i32", "float"),
	I2F_RN("ll2f", "fl", "sitofp", "i64", "float"), I2F_RN("ull2f", "fl", "uitofp", "i64", "float"),
	I2F_RN("ll2d", "dl", "sitofp", "i64", "double"), I2F_RN("ull2d", "dl", "uitofp", "i64", "double"),
	I2F_RN("d2f", "fd", "fptrunc", "double", "float"),
	{N "d2f.rn.ftz", "fd", "%z = fptrunc double %a to float " FTZ("r", "z")},
	{N "f2h.rn", "sf", "%h = fptrunc float %a to half %r = bitcast half %h to i16"},
	{N "f2h.rn.ftz", "sf", FTZ("x", "a") "%h = fptrunc float %x to half %r = bitcast half %h to i16"},
	{N "lohi.i2d", "dii", "%x = zext i32 %a to i64 %y = zext i32 %b to i64 %z = shl i64 %y, 32 %w = or i64 %x, %z %r = bitcast i64 %w to double"},
	{N "d2i.lo", "id", "%x = bitcast double %a to i64 %r = trunc i64 %x to i32"},
	{N "d2i.hi", "id", "%x = bitcast double %a to i64 %y = lshr i64 %x, 32 %r = trunc i64 %y to i32"},
	{N "move.float", "ff", "%r = fadd float %a, -0.0"}, {N "move.double", "dd", "%r = fadd double %a, -0.0"},
	{N "move.i16", "ss", "%r = or i16 %a, 0"}, {N "move.i32", "ii", "%r = or i32 %a, 0"},
	{N "move.i64", "ll", "%r = or i64 %a, 0"},

	/* Narrow formats. */
	FP8("e4m3x2"), FP8("e5m2x2"), TF32("rn", "rn"), TF32("rn.relu", "rn.relu"), TF32("rz", "rz"),
	TF32("rz.relu", "rz.relu"), TF32("rna.satfinite", "rna.satfinite"),

	/* Integers. */
	MULHI("mulhi.i", "iii", "i32", "i64", "sext", "32"), MULHI("mulhi.ui", "iii", "i32", "i64", "zext", "32"),
	MULHI("mulhi.ll", "lll", "i64", "i128", "sext", "64"), MULHI("mulhi.ull", "lll", "i64", "i128", "zext", "64"),
	MULHI("mulhi.s", "sss", "i16", "i32", "sext", "16"), MULHI("mulhi.us", "sss", "i16", "i32", "zext", "16"),
	{N "mul24.i", "iii", "%x = shl i32 %a, 8 %y = ashr i32 %x, 8 %z = shl i32 %b, 8 %w = ashr i32 %z, 8 %r = mul i32 %y, %w"},
	{N "mul24.ui", "iii", "%x = and i32 %a, 16777215 %y = and i32 %b, 16777215 %r = mul i32 %x, %y"},
	SAD("sad.i", "iiii", "i32", "i32", "smax", "smin"), SAD("sad.ui", "iiii", "i32", "i32", "umax", "umin"),
	SAD("sad.ll", "llll", "i64", "i64", "smax", "smin"), SAD("sad.ull", "llll", "i64", "i64", "umax", "umin"),
	SAD("sad.s", "ssss", "i16", "i16", "smax", "smin"), SAD("sad.us", "ssss", "i16", "i16", "umax", "umin"),
	{N "prmt", "iiii", "tally.prmt"}, {N "fns", "iiii", "tally.fns"},
	{N "bmsk.clamp", "iii", "tally.bmsk.clamp"}, {N "bmsk.wrap", "iii", "tally.bmsk.wrap"},
	{N "flo.s.i32", "iib", "%x = call i32 @tally.bfind.s32(i32 %a) %y = call i32 @tally.bfind.shiftamt.s32(i32 %a) %r = select i1 %b, i32 %y, i32 %x"},
	{N "flo.u.i32", "iib", "%x = call i32 @tally.bfind.u32(i32 %a) %y = call i32 @tally.bfind.shiftamt.u32(i32 %a) %r = select i1 %b, i32 %y, i32 %x"},
	{N "flo.s.i64", "ilb", "%x = call i32 @tally.bfind.s64(i64 %a) %y = call i32 @tally.bfind.shiftamt.s64(i64 %a) %r = select i1 %b, i32 %y, i32 %x"},
	{N "flo.u.i64", "ilb", "%x = call i32 @tally.bfind.u64(i64 %a) %y = call i32 @tally.bfind.shiftamt.u64(i64 %a) %r = select i1 %b, i32 %y, i32 %x"},
	DP2A("s", "s"), DP2A("s", "u"), DP2A("u", "s"), DP2A("u", "u"),
	/* shf.clamp: both words, shifted by at most 32. */
	{N "fshl.clamp.i32", "iiii", "%n = call i32 @llvm.umin.i32(i32 %c, i32 32) %m = zext i32 %n to i64 %x = zext i32 %a to i64 %y = zext i32 %b to i64 %z = shl i64 %x, 32 %w = or i64 %z, %y %s = shl i64 %w, %m %t = lshr i64 %s, 32 %r = trunc i64 %t to i32"},
	{N "fshr.clamp.i32", "iiii", "%n = call i32 @llvm.umin.i32(i32 %c, i32 32) %m = zext i32 %n to i64 %x = zext i32 %a to i64 %y = zext i32 %b to i64 %z = shl i64 %x, 32 %w = or i64 %z, %y %t = lshr i64 %w, %m %r = trunc i64 %t to i32"},

	/* Other. */
	{N "nanosleep", "vi", "tally.nanosleep"}, {N "exit", "v", "tally.exit"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_nvvm, "nvvm", rows);
