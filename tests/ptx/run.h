/* SPDX-License-Identifier: Apache-2.0 */
/* Runs PTX snippets for real: lifted, given reference bodies for tally.*, compiled by LLVM's JIT.
 */
#ifndef TALLY_TESTS_PTX_RUN_H
#define TALLY_TESTS_PTX_RUN_H

#include <stddef.h>
#include <stdint.h>

/*
 * One snippet. It finds its inputs, 64 bits each, in %d0 ... %d3; their low parts in %r0 ..., %h0
 * ..., %f0 ... and (as doubles) in %e0 ...; %p0 is input 3's lowest bit. It leaves its result in
 * register 8 of the kind that `result` names (d, r, h, f, e; p: predicate), zero before.
 */
struct ptx_case {
	const char *code;
	char result;
	uint64_t input[4];
	uint64_t expected;
};

/* Lifts and runs all cases; prints those that differ; how many did. */
size_t ptx_run(const struct ptx_case *cases, size_t count);

/* Calls that convergent operations and printf made, as text, since the last clear. */
extern char ptx_log[4096];
void ptx_log_clear(void);

#define PTX_RUN(cases) assert_int_equal(ptx_run(cases, sizeof(cases) / sizeof *(cases)), 0)

#endif
