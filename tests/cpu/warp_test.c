/* SPDX-License-Identifier: Apache-2.0 */
/* Every warp operation of the contract: full, partial and divergent warps, with lanes that exited,
 * against a model in C. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

/* Lanes below `split` go one way, the others another; each side meets with its own mask. Threads
 * from `live` on leave first. */
static const char frame[] = "define void @k(ptr %%in, ptr %%out, i32 %%live, i32 %%split, i32 "
			    "%%left, i32 %%right, i32 %%b, "
			    "i32 %%c) \"tally.kernel\" {\n"
			    "  %%x = call i32 @tally.thread.id.x()\n"
			    "  %%lane = call i32 @tally.lane.id()\n"
			    "  %%gone = icmp uge i32 %%x, %%live\n"
			    "  br i1 %%gone, label %%out.block, label %%stay\n"
			    "stay:\n"
			    "  %%w = zext i32 %%x to i64\n"
			    "  %%from = getelementptr i64, ptr %%in, i64 %%w\n"
			    "  %%v = load i64, ptr %%from, align 8\n"
			    "  %%to = getelementptr i64, ptr %%out, i64 %%w\n"
			    "  %%low = icmp ult i32 %%lane, %%split\n"
			    "  br i1 %%low, label %%a, label %%z\n"
			    "a:\n"
			    "  %%ra = call i64 @op(i32 %%left, i64 %%v, i32 %%b, i32 %%c)\n"
			    "  store i64 %%ra, ptr %%to, align 8\n"
			    "  br label %%out.block\n"
			    "z:\n"
			    "  %%rz = call i64 @op(i32 %%right, i64 %%v, i32 %%b, i32 %%c)\n"
			    "  store i64 %%rz, ptr %%to, align 8\n"
			    "  br label %%out.block\n"
			    "out.block:\n"
			    "  ret void\n"
			    "}\n"
			    "define internal i64 @op(i32 %%m, i64 %%v, i32 %%b, i32 %%c) {\n"
			    "  %%i = trunc i64 %%v to i32\n"
			    "  %%p = trunc i64 %%v to i1\n"
			    "%s"
			    "  ret i64 %%word\n"
			    "}\n";

#define WORD_I1	 "  %word = zext i1 %r to i64\n"
#define WORD_I32 "  %word = zext i32 %r to i64\n"
#define WORD_PAIR                                                                                  \
	"  %r0 = extractvalue { i32, i1 } %r, 0\n"                                                 \
	"  %r1 = extractvalue { i32, i1 } %r, 1\n"                                                 \
	"  %w0 = zext i32 %r0 to i64\n"                                                            \
	"  %w1 = zext i1 %r1 to i64\n"                                                             \
	"  %w2 = shl i64 %w1, 32\n"                                                                \
	"  %word = or i64 %w0, %w2\n"
#define VOTE(name, ret, word) "  %r = call " ret " @tally.vote." name "(i32 %m, i1 %p)\n" word
#define SHUFFLE(name)                                                                              \
	"  %r = call { i32, i1 } @tally.shuffle." name                                             \
	"(i32 %m, i32 %i, i32 %b, i32 %c)\n" WORD_PAIR
#define REDUCE(name) "  %r = call i32 @tally.reduce." name "(i32 %m, i32 %i)\n" WORD_I32

/* The model: what `lane` gets when the lanes of `set` meet. */
typedef uint64_t model(uint32_t set, const uint64_t *v, unsigned lane, uint32_t b, uint32_t c);

static uint32_t votes(uint32_t set, const uint64_t *v)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i++)
		if (set >> i & 1 && v[i] & 1)
			r |= 1u << i;
	return r;
}

#define MODEL(name, expression)                                                                    \
	static uint64_t name(uint32_t set, const uint64_t *v, unsigned lane, uint32_t b,           \
			     uint32_t c)                                                           \
	{                                                                                          \
		(void)lane;                                                                        \
		(void)b;                                                                           \
		(void)c;                                                                           \
		(void)v;                                                                           \
		return (expression);                                                               \
	}
MODEL(vote_all, votes(set, v) == set)
MODEL(vote_any, votes(set, v) != 0)
MODEL(vote_uni, votes(set, v) == set || !votes(set, v))
MODEL(vote_ballot, votes(set, v))
MODEL(elect, (uint64_t)(lane == (unsigned)__builtin_ctz(set)) << 32 | (unsigned)__builtin_ctz(set))

static uint64_t shuffled(uint32_t set, const uint64_t *v, unsigned lane, int source, bool inside)
{
	if (!inside)
		source = (int)lane;
	/* Undefined by PTX where the source takes no part; the executor gives the lane's own. */
	if (!(set >> source & 1))
		source = (int)lane;
	return (uint64_t)inside << 32 | (uint32_t)v[source];
}

/* As the pseudocode of PTX ISA 9.7.9.6 has it. */
#define SHUFFLE_MODEL(name, j, condition)                                                          \
	static uint64_t name(uint32_t set, const uint64_t *v, unsigned lane, uint32_t b,           \
			     uint32_t c)                                                           \
	{                                                                                          \
		uint32_t segmask = c >> 8 & 31, cval = c & 31, bval = b & 31;                      \
		int max = (int)((lane & segmask) | (cval & ~segmask));                             \
		int min = (int)(lane & segmask), from = (j);                                       \
                                                                                                   \
		(void)min;                                                                         \
		return shuffled(set, v, lane, from, (condition));                                  \
	}
SHUFFLE_MODEL(shuffle_up, (int)lane - (int)bval, from >= max)
SHUFFLE_MODEL(shuffle_down, (int)lane + (int)bval, from <= max)
SHUFFLE_MODEL(shuffle_xor, (int)(lane ^ bval), from <= max)
SHUFFLE_MODEL(shuffle_idx, min | (int)(bval & ~segmask), from <= max)

static uint64_t match(uint32_t set, const uint64_t *v, unsigned lane, uint64_t cut, bool all)
{
	uint32_t equal = 0;

	for (unsigned i = 0; i < 32; i++)
		if (set >> i & 1 && (v[i] & cut) == (v[lane] & cut))
			equal |= 1u << i;
	if (!all)
		return equal;
	return equal == set ? (uint64_t)1 << 32 | set : 0;
}
MODEL(match_any_32, match(set, v, lane, 0xffffffff, false))
MODEL(match_any_64, match(set, v, lane, ~(uint64_t)0, false))
MODEL(match_all_32, match(set, v, lane, 0xffffffff, true))
MODEL(match_all_64, match(set, v, lane, ~(uint64_t)0, true))

#define REDUCE_MODEL(name, type, expression)                                                       \
	static uint64_t name(uint32_t set, const uint64_t *v, unsigned lane, uint32_t b,           \
			     uint32_t c)                                                           \
	{                                                                                          \
		bool first = true;                                                                 \
		type a = 0;                                                                        \
                                                                                                   \
		(void)lane;                                                                        \
		(void)b;                                                                           \
		(void)c;                                                                           \
		for (unsigned i = 0; i < 32; i++) {                                                \
			type x = (type)(uint32_t)v[i];                                             \
                                                                                                   \
			if (!(set >> i & 1))                                                       \
				continue;                                                          \
			a = first ? x : (type)(expression);                                        \
			first = false;                                                             \
		}                                                                                  \
		return (uint32_t)a;                                                                \
	}
REDUCE_MODEL(reduce_add, uint32_t, a + x)
REDUCE_MODEL(reduce_min, int32_t, a < x ? a : x)
REDUCE_MODEL(reduce_max, int32_t, a > x ? a : x)
REDUCE_MODEL(reduce_umin, uint32_t, a < x ? a : x)
REDUCE_MODEL(reduce_umax, uint32_t, a > x ? a : x)
REDUCE_MODEL(reduce_and, uint32_t, a &x)
REDUCE_MODEL(reduce_or, uint32_t, a | x)
REDUCE_MODEL(reduce_xor, uint32_t, a ^ x)

/* redux.sync of floats: -0 below +0; a NaN does not count, or counts alone. */
static uint64_t reduce_floats(uint32_t set, const uint64_t *v, bool largest, bool size, bool nan)
{
	bool found = false, is_nan = false;
	uint32_t best = 0;

	for (unsigned i = 0; i < 32; i++) {
		uint32_t bits = (uint32_t)v[i] & (size ? 0x7fffffff : 0xffffffff);
		float x, y;

		if (!(set >> i & 1))
			continue;
		memcpy(&x, &bits, sizeof x);
		memcpy(&y, &best, sizeof y);
		if (isnan(x)) {
			is_nan = true;
			continue;
		}
		if (!found || (largest ? x > y : x < y) ||
		    (x == 0 && y == 0 && signbit(x) && !largest) ||
		    (x == 0 && y == 0 && !signbit(x) && largest))
			best = bits;
		found = true;
	}
	return !found || (nan && is_nan) ? 0x7fffffff : best;
}
MODEL(reduce_fmin, reduce_floats(set, v, false, false, false))
MODEL(reduce_fmax_nan, reduce_floats(set, v, true, false, true))
MODEL(reduce_fmin_abs_nan, reduce_floats(set, v, false, true, true))
MODEL(reduce_fmax_abs, reduce_floats(set, v, true, true, false))
#define REDUCE_FLOAT(name)                                                                         \
	"  %f = bitcast i32 %i to float\n"                                                         \
	"  %x = call float @tally.reduce." name ".f32(i32 %m, float %f)\n"                         \
	"  %r = bitcast float %x to i32\n" WORD_I32

static const struct operation {
	const char *name, *text;
	model *expected;
} operations[] = {
	{"vote.all", VOTE("all", "i1", WORD_I1), vote_all},
	{"vote.any", VOTE("any", "i1", WORD_I1), vote_any},
	{"vote.uni", VOTE("uni", "i1", WORD_I1), vote_uni},
	{"vote.ballot", VOTE("ballot", "i32", WORD_I32), vote_ballot},
	{"shuffle.up", SHUFFLE("up"), shuffle_up},
	{"shuffle.down", SHUFFLE("down"), shuffle_down},
	{"shuffle.xor", SHUFFLE("xor"), shuffle_xor},
	{"shuffle.idx", SHUFFLE("idx"), shuffle_idx},
	{"match.any.i32", "  %r = call i32 @tally.match.any.i32(i32 %m, i32 %i)\n" WORD_I32,
	 match_any_32},
	{"match.any.i64", "  %r = call i32 @tally.match.any.i64(i32 %m, i64 %v)\n" WORD_I32,
	 match_any_64},
	{"match.all.i32",
	 "  %r = call { i32, i1 } @tally.match.all.i32(i32 %m, i32 %i)\n" WORD_PAIR, match_all_32},
	{"match.all.i64",
	 "  %r = call { i32, i1 } @tally.match.all.i64(i32 %m, i64 %v)\n" WORD_PAIR, match_all_64},
	{"reduce.add", REDUCE("add"), reduce_add},
	{"reduce.min", REDUCE("min"), reduce_min},
	{"reduce.max", REDUCE("max"), reduce_max},
	{"reduce.umin", REDUCE("umin"), reduce_umin},
	{"reduce.umax", REDUCE("umax"), reduce_umax},
	{"reduce.and", REDUCE("and"), reduce_and},
	{"reduce.or", REDUCE("or"), reduce_or},
	{"reduce.xor", REDUCE("xor"), reduce_xor},
	{"reduce.min.f32", REDUCE_FLOAT("min"), reduce_fmin},
	{"reduce.max.NaN.f32", REDUCE_FLOAT("max.NaN"), reduce_fmax_nan},
	{"reduce.min.abs.NaN.f32", REDUCE_FLOAT("min.abs.NaN"), reduce_fmin_abs_nan},
	{"reduce.max.abs.f32", REDUCE_FLOAT("max.abs"), reduce_fmax_abs},
	{"elect", "  %r = call { i32, i1 } @tally.elect(i32 %m)\n" WORD_PAIR, elect},
};

struct params {
	const uint64_t *in;
	uint64_t *out;
	uint32_t live, split, left, right, b, c;
};

enum { MOST = 1024 };

/* One launch of `threads` threads against the model. */
static void check(const struct tally_cpu_image *image, const struct operation *operation,
		  const struct params *given, uint32_t threads)
{
	uint64_t out[MOST];
	struct params params = *given;

	memset(out, 0x5a, sizeof out);
	params.out = out;
	assert_int_equal(cpu_test_run(image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {1, 1, 1},
								.block = {threads, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	for (uint32_t t = 0; t < threads; t++) {
		uint32_t lane = t % 32, first = t - lane, alive = 0, set;
		uint64_t expected;

		for (uint32_t i = 0; i < 32; i++)
			if (first + i < threads && first + i < params.live)
				alive |= 1u << i;
		set = (lane < params.split ? params.left : params.right) & alive;
		expected = t < params.live ? operation->expected(set, params.in + first, lane,
								 params.b, params.c)
					   : 0x5a5a5a5a5a5a5a5a;
		if (out[t] != expected)
			fail_msg("%s: thread %u of %u (live %u, split %u): %llx, not %llx",
				 operation->name, t, threads, params.live, params.split,
				 (unsigned long long)out[t], (unsigned long long)expected);
	}
}

static const struct {
	uint32_t threads, live, split;
} shapes[] = {
	{32, 32, 0},	 {32, 32, 10},	  {32, 32, 31},	  {20, 20, 0}, {20, 20, 7},
	{1, 1, 0},	 {33, 33, 0},	  {33, 33, 16},	  {64, 50, 0}, {64, 50, 12},
	{1000, 1000, 5}, {1024, 1024, 0}, {1024, 700, 9},
};

/* Whole-warp, sub-warp segments of 16, 8 and 1, clamped. */
static const uint32_t controls[] = {0x1f, 0x101f, 0x181f, 0x1f1f, 0x0, 0x1000};

static void fill(uint64_t *in, int kind)
{
	for (int i = 0; i < MOST; i++)
		switch (kind) {
		case 0:
			in[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
			break;
		case 1: /* equal in the low half only */
			in[i] = (uint64_t)(i % 3) << 32 | 7;
			break;
		case 2:
			in[i] = 5;
			break;
		default: /* as floats: zeros of both signs, NaN, infinity */
			in[i] = (uint32_t[]){0x80000000, 0, 0x7fc00000, 0xff800000}[i % 7 % 4];
		}
}

static void check_all_shapes(const struct tally_cpu_image *image, const struct operation *operation)
{
	uint64_t in[MOST];

	for (int kind = 0; kind < 4; kind++) {
		fill(in, kind);
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			uint32_t split = shapes[s].split;
			struct params params = {.in = in, .live = shapes[s].live, .split = split};

			params.left = (uint32_t)(((uint64_t)1 << split) - 1);
			params.right = ~params.left;
			for (size_t c = 0; c < sizeof controls / sizeof *controls; c++) {
				params.c = controls[c];
				params.b = (uint32_t)(c * 3 + s) % 32;
				check(image, operation, &params, shapes[s].threads);
			}
		}
	}
}

static void warp_operations(void **state)
{
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
		struct tally_buffer text = {0};
		struct tally_cpu_image image;

		tally_buffer_print(&text, frame, operations[i].text);
		image = cpu_test_image(text.data, "none");
		check_all_shapes(&image, &operations[i]);
		tally_cpu_image_close(&image);
		tally_buffer_free(&text);
	}
}

/* active.mask gives the lanes that are at the same place; a lane that has left is not there. */
static void active_mask(void **state)
{
	static const char body[] = "  %r = call i32 @tally.active.mask()\n" WORD_I32;
	struct tally_buffer text = {0};
	struct tally_cpu_image image;
	uint64_t in[MOST] = {0}, out[MOST];
	struct params params = {.in = in, .out = out, .live = 60, .split = 12};

	tally_buffer_print(&text, frame, body);
	image = cpu_test_image(text.data, "none");
	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {1, 1, 1},
								.block = {64, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	for (unsigned t = 0; t < 60; t++)
		assert_int_equal(out[t], t % 32 < 12 ? 0xfff : t < 32 ? 0xfffff000 : 0x0ffff000);
	tally_cpu_image_close(&image);
	tally_buffer_free(&text);
}

/* What can never be finished is reported, with the thread and the operation, and never waited for.
 */
static void wrong_masks(void **state)
{
	static const struct {
		uint32_t left, right;
		enum tally_cpu_fault fault;
		const char *words;
	} cases[] = {
		/* Each side waits for the other's lanes, in different masks. */
		{0xffffffff, 0xfffffff1, TALLY_CPU_DEADLOCK, "vote.ballot"},
		/* A lane outside of its own mask. */
		{0x0000000e, 0xfffffff0, TALLY_CPU_ILLEGAL, "not in its own mask"},
	};
	struct tally_buffer text = {0};
	struct tally_cpu_image image;
	uint64_t in[MOST] = {0}, out[MOST];

	tally_buffer_print(&text, frame, operations[3].text);
	image = cpu_test_image(text.data, "none");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct params params = {in, out, 32, 4, cases[i].left, cases[i].right, 0, 0};
		char message[256];

		assert_int_equal(cpu_test_run(&image,
					      &(struct cpu_test_launch){.kernel = "k",
									.grid = {1, 1, 1},
									.block = {32, 1, 1},
									.params = &params},
					      message),
				 cases[i].fault);
		assert_non_null(strstr(message, cases[i].words));
	}
	tally_cpu_image_close(&image);
	tally_buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warp_operations),
		cmocka_unit_test(active_mask),
		cmocka_unit_test(wrong_masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
