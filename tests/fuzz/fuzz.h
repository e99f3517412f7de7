/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of bytes that others wrote, as fuzz targets: one table, used by libFuzzer (driver.c)
 * and by the replay of the kept corpus (replay.c).
 */
#ifndef TALLY_TESTS_FUZZ_FUZZ_H
#define TALLY_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llvm-c/Core.h>

/* X(name, what it reads) */
#define FUZZ_TARGETS(X)                                                                            \
	X(ptx, "PTX text: lifted, made stoppable, verified")                                       \
	X(asm, "inline PTX of bitcode")                                                            \
	X(code, "kernels made of bytes: lowered for every vendor, and run in every way")           \
	X(container, "fatbins, offload bundles, ELF files, wrapped bitcode, LZ4, ZSTD")            \
	X(ir, "clang's IR, as text or bitcode that LLVM itself reads and verifies")                \
	X(image, "what a driver API is given, looked at inside the program")                       \
	X(report, "reports, the board and the ring of events, as every command shows them")        \
	X(sass, "NVIDIA machine code that a guard is put into")                                    \
	X(profiles, "the table that tallyd hands to programs")                                     \
	X(store, "profiles.db")                                                                    \
	X(wire, "messages to tallyd, with descriptors")

/* Any bytes: no crash, no hang, nothing read outside, and every failure with its reason. What a
 * target finds wrong itself it says by abort(). */
typedef void fuzz_run(const uint8_t *data, size_t size);

#define X(name, what) fuzz_run fuzz_run_##name;
FUZZ_TARGETS(X)
#undef X

struct fuzz_target {
	const char *name, *what;
	fuzz_run *run;
};
extern const struct fuzz_target fuzz_targets[]; /* ends with a NULL name */

/* NULL where there is none of that name. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* Mutates PTX text by its tokens, statements, operands and types (mutate_ptx.c): the new size, at
 * most `room`; 0 when it found nothing to do. */
size_t fuzz_mutate_ptx(uint8_t *data, size_t size, size_t room, unsigned seed);

/* Puts statements of `other` into `data`: as above. */
size_t fuzz_cross_ptx(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size,
		      uint8_t *out, size_t room, unsigned seed);

/*
 * Bytes as a list of small changes to something large (a report, a board, a file): each takes a
 * few bytes. False when there are no more.
 */
struct fuzz_input {
	const uint8_t *data;
	size_t size;
};
bool fuzz_take(struct fuzz_input *input, void *to, size_t size);

/* Appends a PTX kernel `k(in, out, sums)` for blocks of 64 threads that does what the bytes say
 * (make_kernel.c): valid, without races, and it ends. */
struct tally_buffer;
void fuzz_make_kernel(struct fuzz_input *input, struct tally_buffer *text);

/* Aborts when a failure has no reason, or a success has one. */
struct tally_error;
void fuzz_check(bool ok, const struct tally_error *error);

#endif
