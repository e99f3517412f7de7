/* SPDX-License-Identifier: Apache-2.0 */
/* Reference bodies of tally.* operations for the tests, written from the PTX ISA's pseudo-code. */
#include "reference.h"

#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

char ptx_log[4096];

void ptx_log_clear(void)
{
	ptx_log[0] = '\0';
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	size_t used = strlen(ptx_log);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ptx_log + used, sizeof ptx_log - used, format, arguments);
	va_end(arguments);
}

static uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	uint32_t d = 0;

	for (int i = 0; i < 4; i++) {
		uint32_t s = selector >> 4 * i & 15;
		uint32_t byte = (uint32_t)(bytes >> 8 * (s & 7)) & 255;
		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		d |= byte << 8 * i;
	}
	return d;
}

static uint64_t bfe(uint64_t a, uint32_t b, uint32_t c, unsigned bits, bool sign)
{
	uint32_t pos = b & 255, len = c & 255, msb = bits - 1;
	bool sbit = sign && len && a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1;
	uint64_t d = 0;

	for (uint32_t i = 0; i < bits; i++) {
		bool bit = i < len && pos + i <= msb ? a >> (pos + i) & 1 : sbit;
		d |= (uint64_t)bit << i;
	}
	return d;
}

static uint32_t bfe_u32(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)bfe(a, b, c, 32, false);
}
static uint32_t bfe_s32(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)bfe(a, b, c, 32, true);
}
static uint64_t bfe_u64(uint64_t a, uint32_t b, uint32_t c)
{
	return bfe(a, b, c, 64, false);
}
static uint64_t bfe_s64(uint64_t a, uint32_t b, uint32_t c)
{
	return bfe(a, b, c, 64, true);
}

static uint64_t bfi(uint64_t a, uint64_t b, uint32_t c, uint32_t d, unsigned bits)
{
	uint32_t pos = c & 255, len = d & 255;
	uint64_t f = b;

	for (uint32_t i = 0; i < len && pos + i < bits; i++) {
		f &= ~((uint64_t)1 << (pos + i));
		f |= (a >> i & 1) << (pos + i);
	}
	return f;
}
static uint32_t bfi_b32(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return (uint32_t)bfi(a, b, c, d, 32);
}
static uint64_t bfi_b64(uint64_t a, uint64_t b, uint32_t c, uint32_t d)
{
	return bfi(a, b, c, d, 64);
}

static uint32_t bfind(uint64_t a, unsigned bits, bool sign, bool shift)
{
	uint32_t d = UINT32_MAX;

	if (sign && a >> (bits - 1) & 1)
		a = ~a;
	for (int i = (int)bits - 1; i >= 0; i--)
		if (a >> i & 1) {
			d = (uint32_t)i;
			break;
		}
	return shift && d != UINT32_MAX ? bits - 1 - d : d;
}
static uint32_t bfind_u32(uint32_t a)
{
	return bfind(a, 32, false, false);
}
static uint32_t bfind_s32(uint32_t a)
{
	return bfind(a, 32, true, false);
}
static uint32_t bfind_u64(uint64_t a)
{
	return bfind(a, 64, false, false);
}
static uint32_t bfind_shift_u32(uint32_t a)
{
	return bfind(a, 32, false, true);
}

static uint32_t bmsk_clamp(uint32_t a, uint32_t b)
{
	a = a > 32 ? 32 : a;
	b = b > 32 ? 32 : b;
	return (uint32_t)((((uint64_t)1 << b) - 1) << a);
}
static uint32_t bmsk_wrap(uint32_t a, uint32_t b)
{
	return bmsk_clamp(a & 31, b & 31);
}

static uint32_t fns(uint32_t mask, uint32_t base, uint32_t offset)
{
	int32_t n = (int32_t)offset, step = n < 0 ? -1 : 1;

	if (!n)
		return mask >> base & 1 ? base : UINT32_MAX;
	for (int32_t i = (int32_t)base; i >= 0 && i < 32; i += step)
		if (mask >> i & 1 && !(n -= step))
			return (uint32_t)i;
	return UINT32_MAX;
}

static int32_t lane(uint32_t v, int i, int bits, bool sign)
{
	uint32_t x = v >> i * bits & ((1u << bits) - 1);

	return sign && x >> (bits - 1) ? (int32_t)x - (1 << bits) : (int32_t)x;
}
static uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
	for (int i = 0; i < 4; i++)
		c += (uint32_t)(lane(a, i, 8, sa) * lane(b, i, 8, sb));
	return c;
}
static uint32_t dp4a_uu(uint32_t a, uint32_t b, uint32_t c)
{
	return dp4a(a, b, c, false, false);
}
static uint32_t dp4a_us(uint32_t a, uint32_t b, uint32_t c)
{
	return dp4a(a, b, c, false, true);
}
static uint32_t dp4a_ss(uint32_t a, uint32_t b, uint32_t c)
{
	return dp4a(a, b, c, true, true);
}
static uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, int half)
{
	for (int i = 0; i < 2; i++)
		c += (uint32_t)(lane(a, i, 16, true) * lane(b, half + i, 8, true));
	return c;
}
static uint32_t dp2a_lo_ss(uint32_t a, uint32_t b, uint32_t c)
{
	return dp2a(a, b, c, 0);
}
static uint32_t dp2a_hi_ss(uint32_t a, uint32_t b, uint32_t c)
{
	return dp2a(a, b, c, 2);
}

static float ftz(float a)
{
	return fpclassify(a) == FP_SUBNORMAL ? copysignf(0, a) : a;
}
static float rcp(float a)
{
	return 1 / a;
}
static float rsqrt(float a)
{
	return 1 / sqrtf(a);
}
/* A double of an upper word alone, without denormals. */
static double upper(double a)
{
	uint64_t bits;

	if (isnan(a))
		bits = 0x7fffffff00000000;
	else
		memcpy(&bits, &a, sizeof a);
	bits &= 0xffffffff00000000;
	if (!(bits & 0x7ff0000000000000))
		bits &= 0x8000000000000000;
	memcpy(&a, &bits, sizeof a);
	return a;
}
static double rcp64(double a)
{
	return upper(1 / upper(a));
}
static double rsqrt64(double a)
{
	return upper(1 / sqrt(upper(a)));
}
static float divide_approx(float a, float b)
{
	if (fabsf(b) > 0x1p126f && !isinf(b))
		return isinf(a) ? NAN : copysignf(0, a) * copysignf(1, b);
	return a / b;
}
static float divide(float a, float b)
{
	return a / b;
}

/* One rounding mode for one operation: volatile keeps the compiler from moving it out. */
#define ROUNDED(name, type, mode, arguments, expression)                                           \
	static type name arguments                                                                 \
	{                                                                                          \
		fesetround(mode);                                                                  \
		volatile type d = expression;                                                      \
		fesetround(FE_TONEAREST);                                                          \
		return d;                                                                          \
	}
#define VOLATILE(type, x) (*(volatile type *)&(x))
ROUNDED(add_rz, float, FE_TOWARDZERO, (float a, float b), VOLATILE(float, a) + b)
ROUNDED(add_rp, float, FE_UPWARD, (float a, float b), VOLATILE(float, a) + b)
ROUNDED(add_rm, float, FE_DOWNWARD, (float a, float b), VOLATILE(float, a) + b)
ROUNDED(div_rp, double, FE_UPWARD, (double a, double b), VOLATILE(double, a) / b)
ROUNDED(cvt_rz_f32_f64, float, FE_TOWARDZERO, (double a), (float)VOLATILE(double, a))
ROUNDED(cvt_rp_f32_f64, float, FE_UPWARD, (double a), (float)VOLATILE(double, a))
ROUNDED(cvt_rz_f32_i32, float, FE_TOWARDZERO, (int32_t a), (float)VOLATILE(int32_t, a))
ROUNDED(cvt_rp_f32_u64, float, FE_UPWARD, (uint64_t a), (float)VOLATILE(uint64_t, a))

static _Float16 cvt_rz_f16_f32(float a)
{
	_Float16 h = (_Float16)a;
	uint16_t bits;

	memcpy(&bits, &h, sizeof bits);
	if (fabsf((float)h) > fabsf(a))
		bits--;
	memcpy(&h, &bits, sizeof bits);
	return h;
}

/* bfloat is returned like a half: in the low bits of xmm0. GCC 12's libgcc lacks this. */
static _Float16 truncate_bf16(float a)
{
	uint32_t bits;
	uint16_t top;
	_Float16 h;

	memcpy(&bits, &a, sizeof bits);
	if (isnan(a))
		top = (uint16_t)(bits >> 16 | 0x40);
	else
		top = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
	memcpy(&h, &top, sizeof h);
	return h;
}

static uint32_t thread_id(void)
{
	return 5;
}
static uint32_t size(void)
{
	return 64;
}
static uint64_t clock64(void)
{
	return 0x1122334455667788;
}

static void barrier(uint32_t id, uint32_t count)
{
	note("barrier(%u,%u)", id, count);
}
static void arrive(uint32_t id, uint32_t count)
{
	note("arrive(%u,%u)", id, count);
}
static uint32_t barrier_popc(uint32_t id, uint32_t count, uint32_t p)
{
	note("popc(%u,%u,%u)", id, count, p & 1);
	return 7;
}
static uint32_t barrier_and(uint32_t id, uint32_t count, uint32_t p)
{
	note("and(%u,%u,%u)", id, count, p & 1);
	return 1;
}
static void warp_sync(uint32_t mask)
{
	note("warp(%x)", mask);
}
static uint32_t active_mask(void)
{
	return 0xff;
}
static uint32_t vote_any(uint32_t mask, uint32_t p)
{
	note("any(%x,%u)", mask, p & 1);
	return 1;
}
static uint32_t ballot(uint32_t mask, uint32_t p)
{
	note("ballot(%x,%u)", mask, p & 1);
	return 0xa5;
}
static uint32_t match_any(uint32_t mask, uint64_t v)
{
	note("match(%x,%llx)", mask, (unsigned long long)v);
	return 0x11;
}
static uint32_t reduce_umin(uint32_t mask, uint32_t v)
{
	note("umin(%x,%u)", mask, v);
	return v;
}
static uint32_t reduce_add(uint32_t mask, uint32_t v)
{
	note("add(%x,%u)", mask, v);
	return v + 1;
}
static void nap(uint32_t ns)
{
	note("sleep(%u)", ns);
}
static int print(const char *format, const void *arguments)
{
	int first;
	double second;

	memcpy(&first, arguments, sizeof first);
	memcpy(&second, (const char *)arguments + 8, sizeof second);
	note("printf(%s,%d,%g)", format, first, second);
	return 2;
}

/* Pairs {i32, i1} are built by IR (pairs below) out of 64 bits: value, and the flag above it. */
static uint64_t shuffle(uint32_t kind, uint32_t mask, uint32_t value, uint32_t b, uint32_t c)
{
	note("shuffle%u(%x,%u,%u,%x)", kind, mask, value, b, c);
	return (uint64_t)1 << 32 | (value + 100);
}

const char *const reference_pairs =
	"declare i64 @ptx_shuffle(i32, i32, i32, i32, i32)\n"
	"define internal {i32, i1} @pair(i64 %x) {\n"
	"  %v = trunc i64 %x to i32\n  %s = lshr i64 %x, 32\n  %f = trunc i64 %s to i1\n"
	"  %a = insertvalue {i32, i1} poison, i32 %v, 0\n"
	"  %b = insertvalue {i32, i1} %a, i1 %f, 1\n  ret {i32, i1} %b\n}\n"
#define SHUFFLE(name, kind)                                                                        \
	"define {i32, i1} @tally.shuffle." name "(i32 %m, i32 %v, i32 %b, i32 %c) {\n"             \
	"  %x = call i64 @ptx_shuffle(i32 " kind ", i32 %m, i32 %v, i32 %b, i32 %c)\n"             \
	"  %r = call {i32, i1} @pair(i64 %x)\n  ret {i32, i1} %r\n}\n"
	SHUFFLE("up", "0") SHUFFLE("down", "1") SHUFFLE("xor", "2") SHUFFLE(
		"idx", "3") "define {i32, i1} @tally.match.all.i32(i32 %m, i32 %v) {\n"
			    "  %x = call i64 @ptx_shuffle(i32 4, i32 %m, i32 %v, i32 0, i32 0)\n"
			    "  %r = call {i32, i1} @pair(i64 %x)\n  ret {i32, i1} %r\n}\n"
			    "define {i32, i1} @tally.elect(i32 %m) {\n"
			    "  %x = call i64 @ptx_shuffle(i32 5, i32 %m, i32 0, i32 0, i32 0)\n"
			    "  %r = call {i32, i1} @pair(i64 %x)\n  ret {i32, i1} %r\n}\n";

extern float __extendhfsf2(_Float16);
extern _Float16 __truncsfhf2(float);
extern _Float16 __truncdfhf2(double);

const struct reference_symbol reference_symbols[] = {
#define S(name, function) {name, (void *)(uintptr_t)(function)}
	S("ptx_shuffle", shuffle),
	S("tally.prmt", prmt),
	S("tally.bfe.u32", bfe_u32),
	S("tally.bfe.s32", bfe_s32),
	S("tally.bfe.u64", bfe_u64),
	S("tally.bfe.s64", bfe_s64),
	S("tally.bfi.b32", bfi_b32),
	S("tally.bfi.b64", bfi_b64),
	S("tally.bfind.u32", bfind_u32),
	S("tally.bfind.s32", bfind_s32),
	S("tally.bfind.u64", bfind_u64),
	S("tally.bfind.shiftamt.u32", bfind_shift_u32),
	S("tally.bmsk.clamp", bmsk_clamp),
	S("tally.bmsk.wrap", bmsk_wrap),
	S("tally.fns", fns),
	S("tally.dp4a.uu", dp4a_uu),
	S("tally.dp4a.us", dp4a_us),
	S("tally.dp4a.ss", dp4a_ss),
	S("tally.dp2a.lo.ss", dp2a_lo_ss),
	S("tally.dp2a.hi.ss", dp2a_hi_ss),
	S("tally.ftz.f32", ftz),
	S("tally.approx.rcp.f32", rcp),
	S("tally.approx.sqrt.f32", sqrtf),
	S("tally.approx.rsqrt.f32", rsqrt),
	S("tally.approx.ex2.f32", exp2f),
	S("tally.approx.lg2.f32", log2f),
	S("tally.approx.sin.f32", sinf),
	S("tally.approx.cos.f32", cosf),
	S("tally.approx.tanh.f32", tanhf),
	S("tally.approx.div.f32", divide_approx),
	S("tally.approx.div.full.f32", divide),
	S("tally.approx.rcp.ftz.f64", rcp64),
	S("tally.approx.rsqrt.ftz.f64", rsqrt64),
	S("tally.round.add.rz.f32", add_rz),
	S("tally.round.add.rp.f32", add_rp),
	S("tally.round.add.rm.f32", add_rm),
	S("tally.round.div.rp.f64", div_rp),
	S("tally.cvt.rz.f32.f64", cvt_rz_f32_f64),
	S("tally.cvt.rp.f32.f64", cvt_rp_f32_f64),
	S("tally.cvt.rz.f32.i32", cvt_rz_f32_i32),
	S("tally.cvt.rp.f32.u64", cvt_rp_f32_u64),
	S("tally.cvt.rz.f16.f32", cvt_rz_f16_f32),
	S("tally.thread.id.x", thread_id),
	S("tally.block.size.x", size),
	S("tally.clock", clock64),
	S("tally.barrier", barrier),
	S("tally.barrier.arrive", arrive),
	S("tally.barrier.popc", barrier_popc),
	S("tally.barrier.and", barrier_and),
	S("tally.warp.sync", warp_sync),
	S("tally.active.mask", active_mask),
	S("tally.vote.any", vote_any),
	S("tally.vote.ballot", ballot),
	S("tally.match.any.i64", match_any),
	S("tally.reduce.umin", reduce_umin),
	S("tally.reduce.add", reduce_add),
	S("tally.nanosleep", nap),
	S("tally.printf", print),
	S("tally.malloc", malloc),
	S("tally.free", free),
	S("__extendhfsf2", __extendhfsf2),
	S("__truncsfhf2", __truncsfhf2),
	S("__truncdfhf2", __truncdfhf2),
	S("__truncsfbf2", truncate_bf16),
	{NULL, NULL},
};
