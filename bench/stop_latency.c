/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "a program of high priority is active" until a saturating best-effort program on the CPU
 * device has no running block, against the length of its blocks: at most one block more than 200
 * us. Each block counts itself in and out of a word that both processes see, and leaves the time of
 * its end there: the measuring process sleeps meanwhile, so that it takes no CPU from what it
 * measures, and looks a second time whether any block ended later. With arguments it is the
 * best-effort program.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/device.h"
#include "sched/client.h"

enum { STOPS = 400, BLOCKS = 512, ALONE = 101, BOUND_US = 200 };

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

static struct shared *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096))
		bench_fail("cannot make %s", path);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		bench_fail("cannot map %s", path);
	return p;
}

/* The best-effort program: launches for ever. */
static int program(const char *path, unsigned turns)
{
	struct shared *shared = map(path);
	CUfunction spin;
	CUdeviceptr running;
	void *parameters[] = {&running, &turns};
	double alone[ALONE];

	bench_device();
	spin = bench_function(ptx, "spin");
	OK(cuMemHostRegister(shared, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&running, shared, 0));
	/* One block alone says how long a block is. */
	for (int i = 0; i < ALONE; i++) {
		double start = bench_now_us();

		OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		OK(cuCtxSynchronize());
		alone[i] = bench_now_us() - start;
	}
	shared->block_us = bench_median(alone, ALONE);
	for (unsigned n = 0;; n++) {
		OK(cuLaunchKernel(spin, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		if (n == 4)
			atomic_store(&shared->ready, 1);
	}
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
	/* None runs, and in two milliseconds none has come and gone. */
	do {
		end = atomic_load(&shared->last_end);
		usleep(2000);
	} while (atomic_load(&shared->running) || atomic_load(&shared->last_end) != end);
	tally_client_set_active(client, false);
	return end > start ? (double)(end - start) / 1000 : 0;
}

static void measure(char *self, unsigned turns)
{
	static double latency[STOPS];
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH, .name = "rival"};
	struct tally_client *client;
	char path[] = "/tmp/tally-bench-XXXXXX", text[16], name[64], beside[128];
	struct shared *shared;
	double p99;
	pid_t pid;

	close(mkstemp(path));
	shared = map(path);
	pid = fork();
	if (!pid) {
		snprintf(text, sizeof text, "%u", turns);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("LD_PRELOAD", getenv("BENCH_PRELOAD"), 1);
		setenv("TALLY_PRIORITY", "best-effort", 1);
		setenv("TALLY_NAME", "victim", 1);
		execl(self, self, path, text, (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i < 10000 && !atomic_load(&shared->ready); i++)
		usleep(1000);
	if (!atomic_load(&shared->ready) || !find_device(options.device) ||
	    !(client = tally_client_connect(&options, &error)))
		bench_fail("the best-effort program did not start");
	for (int i = 0; i < STOPS; i++)
		latency[i] = stop_once(client, shared);
	tally_client_disconnect(client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	p99 = bench_quantile(latency, STOPS, 0.99);
	snprintf(name, sizeof name, "p99 less one block of %.0f us", shared->block_us);
	snprintf(beside, sizeof beside, "stopped after p50 %.1f us, p99 %.1f us, max %.1f us",
		 bench_median(latency, STOPS), p99, bench_quantile(latency, STOPS, 1));
	bench_report(&(struct bench_figure){.name = name,
					    .unit = "us",
					    .value = p99 - shared->block_us,
					    .bound = BOUND_US,
					    .samples = latency,
					    .count = STOPS,
					    .beside = beside});
	munmap(shared, 4096);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return program(argv[1], (unsigned)atoi(argv[2]));
	bench_begin("stop_latency", "how fast a best-effort program stops, CPU device");
	if (!getenv("BENCH_PRELOAD") || !getenv("TALLY_SOCKET"))
		bench_fail("start it by bench/run.sh, which starts a tallyd of its own");
	for (unsigned turns = 5000; turns <= 500000; turns *= 10)
		measure(argv[0], turns);
	return 0;
}
