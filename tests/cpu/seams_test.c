/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that all threads go through together, taken apart turn by turn: which are, and that they
 * give the bits that each thread's own loop gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

enum { THREADS = 96, BLOCKS = 2, TURNS = 9, WORDS = (TURNS + 1) * THREADS * BLOCKS };

/* Every kernel is k(ptr out, ptr in, i32 n), n turns. `%t` is the thread in the block and `%i` in
 * the grid, `%w` and `%iw` the same wide, `%to` its word of out, `%first` its word of in. */
#define BEGIN                                                                                      \
	"@tile = internal addrspace(3) global [1024 x float] undef, align 4\n"                     \
	"declare float @llvm.fma.f32(float, float, float)\n"                                       \
	"declare float @llvm.sqrt.f32(float)\n"                                                    \
	"declare float @llvm.sin.f32(float)\n"                                                     \
	"define void @k(ptr %out, ptr %in, i32 %n) \"tally.kernel\" {\n" CPU_TEST_ENTRY            \
	"  %w = zext i32 %t to i64\n"                                                              \
	"  %iw = zext i32 %i to i64\n"                                                             \
	"  %to = getelementptr float, ptr %out, i64 %iw\n"                                         \
	"  %first = getelementptr float, ptr %in, i64 %iw\n"                                       \
	"  %start = load float, ptr %first, align 4\n"
#define BARRIER "  call void @tally.barrier(i32 0, i32 0)\n"
/* Ends the loop after the turn that `%k` counts. */
#define TURN                                                                                       \
	"  %k.next = add i32 %k, 1\n"                                                              \
	"  %more = icmp slt i32 %k.next, %n\n"                                                     \
	"  br i1 %more, label %loop, label %done\n"                                                \
	"done:\n"
#define STORE(value)                                                                               \
	"  store float " value ", ptr %to, align 4\n"                                              \
	"  ret void\n"                                                                             \
	"}\n"
/* Row `%k` of in, this thread's word of it, and one that is the same for all. */
#define ROW                                                                                        \
	"  %row = mul i32 %k, 96\n"                                                                \
	"  %at = add i32 %row, %t\n"                                                               \
	"  %atw = zext i32 %at to i64\n"                                                           \
	"  %p = getelementptr float, ptr %in, i64 %atw\n"                                          \
	"  %v = load float, ptr %p, align 4\n"                                                     \
	"  %kw = zext i32 %k to i64\n"                                                             \
	"  %q = getelementptr float, ptr %in, i64 %kw\n"                                           \
	"  %u = load float, ptr %q, align 4\n"

static const struct {
	const char *name, *text;
	bool seams, barriers; /* taken apart; has barriers of its own */
} cases[] = {
	{"a sum of products",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n" ROW
	       "  %m = fmul float %u, %v\n"
	       "  %next = fadd float %sum, %m\n" TURN STORE("%next"),
	 true, false},
	{"a pointer and an index that move on, both of the thread's own",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %p = phi ptr [ %first, %entry ], [ %p.next, %loop ]\n"
	       "  %j = phi i64 [ %iw, %entry ], [ %j.next, %loop ]\n"
	       "  %sum = phi float [ 1.0, %entry ], [ %next, %loop ]\n"
	       "  %v = load float, ptr %p, align 4\n"
	       "  %q = getelementptr float, ptr %in, i64 %j\n"
	       "  %u = load float, ptr %q, align 4\n"
	       "  %root = call float @llvm.sqrt.f32(float %u)\n"
	       "  %next = call float @llvm.fma.f32(float %sum, float %v, float %root)\n"
	       "  %half = getelementptr i8, ptr %p, i64 256\n"
	       "  %p.next = getelementptr i32, ptr %half, i64 32\n"
	       "  %j.half = sub i64 %j, 4\n"
	       "  %j.next = add i64 %j.half, 100\n" TURN
	       "  %last = load float, ptr %p.next, align 4\n"
	       "  %r = fsub float %next, %last\n" STORE("%r"),
	 true, false},
	{"memory that the threads write side by side, and read behind the loop",
	 BEGIN "  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %w\n"
	       "  store float %start, ptr addrspace(3) %mine, align 4\n"
	       "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n" ROW
	       "  %old = load float, ptr addrspace(3) %mine, align 4\n"
	       "  %m = fmul float %old, 0.5\n"
	       "  %new = fadd float %m, %v\n"
	       "  store float %new, ptr addrspace(3) %mine, align 4\n" TURN
	       "  %r = load float, ptr addrspace(3) %mine, align 4\n" STORE("%r"),
	 true, false},
	{"between barriers of the kernel, reading others' words",
	 BEGIN "  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %w\n"
	       "  store float %start, ptr addrspace(3) %mine, align 4\n" BARRIER
	       "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n"
	       "  %kw = zext i32 %k to i64\n"
	       "  %q = getelementptr float, ptr addrspace(3) @tile, i64 %kw\n"
	       "  %u = load float, ptr addrspace(3) %q, align 4\n"
	       "  %d = fsub float %u, %start\n"
	       "  %next = call float @llvm.fma.f32(float %d, float %d, float %sum)\n" TURN BARRIER
	       "  store float %next, ptr addrspace(3) %mine, align 4\n" BARRIER
	       "  %other = sub i32 95, %t\n"
	       "  %ow = zext i32 %other to i64\n"
	       "  %op = getelementptr float, ptr addrspace(3) @tile, i64 %ow\n"
	       "  %r = load float, ptr addrspace(3) %op, align 4\n" STORE("%r"),
	 true, true},
	{"as many turns as the thread says",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n" ROW
	       "  %next = fadd float %sum, %v\n"
	       "  %k.next = add i32 %k, 1\n"
	       "  %own = and i32 %t, 7\n"
	       "  %more = icmp slt i32 %k.next, %own\n"
	       "  br i1 %more, label %loop, label %done\n"
	       "done:\n" STORE("%next"),
	 false, false},
	{"a loop that some threads do not come to",
	 BEGIN "  %in.it = icmp slt i32 %t, 50\n"
	       "  br i1 %in.it, label %begin, label %out.of\n"
	       "begin:\n"
	       "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %begin ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %begin ], [ %next, %loop ]\n" ROW
	       "  %next = fadd float %sum, %v\n" TURN "  store float %next, ptr %to, align 4\n"
	       "  br label %out.of\n"
	       "out.of:\n"
	       "  ret void\n"
	       "}\n",
	 false, false},
	{"a few turns, as many as the text says: straight code when it is unrolled",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n" ROW
	       "  %next = fadd float %sum, %v\n"
	       "  %k.next = add i32 %k, 1\n"
	       "  %more = icmp ult i32 %k.next, 9\n"
	       "  br i1 %more, label %loop, label %done\n"
	       "done:\n" STORE("%next"),
	 false, false},
	{"words that do not lie side by side",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n"
	       "  %column = mul i32 %t, 9\n"
	       "  %at = add i32 %column, %k\n"
	       "  %atw = zext i32 %at to i64\n"
	       "  %p = getelementptr float, ptr %in, i64 %atw\n"
	       "  %v = load float, ptr %p, align 4\n"
	       "  %next = fadd float %sum, %v\n" TURN STORE("%next"),
	 false, false},
	{"a function that has no vectors",
	 BEGIN "  br label %loop\n"
	       "loop:\n"
	       "  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]\n"
	       "  %sum = phi float [ %start, %entry ], [ %next, %loop ]\n" ROW
	       "  %s = call float @llvm.sin.f32(float %v)\n"
	       "  %next = fadd float %sum, %s\n" TURN STORE("%next"),
	 false, false},
};

static const uint32_t shapes[][2] = {{THREADS, 1}, {1, 1}, {33, 1}, {16, 6}, {8, 12}, {1, THREADS}};

static void run(const struct tally_cpu_image *image, const uint32_t *shape, uint32_t turns,
		float *out, const float *in)
{
	struct {
		float *out;
		const float *in;
		uint32_t turns;
	} params = {out, in, turns};

	memset(out, 0xee, WORDS * sizeof *out);
	assert_int_equal(cpu_test_run(image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {BLOCKS, 1, 1},
								.block = {shape[0], shape[1], 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
}

static void same_bits(void **state)
{
	static float in[2 * WORDS], out[WORDS], plain[WORDS];

	for (size_t i = 0; i < sizeof in / sizeof *in; i++)
		in[i] = (float)(i * 2654435761u >> 16 & 0xffff) / 65536;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct tally_cpu_image image = cpu_test_image(cases[k].text, "none"), own;
		uint32_t flags = tally_cpu_image_kernel(&image, "k")->flags;

		cpu_test_coroutines = true;
		own = cpu_test_image(cases[k].text, "none");
		cpu_test_coroutines = false;
		if (!(flags & TALLY_CPU_REGIONS) == cases[k].seams || flags & TALLY_CPU_COROUTINE)
			fail_msg("%s: runs as %u", cases[k].name, flags);
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
			for (uint32_t turns = 1; turns <= TURNS; turns += 4) {
				/* Reads of other threads' words, which the block has to have. */
				if (cases[k].barriers && shapes[s][0] * shapes[s][1] != THREADS)
					continue;
				run(&image, shapes[s], turns, out, in);
				run(&own, shapes[s], turns, plain, in);
				if (memcmp(out, plain, sizeof out))
					fail_msg("%s: %ux%u threads, %u turns", cases[k].name,
						 shapes[s][0], shapes[s][1], turns);
			}
		tally_cpu_image_close(&image);
		tally_cpu_image_close(&own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
