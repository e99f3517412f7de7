/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "a program of high priority is active" until a saturating best-effort program on the GPU has
 * no running block: the time of the last block's end, as the GPU's own clock says, against the time
 * when the board was told. The clocks are compared at every stop, while the GPU is quiet. Prints
 * one line of JSON: the latencies, and what is left of them ("over") when one block, which nobody
 * can stop, is taken off. stop BLOCK_US STREAMS STOPS GRID Started where $TALLY_SOCKET names a
 * tallyd; $TALLY is `tally`, $STOP_DEVICE its --device (cuda), and $STOP_CLIENT_PRIORITY the
 * best-effort program's CUDA_MPS_CLIENT_PRIORITY.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/device.h"
#include "sched/client.h"

enum { MOST_STREAMS = 64, THREADS = 128, TIMES = 5 };

/*
 * spin: a block takes so many ns by the GPU's clock, whoever runs beside it, and leaves the time of
 * its end in last[0] if that is before last[1]; its first thread alone, since a CPU runs a block's
 * threads one after another. look: the clock.
 */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 last, .param .u64 length)\n{\n"
			  "\t.reg .pred %p<4>;\n\t.reg .b32 %r<2>;\n\t.reg .b64 %rd<9>;\n"
			  "\tmov.u32 %r1, %tid.x;\n"
			  "\tsetp.ne.u32 %p2, %r1, 0;\n"
			  "\t@%p2 bra END;\n"
			  "\tld.param.u64 %rd1, [last];\n"
			  "\tcvta.to.global.u64 %rd2, %rd1;\n"
			  "\tld.param.u64 %rd3, [length];\n"
			  "\tmov.u64 %rd4, %globaltimer;\n"
			  "\tadd.s64 %rd5, %rd4, %rd3;\n"
			  "LOOP:\n"
			  "\tmov.u64 %rd6, %globaltimer;\n"
			  "\tsetp.lt.u64 %p1, %rd6, %rd5;\n"
			  "\t@%p1 bra LOOP;\n"
			  "\tld.volatile.global.u64 %rd8, [%rd2+8];\n"
			  "\tsetp.ge.u64 %p3, %rd6, %rd8;\n"
			  "\t@%p3 bra END;\n"
			  "\tatom.global.max.u64 %rd7, [%rd2], %rd6;\n"
			  "END:\n"
			  "\tret;\n}\n"
			  ".visible .entry look(.param .u64 out)\n{\n"
			  "\t.reg .b64 %rd<4>;\n"
			  "\tld.param.u64 %rd1, [out];\n"
			  "\tcvta.to.global.u64 %rd2, %rd1;\n"
			  "\tmov.u64 %rd3, %globaltimer;\n"
			  "\tst.global.u64 [%rd2], %rd3;\n"
			  "\tret;\n}\n";

static uint64_t monotonic_ns(void)
{
	return (uint64_t)(bench_now_us() * 1e3);
}

/* The best-effort program: one thread launches for ever, another answers questions. */
struct victim {
	CUcontext context;
	CUdeviceptr last;
	CUfunction spin;
	CUstream streams[MOST_STREAMS], questions;
	unsigned count, grid;
	uint64_t length;
};

/* A time on stdin: ends of blocks count up to it, from now on. 0: when was the last one? A program
 * that is held cannot ask its device, so the rival asks when it has let go. */
static void *answer(void *argument)
{
	struct victim *v = argument;
	unsigned long long until;
	char line[32];

	OK(cuCtxSetCurrent(v->context));
	while (fgets(line, sizeof line, stdin)) {
		uint64_t words[2] = {0, 0};

		sscanf(line, "%llu", &until);
		words[1] = until;
		if (until)
			OK(cuMemcpyHtoDAsync(v->last, words, sizeof words, v->questions));
		else
			OK(cuMemcpyDtoHAsync(words, v->last, sizeof words, v->questions));
		OK(cuStreamSynchronize(v->questions));
		printf("%llu\n", (unsigned long long)words[0]);
		fflush(stdout);
	}
	_exit(0);
}

static int victim(unsigned block_us, unsigned streams, unsigned grid)
{
	struct victim v = {.count = streams, .grid = grid, .length = block_us * 1000ull};
	void *parameters[] = {&v.last, &v.length};
	pthread_t thread;

	bench_device();
	OK(cuCtxGetCurrent(&v.context));
	v.spin = bench_function(ptx, "spin");
	OK(cuMemAlloc(&v.last, 2 * sizeof(uint64_t)));
	OK(cuMemsetD8(v.last, 0, 2 * sizeof(uint64_t)));
	OK(cuStreamCreate(&v.questions, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < streams; i++)
		OK(cuStreamCreate(&v.streams[i], CU_STREAM_NON_BLOCKING));
	if (pthread_create(&thread, NULL, answer, &v))
		bench_fail("no thread");
	for (unsigned n = 0;; n++)
		OK(cuLaunchKernel(v.spin, v.grid, 1, 1, THREADS, 1, 1, 0, v.streams[n % v.count],
				  parameters, NULL));
}

/* What the rival knows of the victim. */
static FILE *to_victim, *from_victim;
static CUfunction look;
static CUdeviceptr looked;

static uint64_t ask(uint64_t until)
{
	unsigned long long last;

	if (fprintf(to_victim, "%llu\n", (unsigned long long)until) < 0 || fflush(to_victim) ||
	    fscanf(from_victim, "%llu", &last) != 1)
		bench_fail("the best-effort program is gone");
	return last;
}

/* GPU's clock less CLOCK_MONOTONIC, in ns: of several looks the one that took the shortest time. */
static int64_t clock_offset(uint64_t *error_ns)
{
	void *parameters[] = {&looked};
	int64_t offset = 0;

	*error_ns = UINT64_MAX;
	for (int i = 0; i < TIMES; i++) {
		uint64_t start = monotonic_ns(), gpu, end;

		OK(cuLaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		OK(cuCtxSynchronize());
		end = monotonic_ns();
		OK(cuMemcpyDtoH(&gpu, looked, sizeof gpu));
		if (end - start < *error_ns) {
			*error_ns = end - start;
			offset = (int64_t)(gpu - (start / 2 + end / 2));
		}
	}
	return offset;
}

/*
 * In us; NAN where it never became quiet; below zero where nothing ran at that time. `offset` is
 * that of the clocks: from the stop before it says when ends cease to count, at the end of this one
 * it is measured anew.
 */
static double stop_once(struct tally_client *client, unsigned block_us, int64_t *offset,
			double *error_us)
{
	uint64_t quiet_ns = (4000 + 4ull * block_us) * 1000, start, until, last, error;

	/* Somewhere in the middle of its work. */
	ask(UINT64_MAX);
	while (!ask(0))
		usleep(500);
	until = monotonic_ns() + 6000000 + quiet_ns;
	ask((uint64_t)((int64_t)until + *offset));
	usleep(1000 + (useconds_t)(rand() % 4000));
	start = monotonic_ns();
	tally_client_set_active(client, true);
	while (monotonic_ns() < until)
		usleep(200);
	*offset = clock_offset(&error);
	tally_client_set_active(client, false);
	*error_us = (double)error / 2e3;
	last = ask(0);
	if (!last)
		return -1;
	last = (uint64_t)((int64_t)last - *offset);
	/* To the last moment: what ended later did not count, and there may have been some. */
	if (last + 1000ull * (500 + block_us) > until)
		return NAN;
	return (double)((int64_t)last - (int64_t)start) / 1e3;
}

static struct tally_client *join(void)
{
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH, .name = "rival"};
	const struct tally_board *board;
	struct tally_error error = {0};

	for (int wait = 0; wait < 3000; wait++, usleep(10000)) {
		board = tally_client_observe(NULL, NULL, &error);
		for (unsigned i = 0; board && i < TALLY_BOARD_SLOTS; i++)
			if (atomic_load(&board->slots[i].generation) % 2 &&
			    !strcmp(board->slots[i].name, "victim")) {
				memcpy(options.device, board->slots[i].device, 16);
				return tally_client_connect(&options, &error);
			}
	}
	return NULL;
}

/* `tally run ... SELF victim ...`, its stdin and stdout ours. */
static pid_t start_victim(char **argv)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe(in) || pipe(out) || (pid = fork()) < 0)
		bench_fail("no process");
	if (!pid) {
		const char *tally = getenv("TALLY"), *device = getenv("STOP_DEVICE");
		const char *priority = getenv("STOP_CLIENT_PRIORITY"), *mode = getenv("STOP_MPS");

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		if (priority)
			setenv("CUDA_MPS_CLIENT_PRIORITY", priority, 1);
		const char *words[] = {
			tally,	      "run",	     "--device", device ? device : "cuda",
			"--priority", "best-effort", "--name",	 "victim",
			"--mps",      mode,	     "--",	 argv[0],
			"victim",     argv[1],	     argv[2],	 argv[4],
			NULL};
		if (!mode)
			memmove(words + 8, words + 10, sizeof words - 10 * sizeof *words);
		execv(tally, (char *const *)words);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to_victim = fdopen(in[1], "w");
	from_victim = fdopen(out[0], "r");
	return pid;
}

/* How many are below each edge and not below the one before; the last of all others. */
static void print_histogram(const char *name, const double *values, unsigned count)
{
	static const unsigned edges[] = {10,  20,  30,	40,  50,   75,	 100,
					 150, 200, 300, 500, 1000, 2000, 5000};
	enum { EDGES = sizeof edges / sizeof *edges };
	unsigned counts[EDGES + 1] = {0};

	for (unsigned i = 0; i < count; i++) {
		unsigned e = 0;

		while (e < EDGES && values[i] >= edges[e])
			e++;
		counts[e]++;
	}
	printf(", \"%s\": {", name);
	for (unsigned e = 0; e < EDGES; e++)
		printf("\"<%u\": %u, ", edges[e], counts[e]);
	printf("\"more\": %u}", counts[EDGES]);
}

static void print_quantiles(const char *infix, const double *values, unsigned count)
{
	printf(", \"p50%s_us\": %.1f, \"p90%s_us\": %.1f, \"p99%s_us\": %.1f, \"max%s_us\": %.1f",
	       infix, bench_median(values, count), infix, bench_quantile(values, count, 0.9), infix,
	       bench_quantile(values, count, 0.99), infix, bench_quantile(values, count, 1));
}

static void print_list(const char *name, const double *values, unsigned count)
{
	printf(", \"%s\": [", name);
	for (unsigned i = 0; i < count; i++)
		printf("%s%.1f", i ? ", " : "", values[i]);
	printf("]");
}

int main(int argc, char **argv)
{
	unsigned stops, block_us, n = 0, lost = 0, idle = 0;
	struct tally_client *client;
	double *latency, *error_us;
	uint64_t error_ns;
	int64_t offset;
	pid_t pid;

	if (argc == 5 && !strcmp(argv[1], "victim"))
		return victim((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
			      (unsigned)atoi(argv[4]));
	if (argc != 5 || !getenv("TALLY") || atoi(argv[2]) > MOST_STREAMS)
		bench_fail("usage: TALLY=... stop BLOCK_US STREAMS STOPS GRID");
	block_us = (unsigned)atoi(argv[1]);
	stops = (unsigned)atoi(argv[3]);
	latency = calloc(stops, sizeof *latency);
	error_us = calloc(stops, sizeof *error_us);
	signal(SIGPIPE, SIG_IGN);
	pid = start_victim(argv);
	bench_device();
	look = bench_function(ptx, "look");
	OK(cuMemAlloc(&looked, sizeof(uint64_t)));
	client = join();
	if (!client || !latency || !error_us)
		bench_fail("the best-effort program did not start");
	offset = clock_offset(&error_ns);
	for (unsigned i = 0; i < stops; i++) {
		double one = stop_once(client, block_us, &offset, &error_us[n]);

		if (isnan(one))
			lost++;
		else
			latency[n++] = fmax(0, one);
		idle += one < 0;
	}
	tally_client_disconnect(client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("{\"ok\": true, \"block_us\": %u, \"streams\": %s, \"never_quiet\": %u, "
	       "\"nothing_ran\": %u",
	       block_us, argv[2], lost, idle);
	print_list("latencies_us", latency, n);
	if (n) {
		printf(", \"clock_error_us\": %.1f", bench_median(error_us, n));
		print_quantiles("", latency, n);
		print_histogram("histogram_us", latency, n);
		for (unsigned i = 0; i < n; i++)
			latency[i] = fmax(0, latency[i] - block_us);
		print_quantiles("_over", latency, n);
		print_histogram("histogram_over_us", latency, n);
	}
	printf("}\n");
	return 0;
}
