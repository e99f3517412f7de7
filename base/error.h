/* SPDX-License-Identifier: Apache-2.0 */
/* Error values: what went wrong, and where, as one line that a user can act on. */
#ifndef TALLY_BASE_ERROR_H
#define TALLY_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/*
 * A function that can fail takes a `struct tally_error *` and returns false (or NULL, or -errno).
 * The first error wins: setting an error that is already set does nothing, so that a caller may go
 * on and clean up without losing the cause. The object owns no memory and may live on the stack;
 * start it as `struct tally_error error = {0};`. Not shared between threads.
 */
struct tally_error {
	char message[1024];    /* "" when nothing failed; no newline, no "error:" */
	char file[256];	       /* "" when the error has no place */
	unsigned line, column; /* 1-based; 0 when unknown */
};

/* Sets the message, printf-like. Always returns false, so that `return tally_fail(e, ...)` reads
 * well. `error` may be NULL. */
bool tally_fail(struct tally_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same with a place in a file. `file` may be NULL; line and column may be 0. */
bool tally_fail_at(struct tally_error *error, const char *file, unsigned line, unsigned column,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

static inline bool tally_failed(const struct tally_error *error)
{
	return error->message[0] != '\0';
}

/* Prints `file:line:col: error: message` (the parts that are known; `program: error: ...` where
 * there is no file) as one line to stderr. For programs only: libraries return errors. */
void tally_error_print(const struct tally_error *error, const char *program);

#endif
