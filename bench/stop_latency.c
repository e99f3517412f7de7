/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "a program of high priority is active" until a saturating best-effort program on the CPU
 * device has no running block, against the length of its blocks. Each block counts itself in and
 * out of a word that both processes see, and leaves the time of its end there: the measuring
 * process sleeps meanwhile, so that it takes no CPU from what it measures. Run by
 * bench/stop_latency.sh; with arguments it is the best-effort program.
 */
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sched/client.h"

enum { STOPS = 400, BLOCKS = 512 };

/* Counts itself in, spends the turns, counts itself out. */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 running, .param .u32 turns)\n{\n"
			  "\t.reg .pred %p<2>;\n\t.reg .b32 %r<5>;\n\t.reg .b64 %rd<5>;\n"
			  "\tld.param.u64 %rd1, [running];\n"
			  "\tcvta.to.global.u64 %rd2, %rd1;\n"
			  "\tld.param.u32 %r1, [turns];\n"
			  "\tatom.global.add.u32 %r2, [%rd2], 1;\n"
			  "\tmov.u32 %r3, %r2;\n"
			  "LOOP:\n"
			  "\tmad.lo.s32 %r3, %r3, 1664525, 1013904223;\n"
			  "\tadd.s32 %r1, %r1, -1;\n"
			  "\tsetp.ne.s32 %p1, %r1, 0;\n"
			  "\t@%p1 bra LOOP;\n"
			  "\tsetp.eq.s32 %p1, %r3, 12345;\n"
			  "\t@%p1 st.global.u32 [%rd2+4], %r3;\n"
			  "\tmov.u64 %rd3, %globaltimer;\n"
			  "\tatom.global.max.u64 %rd4, [%rd2+8], %rd3;\n"
			  "\tatom.global.add.u32 %r4, [%rd2], -1;\n"
			  "\tret;\n}\n";

struct shared {
	_Atomic int32_t running;
	uint32_t sink;
	_Atomic uint64_t last_end; /* as %globaltimer says: CLOCK_REALTIME, ns */
	_Atomic uint32_t ready;
	double block_us;
};

#define OK(call)                                                                                   \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_) {                                                                     \
			fprintf(stderr, "bench: error: %s: error %d\n", #call, result_);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct shared *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(1);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* The best-effort program: launches for ever. */
static int program(const char *path, unsigned turns)
{
	struct shared *shared = map(path);
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction spin;
	CUdeviceptr running;
	void *parameters[] = {&running, &turns};
	uint64_t start;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&spin, module, "spin"));
	OK(cuMemHostRegister(shared, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&running, shared, 0));
	/* One block alone says how long a block is. */
	for (int i = 0; i < 20; i++) {
		start = tally_board_now();
		OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		OK(cuCtxSynchronize());
		double us = (double)(tally_board_now() - start) / 1000;
		if (!i || us < shared->block_us)
			shared->block_us = us;
	}
	for (unsigned n = 0;; n++) {
		OK(cuLaunchKernel(spin, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		if (n == 4)
			atomic_store(&shared->ready, 1);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The device of the program named "victim", once it is on the board. */
static bool find_device(uint8_t uuid[16])
{
	struct tally_error error = {0};
	const struct tally_board *board = tally_client_observe(NULL, NULL, &error);

	for (int wait = 0; board && wait < 5000; wait++, usleep(1000))
		for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++)
			if (atomic_load(&board->slots[i].generation) % 2 &&
			    !strcmp(board->slots[i].name, "victim")) {
				memcpy(uuid, board->slots[i].device, 16);
				return true;
			}
	return false;
}

static double stop_once(struct tally_client *client, struct shared *shared)
{
	struct timespec now;
	uint64_t start, end;

	/* Somewhere in the middle of its work. */
	do
		usleep(1000 + (useconds_t)(rand() % 4000));
	while (!atomic_load(&shared->running));
	clock_gettime(CLOCK_REALTIME, &now);
	start = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	tally_client_set_active(client, true);
	do
		usleep(2000);
	while (atomic_load(&shared->running));
	end = atomic_load(&shared->last_end);
	tally_client_set_active(client, false);
	return end > start ? (double)(end - start) / 1000 : 0;
}

static void measure(const char *self, unsigned turns)
{
	static double latency[STOPS];
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH, .name = "rival"};
	struct tally_client *client;
	char path[] = "/tmp/tally-bench-XXXXXX", text[16];
	struct shared *shared;
	pid_t pid;

	close(mkstemp(path));
	shared = map(path);
	pid = fork();
	if (!pid) {
		snprintf(text, sizeof text, "%u", turns);
		setenv("LD_PRELOAD", getenv("BENCH_PRELOAD"), 1);
		setenv("TALLY_PRIORITY", "best-effort", 1);
		setenv("TALLY_NAME", "victim", 1);
		execl(self, self, path, text, (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i < 10000 && !atomic_load(&shared->ready); i++)
		usleep(1000);
	if (!atomic_load(&shared->ready) || !find_device(options.device) ||
	    !(client = tally_client_connect(&options, &error))) {
		fprintf(stderr, "bench: error: the best-effort program did not start\n");
		kill(pid, SIGKILL);
		exit(1);
	}
	for (int i = 0; i < STOPS; i++)
		latency[i] = stop_once(client, shared);
	tally_client_disconnect(client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	qsort(latency, STOPS, sizeof *latency, by_size);
	printf("block %7.1f us: stopped after p50 %7.1f us, p99 %7.1f us, max %7.1f us\n",
	       shared->block_us, latency[STOPS / 2], latency[STOPS * 99 / 100], latency[STOPS - 1]);
	munmap(shared, 4096);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return program(argv[1], (unsigned)atoi(argv[2]));
	if (!getenv("BENCH_PRELOAD")) {
		fprintf(stderr, "bench: error: run bench/stop_latency.sh\n");
		return 1;
	}
	for (unsigned turns = 5000; turns <= 500000; turns *= 10)
		measure(argv[0], turns);
	return 0;
}
