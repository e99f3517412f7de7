/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How every bench says what it found: one table on stdout and, where $BENCH_OUT names a folder, one
 * line each in results.jsonl (with all samples) and results.csv there. For programs of one thread.
 */
#ifndef TALLY_BENCH_REPORT_H
#define TALLY_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

struct bench_figure {
	const char *name; /* what was measured; no quotes, no commas */
	const char *unit; /* "x" for ratios, "us", "ns", "MiB" ... */
	double value;
	double bound;	       /* the value may be at most this; 0: a figure for information */
	const double *samples; /* what the value comes from, or NULL */
	size_t count;	       /* of samples, or of measurements where there are none to keep */
	const char *beside;    /* printed after it, or NULL */
};

/* Names the bench and says in one sentence what it measures; prints the head of its table. */
void bench_begin(const char *bench, const char *what);

void bench_report(const struct bench_figure *figure);

/* The median of `ratios` against `bound`; `format` and what follows is printed beside. */
void bench_ratio(const char *name, const double *ratios, size_t count, double bound,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The median of `values`, for information. */
void bench_info(const char *name, const char *unit, const double *values, size_t count,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Of a copy of `values`; q from 0 to 1. */
double bench_quantile(const double *values, size_t count, double q);
double bench_median(const double *values, size_t count);

/* Ends the program with one line on stderr. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Microseconds of CLOCK_MONOTONIC. */
double bench_now_us(void);

/* A whole process, from fork to the end. */
struct bench_run {
	char *const *arguments;		/* NULL at the end; the first is a path */
	const char *const *environment; /* "NAME=value" to be set or "NAME" to be removed, NULL at
					   the end; may be NULL */
	bool quiet;			/* its stderr is expected and goes nowhere */
	char output[256];		/* the beginning of what it wrote to stdout */
	double wall_us, cpu_us;		/* cpu: user and system time of the process */
};

/* Runs it and waits; the program ends when it fails. The child dies with its parent. */
void bench_process(struct bench_run *run);

#endif
