/* SPDX-License-Identifier: Apache-2.0 */
/* One case on the device: its memory, its launches, its comparison. */
#ifndef TALLY_CONFORMANCE_EXECUTE_H
#define TALLY_CONFORMANCE_EXECUTE_H

#include "conformance/device.h"
#include "conformance/runner.h"
#include "ir_passes/launch_abi.h"

/* A case with a module loaded for it. `expected` and `original` live as long as the case. */
struct running {
	const struct conformance_case *c;
	CUmodule module;
	CUstream stream;
	CUdeviceptr buffer[CASE_BUFFERS], runs;
	void *expected[CASE_BUFFERS]; /* from the C reference */
	void *original[CASE_BUFFERS]; /* from the untransformed run on this device; or NULL */
	/* The stop protocol's words (launch_abi.h). */
	CUdeviceptr control, gate, broken;
	uint64_t *mailbox; /* host */
	CUdeviceptr mailbox_device;
};

bool running_create(struct running *r, const struct conformance_case *c, struct tally_error *error);
void running_destroy(struct running *r);
bool running_load(struct running *r, const char *path, struct tally_error *error);

/* Sets buffers and counters to their initial content. */
bool running_reset(struct running *r, struct tally_error *error);
/* Launches an entry; `launch` is the variant's last parameter, or NULL for an original entry;
 * `line` is the length of a one-dimensional grid, or 0 for the case's own. Asynchronous on
 * r->stream. */
bool running_launch(struct running *r, const char *entry, const struct tally_launch *launch,
		    uint32_t line, struct tally_error *error);
/* Writes the control block: word = {stop, max}. */
bool running_control(struct running *r, uint64_t word, uint32_t sequence,
		     struct tally_error *error);

/* Whether blocks [0, until) ran exactly once and the others not at all. */
bool running_check_runs(struct running *r, uint32_t until, struct tally_error *error);
/* Whether all buffers are as the reference, and, when there is one, as the original run. */
bool running_check(struct running *r, struct tally_error *error);
/* Keeps the buffers as the original run's. */
bool running_keep(struct running *r, struct tally_error *error);
/* From here on another original is compared with. */
void running_forget(struct running *r);

/* Round a launch of a case that prints: what goes to stdout is kept and compared. */
bool capture_begin(struct tally_error *error);
bool capture_end(const struct conformance_case *c, struct tally_error *error);

#endif
