/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordinary CUDA program whose result depends on every launch and on their order: each stream hashes
 * its own numbers again and again. run.py says what is tried with it. Prints "result HEX" and exits 0; a CUDA
 * error is printed as "error N WHERE" and exits 3.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>
#include <time.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_) {                                                                      \
			printf("error %d %s\n", (int)error_, #call);                               \
			fflush(stdout);                                                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static const unsigned THREADS = 128;

struct options {
	int streams = 1, launches = 200, blocks = 512, turns = 200, pause_us = 0;
	double seconds = 0;
	bool never_synchronize = false, too_much = false, fill = false, illegal = false;
};

struct answer {
	unsigned value, there;
};

__global__ void hash(unsigned *numbers, unsigned salt, int turns)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned x = numbers[i] ^ (salt * 2654435761u + i);

	for (int n = 0; n < turns; n++)
		x = (x ^ (x >> 15)) * 2246822519u + 1;
	numbers[i] = x;
}

__global__ void sum(const unsigned *numbers, unsigned count, volatile answer *out)
{
	__shared__ unsigned total;

	if (threadIdx.x == 0)
		total = 0;
	__syncthreads();
	unsigned mine = 0;
	for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
		mine += numbers[i] * (i + 1);
	atomicAdd(&total, mine);
	__syncthreads();
	if (threadIdx.x == 0) {
		out->value = total;
		__threadfence_system();
		out->there = 1;
	}
}

__global__ void stray(unsigned *nowhere)
{
	*nowhere = 1;
}

static double now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* More than there is: one piece that nobody has, and with `fill` all that there is. */
static void ask_for_too_much(bool fill)
{
	std::vector<void *> pieces;
	void *piece;
	cudaError_t error = cudaMalloc(&piece, (size_t)1 << 50);

	while (fill && !(error = cudaMalloc(&piece, (size_t)1 << 30)))
		pieces.push_back(piece);
	if (error != cudaErrorMemoryAllocation) {
		printf("error %d where out of memory was due\n", (int)error);
		exit(3);
	}
	cudaGetLastError();
	for (void *p : pieces)
		CHECK(cudaFree(p));
}

static options parse(int argc, char **argv)
{
	options o;
	struct {
		const char *name;
		int *number;
		bool *flag;
	} table[] = {
		{"--streams", &o.streams, nullptr},
		{"--launches", &o.launches, nullptr},
		{"--blocks", &o.blocks, nullptr},
		{"--turns", &o.turns, nullptr},
		{"--pause-us", &o.pause_us, nullptr},
		{"--never-synchronize", nullptr, &o.never_synchronize},
		{"--too-much", nullptr, &o.too_much},
		{"--fill", nullptr, &o.fill},
		{"--illegal", nullptr, &o.illegal},
	};
	for (int i = 1; i < argc; i++) {
		bool known = false;

		for (auto &entry : table)
			if (!strcmp(argv[i], entry.name)) {
				known = true;
				if (entry.flag)
					*entry.flag = true;
				else if (i + 1 < argc)
					*entry.number = atoi(argv[++i]);
			}
		if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
			known = true;
			o.seconds = atof(argv[++i]);
		}
		if (!known) {
			fprintf(stderr, "work: error: what is %s?\n", argv[i]);
			exit(1);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	options o = parse(argc, argv);
	unsigned count = o.blocks * THREADS;
	std::vector<cudaStream_t> streams(o.streams);
	std::vector<unsigned *> numbers(o.streams);
	answer *answers, *on_device;
	double end = now() + o.seconds;

	CHECK(cudaHostAlloc((void **)&answers, o.streams * sizeof *answers, cudaHostAllocMapped));
	CHECK(cudaHostGetDevicePointer((void **)&on_device, answers, 0));
	memset(answers, 0, o.streams * sizeof *answers);
	for (int s = 0; s < o.streams; s++) {
		CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
		CHECK(cudaMalloc((void **)&numbers[s], count * sizeof(unsigned)));
		CHECK(cudaMemsetAsync(numbers[s], s, count * sizeof(unsigned), streams[s]));
	}
	if (o.too_much)
		ask_for_too_much(o.fill);
	for (int n = 0; n < o.launches; n++) {
		for (int s = 0; s < o.streams; s++)
			hash<<<o.blocks, THREADS, 0, streams[s]>>>(numbers[s], n, o.turns);
		if (o.illegal && n == o.launches / 2)
			stray<<<1, 1, 0, streams[0]>>>((unsigned *)16);
		if (o.pause_us) {
			CHECK(cudaStreamSynchronize(streams[0]));
			usleep(o.pause_us);
		}
	}
	CHECK(cudaGetLastError());
	for (int s = 0; s < o.streams; s++)
		sum<<<1, THREADS, 0, streams[s]>>>(numbers[s], count, on_device + s);
	if (!o.never_synchronize)
		CHECK(cudaDeviceSynchronize());
	unsigned total = 0;
	for (int s = 0; s < o.streams; s++) {
		while (!((volatile answer *)answers)[s].there)
			usleep(100);
		total = total * 31 + ((volatile answer *)answers)[s].value;
	}
	printf("result %08x\n", total);
	fflush(stdout);
	/* Goes on as programs do that have no end, for those who look at it or end it. */
	for (int n = 0; now() < end; n++) {
		hash<<<o.blocks, THREADS, 0, streams[n % o.streams]>>>(numbers[n % o.streams], n, o.turns);
		if (n % 16 == 15)
			CHECK(cudaDeviceSynchronize());
		if (o.pause_us)
			usleep(o.pause_us);
	}
	if (!o.never_synchronize)
		CHECK(cudaDeviceSynchronize());
	return 0;
}
