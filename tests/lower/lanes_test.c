/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The AMD lane library (backends/hip/lower/lanes.ll, wave64.ll) on a simulated wave of 64 lanes
 * that is two warps of 32: shuffles in all modes against the PTX ISA's pseudo-code, votes against
 * their definition, and no lane of the other half is ever read. Only the machine's own reads
 * (bpermute, ballot, mbcnt) are stood in for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

static struct ir_jit *jit;

/* The wave: the lane that runs now, every lane's value and predicate, which lanes are here. */
static struct wave {
	uint32_t lane, values[64];
	uint64_t here, predicates;
	bool read_wrong;
} wave;

/* What the machine does. */
static uint32_t machine_bpermute(uint32_t address, uint32_t value)
{
	uint32_t source = address >> 2 & 63;

	if ((source ^ wave.lane) & 32)
		wave.read_wrong = true;
	return wave.here >> source & 1 ? wave.values[source] : 0;
}

static uint64_t machine_ballot(bool p)
{
	/* The library asks for p or its opposite: this lane's own bit tells which. */
	bool inverted = p != (wave.predicates >> wave.lane & 1);

	return (inverted ? ~wave.predicates : wave.predicates) & wave.here;
}

static const char machine[] =
	"@bpermute = global ptr null\n@ballot = global ptr null\n@lane = global ptr null\n"
	"define i32 @machine.ds.bpermute(i32 %a, i32 %v) {\n %f = load ptr, ptr @bpermute\n"
	" %r = call i32 %f(i32 %a, i32 %v)\n ret i32 %r }\n"
	"define i64 @machine.ballot.i64(i1 %p) {\n %f = load ptr, ptr @ballot\n"
	" %r = call i64 %f(i1 zeroext %p)\n ret i64 %r }\n"
	"define i32 @machine.mbcnt.lo(i32 %m, i32 %b) {\n ret i32 0 }\n"
	"define i32 @machine.mbcnt.hi(i32 %m, i32 %b) {\n %l = load ptr, ptr @lane\n"
	" %v = load i32, ptr %l\n ret i32 %v }\n"
	"define void @machine.wave.barrier() {\n ret void }\n"
/* {i32, i1} as a plain number, which C can take */
#define SHUFFLE(mode)                                                                              \
	"declare { i32, i1 } @tally.shuffle." mode "(i32, i32, i32, i32)\n"                        \
	"define i64 @test." mode "(i32 %v, i32 %b, i32 %c) {\n"                                    \
	" %p = call { i32, i1 } @tally.shuffle." mode "(i32 -1, i32 %v, i32 %b, i32 %c)\n"         \
	" %x = extractvalue { i32, i1 } %p, 0\n %y = extractvalue { i32, i1 } %p, 1\n"             \
	" %l = zext i32 %x to i64\n %h = zext i1 %y to i64\n %s = shl i64 %h, 32\n"                \
	" %r = or i64 %s, %l\n ret i64 %r }\n"
	SHUFFLE("up") SHUFFLE("down") SHUFFLE("xor") SHUFFLE("idx");

/* PTX ISA, shfl.sync. */
static uint64_t reference(const char *mode, uint32_t lane, const uint32_t *values, uint32_t b,
			  uint32_t c)
{
	int segment = (int)(c >> 8 & 31), bound, first = (int)lane & segment, j;
	int by = (int)(b & 31), clamp = (int)(c & 31);
	bool in;

	bound = first | (clamp & ~segment);
	switch (mode[0]) {
	case 'u':
		j = (int)lane - by;
		in = j >= bound;
		break;
	case 'd':
		j = (int)lane + by;
		in = j <= bound;
		break;
	case 'x':
		j = (int)lane ^ by;
		in = j <= bound;
		break;
	default:
		j = first | (by & ~segment);
		in = j <= bound;
	}
	return (uint64_t)in << 32 | values[in ? j : (int)lane];
}

static void shuffles_follow_the_isa(void **unused)
{
	static const char *const modes[] = {"up", "down", "xor", "idx"};

	for (int m = 0; m < 4; m++) {
		char name[16];
		uint64_t (*shuffle)(uint32_t, uint32_t, uint32_t);

		snprintf(name, sizeof name, "test.%s", modes[m]);
		shuffle = (void *)ir_jit_lookup(jit, name);
		wave.here = ~0ull;
		for (uint32_t width = 1; width <= 32; width *= 2)
			for (uint32_t b = 0; b < 40; b++) {
				/* c as CUDA's __shfl_*_sync builds it, and with any clamp */
				uint32_t c = (32 - width) << 8 | (m ? 31 : 0);

				if (b % 4 == 3)
					c = (c & ~31u) | ((uint32_t)ir_test_random() & 31);
				for (uint32_t lane = 0; lane < 64; lane++)
					wave.values[lane] = (uint32_t)ir_test_random();
				for (wave.lane = 0; wave.lane < 64; wave.lane++) {
					uint64_t got = shuffle(wave.values[wave.lane], b, c);

					assert_int_equal(got,
							 reference(modes[m], wave.lane & 31,
								   wave.values + (wave.lane & 32),
								   b, c));
				}
			}
	}
	assert_false(wave.read_wrong);
}

static void votes_see_their_own_half(void **unused)
{
	uint32_t (*ballot)(uint32_t, bool) = (void *)ir_jit_lookup(jit, "tally.vote.ballot");
	uint32_t (*active)(void) = (void *)ir_jit_lookup(jit, "tally.active.mask");
	uint8_t (*all)(uint32_t, bool) = (void *)ir_jit_lookup(jit, "tally.vote.all");
	uint8_t (*any)(uint32_t, bool) = (void *)ir_jit_lookup(jit, "tally.vote.any");
	uint8_t (*uni)(uint32_t, bool) = (void *)ir_jit_lookup(jit, "tally.vote.uni");

	for (int n = 0; n < 20000; n++) {
		uint32_t mask, yes, half;
		bool p;

		wave.lane = (uint32_t)ir_test_random() & 63;
		half = wave.lane & 32;
		wave.here = ir_test_random() | ir_test_random() | 1ull << wave.lane;
		switch (ir_test_random() % 4) {
		case 0:
			wave.predicates = ~0ull;
			break;
		case 1:
			wave.predicates = 0;
			break;
		default:
			wave.predicates = ir_test_random();
		}
		/* A mask names lanes that are here, and this one. */
		mask = ((uint32_t)ir_test_random() | 1u << (wave.lane & 31)) &
		       (uint32_t)(wave.here >> half);
		yes = (uint32_t)(wave.predicates >> half) & mask;
		p = wave.predicates >> wave.lane & 1;
		assert_int_equal(ballot(mask, p), yes);
		assert_int_equal(any(mask, p) & 1, yes != 0);
		assert_int_equal(all(mask, p) & 1, yes == mask);
		assert_int_equal(uni(mask, p) & 1, yes == mask || yes == 0);
		wave.predicates = ~0ull;
		assert_int_equal(active(), (uint32_t)(wave.here >> half));
	}
}

static void lanes_count_from_zero_in_each_half(void **unused)
{
	uint32_t (*lane)(void) = (void *)ir_jit_lookup(jit, "tally.lane.id");

	for (wave.lane = 0; wave.lane < 64; wave.lane++)
		assert_int_equal(lane(), wave.lane & 31);
}

/* The library with the machine's intrinsics renamed, so that ours stand in for them. */
static LLVMModuleRef read_library(LLVMContextRef context)
{
	static const char *const files[] = {"lanes.ll", "wave64.ll"};
	static const char from[] = "@llvm.amdgcn.", to[] = "@machine.";
	struct tally_buffer text = {0}, renamed = {0};
	struct tally_error error = {0};

	for (int k = 0; k < 2; k++) {
		char path[4096];

		snprintf(path, sizeof path, "%s/backends/hip/lower/%s", TALLY_SOURCE_DIR, files[k]);
		assert_true(tally_file_read(path, &text, &error));
	}
	for (const char *p = text.data; *p;) {
		/* what one file declares and the other defines may stand once only */
		if (!strncmp(p, "declare i32 @tally.", 19)) {
			p += strcspn(p, "\n");
			continue;
		}
		if (!strncmp(p, from, sizeof from - 1)) {
			tally_buffer_append(&renamed, to, sizeof to - 1);
			p += sizeof from - 1;
			continue;
		}
		tally_buffer_append(&renamed, p++, 1);
	}
	tally_buffer_free(&text);
	LLVMModuleRef module = ir_test_parse(context, renamed.data);
	tally_buffer_free(&renamed);
	return module;
}

static int setup(void **state)
{
	LLVMContextRef context = ir_jit_context();

	*state = jit = ir_jit_create(context, read_library(context), machine);
	*(void **)ir_jit_lookup(jit, "bpermute") = (void *)machine_bpermute;
	*(void **)ir_jit_lookup(jit, "ballot") = (void *)machine_ballot;
	*(void **)ir_jit_lookup(jit, "lane") = &wave.lane;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuffles_follow_the_isa),
		cmocka_unit_test(votes_see_their_own_half),
		cmocka_unit_test(lanes_count_from_zero_in_each_half),
	};

	return cmocka_run_group_tests(tests, setup, ir_jit_teardown);
}
