/* SPDX-License-Identifier: Apache-2.0 */
/* Helper programs (linker, assembler): run, fed from memory, their failure turned into one line. */
#ifndef TALLY_BACKENDS_PROGRAM_H
#define TALLY_BACKENDS_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* What the program reads: its argument TALLY_PROGRAM_INPUT is a file that holds `input`. */
#define TALLY_PROGRAM_INPUT "/proc/self/fd/3"

/*
 * Runs `argv` (NULL-terminated; looked for in PATH) and waits. What it writes to stdout is appended
 * to `out` (may be NULL: joined to stderr), to stderr to `messages` (may be NULL). False with an
 * error that names the program, and its own first message, when it is missing or fails. One at a
 * time per process.
 */
bool tally_program_run(const char *const *argv, const struct tally_buffer *input,
		       struct tally_buffer *out, struct tally_buffer *messages,
		       struct tally_error *error);

/* The process that tally_program_run() waits for, or 0. For signal handlers that end everything. */
pid_t tally_program_running(void);

#endif
