/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for the driver's tests, written by hand to the ABI of compiled ones (kernel_abi.h): so
 * that queues, workers and loading are tested by themselves, whatever the compiler does.
 */
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernel_abi.h"
#include "base/clock.h"
#include "ir_passes/launch_abi.h"

uint32_t variable[4] = {1, 2, 3, 4};
static const uint32_t constant[2] = {7, 8};

static uint64_t linear(const struct tally_cpu_block *b)
{
	return ((uint64_t)b->id[2] * b->grid[1] + b->id[1]) * b->grid[0] + b->id[0];
}

static int run_empty(const void *params, struct tally_cpu_block *block)
{
	(void)params;
	(void)block;
	return 0;
}

/* Counts how often each block ran. */
struct count_params {
	uint32_t *count;
};

static int run_count(const void *params, struct tally_cpu_block *block)
{
	const struct count_params *p = params;

	__atomic_fetch_add(&p->count[linear(block)], 1, __ATOMIC_RELAXED);
	return 0;
}

/* Works for some time, then writes down that it did: `id` into the next place of `log`. */
struct busy_params {
	uint64_t ns;
	uint32_t *log, *next;
	uint32_t id;
};

static int run_busy(const void *params, struct tally_cpu_block *block)
{
	const struct busy_params *p = params;
	uint64_t end = tally_now() + p->ns;

	(void)block;
	while (tally_now() < end)
		;
	if (p->log)
		p->log[__atomic_fetch_add(p->next, 1, __ATOMIC_RELAXED)] = p->id;
	return 0;
}

/* Runs until the host says so. */
struct wait_params {
	uint32_t *flag, *started;
};

static int run_wait(const void *params, struct tally_cpu_block *block)
{
	const struct wait_params *p = params;

	(void)block;
	__atomic_store_n(p->started, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(p->flag, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	return 0;
}

/* Writes down that it began, and stays until the host says so. */
struct stay_params {
	uint32_t *flag, *log, *next;
	uint32_t id;
};

static int run_stay(const void *params, struct tally_cpu_block *block)
{
	const struct stay_params *p = params;

	(void)block;
	p->log[__atomic_fetch_add(p->next, 1, __ATOMIC_RELAXED)] = p->id;
	while (!__atomic_load_n(p->flag, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	return 0;
}

/* *value goes one step on, which depends on all steps before. */
struct step_params {
	uint32_t *value, number;
};

static int run_step(const void *params, struct tally_cpu_block *block)
{
	const struct step_params *p = params;

	(void)block;
	*p->value = *p->value * 1664525u + p->number;
	return 0;
}

/* Every block of the grid waits for all others. */
struct meet_params {
	uint32_t *arrived;
};

static int run_meet(const void *params, struct tally_cpu_block *block)
{
	const struct meet_params *p = params;
	uint32_t blocks = block->grid[0] * block->grid[1] * block->grid[2];

	uint32_t mine = __atomic_fetch_add(p->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(p->arrived, __ATOMIC_SEQ_CST) / blocks <= mine / blocks)
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	return 0;
}

/* Two launches of one block each wait for each other. */
static int run_meet_two(const void *params, struct tally_cpu_block *block)
{
	const struct meet_params *p = params;

	(void)block;
	uint32_t mine = __atomic_fetch_add(p->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(p->arrived, __ATOMIC_SEQ_CST) < (mine | 1) + 1)
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	return 0;
}

/* y[i] = a * x[i] + y[i], a thread an element; parameters of several sizes and gaps. */
struct saxpy_params {
	uint8_t n_times;
	float a;
	const float *x;
	float *y;
	uint32_t n;
};

static int run_saxpy(const void *params, struct tally_cpu_block *block)
{
	const struct saxpy_params *p = params;

	for (uint32_t t = 0; t < block->threads; t++) {
		uint32_t i = block->id[0] * block->threads + t;
		for (uint8_t k = 0; i < p->n && k < p->n_times; k++)
			p->y[i] += p->a * p->x[i];
	}
	return 0;
}

static int run_variable(const void *params, struct tally_cpu_block *block)
{
	(void)params;
	(void)block;
	variable[0] += 100;
	variable[1] = constant[1];
	return 0;
}

struct shared_params {
	uint32_t *bytes;
};

static int run_shared(const void *params, struct tally_cpu_block *block)
{
	const struct shared_params *p = params;

	for (uint32_t i = 0; i < block->shared_bytes; i++)
		block->shared[i] = (char)i;
	*p->bytes = block->shared_bytes;
	return 0;
}

static int run_illegal(const void *params, struct tally_cpu_block *block)
{
	(void)params;
	*(volatile uint32_t *)(uintptr_t)(block->id[0] + 16) = 1;
	return 0;
}

static int run_trap(const void *params, struct tally_cpu_block *block)
{
	(void)params;
	block->services->fault(block, 1 /* TALLY_CPU_TRAP */);
	return 0;
}

static int run_assert(const void *params, struct tally_cpu_block *block)
{
	(void)params;
	(void)block;
	return 2; /* TALLY_CPU_ASSERT */
}

/* As run_busy, and the variant that can be stopped. */
struct guard_params {
	uint32_t *count;
	uint64_t ns;
	struct tally_launch launch;
};

static int run_guard(const void *params, struct tally_cpu_block *block)
{
	const struct guard_params *p = params;
	uint64_t end = tally_now() + p->ns;

	while (tally_now() < end)
		;
	__atomic_fetch_add(&p->count[linear(block)], 1, __ATOMIC_RELAXED);
	return 0;
}

/* All it was given, bytes to bytes. */
static int run_large(const void *params, struct tally_cpu_block *block)
{
	const unsigned char *p = params;
	uint64_t **out = (uint64_t **)(uintptr_t)params;
	uint64_t sum = 0;

	(void)block;
	for (int i = 8; i < 4096; i++)
		sum = sum * 31 + p[i];
	**out = sum;
	return 0;
}

#define AT(type, member) {offsetof(type, member), sizeof(((type *)0)->member)}

static const struct tally_cpu_param count_list[] = {AT(struct count_params, count)};
static const struct tally_cpu_param busy_list[] = {
	AT(struct busy_params, ns), AT(struct busy_params, log), AT(struct busy_params, next),
	AT(struct busy_params, id)};
static const struct tally_cpu_param wait_list[] = {AT(struct wait_params, flag),
						   AT(struct wait_params, started)};
static const struct tally_cpu_param stay_list[] = {
	AT(struct stay_params, flag), AT(struct stay_params, log), AT(struct stay_params, next),
	AT(struct stay_params, id)};
static const struct tally_cpu_param saxpy_list[] = {
	AT(struct saxpy_params, n_times), AT(struct saxpy_params, a), AT(struct saxpy_params, x),
	AT(struct saxpy_params, y), AT(struct saxpy_params, n)};
static const struct tally_cpu_param step_list[] = {AT(struct step_params, value),
						   AT(struct step_params, number)};
static const struct tally_cpu_param meet_list[] = {AT(struct meet_params, arrived)};
static const struct tally_cpu_param shared_list[] = {AT(struct shared_params, bytes)};
static const struct tally_cpu_param guard_list[] = {AT(struct guard_params, count),
						    AT(struct guard_params, ns),
						    AT(struct guard_params, launch)};
static const struct tally_cpu_param large_list[] = {{0, 8}, {8, 4088}};

#define KERNEL(text, function, list, structure)                                                    \
	.name = text, .param_count = sizeof(list) / sizeof *(list),                                \
	.param_bytes = sizeof(structure), .params = list, .max_threads = 1024,                     \
	.run_block = function
#define PLAIN(text, function) .name = text, .max_threads = 1024, .run_block = function

static const struct tally_cpu_kernel kernels[] = {
	{PLAIN("empty", run_empty)},
	{KERNEL("count", run_count, count_list, struct count_params)},
	{KERNEL("busy", run_busy, busy_list, struct busy_params)},
	{KERNEL("wait", run_wait, wait_list, struct wait_params)},
	{KERNEL("stay", run_stay, stay_list, struct stay_params)},
	{KERNEL("saxpy", run_saxpy, saxpy_list, struct saxpy_params)},
	{KERNEL("step", run_step, step_list, struct step_params)},
	{KERNEL("meet", run_meet, meet_list, struct meet_params)},
	{KERNEL("meet_two", run_meet_two, meet_list, struct meet_params)},
	{PLAIN("variable", run_variable)},
	{KERNEL("shared", run_shared, shared_list, struct shared_params), .shared_bytes = 1024,
	 .shared_align = 16},
	{PLAIN("illegal", run_illegal)},
	{PLAIN("trap", run_trap)},
	{PLAIN("assert", run_assert)},
	{KERNEL("work$guard", run_guard, guard_list, struct guard_params),
	 .flags = TALLY_CPU_GUARD},
	{.name = "large",
	 .param_count = 2,
	 .param_bytes = 4096,
	 .params = large_list,
	 .max_threads = 1024,
	 .run_block = run_large},
	{.name = "narrow", .max_threads = 64, .required = {8, 4, 2}, .run_block = run_empty},
};

static const struct tally_cpu_variable variables[] = {
	{"variable", variable, sizeof variable, 0},
	{"constant", (void *)(uintptr_t)constant, sizeof constant, 1},
};

extern const struct tally_cpu_module tally_cpu_module;
const struct tally_cpu_module tally_cpu_module = {
	.version = TALLY_CPU_ABI_VERSION,
	.kernel_count = sizeof kernels / sizeof *kernels,
	.variable_count = sizeof variables / sizeof *variables,
	.kernels = kernels,
	.variables = variables,
};
