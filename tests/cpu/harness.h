/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral IR text to a loaded image, and launches of it: what the tests of the CPU device share. */
#ifndef TALLY_TESTS_CPU_HARNESS_H
#define TALLY_TESTS_CPU_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/executor.h"
#include "base/buffer.h"

/* Parses `text` (declarations of tally.* operations may be left out: they are added), makes the
 * variants of `transforms` ("none", "guard", ...), lowers it as `emit` says and returns the bytes.
 * False with an error. */
bool cpu_test_lower(const char *text, const char *transforms, int emit, struct tally_buffer *out,
		    struct tally_error *error);

/* The same as a loaded image; fails the test when anything fails. */
struct tally_cpu_image cpu_test_image(const char *text, const char *transforms);

/* Lowers with coroutines for all kernels with barriers while it is set. */
extern bool cpu_test_coroutines;

/* Gives matrix operations the portable bodies of backends/matrix.c while it is set. */
extern bool cpu_test_portable_matrix;

/* One launch with `params` packed by hand. */
struct cpu_test_launch {
	const char *kernel;
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	const void *params;
};

/* Runs all blocks in order on a new worker; the first fault ends it. `message` (256 bytes) may be
 * NULL. */
enum tally_cpu_fault cpu_test_run(const struct tally_cpu_image *image,
				  const struct cpu_test_launch *launch, char *message);

/* How a kernel of text begins that wants to know its thread: %t of the %threads in the block, block
 * %b, and %i of the grid; blocks of two dimensions, grids of one. */
#define CPU_TEST_ENTRY                                                                             \
	"entry:\n"                                                                                 \
	"  %x = call i32 @tally.thread.id.x()\n"                                                   \
	"  %y = call i32 @tally.thread.id.y()\n"                                                   \
	"  %sx = call i32 @tally.block.size.x()\n"                                                 \
	"  %sy = call i32 @tally.block.size.y()\n"                                                 \
	"  %rx = mul i32 %y, %sx\n"                                                                \
	"  %t = add i32 %rx, %x\n"                                                                 \
	"  %threads = mul i32 %sx, %sy\n"                                                          \
	"  %b = call i32 @tally.block.id.x()\n"                                                    \
	"  %base = mul i32 %b, %threads\n"                                                         \
	"  %i = add i32 %base, %t\n"

/* The next of a fixed sequence of random words. One thread. */
uint32_t cpu_test_random(void);

#endif
