/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the tables of PTX cases on a device, through CUDA's driver: $TALLY_TEST_DRIVER or
 * libcuda.so.1. On an NVIDIA GPU that shows whether the expected values are the hardware's; on the
 * CPU device the whole way from text to result. What the driver does not compile (forms of newer
 * machines) is counted and named, not wrong; -q names none.
 */
#include "tests/ptx/run.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "tests/ptx/case.h"
#include "tests/ptx/device/device.h"

/* The module of cases [from, to); NULL when the driver does not take it. */
static void *load(const struct ptx_case *cases, size_t from, size_t to)
{
	struct tally_buffer text = {0};
	void *module;

	tally_buffer_print(&text, ".version 8.6\n.target sm_90\n.address_size 64\n"
				  ".shared .align 16 .b8 pool[64];\n");
	for (size_t i = from; i < to; i++)
		ptx_write_kernel(&text, i, &cases[i]);
	module = device_load(text.data);
	tally_buffer_free(&text);
	return module;
}

static bool is_nan32(uint64_t bits)
{
	return (bits & 0x7fffffff) > 0x7f800000;
}

/* The payload of a NaN is the machine's own: NVIDIA's answer 0x7fffffff, x86-64 keeps the
 * operand's. */
static bool same(const struct ptx_case *c, uint64_t result)
{
	return result == c->expected ||
	       (c->result == 'f' && is_nan32(result) && is_nan32(c->expected));
}

static size_t run_one(void *module, const struct ptx_case *c, size_t number)
{
	uint64_t result = 0;
	char name[32];

	snprintf(name, sizeof name, "k%zu", number);
	if (!device_launch(module, name, 1, c->input, sizeof c->input, &result, sizeof result)) {
		fprintf(stderr, "%s\n  the driver fails\n", c->code);
		return 1;
	}
	if (same(c, result))
		return 0;
	fprintf(stderr, "%s\n  inputs %llx %llx %llx %llx: %llx, expected %llx\n", c->code,
		(unsigned long long)c->input[0], (unsigned long long)c->input[1],
		(unsigned long long)c->input[2], (unsigned long long)c->input[3],
		(unsigned long long)result, (unsigned long long)c->expected);
	return 1;
}

/* A range that does not load is halved until the one that the driver refuses is alone. */
static size_t run_range(const struct ptx_case *cases, size_t from, size_t to, size_t *refused)
{
	void *module = load(cases, from, to);
	size_t wrong = 0, middle = from + (to - from) / 2;

	if (!module && to - from > 1)
		return run_range(cases, from, middle, refused) +
		       run_range(cases, middle, to, refused);
	if (!module) {
		printf("     not taken: %s\n", cases[from].code);
		++*refused;
		return 0;
	}
	for (size_t i = from; i < to; i++)
		wrong += run_one(module, &cases[i], i);
	device_unload(module);
	return wrong;
}

size_t ptx_run(const struct ptx_case *cases, size_t count)
{
	size_t refused = 0, wrong;

	wrong = run_range(cases, 0, count, &refused);
	printf("     %zu cases, %zu wrong, %zu not taken\n", count, wrong, refused);
	return wrong;
}
