/* SPDX-License-Identifier: Apache-2.0 */
/* A training job in small: steps of large matrix multiplications, reductions and elementwise
 * updates, as fast as the device lets it. The weights after N steps depend on N alone, and so does
 * the checksum. */
#include "common.h"

#define TILE	16
#define THREADS 256

static double opt_size = 256, opt_steps = 20, opt_seconds, opt_start_at, opt_seed = 1, opt_sync = 4;
static const char *opt_json;

static const struct option_entry options[] = {
	{"--size", "rows and columns of the matrices, a multiple of 16", &opt_size, NULL},
	{"--steps", "the checksum is of the weights after so many steps", &opt_steps, NULL},
	{"--seconds", "then go on training until the window ends; 0: end there", &opt_seconds,
	 NULL},
	{"--start-at", "begin to measure at this time (seconds since 1970)", &opt_start_at, NULL},
	{"--sync", "look at the loss after every so many steps", &opt_sync, NULL},
	{"--seed", "of data and weights", &opt_seed, NULL},
	{"--json", "write the result to this file", NULL, &opt_json},
	{NULL, NULL, NULL, NULL},
};

/* c = a * b, or transpose(a) * b; square matrices, one tile of c a block. */
__global__ void matmul(const float *a, const float *b, float *c, int size, int transpose)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int k = 0; k < size; k += TILE) {
		int inner = k + threadIdx.x;

		tile_a[threadIdx.y][threadIdx.x] =
			transpose ? a[inner * size + row] : a[row * size + inner];
		tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * size + column];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
		__syncthreads();
	}
	c[row * size + column] = sum;
}

/* Adds up one value of every thread; the result is in part[0] of all threads. */
__device__ void block_sum(float *part, float value)
{
	part[threadIdx.x] = value;
	__syncthreads();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
}

/* Each block adds up the squares of its own stretch: no atomics, so the order never changes. */
__global__ void square_sums(const float *data, int count, float *sums)
{
	__shared__ float part[THREADS];
	int stretch = (count + gridDim.x - 1) / gridDim.x;
	int begin = blockIdx.x * stretch, end = min(begin + stretch, count);
	float sum = 0;

	for (int i = begin + threadIdx.x; i < end; i += THREADS)
		sum += data[i] * data[i];
	block_sum(part, sum);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = part[0];
}

__global__ void total(const float *sums, int count, float *norm)
{
	__shared__ float part[THREADS];
	float sum = 0;

	for (int i = threadIdx.x; i < count; i += THREADS)
		sum += sums[i];
	block_sum(part, sum);
	if (threadIdx.x == 0)
		*norm = sqrtf(part[0]);
}

/* Gradient descent with a gradient of bounded length. */
__global__ void update(float *weight, const float *gradient, const float *norm, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		weight[i] = 0.999f * weight[i] - 0.05f * gradient[i] / (1e-6f + *norm);
}

#define SUMS 64

struct training {
	int size, count;
	float *data, *weight, *output, *gradient, *sums, *norm;
	float *loss; /* pinned */
	cudaStream_t stream;
};

static void training_create(struct training *t)
{
	t->size = (int)opt_size;
	if (t->size < TILE || t->size % TILE || t->size > 8192) {
		fprintf(stderr, "error: --size %g: a multiple of %d, at most 8192\n", opt_size,
			TILE);
		exit(1);
	}
	t->count = t->size * t->size;
	t->data = random_matrix(t->count, (uint64_t)opt_seed * 2 + 7);
	t->weight = random_matrix(t->count, (uint64_t)opt_seed * 2 + 9);
	CHECK(cudaMalloc((void **)&t->output, t->count * sizeof(float)));
	CHECK(cudaMalloc((void **)&t->gradient, t->count * sizeof(float)));
	CHECK(cudaMalloc((void **)&t->sums, SUMS * sizeof(float)));
	CHECK(cudaMalloc((void **)&t->norm, sizeof(float)));
	CHECK(cudaMallocHost((void **)&t->loss, sizeof(float)));
	CHECK(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
}

static void training_destroy(struct training *t)
{
	float *buffers[] = {t->data, t->weight, t->output, t->gradient, t->sums, t->norm};

	for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++)
		CHECK(cudaFree(buffers[i]));
	CHECK(cudaFreeHost(t->loss));
	CHECK(cudaStreamDestroy(t->stream));
}

static void step(struct training *t)
{
	dim3 grid(t->size / TILE, t->size / TILE), block(TILE, TILE);
	int blocks = (t->count + THREADS - 1) / THREADS;

	matmul<<<grid, block, 0, t->stream>>>(t->data, t->weight, t->output, t->size, 0);
	matmul<<<grid, block, 0, t->stream>>>(t->data, t->output, t->gradient, t->size, 1);
	square_sums<<<SUMS, THREADS, 0, t->stream>>>(t->gradient, t->count, t->sums);
	total<<<1, THREADS, 0, t->stream>>>(t->sums, SUMS, t->norm);
	update<<<blocks, THREADS, 0, t->stream>>>(t->weight, t->gradient, t->norm, t->count);
	CHECK(cudaGetLastError());
}

static void look_at_loss(struct training *t)
{
	CHECK(cudaMemcpyAsync(t->loss, t->norm, sizeof(float), cudaMemcpyDeviceToHost, t->stream));
	CHECK(cudaStreamSynchronize(t->stream));
}

/* FNV-1a of the weights' bits. */
static uint64_t checksum(const struct training *t)
{
	uint32_t *bits = (uint32_t *)malloc(t->count * sizeof(uint32_t));
	uint64_t hash = 0xcbf29ce484222325ull;

	if (!bits) {
		fprintf(stderr, "error: out of memory\n");
		exit(1);
	}
	CHECK(cudaStreamSynchronize(t->stream));
	CHECK(cudaMemcpy(bits, t->weight, t->count * sizeof(uint32_t), cudaMemcpyDeviceToHost));
	for (int i = 0; i < t->count; i++)
		hash = (hash ^ bits[i]) * 0x100000001b3ull;
	free(bits);
	return hash;
}

static void write_json(long steps, double seconds, double rate, uint64_t sum)
{
	FILE *out = fopen(opt_json, "w");

	if (!out ||
	    fprintf(out,
		    "{\"steps\": %ld, \"seconds\": %.6f, \"steps_per_second\": %.4f, "
		    "\"checksum\": \"%016llx\", \"checksum_steps\": %ld}\n",
		    steps, seconds, rate, (unsigned long long)sum, (long)opt_steps) < 0 ||
	    fclose(out)) {
		fprintf(stderr, "error: %s: %s\n", opt_json, strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct training t;
	long steps = 0, wanted, measured = 0;
	double start, elapsed = 0;
	uint64_t sum = 0;

	options_parse(argc, argv,
		      "trainer: trains as fast as it can, prints steps/s and a checksum", options);
	wanted = (long)opt_steps;
	if (wanted < 2 || opt_sync < 1) {
		fprintf(stderr, "error: --steps begins at 2, --sync at 1\n");
		return 1;
	}
	training_create(&t);
	step(&t); /* the first step loads the kernels: not measured */
	look_at_loss(&t);
	steps = 1;
	start = wait_for_start(opt_start_at);
	while (steps < wanted || now() < start + opt_seconds) {
		step(&t);
		if (++steps == wanted)
			sum = checksum(&t);
		else if (steps % (long)opt_sync)
			continue;
		else
			look_at_loss(&t);
		if (opt_seconds == 0 || elapsed < opt_seconds) {
			elapsed = now() - start;
			measured = steps - 1;
		}
	}
	look_at_loss(&t);
	printf("steps %ld  seconds %.2f  steps/s %.2f  loss %g  checksum %016llx after %ld steps\n",
	       steps, elapsed, (double)measured / elapsed, *t.loss, (unsigned long long)sum,
	       wanted);
	if (opt_json)
		write_json(steps, elapsed, (double)measured / elapsed, sum);
	training_destroy(&t);
	return 0;
}
