/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that poll memory: for one of their own block, which has to run meanwhile, or for another
 * block; and loops over atomic operations that wait for nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

enum { THREADS = 64, SECONDS = 20 };

/* Every kernel is k(ptr out, ptr word): `%t` is the thread, `%to` its word of out, `%word` a word
 * of global memory that is 0 at first, `@shared` one of shared memory that nobody has written. */
#define BEGIN                                                                                      \
	"@shared = internal addrspace(3) global i32 undef, align 4\n"                              \
	"define void @k(ptr %out, ptr %word) \"tally.kernel\" {\n"                                 \
	"entry:\n"                                                                                 \
	"  %t = call i32 @tally.thread.id.x()\n"                                                   \
	"  %y = call i32 @tally.thread.id.y()\n"                                                   \
	"  %z = call i32 @tally.thread.id.z()\n"                                                   \
	"  %b = call i32 @tally.block.id.x()\n"                                                    \
	"  %first = icmp eq i32 %t, 0\n"                                                           \
	"  %last = icmp eq i32 %t, 63\n"                                                           \
	"  %w = zext i32 %t to i64\n"                                                              \
	"  %to = getelementptr i32, ptr %out, i64 %w\n"
#define BARRIER "  call void @tally.barrier(i32 0, i32 0)\n"
/* Thread 0 waits in block `poll` until block `got`, the last thread tells in `tell`. */
#define WAIT_FOR_LAST                                                                              \
	"  br i1 %first, label %poll, label %maybe\n"                                              \
	"maybe:\n"                                                                                 \
	"  br i1 %last, label %tell, label %done\n"
#define GOT                                                                                        \
	"  %set = icmp ne i32 %v, 0\n"                                                             \
	"  br i1 %set, label %got, label %poll\n"                                                  \
	"got:\n"                                                                                   \
	"  store i32 %v, ptr %to, align 4\n"                                                       \
	"  br label %done\n"
#define DONE                                                                                       \
	"done:\n"                                                                                  \
	"  ret void\n"                                                                             \
	"}\n"
/* Thread 0 asks until the word is as large as the block's number, the others wait for it. */
#define WAIT_FOR_BLOCK(alone, before)                                                              \
	BARRIER "  br i1 " alone ", label %begin, label %rest\n"                                   \
		"begin:\n" before "  br label %poll\n"                                             \
		"poll:\n"                                                                          \
		"  %v = load atomic i32, ptr %word syncscope(\"device\") acquire, align 4\n"       \
		"  %set = icmp uge i32 %v, %b\n"                                                   \
		"  br i1 %set, label %rest, label %poll\n"                                         \
		"rest:\n" BARRIER "  store i32 7, ptr %to, align 4\n"                              \
		"  br i1 " alone ", label %count, label %done\n"                                   \
		"count:\n"                                                                         \
		"  %c = atomicrmw add ptr %word, i32 1 syncscope(\"device\") release, align 4\n"   \
		"  br label %done\n" DONE

static uint32_t nine_in_first(uint32_t t)
{
	return t ? 0 : 9;
}

static uint32_t seven(uint32_t t)
{
	(void)t;
	return 7;
}

static uint32_t turn_of_warp(uint32_t t)
{
	return t % 32 ? 0 : t / 32 + 1;
}

static uint32_t own_number(uint32_t t)
{
	return t;
}

static const struct {
	const char *name, *text;
	uint32_t flags, blocks;
	uint32_t (*expected)(uint32_t thread);
} cases[] = {
	{"a volatile word of global memory, no barrier",
	 BEGIN WAIT_FOR_LAST "poll:\n"
			     "  %v = load volatile i32, ptr %word, align 4\n" GOT "tell:\n"
			     "  store volatile i32 9, ptr %word, align 4\n"
			     "  br label %done\n" DONE,
	 TALLY_CPU_COROUTINE, 1, nine_in_first},
	{"a word of shared memory, behind a barrier",
	 BEGIN "  store i32 0, ptr addrspace(3) @shared, align 4\n" BARRIER WAIT_FOR_LAST "poll:\n"
	       "  %v = load volatile i32, ptr addrspace(3) @shared, align 4\n" GOT "tell:\n"
	       "  store volatile i32 9, ptr addrspace(3) @shared, align 4\n"
	       "  br label %done\n" DONE,
	 TALLY_CPU_COROUTINE, 1, nine_in_first},
	{"an addition of nothing",
	 BEGIN WAIT_FOR_LAST
	 "poll:\n"
	 "  %v = atomicrmw add ptr %word, i32 0 syncscope(\"device\") monotonic, align 4\n" GOT
	 "tell:\n"
	 "  %x = atomicrmw xchg ptr %word, i32 9 syncscope(\"device\") monotonic, align 4\n"
	 "  br label %done\n" DONE,
	 TALLY_CPU_COROUTINE, 1, nine_in_first},
	{"a lock that is held while a warp meets",
	 BEGIN "  %lane = and i32 %t, 31\n"
	       "  %leads = icmp eq i32 %lane, 0\n"
	       "  store i32 0, ptr addrspace(3) @shared, align 4\n" BARRIER
	       "  br i1 %leads, label %lock, label %in\n"
	       "lock:\n"
	       "  %pair = cmpxchg ptr %word, i32 0, i32 1 syncscope(\"device\") acquire monotonic\n"
	       "  %won = extractvalue { i32, i1 } %pair, 1\n"
	       "  br i1 %won, label %in, label %lock\n"
	       "in:\n"
	       "  call void @tally.warp.sync(i32 -1)\n"
	       "  br i1 %leads, label %work, label %done\n"
	       "work:\n"
	       "  %old = load i32, ptr addrspace(3) @shared, align 4\n"
	       "  %new = add i32 %old, 1\n"
	       "  store i32 %new, ptr addrspace(3) @shared, align 4\n"
	       "  store i32 %new, ptr %to, align 4\n"
	       "  store atomic i32 0, ptr %word syncscope(\"device\") release, align 4\n"
	       "  br label %done\n" DONE,
	 TALLY_CPU_COROUTINE, 1, turn_of_warp},
	{"thread 0 for another block, nobody writes meanwhile", BEGIN WAIT_FOR_BLOCK("%first", ""),
	 TALLY_CPU_REGIONS, 3, seven},
	{"thread 0 alone tells and waits",
	 BEGIN "  %ty = add i32 %t, %y\n"
	       "  %minus = sub i32 0, %z\n"
	       "  %zero = icmp eq i32 %ty, %minus\n" WAIT_FOR_BLOCK(
		       "%zero", "  store i32 1, ptr %out, align 4\n"),
	 TALLY_CPU_REGIONS, 3, seven},
	{"a row of threads tells and waits",
	 BEGIN WAIT_FOR_BLOCK("%first", "  store i32 1, ptr %out, align 4\n"), TALLY_CPU_COROUTINE,
	 3, seven},
	{"compare and swap until it succeeds",
	 BEGIN "  %one = load i32, ptr %word, align 4\n"
	       "  br label %again\n"
	       "again:\n"
	       "  %seen = phi i32 [ %one, %entry ], [ %now, %again ]\n"
	       "  %more = add i32 %seen, 1\n"
	       "  %pair = cmpxchg ptr %word, i32 %seen, i32 %more syncscope(\"device\") monotonic "
	       "monotonic\n"
	       "  %now = extractvalue { i32, i1 } %pair, 0\n"
	       "  %won = extractvalue { i32, i1 } %pair, 1\n"
	       "  br i1 %won, label %got, label %again\n"
	       "got:\n"
	       "  store i32 %seen, ptr %to, align 4\n"
	       "  ret void\n"
	       "}\n",
	 0, 1, own_number},
	{"tickets until there are none",
	 BEGIN "  br label %next\n"
	       "next:\n"
	       "  %i = atomicrmw add ptr %word, i32 1 syncscope(\"device\") monotonic, align 4\n"
	       "  %got = icmp ult i32 %i, 64\n"
	       "  br i1 %got, label %take, label %out.of\n"
	       "take:\n"
	       "  %iw = zext i32 %i to i64\n"
	       "  %slot = getelementptr i32, ptr %out, i64 %iw\n"
	       "  store i32 %i, ptr %slot, align 4\n"
	       "  br label %next\n"
	       "out.of:\n"
	       "  ret void\n"
	       "}\n",
	 0, 1, own_number},
};

static void waits_end(void **state)
{
	const uint32_t ways = TALLY_CPU_COROUTINE | TALLY_CPU_REGIONS;

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct tally_cpu_image image = cpu_test_image(cases[k].text, "none");
		uint32_t out[THREADS] = {0}, word = 0;
		struct {
			uint32_t *out, *word;
		} params = {out, &word};
		const struct tally_cpu_kernel *kernel = tally_cpu_image_kernel(&image, "k");

		if ((kernel->flags & ways) != cases[k].flags)
			fail_msg("%s: runs as %u", cases[k].name, kernel->flags & ways);
		alarm(SECONDS); /* rather than for ever */
		assert_int_equal(
			cpu_test_run(&image,
				     &(struct cpu_test_launch){.kernel = "k",
							       .grid = {cases[k].blocks, 1, 1},
							       .block = {THREADS, 1, 1},
							       .params = &params},
				     NULL),
			TALLY_CPU_OK);
		alarm(0);
		for (uint32_t t = 0; t < THREADS; t++)
			if (out[t] != cases[k].expected(t))
				fail_msg("%s: thread %u has %u", cases[k].name, t, out[t]);
		tally_cpu_image_close(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(waits_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
