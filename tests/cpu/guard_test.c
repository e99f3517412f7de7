/* SPDX-License-Identifier: Apache-2.0 */
/* Sliced and guarded kernels: stopped at every block boundary and resumed, each block runs exactly
 * once, with one worker and with several at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/launch_abi.h"
#include "tests/cpu/harness.h"

/* Thread 0 of block (x, y, z) counts it, at its place in the grid that the kernel sees; one kernel
 * is a loop, the other has a barrier. */
#define BODY(barrier)                                                                              \
	"  %x = call i32 @tally.block.id.x()\n"                                                    \
	"  %y = call i32 @tally.block.id.y()\n"                                                    \
	"  %z = call i32 @tally.block.id.z()\n"                                                    \
	"  %gx = call i32 @tally.grid.size.x()\n"                                                  \
	"  %gy = call i32 @tally.grid.size.y()\n"                                                  \
	"  %a = mul i32 %z, %gy\n"                                                                 \
	"  %b = add i32 %a, %y\n"                                                                  \
	"  %c = mul i32 %b, %gx\n"                                                                 \
	"  %u = add i32 %c, %x\n"                                                                  \
	"  %w = zext i32 %u to i64\n"                                                              \
	"  %p = getelementptr i32, ptr %counts, i64 %w\n"                                          \
	"  %t = call i32 @tally.thread.id.x()\n" barrier "  %first = icmp eq i32 %t, 0\n"          \
	"  br i1 %first, label %count, label %out\n"                                               \
	"count:\n"                                                                                 \
	"  %old = atomicrmw add ptr %p, i32 1 syncscope(\"device\") monotonic, align 4\n"          \
	"  br label %out\n"                                                                        \
	"out:\n"                                                                                   \
	"  ret void\n"                                                                             \
	"}\n"

static const char kernels[] = "define void @loop(ptr %counts, i8 %odd) \"tally.kernel\" {\n" BODY(
	"") "define void "
	    "@meet(ptr %counts, i8 %odd) \"tally.kernel\" {\n" BODY(
		    "  call void @tally.barrier(i32 0, i32 0)\n");

enum { X = 3, Y = 4, Z = 2, BLOCKS = X * Y * Z };

static const struct {
	const char *kernel, *transforms;
	bool sliced;
} variants[] = {
	{"loop$guard", "guard", false},
	{"loop$slice_guard", "slice,guard", true},
	{"meet$guard", "guard", false},
	{"meet$slice_guard", "slice,guard", true},
};

/* A launch and what a runtime keeps for it. */
struct run {
	uint32_t counts[BLOCKS];
	uint32_t gate, broken;
	uint64_t mailbox;
	struct tally_control control;
	struct {
		uint32_t *counts;
		uint8_t odd;
		struct tally_launch launch;
	} params;
	struct tally_cpu_launch launch;
};

static void prepare(struct run *run, const struct tally_cpu_image *image, const char *kernel)
{
	memset(run, 0, sizeof *run);
	run->launch.kernel = tally_cpu_image_kernel(image, kernel);
	assert_non_null(run->launch.kernel);
	assert_int_equal(run->launch.kernel->param_count, 3);
	assert_int_equal(run->launch.kernel->params[2].offset, 16);
	assert_int_equal(run->launch.kernel->param_bytes, 48);
	run->params.counts = run->counts;
	run->launch.params = &run->params;
	run->launch.block[0] = 40;
	run->launch.block[1] = run->launch.block[2] = 1;
	run->control.gate = (uintptr_t)&run->gate;
	run->control.broken = (uintptr_t)&run->broken;
	run->control.mailbox = (uintptr_t)&run->mailbox;
	run->control.sequence = 7;
	run->control.hi = BLOCKS;
}

/* What a runtime does before it starts the blocks from `lo` on. */
static uint32_t start_from(struct run *run, uint32_t lo, bool sliced)
{
	run->broken = 0;
	run->mailbox = 0;
	run->control.word = lo;
	run->params.launch =
		(struct tally_launch){(uintptr_t)&run->control, lo, BLOCKS, {X, Y, Z}, 0};
	run->launch.grid[0] = sliced ? BLOCKS - lo : X;
	run->launch.grid[1] = sliced ? 1 : Y;
	run->launch.grid[2] = sliced ? 1 : Z;
	return run->launch.grid[0] * run->launch.grid[1] * run->launch.grid[2];
}

static void stop_at(struct run *run, struct tally_cpu_worker *worker, uint32_t boundary,
		    bool sliced)
{
	uint32_t blocks = start_from(run, 0, sliced), max;

	for (uint32_t b = 0; b < blocks; b++) {
		if (b == boundary)
			__atomic_store_n(&run->gate, 1, __ATOMIC_SEQ_CST);
		assert_int_equal(tally_cpu_run_block(worker, &run->launch, b), TALLY_CPU_OK);
	}
	for (uint32_t u = 0; u < BLOCKS; u++)
		assert_int_equal(run->counts[u], u < boundary);
	if (boundary == BLOCKS) {
		assert_int_equal(run->mailbox, 0);
		return;
	}
	assert_int_equal(TALLY_MAILBOX_SEQUENCE(run->mailbox), 7);
	max = TALLY_MAILBOX_MAX(run->mailbox);
	assert_int_equal(max, boundary);
	assert_int_equal(run->broken, 1);
	run->gate = 0;
	blocks = start_from(run, max, sliced);
	for (uint32_t b = 0; b < blocks; b++)
		assert_int_equal(tally_cpu_run_block(worker, &run->launch, b), TALLY_CPU_OK);
	for (uint32_t u = 0; u < BLOCKS; u++)
		assert_int_equal(run->counts[u], 1);
}

static void stopped_at_every_boundary(void **state)
{
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);

	for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
		struct tally_cpu_image image = cpu_test_image(kernels, variants[v].transforms);

		for (uint32_t boundary = 0; boundary <= BLOCKS; boundary++) {
			struct run run;

			prepare(&run, &image, variants[v].kernel);
			stop_at(&run, worker, boundary, variants[v].sliced);
		}
		tally_cpu_image_close(&image);
	}
	tally_cpu_worker_destroy(worker);
}

/* Slices run the blocks of their range and no other, however many are handed out. */
static void slices(void **state)
{
	struct tally_cpu_image image = cpu_test_image(kernels, "slice");
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);
	static const uint32_t cuts[] = {0, 1, 5, 6, 17, 23, 24};

	for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++) {
		struct run run;

		prepare(&run, &image, c % 2 ? "meet$slice" : "loop$slice");
		start_from(&run, cuts[c], true);
		run.params.launch.control = 0;
		run.params.launch.hi = cuts[c + 1];
		for (uint32_t b = 0; b < BLOCKS - cuts[c]; b++)
			assert_int_equal(tally_cpu_run_block(worker, &run.launch, b), TALLY_CPU_OK);
		for (uint32_t u = 0; u < BLOCKS; u++)
			assert_int_equal(run.counts[u], u >= cuts[c] && u < cuts[c + 1]);
	}
	tally_cpu_worker_destroy(worker);
	tally_cpu_image_close(&image);
}

/* A guard without a control block runs its range of the whole grid. */
static void ranges(void **state)
{
	struct tally_cpu_image image = cpu_test_image(kernels, "guard");
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);

	for (uint32_t lo = 0; lo < BLOCKS; lo += 5) {
		struct run run;
		uint32_t hi = lo + 5 < BLOCKS ? lo + 5 : BLOCKS;

		prepare(&run, &image, lo % 2 ? "meet$guard" : "loop$guard");
		start_from(&run, lo, false);
		run.params.launch.control = 0;
		run.params.launch.hi = hi;
		for (uint32_t b = 0; b < BLOCKS; b++)
			assert_int_equal(tally_cpu_run_block(worker, &run.launch, b), TALLY_CPU_OK);
		for (uint32_t u = 0; u < BLOCKS; u++)
			assert_int_equal(run.counts[u], u >= lo && u < hi);
	}
	tally_cpu_worker_destroy(worker);
	tally_cpu_image_close(&image);
}

struct crew {
	struct run *run;
	uint32_t next, blocks;
	unsigned index;
};

struct member {
	struct crew *crew;
	unsigned index;
	int fault;
};

static void *work(void *data)
{
	struct member *member = data;
	struct crew *crew = member->crew;
	struct tally_cpu_worker *worker = tally_cpu_worker_create(member->index);
	uint32_t b;

	while ((b = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->blocks)
		member->fault |= (int)tally_cpu_run_block(worker, &crew->run->launch, b);
	tally_cpu_worker_destroy(worker);
	return NULL;
}

/* Runs blocks on three threads while a fourth asks them to stop at some moment. */
static void run_crew(struct run *run, uint32_t blocks, unsigned delay)
{
	struct crew crew = {.run = run, .blocks = blocks};
	struct member members[3];
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++) {
		members[i] = (struct member){&crew, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &members[i]), 0);
	}
	while (delay && __atomic_load_n(&crew.next, __ATOMIC_RELAXED) < delay)
		;
	if (delay)
		__atomic_store_n(&run->gate, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(members[i].fault, 0);
	}
}

static void several_workers(void **state)
{
	for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
		struct tally_cpu_image image = cpu_test_image(kernels, variants[v].transforms);

		for (unsigned round = 0; round < 48; round++) {
			unsigned delay = 1 + round % BLOCKS;
			struct run run;
			uint32_t blocks;

			prepare(&run, &image, variants[v].kernel);
			blocks = start_from(&run, 0, variants[v].sliced);
			run_crew(&run, blocks, delay);
			while (run.mailbox) {
				run.gate = 0;
				blocks = start_from(&run, TALLY_MAILBOX_MAX(run.mailbox),
						    variants[v].sliced);
				run_crew(&run, blocks, 0);
			}
			for (uint32_t u = 0; u < BLOCKS; u++)
				assert_int_equal(run.counts[u], 1);
		}
		tally_cpu_image_close(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_at_every_boundary),
		cmocka_unit_test(slices),
		cmocka_unit_test(ranges),
		cmocka_unit_test(several_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
