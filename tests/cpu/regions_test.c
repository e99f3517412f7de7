/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with barriers as loops between them: which shapes qualify, and that they give the bits
 * that coroutines give, and C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/launch_abi.h"
#include "tests/cpu/harness.h"

enum { THREADS = 96, BLOCKS = 3, WORDS = 2 * THREADS * BLOCKS };

/* Every kernel here is k(ptr out, ptr in, i32 n). `%t` is the thread, `%w` the same wide, `%to` its
 * word of out, `%v` its word of in, `%mine` its word of shared memory, `%next` the one after it. */
#define BEGIN                                                                                      \
	"@tile = internal addrspace(3) global [1024 x i32] undef, align 4\n"                       \
	"define void @k(ptr %out, ptr %in, i32 %n) \"tally.kernel\" {\n" CPU_TEST_ENTRY            \
	"  %w = zext i32 %i to i64\n"                                                              \
	"  %tw = zext i32 %t to i64\n"                                                             \
	"  %to = getelementptr i32, ptr %out, i64 %w\n"                                            \
	"  %from = getelementptr i32, ptr %in, i64 %w\n"                                           \
	"  %v = load i32, ptr %from, align 4\n"                                                    \
	"  %mine = getelementptr i32, ptr addrspace(3) @tile, i64 %tw\n"                           \
	"  %t1 = add i32 %t, 1\n"                                                                  \
	"  %wrap = icmp eq i32 %t1, %threads\n"                                                    \
	"  %o = select i1 %wrap, i32 0, i32 %t1\n"                                                 \
	"  %ow = zext i32 %o to i64\n"                                                             \
	"  %next = getelementptr i32, ptr addrspace(3) @tile, i64 %ow\n"
#define END	"}\n"
#define BARRIER "  call void @tally.barrier(i32 0, i32 0)\n"

static const struct shape {
	const char *name, *body;
	bool regions;
} shapes[] = {
	{"straight code",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n" BARRIER
	 "  %u = load i32, ptr addrspace(3) %next, align 4\n"
	 "  %r = sub i32 %u, %v\n"
	 "  store i32 %r, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"a loop of uniform trips, values of all kinds kept",
	 "  %big = icmp ugt i32 %v, 1000\n"
	 "  %f = sitofp i32 %v to double\n"
	 "  br label %loop\n"
	 "loop:\n"
	 "  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]\n"
	 "  %acc = phi i32 [ %v, %entry ], [ %acc1, %loop ]\n"
	 "  %g = phi double [ %f, %entry ], [ %g1, %loop ]\n"
	 "  store i32 %acc, ptr addrspace(3) %mine, align 4\n" BARRIER
	 "  %u = load i32, ptr addrspace(3) %next, align 4\n"
	 "  %s = add i32 %u, %k\n"
	 "  %acc1 = select i1 %big, i32 %s, i32 %u\n"
	 "  %g1 = fdiv double %g, 1.5\n" BARRIER "  %k1 = add i32 %k, 1\n"
	 "  %more = icmp slt i32 %k1, %n\n"
	 "  br i1 %more, label %loop, label %done\n"
	 "done:\n"
	 "  %gb = bitcast double %g1 to i64\n"
	 "  %gt = trunc i64 %gb to i32\n"
	 "  %r = xor i32 %gt, %acc1\n"
	 "  store i32 %r, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"a uniform branch with a barrier in one arm",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n"
	 "  %which = add i32 %n, %b\n"
	 "  %bit = and i32 %which, 1\n"
	 "  %odd = icmp eq i32 %bit, 1\n"
	 "  br i1 %odd, label %yes, label %join\n"
	 "yes:\n" BARRIER "  %u = load i32, ptr addrspace(3) %next, align 4\n"
	 "  br label %join\n"
	 "join:\n"
	 "  %r = phi i32 [ %v, %entry ], [ %u, %yes ]\n" BARRIER
	 "  store i32 %r, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"divergent work between barriers, halves added to halves",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n" BARRIER "  br label %half\n"
	 "half:\n"
	 "  %s = phi i32 [ 64, %entry ], [ %s1, %joined ]\n"
	 "  %low = icmp ult i32 %t, %s\n"
	 "  %over = add i32 %t, %s\n"
	 "  %fits = icmp ult i32 %over, %threads\n"
	 "  %do = and i1 %low, %fits\n"
	 "  br i1 %do, label %add, label %joined\n"
	 "add:\n"
	 "  %overw = zext i32 %over to i64\n"
	 "  %q = getelementptr i32, ptr addrspace(3) @tile, i64 %overw\n"
	 "  %c = load i32, ptr addrspace(3) %q, align 4\n"
	 "  %d = load i32, ptr addrspace(3) %mine, align 4\n"
	 "  %e = add i32 %c, %d\n"
	 "  store i32 %e, ptr addrspace(3) %mine, align 4\n"
	 "  br label %joined\n"
	 "joined:\n" BARRIER "  %s1 = lshr i32 %s, 1\n"
	 "  %more = icmp ne i32 %s1, 0\n"
	 "  br i1 %more, label %half, label %done\n"
	 "done:\n"
	 "  %r = load i32, ptr addrspace(3) @tile, align 4\n"
	 "  store i32 %r, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"counts, in a loop whose end they decide",
	 "  br label %loop\n"
	 "loop:\n"
	 "  %left = phi i32 [ %v, %entry ], [ %half, %loop ]\n"
	 "  %sum = phi i32 [ 0, %entry ], [ %sum2, %loop ]\n"
	 "  %odd = trunc i32 %left to i1\n"
	 "  %c = call i32 @tally.barrier.popc(i32 0, i32 0, i1 %odd)\n"
	 "  %all = call i1 @tally.barrier.and(i32 0, i32 0, i1 %odd)\n"
	 "  %allw = zext i1 %all to i32\n"
	 "  %sum1 = add i32 %sum, %c\n"
	 "  %sum2 = add i32 %sum1, %allw\n"
	 "  %half = lshr i32 %left, 1\n"
	 "  %mores = icmp ne i32 %half, 0\n"
	 "  %more = call i1 @tally.barrier.or(i32 0, i32 0, i1 %mores)\n"
	 "  br i1 %more, label %loop, label %done\n"
	 "done:\n"
	 "  store i32 %sum2, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"private memory",
	 "  %p = alloca [8 x i32], align 16\n"
	 "  %low = and i32 %v, 7\n"
	 "  %loww = zext i32 %low to i64\n"
	 "  br label %fill\n"
	 "fill:\n"
	 "  %k = phi i64 [ 0, %entry ], [ %k1, %fill ]\n"
	 "  %pk = getelementptr i32, ptr %p, i64 %k\n"
	 "  %kt = trunc i64 %k to i32\n"
	 "  %kv = mul i32 %v, %kt\n"
	 "  store i32 %kv, ptr %pk, align 4\n"
	 "  %k1 = add i64 %k, 1\n"
	 "  %more = icmp ult i64 %k1, 8\n"
	 "  br i1 %more, label %fill, label %filled\n"
	 "filled:\n" BARRIER "  %q = getelementptr i32, ptr %p, i64 %loww\n"
	 "  %r = load i32, ptr %q, align 4\n"
	 "  store i32 %r, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"return of some after the last barrier",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n" BARRIER
	 "  %big = icmp ugt i32 %v, 1000\n"
	 "  br i1 %big, label %do, label %out.of\n"
	 "do:\n"
	 "  %u = load i32, ptr addrspace(3) %next, align 4\n"
	 "  store i32 %u, ptr %to, align 4\n"
	 "  ret void\n"
	 "out.of:\n"
	 "  ret void\n",
	 true},
	{"a trap that nobody takes, before a barrier",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n"
	 "  %bad = icmp eq i32 %v, -1\n"
	 "  br i1 %bad, label %die, label %live\n"
	 "die:\n"
	 "  call void @tally.trap()\n"
	 "  unreachable\n"
	 "live:\n" BARRIER "  %u = load i32, ptr addrspace(3) %next, align 4\n"
	 "  store i32 %u, ptr %to, align 4\n"
	 "  ret void\n",
	 true},
	{"a return of some before a barrier",
	 "  %go = icmp ult i32 %t, %n\n"
	 "  br i1 %go, label %in.it, label %out.of\n"
	 "out.of:\n"
	 "  ret void\n"
	 "in.it:\n" BARRIER "  store i32 %v, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a loop of trips that differ",
	 "  %own = and i32 %t, 3\n"
	 "  br label %loop\n"
	 "loop:\n"
	 "  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]\n" BARRIER "  %k1 = add i32 %k, 1\n"
	 "  %more = icmp ule i32 %k1, %own\n"
	 "  br i1 %more, label %loop, label %done\n"
	 "done:\n"
	 "  store i32 %k1, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a loop whose trips come from shared memory",
	 "  store i32 %n, ptr addrspace(3) %mine, align 4\n" BARRIER
	 "  %trips = load i32, ptr addrspace(3) @tile, align 4\n"
	 "  br label %loop\n"
	 "loop:\n"
	 "  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]\n" BARRIER "  %k1 = add i32 %k, 1\n"
	 "  %more = icmp ult i32 %k1, %trips\n"
	 "  br i1 %more, label %loop, label %done\n"
	 "done:\n"
	 "  store i32 %k1, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a divergent value that decides through a phi",
	 "  %low = icmp ult i32 %t, 5\n"
	 "  br i1 %low, label %a, label %c\n"
	 "a:\n"
	 "  call void @tally.nanosleep(i32 0)\n"
	 "  br label %c\n"
	 "c:\n" BARRIER "  store i32 %v, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a barrier of another name",
	 "  call void @tally.barrier(i32 1, i32 0)\n"
	 "  store i32 %v, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a barrier of some",
	 "  call void @tally.barrier(i32 0, i32 96)\n"
	 "  store i32 %v, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a run-time name",
	 "  call void @tally.barrier(i32 %n, i32 0)\n"
	 "  store i32 %v, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
	{"a warp operation",
	 "  store i32 %v, ptr addrspace(3) %mine, align 4\n" BARRIER "  %odd = trunc i32 %v to i1\n"
	 "  %m = call i32 @tally.vote.ballot(i32 -1, i1 %odd)\n"
	 "  store i32 %m, ptr %to, align 4\n"
	 "  ret void\n",
	 false},
};

struct params {
	uint32_t *out;
	const uint32_t *in;
	uint32_t n;
};

static void run(const struct tally_cpu_image *image, uint32_t x, uint32_t y, uint32_t *out,
		const uint32_t *in)
{
	struct params params = {out, in, 7};

	memset(out, 0xee, WORDS * sizeof *out);
	assert_int_equal(cpu_test_run(image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {BLOCKS, 1, 1},
								.block = {x, y, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
}

static void fill(uint32_t *in)
{
	for (uint32_t i = 0; i < WORDS; i++)
		in[i] = i * 2654435761u >> 20;
}

/* Each shape runs in the way that it should, and both ways give the same bits. */
static void both_ways(void **state)
{
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		static uint32_t in[WORDS], out[WORDS], again[WORDS];
		char text[8192];
		struct tally_cpu_image image;

		fill(in);
		snprintf(text, sizeof text, "%s%s%s", BEGIN, shapes[s].body, END);
		for (int coroutines = 0; coroutines < 2; coroutines++) {
			bool expected = shapes[s].regions && !coroutines;
			uint32_t flags;

			cpu_test_coroutines = coroutines;
			image = cpu_test_image(text, "none");
			cpu_test_coroutines = false;
			flags = tally_cpu_image_kernel(&image, "k")->flags;
			if (!(flags & TALLY_CPU_REGIONS) == expected ||
			    !(flags & TALLY_CPU_COROUTINE) != expected)
				fail_msg("%s: flags %u", shapes[s].name, flags);
			run(&image, THREADS, 1, coroutines ? again : out, in);
			run(&image, 8, 12, coroutines ? again : out, in);
			tally_cpu_image_close(&image);
		}
		if (memcmp(out, again, sizeof out))
			fail_msg("%s: the two ways differ", shapes[s].name);
	}
}

/* Against C: rotation, reduction and counts. */
static void against_c(void **state)
{
	static uint32_t in[WORDS], out[WORDS];
	static const size_t chosen[] = {0, 3, 4};

	fill(in);
	for (size_t c = 0; c < 3; c++) {
		char text[8192];
		struct tally_cpu_image image;

		snprintf(text, sizeof text, "%s%s%s", BEGIN, shapes[chosen[c]].body, END);
		image = cpu_test_image(text, "none");
		run(&image, THREADS, 1, out, in);
		for (uint32_t b = 0; b < BLOCKS; b++) {
			const uint32_t *v = in + b * THREADS;
			uint32_t sum = 0, counted = 0, left = 1;

			for (uint32_t t = 0; t < THREADS; t++)
				sum += v[t];
			for (uint32_t shift = 0; left; shift++) {
				uint32_t count = 0;

				left = 0;
				for (uint32_t t = 0; t < THREADS; t++) {
					count += v[t] >> shift & 1;
					left |= v[t] >> shift >> 1;
				}
				counted += count + (count == THREADS);
			}
			for (uint32_t t = 0; t < THREADS; t++) {
				uint32_t expected[] = {v[(t + 1) % THREADS] - v[t], sum, counted};

				assert_int_equal(out[b * THREADS + t], expected[c]);
			}
		}
		tally_cpu_image_close(&image);
	}
}

/* A guarded launch is stopped at each of its blocks in turn and resumed: the blocks before it have
 * run, those from it on have not, and in the end all are right. */
static void stop_and_resume(void **state)
{
	static uint32_t in[WORDS], whole[WORDS], out[WORDS];
	struct tally_cpu_image image;
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);
	char text[8192];

	fill(in);
	snprintf(text, sizeof text, "%s%s%s", BEGIN, shapes[1].body, END);
	image = cpu_test_image(text, "guard");
	run(&image, THREADS, 1, whole, in);
	for (uint32_t stop = 0; stop <= BLOCKS; stop++) {
		uint32_t gate = 0, broken = 0;
		uint64_t mailbox = 0;
		struct tally_control control = {.gate = (uintptr_t)&gate,
						.broken = (uintptr_t)&broken,
						.mailbox = (uintptr_t)&mailbox,
						.sequence = 1,
						.hi = BLOCKS};
		struct {
			struct params params;
			struct tally_launch range;
		} packed = {{out, in, 7},
			    {.control = (uintptr_t)&control, .hi = BLOCKS, .grid = {BLOCKS, 1, 1}}};
		struct tally_cpu_launch launch = {.kernel =
							  tally_cpu_image_kernel(&image, "k$guard"),
						  .params = &packed,
						  .grid = {BLOCKS, 1, 1},
						  .block = {THREADS, 1, 1}};
		uint32_t from;

		assert_true(launch.kernel->flags & TALLY_CPU_REGIONS);
		memset(out, 0xee, sizeof out);
		for (uint32_t b = 0; b < BLOCKS; b++) {
			if (b == stop)
				gate = 1;
			assert_int_equal(tally_cpu_run_block(worker, &launch, b), TALLY_CPU_OK);
		}
		from = stop * THREADS;
		assert_memory_equal(out, whole, from * sizeof *out);
		for (uint32_t i = from; i < WORDS; i++)
			assert_int_equal(out[i], 0xeeeeeeee);
		gate = broken = 0;
		control.word = stop;
		packed.range.lo = stop;
		for (uint32_t b = stop; b < BLOCKS; b++)
			assert_int_equal(tally_cpu_run_block(worker, &launch, b), TALLY_CPU_OK);
		assert_memory_equal(out, whole, sizeof out);
	}
	tally_cpu_worker_destroy(worker);
	tally_cpu_image_close(&image);
}

/* A fault in a region ends the block, and the worker runs the next. */
static void fault_between_barriers(void **state)
{
	static const char body[] =
		BEGIN BARRIER "  %none = icmp eq ptr %in, null\n"
			      "  br i1 %none, label %die, label %live\n"
			      "die:\n"
			      "  call void @tally.trap()\n"
			      "  unreachable\n"
			      "live:\n" BARRIER "  %r = load volatile i32, ptr %from, align 4\n"
			      "  store i32 %r, ptr %to, align 4\n"
			      "  ret void\n" END;
	static uint32_t in[WORDS], out[WORDS];
	struct tally_cpu_image image = cpu_test_image(body, "none");
	struct params params = {out, in, 0};
	struct cpu_test_launch launch = {
		.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}, .params = &params};

	assert_true(tally_cpu_image_kernel(&image, "k")->flags & TALLY_CPU_REGIONS);
	fill(in);
	params.in = (const uint32_t *)64;
	assert_int_equal(cpu_test_run(&image, &launch, NULL), TALLY_CPU_ILLEGAL);
	params.in = in;
	assert_int_equal(cpu_test_run(&image, &launch, NULL), TALLY_CPU_OK);
	assert_memory_equal(out, in, 32 * sizeof *out);
	tally_cpu_image_close(&image);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		/* First: its handlers have to come after cmocka's. */
		cmocka_unit_test(fault_between_barriers),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(against_c),
		cmocka_unit_test(stop_and_resume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
