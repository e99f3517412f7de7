/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordinary CUDA program that notices any block lost, run twice or run too early: chains of
 * dependent launches in several streams, with copies, events across streams, memsets and host
 * functions between. What comes out is compared with the same arithmetic done here, to the bit.
 *
 *   victim STREAMS ROUNDS BLOCKS WORK [default|perthread|blocking|nonblocking] [fork|leave]
 *
 * WORK is the length of a block in loop turns. Prints "ok" and a checksum. "fork": a child forked
 * before the parent uses the device does the same work too, and one forked after that comes and goes.
 * "leave": returns from main() with work under way.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define OK(call)                                                                                   \
	do {                                                                                       \
		cudaError_t got_ = (call);                                                         \
		if (got_) {                                                                        \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
				cudaGetErrorName(got_));                                           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { THREADS = 32, SNAPSHOTS = 8 };

__host__ __device__ static uint32_t turn(uint32_t x, uint32_t step)
{
	return x * 1664525u + 1013904223u + step;
}

/* Not to be computed in less time than `work` turns take; always 0. */
__device__ static uint32_t spin(int work)
{
	float a = threadIdx.x, b = 1.0001f;

	for (int i = 0; i < work; i++)
		a = a * b + 0.5f;
	return a == 1.2345e30f;
}

/* Each block moves its own value one step on, and counts that it ran. */
__global__ void step(uint32_t *values, uint32_t *ran, uint32_t number, int work)
{
	uint32_t extra = spin(work);
	unsigned block = blockIdx.y * gridDim.x + blockIdx.x;

	if (threadIdx.x == 0) {
		values[block] = turn(values[block], number) + extra;
		atomicAdd(&ran[block], 1);
	}
}

/* Takes over what another stream had at one moment. */
__global__ void join(uint32_t *values, const uint32_t *other, uint32_t *ran, int work)
{
	uint32_t extra = spin(work);
	unsigned block = blockIdx.y * gridDim.x + blockIdx.x;

	if (threadIdx.x == 0) {
		values[block] = turn(values[block] ^ other[block], 77) + extra;
		atomicAdd(&ran[block], 1);
	}
}

struct stream {
	cudaStream_t handle;
	uint32_t *values, *ran, *copy;
	uint32_t *snapshots[SNAPSHOTS];
	cudaEvent_t events[SNAPSHOTS];
	unsigned snapshot;
	/* What it has to come to. */
	std::vector<uint32_t> expected, expected_copy;
	unsigned launches;
	/* Host functions come in order, each after all that was before it. */
	uint32_t *seen; /* mapped host memory: values[0] as the device copied it */
	std::vector<uint32_t> wanted;
	unsigned functions;
	bool wrong;
};

static void CUDART_CB function(void *data)
{
	stream *s = (stream *)data;

	if (*s->seen != s->wanted[s->functions])
		s->wrong = true;
	s->functions++;
}

static unsigned blocks;
static bool leave;
static int work;
static dim3 grid;

static void launch_step(stream &s, uint32_t number)
{
	step<<<grid, THREADS, 0, s.handle>>>(s.values, s.ran, number, work);
	OK(cudaGetLastError());
	s.launches++;
	for (unsigned b = 0; b < blocks; b++)
		s.expected[b] = turn(s.expected[b], number);
}

static void round_of(std::vector<stream> &streams, unsigned round)
{
	for (size_t i = 0; i < streams.size(); i++) {
		stream &s = streams[i], &next = streams[(i + 1) % streams.size()];

		launch_step(s, round);
		if (round % 5 == i % 5) {
			OK(cudaMemcpyAsync(s.copy, s.values, 4 * blocks, cudaMemcpyDeviceToDevice,
					   s.handle));
			s.expected_copy = s.expected;
		}
		if (round % 7 == i % 7 && streams.size() > 1) {
			unsigned n = s.snapshot++ % SNAPSHOTS;

			/* The snapshot's last reader was a full turn of the ring ago. */
			OK(cudaStreamSynchronize(next.handle));
			OK(cudaMemcpyAsync(s.snapshots[n], s.values, 4 * blocks,
					   cudaMemcpyDeviceToDevice, s.handle));
			OK(cudaEventRecord(s.events[n], s.handle));
			OK(cudaStreamWaitEvent(next.handle, s.events[n], 0));
			join<<<grid, THREADS, 0, next.handle>>>(next.values, s.snapshots[n],
								next.ran, work);
			next.launches++;
			for (unsigned b = 0; b < blocks; b++)
				next.expected[b] = turn(next.expected[b] ^ s.expected[b], 77);
		}
		if (round % 11 == i % 11) {
			OK(cudaMemcpyAsync(s.seen, s.values, 4, cudaMemcpyDeviceToHost, s.handle));
			s.wanted.push_back(s.expected[0]);
			OK(cudaLaunchHostFunc(s.handle, function, &s));
			/* `seen` may be written again only after it was read. */
			OK(cudaStreamSynchronize(s.handle));
		}
		if (round % 13 == i % 13) {
			OK(cudaMemsetAsync(s.values, 0, 4, s.handle));
			s.expected[0] = 0;
		}
	}
}

static void check(stream &s, uint32_t &checksum)
{
	std::vector<uint32_t> got(blocks);

	OK(cudaMemcpy(got.data(), s.ran, 4 * blocks, cudaMemcpyDeviceToHost));
	for (unsigned b = 0; b < blocks; b++)
		CHECK(got[b] == s.launches);
	OK(cudaMemcpy(got.data(), s.values, 4 * blocks, cudaMemcpyDeviceToHost));
	CHECK(got == s.expected);
	for (uint32_t v : got)
		checksum = turn(checksum, v);
	OK(cudaMemcpy(got.data(), s.copy, 4 * blocks, cudaMemcpyDeviceToHost));
	CHECK(got == s.expected_copy);
	CHECK(!s.wrong && s.functions == s.wanted.size());
}

static void open_stream(stream &s, const char *kind)
{
	s.handle = 0;
	if (!strcmp(kind, "blocking"))
		OK(cudaStreamCreate(&s.handle));
	else if (!strcmp(kind, "perthread"))
		s.handle = cudaStreamPerThread;
	else if (!strcmp(kind, "nonblocking"))
		OK(cudaStreamCreateWithFlags(&s.handle, cudaStreamNonBlocking));
	OK(cudaMalloc(&s.values, 4 * blocks));
	OK(cudaMalloc(&s.ran, 4 * blocks));
	OK(cudaMalloc(&s.copy, 4 * blocks));
	OK(cudaMemset(s.values, 0, 4 * blocks));
	OK(cudaMemset(s.ran, 0, 4 * blocks));
	OK(cudaMemset(s.copy, 0, 4 * blocks));
	for (unsigned n = 0; n < SNAPSHOTS; n++) {
		OK(cudaMalloc(&s.snapshots[n], 4 * blocks));
		OK(cudaEventCreate(&s.events[n]));
	}
	OK(cudaMallocHost(&s.seen, 4));
	s.expected.assign(blocks, 0);
	s.expected_copy.assign(blocks, 0);
}

struct job {
	const char *kind;
	unsigned streams, rounds;
	uint32_t checksum;
};

static void *run(void *data)
{
	job *j = (job *)data;
	std::vector<stream> streams(j->streams);

	for (stream &s : streams)
		open_stream(s, j->kind);
	OK(cudaDeviceSynchronize());
	for (unsigned round = 0; round < j->rounds; round++)
		round_of(streams, round);
	if (leave)
		return NULL;
	if (j->rounds % 2)
		for (stream &s : streams)
			OK(cudaStreamSynchronize(s.handle));
	else
		OK(cudaDeviceSynchronize());
	for (stream &s : streams)
		check(s, j->checksum);
	return NULL;
}

int main(int argc, char **argv)
{
	job j = {"nonblocking", 4, 100, 0};

	CHECK(argc >= 5);
	j.streams = atoi(argv[1]);
	j.rounds = atoi(argv[2]);
	grid = dim3((atoi(argv[3]) + 1) / 2, 2);
	blocks = grid.x * grid.y;
	work = atoi(argv[4]);
	if (argc > 5)
		j.kind = argv[5];
	leave = argc > 6 && !strcmp(argv[6], "leave");
	pid_t child = 0;
	bool forks = argc > 6 && !strcmp(argv[6], "fork");
	if (forks) {
		child = fork();
		CHECK(child >= 0);
	}
	if (!strcmp(j.kind, "perthread")) {
		/* As many threads as streams were asked for, each with its own default stream. */
		unsigned n = j.streams;
		std::vector<pthread_t> threads(n);
		std::vector<job> jobs(n, job{"perthread", 1, j.rounds, 0});

		for (unsigned i = 0; i < n; i++)
			CHECK(!pthread_create(&threads[i], NULL, run, &jobs[i]));
		for (unsigned i = 0; i < n; i++) {
			CHECK(!pthread_join(threads[i], NULL));
			j.checksum = turn(j.checksum, jobs[i].checksum);
		}
	} else {
		run(&j);
	}
	if (forks && !child)
		return j.checksum % 97;
	if (forks) {
		int status;
		pid_t late = fork();
		if (!late)
			_exit(5);
		CHECK(waitpid(late, &status, 0) == late && WEXITSTATUS(status) == 5);
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == (int)(j.checksum % 97));
	}
	printf("ok %08x\n", j.checksum);
	return 0;
}
