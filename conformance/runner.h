/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the conformance runner. */
#ifndef TALLY_CONFORMANCE_RUNNER_H
#define TALLY_CONFORMANCE_RUNNER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "conformance/cases.h"

/* What was asked for. */
struct options {
	const char *filter;	    /* substring of case names, or NULL */
	const char *kernels;	    /* folder of NAME.ptx and NAME.bc */
	const char *work;	    /* folder for what is compiled; made, kept */
	const char *tally_lower;    /* program */
	const char *ptxas;	    /* program, or NULL: PTX is not assembled */
	const char *readelf;	    /* llvm-readelf, for code object metadata */
	const char *junit;	    /* file, or NULL */
	const char *table;	    /* file for the table and the refusals, or NULL */
	const char *driver;	    /* library of the device to run on, or NULL: nothing is run */
	const char *device;	    /* its name for the report */
	const char *device_target;  /* tally-lower target of what that driver loads */
	const char *const *targets; /* to lower and assemble for, NULL-terminated */
	unsigned jobs;
	unsigned live_stops; /* rounds of stopping while the launch runs */
	bool verbose;
};

/* The forms in which every kernel comes: "ptx", "bc", and, for other devices than NVIDIA's, what an
 * NVIDIA machine would be given of "ptx", lowered once more for the device: FORM_TEXT, variants
 * that hold the original's text; FORM_AGAIN, PTX that went through IR. */
enum { FORMS = 4 };
extern const char *const forms[FORMS];
#define FORM_TEXT      "text"
#define FORM_AGAIN     "again"
#define TEXT_TRANSFORM "slice,guard"
/* Whether a kernel in a form is compiled for a transform: derived ones in one file with the
 * original. */
bool form_has(const struct options *o, const char *form, const char *transform);

/* report.c: one line of the result, kept for the table and for JUnit. */
enum outcome { PASSED, REFUSED, FAILED, SKIPPED };
void report(const char *name, const char *column, enum outcome outcome, double seconds,
	    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Prints the table and the totals; writes JUnit XML when asked. False when anything failed. */
bool report_finish(const struct options *o);

/* compile.c: false with an error for a target that tally-lower does not know. */
bool check_targets(const struct options *o, struct tally_error *error);
/* compile.c: lowers every kernel for the device and for every target, `jobs` at a time. */
bool compile_all(const struct options *o, struct tally_error *error);
/* Where the device's image of `kernel` for `transform` is; made by compile_all(). */
void compile_path(const struct options *o, const char *kernel, const char *form, const char *target,
		  const char *transform, char path[PATH_MAX]);
/* Whether refusals.txt says that `target` refuses the kernel with this transform. */
bool refused(const char *kernel, const char *target, const char *transform);
bool selected(const struct options *o, const struct conformance_case *c);

/* execute.c: runs every case on the device, whole, in slices, stopped and resumed. */
bool execute_all(const struct options *o, struct tally_error *error);

double now_seconds(void);

#endif
