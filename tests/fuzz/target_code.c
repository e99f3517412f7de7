/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels made of bytes, through everything: lifted, made sliceable and stoppable, lowered for a
 * GPU, and run on the CPU device: in slices, guarded, stopped after any block and resumed, and by
 * workers, each has to leave the memory that the original leaves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/buffer.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/passes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/jit.h"

enum { BLOCKS = 5, THREADS = 64, OUT = BLOCKS * THREADS * 128, SUMS = 8 };

struct memory {
	uint8_t out[OUT];
	uint32_t sums[SUMS];
};

struct params {
	uint64_t in, out, sums;
	struct tally_launch launch;
};

static void fail(const char *what, const char *why, const char *ptx)
{
	fprintf(stderr, "%s: %s\n%s", what, why, ptx);
	abort();
}

/* The kernel through lifter and passes; the caller disposes of the context. NULL: refused by name.
 */
static LLVMModuleRef make(LLVMContextRef context, const struct tally_buffer *ptx, unsigned set)
{
	const struct tally_lift_options lift = {.file = "fuzz.ptx"};
	const struct tally_pass_options passes = {.transforms = set, .verify = true};
	struct tally_error error = {0};
	LLVMModuleRef module = tally_ptx_lift(context, ptx->data, ptx->size, &lift, &error);

	if (!module)
		fail("lifter", error.message, ptx->data);
	if (!tally_passes_run(module, &passes, &error))
		fail("passes", error.message, ptx->data);
	return module;
}

/* No target refuses such a kernel. */
static void lower(const struct tally_lowering *lowering, const char *target, enum tally_emit emit,
		  const struct tally_buffer *ptx, unsigned set, struct tally_buffer *out)
{
	const struct tally_lower_options options = {.target = target, .emit = emit, .optimise = 1};
	struct tally_error error = {0};
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = make(context, ptx, set);
	bool ok = lowering->lower(module, &options, out, &error);

	fuzz_check(ok, &error);
	if (!ok)
		fail(target, error.message, ptx->data);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

/* A launch of `blocks` blocks on worker `w`. */
static void run_blocks(struct tally_cpu_worker *w, const struct tally_cpu_kernel *kernel,
		       const struct params *params, uint32_t blocks, const char *ptx)
{
	const struct tally_cpu_launch launch = {.kernel = kernel,
						.params = params,
						.grid = {blocks, 1, 1},
						.block = {THREADS, 1, 1},
						.grid_id = 1};

	for (uint32_t b = 0; b < blocks; b++)
		if (tally_cpu_run_block(w, &launch, b) != TALLY_CPU_OK)
			fail(kernel->name, tally_cpu_worker_message(w), ptx);
}

static const uint32_t *inputs(void)
{
	static uint32_t words[4096];
	uint32_t state = 12345;

	for (unsigned i = 0; !words[0] && i < 4096; i++) {
		state = state * 1664525 + 1013904223;
		/* Small ones, round ones, any. */
		words[4095 - i] = i % 3 == 0   ? state >> 28
				  : i % 3 == 1 ? state & 0xff800000
					       : state;
		words[0] = i == 4095;
	}
	return words;
}

struct variant {
	const char *name;
	bool sliced;	/* the launch has hi - lo blocks */
	bool persist;	/* two workers */
	bool stoppable; /* asks a control block */
};

/* Two launches: [0, cut), then [cut, BLOCKS). */
static void run_variant(struct tally_cpu_worker *w, const struct tally_cpu_image *image,
			const struct variant *v, uint32_t cut, struct memory *memory,
			const char *ptx)
{
	const struct tally_cpu_kernel *kernel = tally_cpu_image_kernel(image, v->name);
	uint32_t gate = 0, broken = 0, ends[] = {cut, BLOCKS}, lo = 0;
	uint64_t mailbox = 0;

	memset(memory, 0, sizeof *memory);
	for (unsigned i = 0; kernel && i < 2; lo = ends[i++]) {
		struct tally_control control = {.word = lo,
						.gate = (uintptr_t)&gate,
						.broken = (uintptr_t)&broken,
						.mailbox = (uintptr_t)&mailbox,
						.sequence = i + 1,
						.hi = ends[i]};
		struct params params = {(uintptr_t)inputs(),
					(uintptr_t)memory->out,
					(uintptr_t)memory->sums,
					{.control = v->stoppable ? (uintptr_t)&control : 0,
					 .lo = lo,
					 .hi = ends[i],
					 .grid = {BLOCKS, 1, 1}}};
		uint32_t blocks = v->sliced ? ends[i] - lo : v->persist ? 2 : BLOCKS;

		if (blocks)
			run_blocks(w, kernel, &params, blocks, ptx);
	}
}

static void compare(const struct tally_buffer *object, uint32_t cut, const char *ptx)
{
	static const struct variant variants[] = {
		{"k$slice", true, false, false},      {"k$guard", false, false, true},
		{"k$slice_guard", true, false, true}, {"k$persist", false, true, false},
		{"k$persist", false, true, true},
	};
	static struct memory original, other;
	struct tally_cpu_image image;
	void *handle = fuzz_load(object, &image);
	struct tally_cpu_worker *w = tally_cpu_worker_create(0);
	const struct params params = {
		(uintptr_t)inputs(), (uintptr_t)original.out, (uintptr_t)original.sums, {0}};

	memset(&original, 0, sizeof original);
	run_blocks(w, tally_cpu_image_kernel(&image, "k"), &params, BLOCKS, ptx);
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		/* A kernel that cannot be persistent has no such variant. */
		if (!tally_cpu_image_kernel(&image, variants[i].name))
			continue;
		run_variant(w, &image, &variants[i], cut, &other, ptx);
		if (memcmp(&original, &other, sizeof other))
			fail(variants[i].name, "leaves other memory than the original", ptx);
	}
	tally_cpu_worker_destroy(w);
	fuzz_unload(handle);
}

void fuzz_run_code(const uint8_t *data, size_t size)
{
	static const char *const gpus[] = {"sm_80", "gfx90a",  "gfx1100",
					   "sm_70", "gfx1201", "sm_90"};
	const unsigned set = TALLY_SLICE | TALLY_GUARD | TALLY_PERSIST;
	struct fuzz_input input = {data, size};
	struct tally_buffer ptx = {0}, code = {0};
	uint8_t choice = 0, gpu;

	fuzz_take(&input, &choice, 1);
	fuzz_make_kernel(&input, &ptx);
	if (ptx.failed)
		abort();
	lower(&tally_lowering_cpu, "x86-64", TALLY_EMIT_OBJ, &ptx, set, &code);
	compare(&code, choice % (BLOCKS + 1), ptx.data);
	tally_buffer_free(&code);
	code = (struct tally_buffer){0};
	gpu = choice / 8 % (sizeof gpus / sizeof *gpus);
	if (!strncmp(gpus[gpu], "gfx", 3))
		lower(&tally_lowering_hip, gpus[gpu], TALLY_EMIT_OBJ, &ptx, set, &code);
	else
		lower(&tally_lowering_cuda, gpus[gpu], TALLY_EMIT_PTX, &ptx, set, &code);
	tally_buffer_free(&code);
	tally_buffer_free(&ptx);
}
