/* SPDX-License-Identifier: Apache-2.0 */
/* The benches' common table, result files, statistics and child processes: see report.h. */
#include "bench/report.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *bench_name = "bench";

void bench_fail(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fprintf(stderr, "bench %s: error: ", bench_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

double bench_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_quantile(const double *values, size_t count, double q)
{
	double *sorted = malloc(count * sizeof *sorted), value;

	if (!count || !sorted)
		bench_fail("nothing was measured");
	memcpy(sorted, values, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, by_size);
	value = sorted[(size_t)(q * (double)(count - 1) + 0.5)];
	free(sorted);
	return value;
}

double bench_median(const double *values, size_t count)
{
	return bench_quantile(values, count, 0.5);
}

void bench_begin(const char *bench, const char *what)
{
	double load[3] = {0};

	bench_name = bench;
	getloadavg(load, 3);
	printf("\n%s: %s (load %.2f)\n", bench, what, load[0]);
	printf("  %-46s %12s %12s  %-7s %6s  %s\n", "figure", "value", "bound", "verdict", "n",
	       "beside");
}

static FILE *open_result(const char *name)
{
	const char *folder = getenv("BENCH_OUT");
	char path[4096];
	FILE *file;

	if (!folder || !*folder)
		return NULL;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "a");
	if (!file)
		bench_fail("cannot write %s", path);
	return file;
}

static void close_result(FILE *file)
{
	if (ferror(file) | fclose(file))
		bench_fail("cannot write the results");
}

static void write_results(const struct bench_figure *f, const char *verdict)
{
	FILE *file = open_result("results.csv");

	if (!file)
		return;
	fprintf(file, "%s,%s,%.6g,%s,", bench_name, f->name, f->value, f->unit);
	if (f->bound > 0)
		fprintf(file, "%g", f->bound);
	fprintf(file, ",%s,%zu\n", verdict, f->count);
	close_result(file);

	file = open_result("results.jsonl");
	fprintf(file,
		"{\"bench\": \"%s\", \"figure\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", "
		"\"bound\": ",
		bench_name, f->name, f->value, f->unit);
	fprintf(file, f->bound > 0 ? "%g" : "null", f->bound);
	fprintf(file, ", \"verdict\": \"%s\", \"n\": %zu, \"samples\": [", verdict, f->count);
	for (size_t i = 0; f->samples && i < f->count; i++)
		fprintf(file, "%s%.6g", i ? ", " : "", f->samples[i]);
	fputs("]}\n", file);
	close_result(file);
}

/* "1.042x", "17.3 us" */
static void format_value(char *text, size_t size, double value, const char *unit)
{
	if (!strcmp(unit, "x"))
		snprintf(text, size, "%.3fx", value);
	else
		snprintf(text, size, value < 10 ? "%.3f %s" : "%.1f %s", value, unit);
}

void bench_report(const struct bench_figure *f)
{
	const char *verdict = f->bound <= 0 ? "-" : f->value <= f->bound ? "PASS" : "MISS";
	char value[64], bound[64] = "";

	format_value(value, sizeof value, f->value, f->unit);
	if (f->bound > 0)
		snprintf(bound, sizeof bound, "<= %g%s%s", f->bound,
			 strcmp(f->unit, "x") ? " " : "", f->unit);
	printf("  %-46s %12s %12s  %-7s %6zu  %s\n", f->name, value, bound, verdict, f->count,
	       f->beside ? f->beside : "");
	fflush(stdout);
	write_results(f, verdict);
}

static void report_median(const char *name, const char *unit, const double *values, size_t count,
			  double bound, const char *format, va_list arguments)
{
	char beside[256];
	struct bench_figure figure = {.name = name,
				      .unit = unit,
				      .value = bench_median(values, count),
				      .bound = bound,
				      .samples = values,
				      .count = count,
				      .beside = beside};

	vsnprintf(beside, sizeof beside, format, arguments);
	bench_report(&figure);
}

void bench_ratio(const char *name, const double *ratios, size_t count, double bound,
		 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_median(name, "x", ratios, count, bound, format, arguments);
	va_end(arguments);
}

void bench_info(const char *name, const char *unit, const double *values, size_t count,
		const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_median(name, unit, values, count, 0, format, arguments);
	va_end(arguments);
}

static void become(const struct bench_run *run, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	if (run->quiet)
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	for (const char *const *set = run->environment; set && *set; set++) {
		char *value = strchr(*set, '=');
		char *name = strndup(*set, value ? (size_t)(value - *set) : strlen(*set));

		if (!name || (value ? setenv(name, value + 1, 1) : unsetenv(name)))
			_exit(126);
		free(name);
	}
	execv(run->arguments[0], run->arguments);
	_exit(127);
}

void bench_process(struct bench_run *run)
{
	double start = bench_now_us();
	struct rusage usage;
	size_t length = 0;
	char rest[4096];
	int out[2], status;
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	if (pipe(out) || (pid = fork()) < 0)
		bench_fail("cannot start %s", run->arguments[0]);
	if (!pid) {
		close(out[0]);
		become(run, out[1]);
	}
	close(out[1]);
	while ((n = read(out[0], rest, sizeof rest)) > 0) {
		size_t space = sizeof run->output - 1 - length, take = (size_t)n;

		take = take < space ? take : space;
		memcpy(run->output + length, rest, take);
		length += take;
	}
	run->output[length] = '\0';
	close(out[0]);
	if (wait4(pid, &status, 0, &usage) != pid || status)
		bench_fail("%s failed", run->arguments[0]);
	run->wall_us = bench_now_us() - start;
	run->cpu_us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
		      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
