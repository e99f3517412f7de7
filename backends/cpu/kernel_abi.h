/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel compiled for the CPU device looks like: the shared object that backends/cpu/lower
 * writes exports one `const struct tally_cpu_module tally_cpu_module`, and backends/cpu/executor
 * runs it. The object has no undefined symbol but libm's and libc's memory functions.
 */
#ifndef TALLY_BACKENDS_CPU_KERNEL_ABI_H
#define TALLY_BACKENDS_CPU_KERNEL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_CPU_ABI_VERSION	3
#define TALLY_CPU_MODULE_SYMBOL "tally_cpu_module"

struct tally_cpu_block;
struct tally_cpu_thread;

struct tally_cpu_param {
	uint32_t offset, bytes; /* in the packed parameter buffer (C layout, in order) */
};

enum tally_cpu_kernel_flags {
	TALLY_CPU_COROUTINE =
		1, /* threads are started one by one and suspend (start), else run_block */
	TALLY_CPU_SLICE = 2, /* variant: last parameter is a struct tally_launch */
	TALLY_CPU_GUARD = 4, /* variant: the executor asks tally_guard_enter() before each block */
	TALLY_CPU_COOPERATIVE = 8,
	TALLY_CPU_LOW_LOCAL = 16, /* private memory has to lie below 4 GiB (local_bytes a thread) */
	TALLY_CPU_REGIONS = 32,	  /* run_block, with barriers: keeps all threads' values in frames,
				     and private memory for each thread */
};

/*
 * What a suspended thread waits for, or how it ended: the low byte of tally_cpu_thread.operation.
 * The order matters to the executor: those from TALLY_CPU_WARP_SYNC on meet within a warp.
 */
enum tally_cpu_operation {
	TALLY_CPU_EXIT = 1,
	TALLY_CPU_YIELD,   /* nothing: lets the other threads run; `value` nanoseconds of sleep */
	TALLY_CPU_BARRIER, /* barriers: id in the upper 24 bits, count in `mask` */
	TALLY_CPU_BARRIER_POPC,
	TALLY_CPU_BARRIER_AND,
	TALLY_CPU_BARRIER_OR,
	TALLY_CPU_BARRIER_ARRIVE,
	TALLY_CPU_ACTIVE_MASK, /* `value`: the place in the code */
	TALLY_CPU_WARP_SYNC,
	TALLY_CPU_VOTE_ALL,
	TALLY_CPU_VOTE_ANY,
	TALLY_CPU_VOTE_UNI,
	TALLY_CPU_VOTE_BALLOT,
	TALLY_CPU_SHUFFLE_UP,
	TALLY_CPU_SHUFFLE_DOWN,
	TALLY_CPU_SHUFFLE_XOR,
	TALLY_CPU_SHUFFLE_IDX,
	TALLY_CPU_MATCH_ANY,
	TALLY_CPU_MATCH_ALL,
	TALLY_CPU_REDUCE_ADD,
	TALLY_CPU_REDUCE_MIN,
	TALLY_CPU_REDUCE_MAX,
	TALLY_CPU_REDUCE_UMIN,
	TALLY_CPU_REDUCE_UMAX,
	TALLY_CPU_REDUCE_AND,
	TALLY_CPU_REDUCE_OR,
	TALLY_CPU_REDUCE_XOR,
	TALLY_CPU_ELECT,
	TALLY_CPU_MATRIX, /* form in the upper 24 bits, `value`: a struct tally_cpu_matrix */
	TALLY_CPU_OPERATION_COUNT,
};

/*
 * One GPU thread of a block: who it is, and the record of the operation in which it is suspended.
 * Coroutine kernels have one for each thread; loop kernels make one on their stack, and only where
 * functions that could not be inlined have to know which thread they run for. One cache line.
 */
struct tally_cpu_thread {
	struct tally_cpu_block *block;
	void *handle;	    /* of the coroutine */
	uint32_t id[3];	    /* in the block */
	uint32_t linear;    /* the same, x fastest */
	uint32_t operation; /* enum tally_cpu_operation, see there */
	uint32_t mask;	    /* lanes that meet (warp), threads that meet (barrier; 0: all) */
	uint64_t value;
	uint32_t b, c;	 /* of a shuffle */
	uint64_t result; /* low half the i32 (or only) result, bit 32 the predicate of a pair */
};

/*
 * Registers of a matrix operation (ir_passes/matrix.def): what it gives, what it takes. One word a
 * register or address, narrow ones in the low bits.
 */
enum { TALLY_CPU_MATRIX_RESULTS = 8, TALLY_CPU_MATRIX_SOURCES = 32 };
struct tally_cpu_matrix {
	uint64_t result[TALLY_CPU_MATRIX_RESULTS];
	uint64_t source[TALLY_CPU_MATRIX_SOURCES];
};

/* Directed rounding, for services->round32 and round64: operation * 4 + direction. */
enum tally_cpu_rounding { TALLY_CPU_RZ, TALLY_CPU_RM, TALLY_CPU_RP };
enum tally_cpu_rounded {
	TALLY_CPU_ROUND_ADD,
	TALLY_CPU_ROUND_SUB,
	TALLY_CPU_ROUND_MUL,
	TALLY_CPU_ROUND_DIV,
	TALLY_CPU_ROUND_FMA,
	TALLY_CPU_ROUND_SQRT,
	TALLY_CPU_ROUND_RCP,
};
/* Directed conversions, for services->convert: kind * 4 + direction; bits in, bits out. */
enum tally_cpu_conversion {
	TALLY_CPU_F64_TO_F32,
	TALLY_CPU_F32_TO_F16,
	TALLY_CPU_F32_TO_BF16,
	TALLY_CPU_I32_TO_F32,
	TALLY_CPU_U32_TO_F32,
	TALLY_CPU_I64_TO_F32,
	TALLY_CPU_U64_TO_F32,
	TALLY_CPU_I64_TO_F64,
	TALLY_CPU_U64_TO_F64,
};

/* CUDA's mathematical functions that libm lacks: services->math. NAME, arguments. */
#define TALLY_CPU_MATH_LIST(X)                                                                     \
	X(erfinv, 1)                                                                               \
	X(erfcinv, 1)                                                                              \
	X(erfcx, 1)                                                                                \
	X(normcdf, 1)                                                                              \
	X(normcdfinv, 1)                                                                           \
	X(rcbrt, 1)                                                                                \
	X(sinpi, 1)                                                                                \
	X(cospi, 1)                                                                                \
	X(tanpi, 1)                                                                                \
	X(cyl_bessel_i0, 1)                                                                        \
	X(cyl_bessel_i1, 1)                                                                        \
	X(rhypot, 2)                                                                               \
	X(norm3d, 3)                                                                               \
	X(rnorm3d, 3)                                                                              \
	X(norm4d, 4)                                                                               \
	X(rnorm4d, 4)

enum tally_cpu_math {
#define TALLY_CPU_MATH_ENUM(name, arguments) TALLY_CPU_MATH_##name,
	TALLY_CPU_MATH_LIST(TALLY_CPU_MATH_ENUM)
#undef TALLY_CPU_MATH_ENUM
		TALLY_CPU_MATH_COUNT
};

/* What kernels call in the executor (through the block, so that the object needs no symbol). All
 * may be called by any worker at any time. */
struct tally_cpu_services {
	/* Memory for a coroutine's frame; aligned to 64. Only when the arena has no room left. */
	void *(*frame)(struct tally_cpu_block *block, uint64_t bytes);
	/* Ends the block with an enum tally_cpu_fault; does not return. */
	void (*fault)(struct tally_cpu_block *block, int code);
	void (*assert_fail)(struct tally_cpu_block *block, const char *message, const char *file,
			    uint32_t line, const char *function, uint32_t x, uint32_t y,
			    uint32_t z);
	int (*print)(const char *format, const void *arguments);
	void *(*allocate)(uint64_t bytes);
	void (*release)(void *memory);
	uint64_t (*global_timer)(void); /* ns */
	bool (*is_local)(struct tally_cpu_block *block, const void *address);
	float (*round32)(uint32_t what, float a, float b, float c);
	double (*round64)(uint32_t what, double a, double b, double c);
	uint64_t (*convert)(uint32_t what, uint64_t bits);
	void (*math[TALLY_CPU_MATH_COUNT])(void); /* double of 1 to 4 doubles each */
	/* A thread polls for another block: the processor is somebody else's now and then. */
	void (*rest)(struct tally_cpu_block *block);
};

/* One block while it runs. Kernels read it, and write nothing but `arena_next`. The compiled code
 * and backends/cpu/lower/library.ll know these offsets. */
struct tally_cpu_block {
	const struct tally_cpu_services *services;
	char *shared;			/* static shared memory, 128-byte aligned, below 4 GiB */
	char *dynamic;			/* dynamic shared memory, after the static */
	char *arena_next, *arena_limit; /* frames of coroutines, 64-byte aligned */
	uint32_t shared_bytes, dynamic_bytes; /* static + dynamic; dynamic */
	uint64_t grid_id;
	uint32_t id[3], grid[3], size[3];
	uint32_t threads; /* product of size */
	uint32_t sm, sm_count;
	char *local; /* TALLY_CPU_LOW_LOCAL: private memory, local_stride bytes a thread (coroutine
			kernels) or for one thread (loop kernels) */
	uint32_t local_stride, reserved;
	struct tally_cpu_grid *workspace; /* tally.grid.workspace, or NULL */
};

/* What the blocks of a cooperative launch share, zeros at first. */
struct tally_cpu_grid {
	uint32_t words[15]; /* the kernel's; see docs/ir-contract.md */
	uint32_t failed;    /* one of the blocks has ended in a fault: nobody waits for it */
};

_Static_assert(sizeof(struct tally_cpu_thread) == 64, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, id) == 16, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, linear) == 28, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, operation) == 32, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, value) == 40, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, b) == 48, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_thread, result) == 56, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, dynamic) == 16, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, arena_next) == 24, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, shared_bytes) == 40, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, grid_id) == 48, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, id) == 56, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, grid) == 68, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, size) == 80, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, threads) == 92, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, sm) == 96, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, local) == 104, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, local_stride) == 112, "compiled into kernels");
_Static_assert(offsetof(struct tally_cpu_block, workspace) == 120, "compiled into kernels");

struct tally_cpu_kernel {
	const char *name;
	uint32_t flags;
	uint32_t param_count, param_bytes;
	const struct tally_cpu_param *params;
	uint32_t shared_bytes, shared_align; /* static shared memory */
	uint32_t local_bytes;		     /* private memory of a thread: for attributes, and
						see TALLY_CPU_LOW_LOCAL */
	uint32_t max_threads;		     /* product of maxntid, or 1024 */
	uint32_t required[3];		     /* reqntid, or 0 */

	/* Loop kernels: runs all threads of one block. Returns 0 or an enum tally_cpu_fault. */
	int (*run_block)(const void *params, struct tally_cpu_block *block);

	/* Coroutine kernels: starts one thread, runs it to its first suspension, returns its
	 * handle (NULL when it found no memory for its frame); the frame comes from the block's
	 * arena. The handle's first word is the function that resumes it. A thread that ended says
	 * TALLY_CPU_EXIT in its record and is not resumed; nobody destroys it. */
	void *(*start)(const void *params, struct tally_cpu_thread *thread);
};

struct tally_cpu_variable {
	const char *name;
	void *address;
	uint64_t bytes;
	uint32_t constant;
};

struct tally_cpu_module {
	uint32_t version; /* TALLY_CPU_ABI_VERSION */
	uint32_t kernel_count, variable_count;
	const struct tally_cpu_kernel *kernels;
	const struct tally_cpu_variable *variables;
};

/* Why a block failed: sticky errors of the context, named as the driver API names them. */
enum tally_cpu_fault {
	TALLY_CPU_OK = 0,
	TALLY_CPU_TRAP,	     /* CUDA_ERROR_LAUNCH_FAILED */
	TALLY_CPU_ASSERT,    /* CUDA_ERROR_ASSERT */
	TALLY_CPU_DEADLOCK,  /* threads wait for each other for ever: CUDA_ERROR_LAUNCH_TIMEOUT */
	TALLY_CPU_ILLEGAL,   /* CUDA_ERROR_ILLEGAL_ADDRESS */
	TALLY_CPU_MEMORY,    /* out of host memory */
	TALLY_CPU_ELSEWHERE, /* another block of the cooperative launch failed: that one says how */
};

#endif
