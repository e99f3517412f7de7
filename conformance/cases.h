/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance cases: how each kernel is launched and what it has to compute, in plain C. */
#ifndef TALLY_CONFORMANCE_CASES_H
#define TALLY_CONFORMANCE_CASES_H

#include <stddef.h>
#include <stdint.h>

#define CASE_BUFFERS 5
#define CASE_BLOBS   4

/* What a buffer holds: how it is compared and printed. */
enum case_type { CASE_I32, CASE_U8, CASE_I16, CASE_F32, CASE_F64, CASE_I64, CASE_F16 };

struct conformance_case;

struct case_buffer {
	enum case_type type;
	size_t count; /* elements */
	/* Sets the initial content; NULL: zeros. The same function fills the reference's copy. */
	void (*fill)(void *data, size_t count);
	double tolerance;   /* relative, against the C reference only; 0: every bit */
	const char *symbol; /* this buffer is the module's variable of that name, not a parameter */
};

struct case_blob {
	const void *data;
	size_t size, align;
};

struct conformance_case {
	const char *name;   /* "block_scan.33" */
	const char *kernel; /* file and entry */
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	/* One letter a parameter: b next buffer, v next blob by value, r the blocks' run counters.
	 */
	const char *parameters;
	struct case_buffer buffer[CASE_BUFFERS];
	struct case_blob blob[CASE_BLOBS];
	const char *runs_symbol; /* where the run counters are a module's variable */
	/* Computes what the buffers hold after one launch. */
	void (*reference)(void *const *buffer, const struct conformance_case *c);
	/* The line that block `block` prints, for kernels that print one line a block. */
	void (*line)(char *text, size_t size, unsigned block, const struct conformance_case *c);
};

extern const struct conformance_case *const conformance_groups[]; /* NULL-terminated */
/* Each group ends with a case without a name. */
extern const struct conformance_case cases_basic[], cases_sync[], cases_atomic[], cases_maths[],
	cases_matrix[], cases_program[];

uint32_t case_blocks(const struct conformance_case *c);
uint32_t case_threads(const struct conformance_case *c);
size_t case_type_size(enum case_type type);

/* Fills that several groups use. */
void fill_small_ints(void *data, size_t count); /* int: 0 to 99, mixed */
void fill_floats(void *data, size_t count);	/* float: -12.5 to 12.4, mixed, exact in 16 bits */
void fill_words(void *data, size_t count);	/* uint32: all bits */
void fill_bytes(void *data, size_t count);

#endif
