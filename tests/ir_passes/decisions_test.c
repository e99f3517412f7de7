/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions between blocks in IR against launch_abi.h's in C: guards and workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir_passes/launch_abi.h"
#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

static struct ir_jit *jit;

/* One thread of a block; it says how often it was asked to meet the others. */
static const char machine[] =
	"@tid = global [3 x i32] zeroinitializer\n@met = global i32 0\n"
	"define void @tally.barrier(i32 %a, i32 %b) {\n"
	" %n = load i32, ptr @met\n %m = add i32 %n, 1\n store i32 %m, ptr @met\n ret void }\n"
	"define i1 @tally.barrier.or(i32 %a, i32 %b, i1 %p) {\n ret i1 %p }\n"
	"@answers = global i32 0\n"
	"define i1 @tally.barrier.and(i32 %a, i32 %b, i1 %p) {\n"
	" %n = load i32, ptr @answers\n %m = sub i32 %n, 1\n store i32 %m, ptr @answers\n"
	" %z = icmp eq i32 %m, 0\n %r = and i1 %z, %p\n ret i1 %r }\n"
	"define i32 @tally.thread.id.x() {\n %v = load i32, ptr @tid\n ret i32 %v }\n"
	"define i32 @tally.thread.id.y() {\n"
	" %v = load i32, ptr getelementptr (i32, ptr @tid, i64 1)\n ret i32 %v }\n"
	"define i32 @tally.thread.id.z() {\n"
	" %v = load i32, ptr getelementptr (i32, ptr @tid, i64 2)\n ret i32 %v }\n";

/* The same launch twice: the first is decided by the IR, the second by the reference. */
struct twins {
	uint32_t gate, broken[2];
	uint64_t mailbox[2];
	struct tally_control control[2];
};

static void start(struct twins *t, uint32_t lo, uint32_t total, uint32_t sequence)
{
	*t = (struct twins){.broken = {ir_test_random() % 8 == 0}};
	t->broken[1] = t->broken[0];
	for (int k = 0; k < 2; k++)
		t->control[k] = (struct tally_control){.word = lo,
						       .gate = (uintptr_t)&t->gate,
						       .broken = (uintptr_t)&t->broken[k],
						       .mailbox = (uintptr_t)&t->mailbox[k],
						       .sequence = sequence,
						       .hi = total};
}

static void assert_same(const struct twins *t)
{
	assert_int_equal(t->control[0].word, t->control[1].word);
	assert_int_equal(t->broken[0], t->broken[1]);
	assert_int_equal(t->mailbox[0], t->mailbox[1]);
}

/* Every order of a few blocks, the gate closing anywhere: the same answers, words and mailboxes.
 * `whole`: TALLY_CONTROL_WHOLE or 0. */
static void decide_as_the_reference(uint64_t whole)
{
	bool (*decide)(uint64_t, uint32_t) = (void *)ir_jit_lookup(jit, "tally.guard.enter");
	unsigned ran = 0, skipped = 0;

	for (unsigned n = 0; n < 20000; n++) {
		uint32_t total = 1 + (uint32_t)ir_test_random() % 6;
		uint32_t lo = (uint32_t)ir_test_random() % total;
		bool first = false;
		struct twins t;

		start(&t, lo, total, 1 + n);
		for (unsigned step = 0; step < 8; step++) {
			uint32_t u = lo + (uint32_t)ir_test_random() % (total - lo);
			bool runs;

			t.gate |= ir_test_random() % 6 == 0;
			runs = tally_guard_enter((uintptr_t)&t.control[1] | whole, u);
			assert_int_equal(decide((uintptr_t)&t.control[0] | whole, u) & 1, runs);
			assert_same(&t);
			if (!step)
				first = runs;
			if (whole)
				assert_int_equal(runs, first);
		}
		ran += first;
		skipped += !first;
		if (whole && t.mailbox[0])
			assert_int_equal(TALLY_MAILBOX_MAX(t.mailbox[0]), lo);
	}
	assert_true(ran > 1000 && skipped > 1000);
}

static void guard_decides_as_the_reference(void **unused)
{
	decide_as_the_reference(0);
}

/* All blocks, or none. */
static void guard_of_a_whole_launch(void **unused)
{
	decide_as_the_reference(TALLY_CONTROL_WHOLE);
}

/* Claims, the gate closing anywhere; and what was claimed is exactly [lo, max of the mailbox). */
static void workers_claim_as_the_reference(void **unused)
{
	uint32_t (*next)(struct tally_control *, uint32_t, uint32_t) =
		(void *)ir_jit_lookup(jit, "tally.persist.next");
	unsigned stopped = 0;

	for (unsigned n = 0; n < 20000; n++) {
		uint32_t total = 1 + (uint32_t)ir_test_random() % 6, expected;
		uint32_t lo = (uint32_t)ir_test_random() % total;
		struct twins t;

		expected = lo;
		start(&t, lo, total, 1 + n);
		for (unsigned step = 0; step < 10; step++) {
			uint32_t block;

			t.gate |= ir_test_random() % 6 == 0;
			block = next(&t.control[0], 77, step);
			assert_int_equal(block, tally_persist_claim(&t.control[1]));
			assert_same(&t);
			if (block < total)
				assert_int_equal(block, expected++);
		}
		if (t.mailbox[0]) {
			assert_int_equal(TALLY_MAILBOX_MAX(t.mailbox[0]), expected);
			assert_int_equal(TALLY_MAILBOX_SEQUENCE(t.mailbox[0]), 1 + n);
			stopped++;
		}
	}
	assert_true(stopped > 1000);
}

static void only_thread_zero_asks(void **unused)
{
	bool (*enter)(void *, uint32_t) = (void *)ir_jit_lookup(jit, "tally.guard.enter");
	uint32_t (*next)(void *, uint32_t, uint32_t) =
		(void *)ir_jit_lookup(jit, "tally.persist.next");
	uint32_t *tid = ir_jit_lookup(jit, "tid");

	/* Two places in turn: what thread 0 told in a round stands until the next but one. */
	assert_int_equal(next(NULL, 5, 0), 5);
	assert_int_equal(next(NULL, 6, 1), 6);
	for (int k = 0; k < 3; k++) {
		tid[k] = 1;
		/* Would fault if it read the control block. */
		assert_false(enter(NULL, 0) & 1);
		assert_int_equal(next((void *)8, 9, 2), 5);
		assert_int_equal(next((void *)8, 9, 3), 6);
		tid[k] = 0;
	}
}

static void workers_meet_before_they_go_on(void **unused)
{
	uint32_t (*next)(void *, uint32_t, uint32_t) =
		(void *)ir_jit_lookup(jit, "tally.persist.next");
	void (*meet)(bool) = (void *)ir_jit_lookup(jit, "tally.persist.meet");
	void (*finish)(void) = (void *)ir_jit_lookup(jit, "tally.persist.finish");
	uint32_t *met = ir_jit_lookup(jit, "met"), *answers = ir_jit_lookup(jit, "answers");

	*met = 0;
	next(NULL, 5, 0);
	assert_int_equal(*met, 1);
	meet(false); /* as it was written */
	assert_int_equal(*met, 2);
	*answers = 9;
	meet(true);
	assert_int_equal(*met, 2);
	assert_int_equal(*answers, 8);
	finish(); /* until all say yes */
	assert_int_equal(*answers, 0);
}

static int setup(void **state)
{
	*state = jit = ir_jit_of_file("ir_passes/guard.ll", machine);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard_decides_as_the_reference),
		cmocka_unit_test(guard_of_a_whole_launch),
		cmocka_unit_test(workers_claim_as_the_reference),
		cmocka_unit_test(only_thread_zero_asks),
		cmocka_unit_test(workers_meet_before_they_go_on),
	};

	return cmocka_run_group_tests(tests, setup, ir_jit_teardown);
}
