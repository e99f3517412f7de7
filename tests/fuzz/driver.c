/* SPDX-License-Identifier: Apache-2.0 */
/* One libFuzzer program for every target: $TALLY_FUZZ_TARGET names the one to run. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static const struct fuzz_target *target;

/* PTX text, or text with PTX in it, wants its own mutations; the others are bytes. */
static bool is_ptx(void)
{
	return target->run == fuzz_run_ptx || target->run == fuzz_run_asm;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	target = fuzz_target_find(getenv("TALLY_FUZZ_TARGET"));
	if (target)
		return 0;
	fputs("set TALLY_FUZZ_TARGET to one of:\n", stderr);
	for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
		fprintf(stderr, "  %-10s %s\n", t->name, t->what);
	exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	target->run(data, size);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	size_t done = is_ptx() && seed % 32 ? fuzz_mutate_ptx(data, size, room, seed / 32) : 0;

	return done ? done : LLVMFuzzerMutate(data, size, room);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t room, unsigned seed)
{
	return fuzz_cross_ptx(a, a_size, b, b_size, out, room, seed);
}
