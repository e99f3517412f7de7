/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as a PTX kernel that is valid, ends, and gives the same result whatever order its blocks
 * run in: each thread computes on registers of its own, exchanges values with others of its block
 * where all of them meet, and adds to words that many add to; at the end all registers are stored.
 * NaNs have the machine's bits: none gets into an integer.
 *
 * Statements are templates: $r $d $f $g $p are registers (32 and 64 bits, float, double,
 * predicate), $n a number of a byte, $l one of a lane, $w of a word of eight, $t of a thread, $s a
 * signed one,
 * $? a guard or none, $(a|b) one of several texts. Each takes a byte.
 */
#include <string.h>

#include "base/buffer.h"
#include "tests/fuzz/fuzz.h"

enum { INTS = 6, LONGS = 3, FLOATS = 4, DOUBLES = 2, PREDICATES = 3, DEPTH = 3, STATEMENTS = 48 };

struct kernel {
	struct fuzz_input *input;
	struct tally_buffer *text;
	unsigned labels, statements;
	bool exits; /* some threads may have returned */
};

#define PRINT(...) tally_buffer_print(k->text, __VA_ARGS__)

static unsigned pick(struct kernel *k, unsigned n)
{
	uint8_t b = 0;

	return fuzz_take(k->input, &b, 1) ? b % n : 0;
}

/* "(a|b|c)": prints one, returns what follows. */
static const char *choose(struct kernel *k, const char *at)
{
	const char *end = strchr(at, ')');
	unsigned count = 1, which;

	for (const char *p = at; p < end; p++)
		count += *p == '|';
	which = pick(k, count);
	for (at++; which; at++)
		which -= *at == '|';
	PRINT("%.*s", (int)strcspn(at, "|)"), at);
	return end + 1;
}

static void fill(struct kernel *k, char code)
{
	unsigned n;

	switch (code) {
	case 'r':
		PRINT("%%r%u", pick(k, INTS));
		break;
	case 'd':
		PRINT("%%d%u", pick(k, LONGS));
		break;
	case 'f':
		PRINT("%%f%u", pick(k, FLOATS));
		break;
	case 'g':
		PRINT("%%g%u", pick(k, DOUBLES));
		break;
	case 'p':
		PRINT("%%p%u", pick(k, PREDICATES));
		break;
	case 'n':
		PRINT("%u", pick(k, 256));
		break;
	case 'l':
		PRINT("%u", pick(k, 32));
		break;
	case 't':
		PRINT("%u", pick(k, 64));
		break;
	case 'w':
		PRINT("%u", pick(k, 8) * 4);
		break;
	case 's':
		PRINT("%d", (int)pick(k, 256) - 100);
		break;
	default: /* a guard */
		n = pick(k, 4);
		if (n < 2)
			PRINT("@%s%%p%u ", n ? "!" : "", pick(k, PREDICATES));
	}
}

static void say(struct kernel *k, const char *template)
{
	for (const char *p = template; *p;) {
		size_t plain = strcspn(p, "$");

		tally_buffer_append(k->text, p, plain);
		p += plain;
		if (*p && p[1] == '(') {
			p = choose(k, p + 1);
		} else if (*p) {
			fill(k, p[1]);
			p += 2;
		}
	}
	tally_buffer_append(k->text, "\n", 1);
}

/* What every thread may do by itself. Words 0, 1, … of the sums have an operation each. */
static const char *const plain[] = {
	"$?$(add.u32|sub.u32|mul.lo.s32|mul.hi.s32|mul.hi.u32|mul24.lo.s32|mul24.hi.u32|min.s32|"
	"max.u32) $r, $r, $r;",
	"$?$(and.b32|or.b32|xor.b32|shl.b32|shr.u32|shr.s32|add.sat.s32|sub.sat.s32) $r, $r, $r;",
	"$?$(add.u32|mul.lo.s32|and.b32|shl.b32|shr.s32|xor.b32|mul.hi.u32) $r, $r, $s;",
	"$?$(cnot.b32|not.b32|abs.s32|neg.s32|brev.b32|popc.b32|clz.b32|bfind.u32|bfind.shiftamt."
	"s32) $r, $r;",
	"$?$(mad.lo.s32|mad.hi.u32|mad24.lo.u32|sad.s32|sad.u32|bfe.u32|bfe.s32) $r, $r, $r, $r;",
	"$?$(prmt.b32|prmt.b32.f4e|prmt.b32.rc16|dp4a.s32.u32|dp2a.lo.u32.s32|shf.l.wrap.b32|shf.r."
	"clamp.b32) $r, $r, $r, $r;",
	"bfi.b32 $r, $r, $r, $r, $r;",
	"lop3.b32 $r, $r, $r, $r, $n;",
	"or.b32 %t0, $r, 1; and.b32 %t0, %t0, 0x7fffffff; $(div|rem).$(s32|u32) $r, $r, %t0;",
	"add.cc.u32 $r, $r, $r; addc.u32 $r, $r, $r;",
	"selp.b32 $r, $r, $r, $p;",
	"mov.b32 $r, $(-2147483648|2147483647|-1|65535|32|31|0x7f800000|1);",
	"mul.wide.$(s32|u32) $d, $r, $r;",
	"mad.wide.$(s32|u32) $d, $r, $r, $d;",
	"$(shl.b64|shr.u64|shr.s64) $d, $d, $r;",
	"mov.b64 {$r, %t0}, $d;",
	"$(popc.b64|clz.b64|bfind.u64) $r, $d;",
	"$?$(add.s64|sub.u64|mul.lo.s64|mul.hi.u64|mul.hi.s64|min.s64|max.u64|and.b64|xor.b64) $d, "
	"$d, $d;",
	"$?fma.$(rn|rm|rz|rp.ftz).f32 $f, $f, $f, $f;",
	"$?$(sqrt.rn.f32|rcp.rn.f32|abs.f32|neg.ftz.f32|cvt.rni.f32.f32|cvt.rpi.f32.f32|rcp.rz.f32)"
	" $f, $f;",
	"$?$(cvt.rni.s32.f32|cvt.rzi.u32.f32|cvt.rmi.s32.f32|cvt.rzi.ftz.s32.f32) $r, $f;",
	"$?$(cvt.rn.f32.s32|cvt.rz.f32.u32|cvt.rp.f32.s32) $f, $r;",
	"$?$(add.rn.f32|sub.rz.f32|mul.rn.f32|mul.rp.ftz.f32|add.rn.sat.f32|div.rn.f32|max.NaN.f32|"
	"add.rm.ftz.f32) $f, $f, $f;",
	"$?fma.rn.f64 $g, $g, $g, $g;",
	"$?$(add.rn.f64|sub.rn.f64|mul.rz.f64|div.rn.f64) $g, $g, $g;",
	"cvt.f64.f32 $g, $f;",
	"cvt.$(rn|rz).f32.f64 $f, $g;",
	"cvt.rzi.$(s64|u64).f64 $d, $g;",
	"cvt.$(rn|rz).f16.f32 %h, $f; cvt.f32.f16 $f, %h;",
	"$(cvt.s32.s8|cvt.u32.u16|cvt.sat.s8.s32) $r, $r;",
	"vabsdiff4.u32.u32.u32.add $r, $r, $r, $r;",
	"cvt.pack.sat.$(s8|u8).s32.b32 $r, $r, $r, $r;",
	"setp.$(eq|ltu|gt|num|nan).f32 $p, $f, $f;",
	"setp.$(eq.s32|ne.s32|lt.s32|le.u32|gt.u32|ge.s32) $p, $r, $r;",
	"setp.lt.$(and|or|xor).s32 $p, $r, $r, $p;",
	"$(xor|and|or).pred $p, $p, $p;",
	"and.b32 %t0, $r, 4095; mul.wide.u32 %a, %t0, 4; add.u64 %a, %a, %in; "
	"ld.global.$(u32|nc.u32) $r, [%a];",
	"red.global.$(add.u32 [%acc]|xor.b32 [%acc+4]|max.s32 [%acc+8]|min.u32 [%acc+12]|or.b32 "
	"[%acc+16]), $r;",
	"st.local.b32 [mine+$w], $r;",
	"and.b32 %t0, $r, 7; mul.lo.u32 %t0, %t0, 4; mov.u32 %t1, mine; add.u32 %t0, %t0, %t1; "
	"ld.local.b32 $r, [%t0];",
	"ld.const.b32 $r, [table+$w];",
};

/* Where all threads of the block that are left come by. */
static const char *const meetings[] = {
	"st.shared.b32 [%slot], $r; bar.sync 0; xor.b32 %t0, %me, $t; shl.b32 %t0, %t0, 2; mov.u32 "
	"%t1, words;\n"
	"add.u32 %t0, %t0, %t1; ld.shared.b32 $r, [%t0]; bar.sync 0;",
	"bar.red.popc.u32 $r, 0, $p;",
	"bar.red.$(and|or).pred $p, 0, $p;",
};

/* Where all lanes come by. */
static const char *const warps[] = {
	"shfl.sync.up.b32 $r|$p, $r, $l, 0, 0xffffffff;",
	"shfl.sync.$(down|bfly|idx).b32 $r|$p, $r, $l, 31, 0xffffffff;",
	"vote.sync.ballot.b32 $r, $p, 0xffffffff;",
	"vote.sync.$(any|all|uni).pred $p, $p, 0xffffffff;",
	"match.any.sync.b32 $r, $r, 0xffffffff;",
	"redux.sync.$(add.u32|min.s32|max.u32|xor.b32|or.b32) $r, $r, 0xffffffff;",
};

#define SAY_ANY(k, table) say(k, table[pick(k, sizeof table / sizeof *table)])

static void statements(struct kernel *k, unsigned nesting, bool uniform);

/* A loop whose bound is the same for all threads, or not. */
static void loop(struct kernel *k, unsigned nesting, bool uniform)
{
	unsigned label = k->labels++;
	bool same = pick(k, 2);

	if (same)
		PRINT("mov.u32 %%c%u, %u;\n", nesting, 1 + pick(k, 3));
	else
		PRINT("and.b32 %%c%u, %%r%u, 3; add.u32 %%c%u, %%c%u, 1;\n", nesting, pick(k, INTS),
		      nesting, nesting);
	PRINT("loop%u:\n", label);
	statements(k, nesting + 1, uniform && same);
	PRINT("sub.u32 %%c%u, %%c%u, 1; setp.ne.u32 %%q, %%c%u, 0; @%%q bra loop%u;\n", nesting,
	      nesting, nesting, label);
}

static void condition(struct kernel *k, unsigned nesting)
{
	unsigned label = k->labels++;
	bool otherwise = pick(k, 2);

	PRINT("@%%p%u bra else%u;\n", pick(k, PREDICATES), label);
	statements(k, nesting + 1, false);
	if (otherwise)
		PRINT("bra end%u;\n", label);
	PRINT("else%u:\n", label);
	if (otherwise) {
		statements(k, nesting + 1, false);
		PRINT("end%u:\n", label);
	}
}

static void statements(struct kernel *k, unsigned nesting, bool uniform)
{
	unsigned count = 1 + pick(k, nesting ? 6 : STATEMENTS);

	while (count-- && k->input->size && k->statements++ < STATEMENTS) {
		unsigned what = pick(k, 16);

		if (what < 10) {
			SAY_ANY(k, plain);
		} else if (what < 12 && uniform) {
			SAY_ANY(k, meetings);
		} else if (what == 12 && uniform && !k->exits) {
			SAY_ANY(k, warps);
		} else if (what == 13 && !nesting) { /* some threads have enough */
			PRINT("setp.gt.u32 %%q, %%me, %u; @%%q bra done;\n", 32 + pick(k, 32));
			k->exits = true;
		} else if (nesting < DEPTH && what % 2) {
			loop(k, nesting, uniform);
		} else if (nesting < DEPTH) {
			condition(k, nesting);
		}
	}
}

static void begin(struct kernel *k)
{
	PRINT(".version 8.0\n.target sm_80\n.address_size 64\n"
	      ".const .align 4 .b32 table[8] = {1, 2, 3, 5, 8, 13, 21, 34};\n"
	      ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 acc)\n{\n"
	      ".reg .b32 %%r<%u>, %%t<2>, %%c<%u>, %%me, %%slot, %%idx;\n"
	      ".reg .b64 %%d<%u>, %%a, %%in, %%out, %%acc;\n.reg .b16 %%h;\n"
	      ".reg .f32 %%f<%u>;\n.reg .f64 %%g<%u>;\n.reg .pred %%p<%u>, %%q;\n"
	      ".shared .align 4 .b32 words[64];\n.local .align 4 .b32 mine[8];\n"
	      "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; ld.param.u64 %%acc, [acc];\n"
	      "mov.u32 %%me, %%tid.x; mov.u32 %%t0, %%ctaid.x; mad.lo.u32 %%idx, %%t0, 64, %%me;\n"
	      "mov.u32 %%slot, words; shl.b32 %%t1, %%me, 2; add.u32 %%slot, %%slot, %%t1;\n"
	      "st.shared.b32 [%%slot], %%me;\nmul.wide.u32 %%a, %%idx, 32; add.u64 %%a, %%a, "
	      "%%in;\n",
	      (unsigned)INTS, (unsigned)DEPTH, (unsigned)LONGS, (unsigned)FLOATS, (unsigned)DOUBLES,
	      (unsigned)PREDICATES);
	for (unsigned i = 0; i < INTS; i++)
		PRINT("ld.global.b32 %%r%u, [%%a+%u];\n", i, i * 4);
	for (unsigned i = 0; i < LONGS; i++)
		PRINT("mov.b64 %%d%u, {%%r%u, %%r%u};\n", i, i, i + 1);
	for (unsigned i = 0; i < FLOATS; i++)
		PRINT("cvt.rn.f32.s32 %%f%u, %%r%u;\n", i, i);
	for (unsigned i = 0; i < DOUBLES; i++)
		PRINT("cvt.rn.f64.s32 %%g%u, %%r%u;\n", i, i + 3);
	for (unsigned i = 0; i < PREDICATES; i++)
		PRINT("setp.gt.s32 %%p%u, %%r%u, 0;\n", i, i);
	for (unsigned i = 0; i < 8; i++)
		PRINT("st.local.b32 [mine+%u], %%r%u;\n", i * 4, i % INTS);
	PRINT("bar.sync 0;\n");
}

static void end(struct kernel *k)
{
	PRINT("done:\nmul.wide.u32 %%a, %%idx, 128; add.u64 %%a, %%a, %%out;\n");
	for (unsigned i = 0; i < INTS; i++)
		PRINT("st.global.b32 [%%a+%u], %%r%u;\n", i * 4, i);
	for (unsigned i = 0; i < LONGS; i++)
		PRINT("st.global.b64 [%%a+%u], %%d%u;\n", 32 + i * 8, i);
	for (unsigned i = 0; i < FLOATS; i++)
		PRINT("setp.nan.f32 %%q, %%f%u, %%f%u; @%%q mov.f32 %%f%u, 0f7fffffff; "
		      "st.global.f32 [%%a+%u], %%f%u;\n",
		      i, i, i, 64 + i * 4, i);
	for (unsigned i = 0; i < DOUBLES; i++)
		PRINT("setp.nan.f64 %%q, %%g%u, %%g%u; @%%q mov.f64 %%g%u, 0d7fffffffffffffff; "
		      "st.global.f64 [%%a+%u], %%g%u;\n",
		      i, i, i, 80 + i * 8, i);
	PRINT("ret;\n}\n");
}

void fuzz_make_kernel(struct fuzz_input *input, struct tally_buffer *text)
{
	struct kernel kernel = {.input = input, .text = text};

	begin(&kernel);
	statements(&kernel, 0, true);
	end(&kernel);
}
