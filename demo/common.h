/* SPDX-License-Identifier: Apache-2.0 */
/* What the two demo programs share: error checks, clocks, options. */
#ifndef DEMO_COMMON_H
#define DEMO_COMMON_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t check_ = (call);                                                       \
		if (check_ != cudaSuccess) {                                                       \
			fprintf(stderr, "%s:%d: error: %s: %s\n", __FILE__, __LINE__, #call,       \
				cudaGetErrorString(check_));                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Seconds of a clock. */
static inline double clock_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double now(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* Sleeps until `when` on the clock of now(). */
static inline void sleep_until(double when)
{
	struct timespec t;

	if (when <= now())
		return;
	t.tv_sec = (time_t)when;
	t.tv_nsec = (long)((when - (double)t.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/*
 * `--start-at T` (seconds since 1970): programs started by hand one after the other measure the
 * same window. Returns the moment on the clock of now(); that is now when T has passed or is 0.
 */
static inline double wait_for_start(double start_at)
{
	double wait = start_at > 0 ? start_at - clock_seconds(CLOCK_REALTIME) : 0;
	double start = now() + (wait > 0 ? wait : 0);

	if (start_at > 0 && wait < 0)
		fprintf(stderr, "warning: ready %.2f s after --start-at\n", -wait);
	sleep_until(start);
	return start;
}

/* One `--name VALUE` of a program; exactly one of the pointers is set. */
struct option_entry {
	const char *name, *help;
	double *number;
	const char **text;
};

static inline void options_help(const char *what, const struct option_entry *table, FILE *out)
{
	fprintf(out, "%s\n", what);
	for (; table->name; table++) {
		if (table->number)
			fprintf(out, "  %-12s N     %s (%g)\n", table->name, table->help,
				*table->number);
		else
			fprintf(out, "  %-12s PATH  %s\n", table->name, table->help);
	}
}

static inline void options_parse(int argc, char **argv, const char *what,
				 const struct option_entry *table)
{
	for (int i = 1; i < argc; i++) {
		const struct option_entry *o = table;
		char *end;

		if (!strcmp(argv[i], "--help")) {
			options_help(what, table, stdout);
			exit(0);
		}
		while (o->name && strcmp(o->name, argv[i]))
			o++;
		if (!o->name || i + 1 == argc) {
			fprintf(stderr, "error: %s: %s\n", argv[i],
				o->name ? "needs a value" : "unknown option (see --help)");
			exit(1);
		}
		i++;
		if (o->text) {
			*o->text = argv[i];
			continue;
		}
		*o->number = strtod(argv[i], &end);
		if (end == argv[i] || *end || *o->number < 0) {
			fprintf(stderr, "error: %s %s: not a number of 0 or more\n", o->name,
				argv[i]);
			exit(1);
		}
	}
}

/* A small generator of our own (xorshift64*), so that every run draws the same numbers. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1Dull;
}

/* In (0, 1]. */
static inline double random_unit(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 1.0) / 9007199254740992.0;
}

/* A device matrix of numbers in [-1, 1). */
static inline float *random_matrix(size_t count, uint64_t seed)
{
	float *host = (float *)malloc(count * sizeof(float)), *device;

	if (!host) {
		fprintf(stderr, "error: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < count; i++)
		host[i] = (float)(2.0 * random_unit(&seed) - 1.0);
	CHECK(cudaMalloc((void **)&device, count * sizeof(float)));
	CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice));
	free(host);
	return device;
}

#endif
