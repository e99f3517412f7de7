// SPDX-License-Identifier: Apache-2.0
/* Two processes share memory and events (cudaIpc*): the child opens what the parent has exported, each
 * waits for the other's kernels by events alone, what is not theirs is refused, and nobody waits for one
 * that is killed. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const unsigned sizes[] = {1, 1000, 4096, 300000, 1 << 20}; /* words */
enum { SIZES = sizeof sizes / sizeof *sizes, ROUNDS = 20 };

struct letter {
	cudaIpcMemHandle_t memory[SIZES];
	cudaIpcEventHandle_t told, answered; /* by the parent, by the child */
};

__global__ void step(unsigned *values, unsigned n, unsigned factor)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		values[i] = values[i] * factor + i;
}

/* Keeps its stream busy, so that what follows is not over at once. */
__global__ void busy(unsigned *word, unsigned turns)
{
	unsigned x = *word;

	for (unsigned i = 0; i < turns; i++)
		x = x * 1664525u + 1013904223u;
	*word = x;
}

static void give(int to, const void *data, size_t bytes)
{
	CHECK(write(to, data, bytes) == (ssize_t)bytes);
}

static void take(int from, void *data, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(from, (char *)data + at, bytes - at);

		CHECK(n > 0);
		at += (size_t)n;
	}
}

/* The child: in each round it waits for the parent's record, adds its step, and records its own. */
static int child(int from, int to)
{
	cudaEvent_t told, answered;
	cudaStream_t stream;
	struct letter letter;
	unsigned *values[SIZES], *again, *word, *elsewhere;
	char turn;
	int devices;

	take(from, &letter, sizeof letter);
	OK(cudaGetDeviceCount(&devices));
	if (devices > 1) {
		OK(cudaSetDevice(1));
		OK(cudaIpcOpenMemHandle((void **)&elsewhere, letter.memory[0], cudaIpcMemLazyEnablePeerAccess));
		OK(cudaSetDevice(0));
	}
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&word, 4));
	OK(cudaIpcOpenEventHandle(&told, letter.told));
	OK(cudaIpcOpenEventHandle(&answered, letter.answered));
	for (int s = 0; s < SIZES; s++)
		OK(cudaIpcOpenMemHandle((void **)&values[s], letter.memory[s],
					cudaIpcMemLazyEnablePeerAccess));
	/* What another device had open goes with its context, and with nothing else. */
	if (devices > 1) {
		OK(cudaSetDevice(1));
		OK(cudaDeviceReset());
		OK(cudaSetDevice(0));
	}
	/* Opened twice it is the same, and closed twice. */
	OK(cudaIpcOpenMemHandle((void **)&again, letter.memory[0], cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == values[0]);
	OK(cudaIpcCloseMemHandle(again));
	cudaPointerAttributes attributes;
	OK(cudaPointerGetAttributes(&attributes, values[3] + 5));
	CHECK(attributes.type == cudaMemoryTypeDevice);
	EXPECT(cudaErrorInvalidValue, cudaFree(values[0]));
	for (int round = 0; round < ROUNDS; round++) {
		take(from, &turn, 1);
		OK(cudaStreamWaitEvent(stream, told, 0));
		for (int s = 0; s < SIZES; s++)
			step<<<3, 64, 0, stream>>>(values[s], sizes[s], 3);
		busy<<<1, 1, 0, stream>>>(word, 200000);
		OK(cudaEventRecord(answered, stream));
		give(to, &turn, 1);
	}
	OK(cudaStreamSynchronize(stream));
	for (int s = 0; s < SIZES; s++)
		OK(cudaIpcCloseMemHandle(values[s]));
	EXPECT(cudaErrorInvalidValue, cudaIpcCloseMemHandle(values[0]));
	OK(cudaEventDestroy(told));
	OK(cudaEventDestroy(answered));
	/* Memory that the parent has freed, and nonsense. */
	take(from, &turn, 1);
	EXPECT(cudaErrorMapBufferObjectFailed,
	       cudaIpcOpenMemHandle((void **)&again, letter.memory[1],
				    cudaIpcMemLazyEnablePeerAccess));
	memset(&letter.memory[0], 0x5a, sizeof letter.memory[0]);
	EXPECT(cudaErrorInvalidValue, cudaIpcOpenMemHandle((void **)&again, letter.memory[0],
							   cudaIpcMemLazyEnablePeerAccess));
	return 0;
}

static void parent(int from, int to)
{
	unsigned *values[SIZES], *pinned, *neighbour, *word, *got = (unsigned *)malloc(4 << 20);
	cudaEvent_t told, answered, plain;
	cudaStream_t stream;
	struct letter letter;
	char turn = 'x';
	void *there;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&word, 4));
	OK(cudaMalloc(&neighbour, 4));
	EXPECT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&told, cudaEventInterprocess));
	OK(cudaEventCreateWithFlags(&told, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&answered, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&letter.told, told));
	OK(cudaIpcGetEventHandle(&letter.answered, answered));
	for (int s = 0; s < SIZES; s++) {
		OK(cudaMalloc(&values[s], sizes[s] * 4));
		OK(cudaMemset(values[s], 0, sizes[s] * 4));
		step<<<2, 32, 0, stream>>>(values[s], sizes[s], 0);
		/* What is under way is in it. */
		OK(cudaIpcGetMemHandle(&letter.memory[s], values[s]));
	}
	/* Not in the process that has made it. */
	EXPECT(cudaErrorDeviceUninitialized,
	       cudaIpcOpenMemHandle(&there, letter.memory[0], cudaIpcMemLazyEnablePeerAccess));
	cudaIpcMemHandle_t no_memory;
	cudaIpcEventHandle_t no_event;
	OK(cudaMallocHost(&pinned, 4096));
	EXPECT(cudaErrorInvalidValue, cudaIpcGetMemHandle(&no_memory, pinned));
	OK(cudaEventCreate(&plain));
	EXPECT(cudaErrorInvalidValue, cudaIpcGetEventHandle(&no_event, plain));
	give(to, &letter, sizeof letter);
	for (int round = 0; round < ROUNDS; round++) {
		for (int s = 0; s < SIZES; s++)
			step<<<3, 64, 0, stream>>>(values[s], sizes[s], 5);
		busy<<<1, 1, 0, stream>>>(word, 200000);
		OK(cudaEventRecord(told, stream));
		give(to, &turn, 1);
		take(from, &turn, 1);
		/* By the host in one round, by the stream in the next. */
		if (round % 2)
			OK(cudaEventSynchronize(answered));
		else
			OK(cudaStreamWaitEvent(stream, answered, 0));
	}
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventQuery(answered));
	for (int s = 0; s < SIZES; s++) {
		OK(cudaMemcpy(got, values[s], sizes[s] * 4, cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < sizes[s]; i++) {
			unsigned right = i;

			for (int round = 0; round < ROUNDS; round++)
				right = (right * 5 + i) * 3 + i;
			CHECK(got[i] == right);
		}
		OK(cudaFree(values[s]));
	}
	give(to, &turn, 1);
	OK(cudaFree(neighbour));
	OK(cudaFreeHost(pinned));
	free(got);
}

/* Records two events behind a kernel that it does not live to see the end of. */
static int doomed(int from, int to)
{
	cudaIpcEventHandle_t handles[2];
	cudaEvent_t events[2];
	unsigned *word;
	char turn = 'x';

	take(from, handles, sizeof handles);
	OK(cudaMalloc(&word, 4));
	busy<<<1, 1>>>(word, 4000000000u);
	for (int i = 0; i < 2; i++) {
		OK(cudaIpcOpenEventHandle(&events[i], handles[i]));
		OK(cudaEventRecord(events[i], 0));
	}
	give(to, &turn, 1);
	pause();
	return 1;
}

/* An event may be destroyed while a stream waits for it, and who records may die. */
static void survivor(pid_t pid, int from, int to)
{
	cudaIpcEventHandle_t handles[2];
	cudaEvent_t events[2];
	cudaStream_t stream;
	char turn;

	for (int i = 0; i < 2; i++) {
		OK(cudaEventCreateWithFlags(&events[i], cudaEventInterprocess | cudaEventDisableTiming));
		OK(cudaIpcGetEventHandle(&handles[i], events[i]));
	}
	OK(cudaStreamCreate(&stream));
	give(to, handles, sizeof handles);
	take(from, &turn, 1);
	OK(cudaStreamWaitEvent(stream, events[0], 0));
	OK(cudaEventDestroy(events[0]));
	usleep(50000);
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	EXPECT(cudaErrorNotReady, cudaEventQuery(events[1]));
	/* It stays a zombie, of which the system still knows. */
	CHECK(!kill(pid, SIGKILL));
	OK(cudaEventSynchronize(events[1]));
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventQuery(events[1]));
	OK(cudaEventRecord(events[1], stream));
	OK(cudaEventSynchronize(events[1]));
	OK(cudaEventDestroy(events[1]));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
	int down[2], up[2], status;

	CHECK(!pipe(down) && !pipe(up) && !setenv("TALLY_CPU_DEVICES", "2", 1));
	alarm(50); /* rather than to wait for ever */
	pid_t pid = fork(); /* before anything of CUDA */
	CHECK(pid >= 0);
	if (!pid) {
		alarm(50);
		_exit(child(down[0], up[1]));
	}
	int last_down[2], last_up[2];
	CHECK(!pipe(last_down) && !pipe(last_up));
	pid_t last = fork();
	CHECK(last >= 0);
	if (!last) {
		alarm(50);
		_exit(doomed(last_down[0], last_up[1]));
	}
	parent(up[0], down[1]);
	survivor(last, last_up[0], last_down[1]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	puts("ok");
	return 0;
}
