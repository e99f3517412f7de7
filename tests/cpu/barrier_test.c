/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: shapes of blocks, threads that leave, trip counts that differ, names and counts,
 * reductions, and those that can never be complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

#define LINEAR                                                                                     \
	"  %x = call i32 @tally.thread.id.x()\n"                                                   \
	"  %y = call i32 @tally.thread.id.y()\n"                                                   \
	"  %z = call i32 @tally.thread.id.z()\n"                                                   \
	"  %sx = call i32 @tally.block.size.x()\n"                                                 \
	"  %sy = call i32 @tally.block.size.y()\n"                                                 \
	"  %zy = mul i32 %z, %sy\n"                                                                \
	"  %row = add i32 %zy, %y\n"                                                               \
	"  %rx = mul i32 %row, %sx\n"                                                              \
	"  %t = add i32 %rx, %x\n"                                                                 \
	"  %w = zext i32 %t to i64\n"                                                              \
	"  %to = getelementptr i32, ptr %out, i64 %w\n"

static enum tally_cpu_fault run(const char *text, uint32_t x, uint32_t y, uint32_t z,
				const void *params, uint32_t dynamic, char *message)
{
	struct tally_cpu_image image = cpu_test_image(text, "none");
	enum tally_cpu_fault fault =
		cpu_test_run(&image,
			     &(struct cpu_test_launch){.kernel = "k",
						       .grid = {2, 1, 1},
						       .block = {x, y, z},
						       .dynamic_shared = dynamic,
						       .params = params},
			     message);

	tally_cpu_image_close(&image);
	return fault;
}

/* Each thread leaves a value in shared memory and takes another's: dynamic memory after a static
 * variable, whose address goes through 32 bits. */
static void exchange(void **state)
{
	static const char text[] = "@pad = internal addrspace(3) global [5 x i8] undef, align 1\n"
				   "@tile = external addrspace(3) global [0 x i32], align 16\n"
				   "define void @k(ptr %out, i32 %n) \"tally.kernel\" {\n" LINEAR
				   "  %first = getelementptr i8, ptr addrspace(3) @pad, i64 4\n"
				   "  store i8 1, ptr addrspace(3) %first, align 1\n"
				   "  %base = ptrtoint ptr addrspace(3) @tile to i64\n"
				   "  %base32 = trunc i64 %base to i32\n"
				   "  %o = shl i32 %t, 2\n"
				   "  %mine = add i32 %base32, %o\n"
				   "  %mine.wide = zext i32 %mine to i64\n"
				   "  %p = inttoptr i64 %mine.wide to ptr addrspace(3)\n"
				   "  store i32 %t, ptr addrspace(3) %p, align 4\n"
				   "  call void @tally.barrier(i32 0, i32 0)\n"
				   "  %last = sub i32 %n, 1\n"
				   "  %other = sub i32 %last, %t\n"
				   "  %ow = zext i32 %other to i64\n"
				   "  %q = getelementptr i32, ptr addrspace(3) @tile, i64 %ow\n"
				   "  %v = load i32, ptr addrspace(3) %q, align 4\n"
				   "  store i32 %v, ptr %to, align 4\n"
				   "  ret void\n"
				   "}\n";
	static const uint32_t shapes[][3] = {{1, 1, 1},	   {33, 1, 1},	{64, 1, 1},  {1000, 1, 1},
					     {1024, 1, 1}, {8, 4, 5},	{16, 16, 4}, {3, 7, 11},
					     {1, 1, 64},   {1, 1024, 1}};

	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		uint32_t out[1024], n = shapes[s][0] * shapes[s][1] * shapes[s][2];
		struct {
			uint32_t *out, n;
		} params = {out, n};

		assert_int_equal(
			run(text, shapes[s][0], shapes[s][1], shapes[s][2], &params, n * 4, NULL),
			TALLY_CPU_OK);
		for (uint32_t t = 0; t < n; t++)
			assert_int_equal(out[t], n - 1 - t);
	}
}

/* Threads from `stay` on return before the barrier; the others are not held up. */
static void early_return(void **state)
{
	static const char text[] = "define void @k(ptr %out, i32 %stay) \"tally.kernel\" {\n" LINEAR
				   "  %go = icmp ult i32 %t, %stay\n"
				   "  br i1 %go, label %in, label %exit\n"
				   "exit:\n"
				   "  ret void\n"
				   "in:\n"
				   "  %c = call i32 @tally.barrier.popc(i32 0, i32 0, i1 true)\n"
				   "  store i32 %c, ptr %to, align 4\n"
				   "  call void @tally.barrier(i32 0, i32 0)\n"
				   "  ret void\n"
				   "}\n";
	static const uint32_t stays[] = {1, 31, 32, 33, 70, 96};

	for (size_t s = 0; s < sizeof stays / sizeof *stays; s++) {
		uint32_t out[96] = {0};
		struct {
			uint32_t *out, stay;
		} params = {out, stays[s]};

		assert_int_equal(run(text, 96, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
		for (uint32_t t = 0; t < 96; t++)
			assert_int_equal(out[t], t < stays[s] ? stays[s] : 0);
	}
}

/* Warp w goes through the loop's barrier w + 1 times (exit ends a thread as a return does); in
 * round r those of the warps from r on are left. */
static void loop_with_own_trip_counts(void **state)
{
	static const char text[] = "define void @k(ptr %out) \"tally.kernel\" {\n"
				   "entry:\n" LINEAR "  %warp = call i32 @tally.warp.id()\n"
				   "  br label %loop\n"
				   "loop:\n"
				   "  %r = phi i32 [ 0, %entry ], [ %next, %again ]\n"
				   "  %sum = phi i32 [ 0, %entry ], [ %sum.next, %again ]\n"
				   "  %c = call i32 @tally.barrier.popc(i32 0, i32 0, i1 true)\n"
				   "  %sum.next = add i32 %sum, %c\n"
				   "  store i32 %sum.next, ptr %to, align 4\n"
				   "  %done = icmp eq i32 %r, %warp\n"
				   "  br i1 %done, label %leave, label %again\n"
				   "leave:\n"
				   "  call void @tally.exit()\n"
				   "  unreachable\n"
				   "again:\n"
				   "  %next = add i32 %r, 1\n"
				   "  br label %loop\n"
				   "}\n";
	uint32_t out[128], *params = out;

	assert_int_equal(run(text, 128, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	for (uint32_t t = 0; t < 128; t++) {
		uint32_t sum = 0;

		for (uint32_t r = 0; r <= t / 32; r++)
			sum += 128 - 32 * r;
		assert_int_equal(out[t], sum);
	}
}

/* Both sides of a branch meet in the same barrier: threads arrive one by one (sm_70 and later). */
static void barrier_on_both_sides(void **state)
{
	static const char text[] = "define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR
				   "  %odd = trunc i32 %t to i1\n"
				   "  br i1 %odd, label %a, label %b\n"
				   "a:\n"
				   "  %ra = call i32 @tally.barrier.popc(i32 0, i32 0, i1 true)\n"
				   "  br label %join\n"
				   "b:\n"
				   "  %rb = call i32 @tally.barrier.popc(i32 0, i32 0, i1 false)\n"
				   "  br label %join\n"
				   "join:\n"
				   "  %r = phi i32 [ %ra, %a ], [ %rb, %b ]\n"
				   "  store i32 %r, ptr %to, align 4\n"
				   "  ret void\n"
				   "}\n";
	uint32_t out[70], *params = out;

	assert_int_equal(run(text, 70, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	for (uint32_t t = 0; t < 70; t++)
		assert_int_equal(out[t], 35);
}

static void reductions(void **state)
{
	static const char text[] =
		"define void @k(ptr %out, i32 %limit) \"tally.kernel\" {\n" LINEAR
		"  %p = icmp ult i32 %t, %limit\n"
		"  %c = call i32 @tally.barrier.popc(i32 3, i32 0, i1 %p)\n"
		"  %a = call i1 @tally.barrier.and(i32 0, i32 0, i1 %p)\n"
		"  %o = call i1 @tally.barrier.or(i32 15, i32 0, i1 %p)\n"
		"  %aw = zext i1 %a to i32\n"
		"  %ow = zext i1 %o to i32\n"
		"  %as = shl i32 %aw, 16\n"
		"  %os = shl i32 %ow, 17\n"
		"  %m = or i32 %as, %os\n"
		"  %v = or i32 %m, %c\n"
		"  store i32 %v, ptr %to, align 4\n"
		"  ret void\n"
		"}\n";
	static const uint32_t limits[] = {0, 1, 17, 99, 100, 200};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		uint32_t out[100], limit = limits[i], count = limit < 100 ? limit : 100;
		struct {
			uint32_t *out, limit;
		} params = {out, limit};

		assert_int_equal(run(text, 100, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
		for (uint32_t t = 0; t < 100; t++)
			assert_int_equal(out[t], count | (count == 100 ? 1u << 16 : 0) |
							 (count ? 1u << 17 : 0));
	}
}

/* Warps 0 and 1 meet in barrier 1, warps 2 and 3 (partly gone: 110 threads) in barrier 2. */
static void named_with_counts(void **state)
{
	static const char text[] =
		"define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR "  %pair = lshr i32 %t, 6\n"
		"  %id = add i32 %pair, 1\n"
		"  %c = call i32 @tally.barrier.popc(i32 %id, i32 64, i1 true)\n"
		"  store i32 %c, ptr %to, align 4\n"
		"  ret void\n"
		"}\n";
	uint32_t out[110], *params = out;

	assert_int_equal(run(text, 110, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	for (uint32_t t = 0; t < 110; t++)
		assert_int_equal(out[t], t < 64 ? 64 : 46);
}

/* The producer's warp never waits in "full" but arrives; the consumer's never waits in "empty". Ten
 * rounds over one cell. */
static void producer_and_consumer(void **state)
{
	static const char text[] =
		"@cell = internal addrspace(3) global [32 x i32] undef, align 4\n"
		"define void @k(ptr %out) \"tally.kernel\" {\n"
		"entry:\n" LINEAR "  %lane = call i32 @tally.lane.id()\n"
		"  %lw = zext i32 %lane to i64\n"
		"  %p = getelementptr i32, ptr addrspace(3) @cell, i64 %lw\n"
		"  %is = icmp ult i32 %t, 32\n"
		"  br i1 %is, label %produce, label %start\n"
		"produce:\n"
		"  %i = phi i32 [ 0, %entry ], [ %i.next, %produce ]\n"
		"  call void @tally.barrier(i32 1, i32 64)\n"
		"  %v = mul i32 %i, 100\n"
		"  %vl = add i32 %v, %lane\n"
		"  store i32 %vl, ptr addrspace(3) %p, align 4\n"
		"  call void @tally.barrier.arrive(i32 2, i32 64)\n"
		"  %i.next = add i32 %i, 1\n"
		"  %more = icmp ult i32 %i.next, 10\n"
		"  br i1 %more, label %produce, label %done\n"
		"start:\n"
		"  call void @tally.barrier.arrive(i32 1, i32 64)\n"
		"  br label %consume\n"
		"consume:\n"
		"  %j = phi i32 [ 0, %start ], [ %j.next, %consume ]\n"
		"  %sum = phi i32 [ 0, %start ], [ %sum.next, %consume ]\n"
		"  call void @tally.barrier(i32 2, i32 64)\n"
		"  %got = load i32, ptr addrspace(3) %p, align 4\n"
		"  %scaled = mul i32 %sum, 3\n"
		"  %sum.next = add i32 %scaled, %got\n"
		"  call void @tally.barrier.arrive(i32 1, i32 64)\n"
		"  %j.next = add i32 %j, 1\n"
		"  %more.j = icmp ult i32 %j.next, 10\n"
		"  br i1 %more.j, label %consume, label %report\n"
		"report:\n"
		"  store i32 %sum.next, ptr %to, align 4\n"
		"  br label %done\n"
		"done:\n"
		"  ret void\n"
		"}\n";
	uint32_t out[64] = {0}, *params = out;

	assert_int_equal(run(text, 64, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t sum = 0;

		for (uint32_t j = 0; j < 10; j++)
			sum = sum * 3 + j * 100 + lane;
		assert_int_equal(out[32 + lane], sum);
	}
}

/* Warps 1 and 2 of four return; the others meet in a barrier that counts all 128 threads, and once
 * more in one that counts them alone. */
static void count_of_warps_that_exited(void **state)
{
	static const char text[] =
		"define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR "  %warp = lshr i32 %t, 5\n"
		"  %next = add i32 %warp, 1\n"
		"  %in = and i32 %next, 2\n"
		"  %go = icmp eq i32 %in, 0\n"
		"  br i1 %go, label %meet, label %done\n"
		"meet:\n"
		"  %c = call i32 @tally.barrier.popc(i32 3, i32 128, i1 true)\n"
		"  %d = call i32 @tally.barrier.popc(i32 3, i32 64, i1 true)\n"
		"  %s = add i32 %c, %d\n"
		"  store i32 %s, ptr %to, align 4\n"
		"  br label %done\n"
		"done:\n"
		"  ret void\n"
		"}\n";
	uint32_t out[128] = {0}, *params = out;

	assert_int_equal(run(text, 128, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	for (uint32_t t = 0; t < 128; t++)
		assert_int_equal(out[t], (t / 32 + 1) & 2 ? 0 : 128);
}

/* Half of the block waits in barrier 1, the other in barrier 2, each for all. */
static void deadlock_is_reported(void **state)
{
	static const char text[] =
		"define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR "  %half = lshr i32 %t, 5\n"
		"  %id = add i32 %half, 1\n"
		"  call void @tally.barrier(i32 %id, i32 0)\n"
		"  ret void\n"
		"}\n";
	static const char few[] = "define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR
				  "  call void @tally.barrier(i32 4, i32 96)\n"
				  "  ret void\n"
				  "}\n";
	static const char unknown[] = "define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR
				      "  call void @tally.barrier(i32 16, i32 0)\n"
				      "  ret void\n"
				      "}\n";
	uint32_t out[64], *params = out;
	char message[256];

	assert_int_equal(run(text, 64, 1, 1, &params, 0, message), TALLY_CPU_DEADLOCK);
	assert_non_null(strstr(message, "thread (0,0,0) waits in barrier 1"));
	assert_int_equal(run(few, 64, 1, 1, &params, 0, message), TALLY_CPU_DEADLOCK);
	assert_non_null(strstr(message, "barrier 4"));
	assert_int_equal(run(unknown, 64, 1, 1, &params, 0, message), TALLY_CPU_ILLEGAL);
}

/* A thread polls for another of its own block, pausing: the other gets to run. */
static void polling_with_pauses(void **state)
{
	static const char text[] = "@flag = internal addrspace(3) global i32 undef, align 4\n"
				   "define void @k(ptr %out) \"tally.kernel\" {\n" LINEAR
				   "  store i32 0, ptr addrspace(3) @flag, align 4\n"
				   "  call void @tally.barrier(i32 0, i32 0)\n"
				   "  %first = icmp eq i32 %t, 0\n"
				   "  br i1 %first, label %poll, label %maybe\n"
				   "poll:\n"
				   "  %v = load volatile i32, ptr addrspace(3) @flag, align 4\n"
				   "  %set = icmp ne i32 %v, 0\n"
				   "  br i1 %set, label %got, label %rest\n"
				   "rest:\n"
				   "  call void @tally.nanosleep(i32 100)\n"
				   "  br label %poll\n"
				   "got:\n"
				   "  store i32 %v, ptr %to, align 4\n"
				   "  br label %done\n"
				   "maybe:\n"
				   "  %last = icmp eq i32 %t, 63\n"
				   "  br i1 %last, label %tell, label %done\n"
				   "tell:\n"
				   "  store volatile i32 9, ptr addrspace(3) @flag, align 4\n"
				   "  br label %done\n"
				   "done:\n"
				   "  ret void\n"
				   "}\n";
	uint32_t out[64] = {0}, *params = out;

	assert_int_equal(run(text, 64, 1, 1, &params, 0, NULL), TALLY_CPU_OK);
	assert_int_equal(out[0], 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchange),
		cmocka_unit_test(early_return),
		cmocka_unit_test(loop_with_own_trip_counts),
		cmocka_unit_test(barrier_on_both_sides),
		cmocka_unit_test(reductions),
		cmocka_unit_test(named_with_counts),
		cmocka_unit_test(producer_and_consumer),
		cmocka_unit_test(count_of_warps_that_exited),
		cmocka_unit_test(deadlock_is_reported),
		cmocka_unit_test(polling_with_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
