/* SPDX-License-Identifier: Apache-2.0 */
/* An inference server in small: requests arrive on their own schedule (open loop, Poisson), each is
 * a few small kernels and a synchronize; latency counts from the arrival, so waiting counts too. */
#include <math.h>

#include "common.h"

#define ROW_THREADS 64

static double opt_rate = 100, opt_seconds = 2, opt_requests, opt_warmup = 10, opt_start_at,
	      opt_batch = 64, opt_width = 128, opt_layers = 2, opt_seed = 1;
static const char *opt_json;

static const struct option_entry options[] = {
	{"--rate", "requests per second on average; 0: one after the other", &opt_rate, NULL},
	{"--seconds", "length of the measured window", &opt_seconds, NULL},
	{"--requests", "stop after so many requests instead; 0: by time", &opt_requests, NULL},
	{"--warmup", "requests before the measurement", &opt_warmup, NULL},
	{"--start-at", "begin to measure at this time (seconds since 1970)", &opt_start_at, NULL},
	{"--batch", "rows of a request", &opt_batch, NULL},
	{"--width", "features of a layer", &opt_width, NULL},
	{"--layers", "layers of the network", &opt_layers, NULL},
	{"--seed", "of the arrival times and the weights", &opt_seed, NULL},
	{"--json", "write the result and every latency to this file", NULL, &opt_json},
	{NULL, NULL, NULL, NULL},
};

/* out[row][column] = sum over k of in[row][k] * weight[k][column] */
__global__ void dense(const float *in, const float *weight, float *out, int rows, int width)
{
	int column = blockIdx.x * blockDim.x + threadIdx.x;
	int row = blockIdx.y;
	float sum = 0;

	if (column >= width || row >= rows)
		return;
	for (int k = 0; k < width; k++)
		sum += in[row * width + k] * weight[k * width + column];
	out[row * width + column] = sum;
}

__global__ void bias_relu(float *data, const float *bias, int count, int width)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = fmaxf(data[i] + bias[i % width], 0.0f);
}

/* One block a row: the largest value, the sum of the exponentials, the division. */
__global__ void softmax(float *data, int width)
{
	__shared__ float part[ROW_THREADS];
	float *row = data + (size_t)blockIdx.x * width;
	float largest = -INFINITY, sum = 0;

	for (int i = threadIdx.x; i < width; i += ROW_THREADS)
		largest = fmaxf(largest, row[i]);
	part[threadIdx.x] = largest;
	__syncthreads();
	for (int half = ROW_THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
		__syncthreads();
	}
	largest = part[0];
	__syncthreads();
	for (int i = threadIdx.x; i < width; i += ROW_THREADS) {
		row[i] = expf(row[i] - largest);
		sum += row[i];
	}
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int half = ROW_THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	for (int i = threadIdx.x; i < width; i += ROW_THREADS)
		row[i] /= part[0];
}

struct network {
	int batch, width, layers;
	float *input, *hidden[2], *weight, *bias;
	float *answer; /* pinned */
	cudaStream_t stream;
};

static void network_create(struct network *net)
{
	size_t cells;

	net->batch = (int)opt_batch;
	net->width = (int)opt_width;
	net->layers = (int)opt_layers;
	if (net->batch < 1 || net->width < 1 || net->layers < 1) {
		fprintf(stderr, "error: --batch, --width and --layers begin at 1\n");
		exit(1);
	}
	cells = (size_t)net->batch * net->width;
	net->input = random_matrix(cells, (uint64_t)opt_seed * 2 + 1);
	net->weight = random_matrix((size_t)net->width * net->width, (uint64_t)opt_seed * 2 + 3);
	net->bias = random_matrix(net->width, (uint64_t)opt_seed * 2 + 5);
	for (int i = 0; i < 2; i++)
		CHECK(cudaMalloc((void **)&net->hidden[i], cells * sizeof(float)));
	CHECK(cudaMallocHost((void **)&net->answer, cells * sizeof(float)));
	CHECK(cudaStreamCreateWithFlags(&net->stream, cudaStreamNonBlocking));
}

static void network_destroy(struct network *net)
{
	CHECK(cudaStreamDestroy(net->stream));
	CHECK(cudaFreeHost(net->answer));
	CHECK(cudaFree(net->hidden[0]));
	CHECK(cudaFree(net->hidden[1]));
	CHECK(cudaFree(net->input));
	CHECK(cudaFree(net->weight));
	CHECK(cudaFree(net->bias));
}

static void serve(struct network *net)
{
	int cells = net->batch * net->width;
	dim3 grid((net->width + 127) / 128, net->batch);
	float *in = net->input, *out = net->hidden[0];

	for (int layer = 0; layer < net->layers; layer++) {
		out = net->hidden[layer & 1];
		dense<<<grid, 128, 0, net->stream>>>(in, net->weight, out, net->batch, net->width);
		bias_relu<<<(cells + 255) / 256, 256, 0, net->stream>>>(out, net->bias, cells,
									net->width);
		in = out;
	}
	softmax<<<net->batch, ROW_THREADS, 0, net->stream>>>(out, net->width);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(net->answer, out, cells * sizeof(float), cudaMemcpyDeviceToHost,
			      net->stream));
	CHECK(cudaStreamSynchronize(net->stream));
}

/* Every row of a softmax sums to 1: a server that answers fast but wrong is of no use. */
static void check_answer(const struct network *net)
{
	for (int row = 0; row < net->batch; row++) {
		double sum = 0;

		for (int i = 0; i < net->width; i++)
			sum += net->answer[row * net->width + i];
		if (!(fabs(sum - 1) < 1e-3)) {
			fprintf(stderr, "error: row %d of the answer sums to %g, not to 1\n", row,
				sum);
			exit(1);
		}
	}
}

struct result {
	double *latency; /* seconds, in order of arrival, then sorted */
	size_t count, capacity;
	double seconds;
};

static void result_add(struct result *result, double latency)
{
	if (result->count == result->capacity) {
		result->capacity = result->capacity ? 2 * result->capacity : 1024;
		result->latency = (double *)realloc(result->latency,
						    result->capacity * sizeof(*result->latency));
		if (!result->latency) {
			fprintf(stderr, "error: out of memory\n");
			exit(1);
		}
	}
	result->latency[result->count++] = latency;
}

static void measure(struct network *net, struct result *result)
{
	uint64_t random = (uint64_t)opt_seed * 0x9E3779B97F4A7C15ull + 1;
	double start = wait_for_start(opt_start_at), arrival = start;

	for (;;) {
		if (opt_rate > 0)
			arrival += -log(random_unit(&random)) / opt_rate;
		else
			arrival = now();
		if (opt_requests > 0 ? (double)result->count >= opt_requests
				     : arrival >= start + opt_seconds)
			break;
		sleep_until(arrival);
		serve(net);
		result_add(result, now() - arrival);
	}
	result->seconds = now() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Milliseconds below which a share of the sorted latencies lies. */
static double percentile(const struct result *result, double share)
{
	size_t index = (size_t)ceil(share * (double)result->count);

	return result->count ? 1e3 * result->latency[index ? index - 1 : 0] : 0;
}

static void write_json(const struct result *result)
{
	FILE *out = fopen(opt_json, "w");

	if (!out) {
		fprintf(stderr, "error: %s: %s\n", opt_json, strerror(errno));
		exit(1);
	}
	fprintf(out,
		"{\"requests\": %zu, \"seconds\": %.6f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, "
		"\"max_ms\": %.4f,\n\"latency_ms\": [",
		result->count, result->seconds, percentile(result, 0.5), percentile(result, 0.99),
		percentile(result, 1));
	for (size_t i = 0; i < result->count; i++)
		fprintf(out, "%s%.4f", i ? ", " : "", 1e3 * result->latency[i]);
	fprintf(out, "]}\n");
	if (fclose(out)) {
		fprintf(stderr, "error: %s: %s\n", opt_json, strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct network net;
	struct result result = {};

	options_parse(argc, argv,
		      "server: answers requests that arrive at random, prints latencies", options);
	network_create(&net);
	for (int i = 0; i < (int)opt_warmup; i++)
		serve(&net);
	measure(&net, &result);
	if (result.count)
		check_answer(&net);
	qsort(result.latency, result.count, sizeof(*result.latency), by_value);
	printf("requests %zu  seconds %.2f  p50 %.3f ms  p99 %.3f ms  max %.3f ms\n", result.count,
	       result.seconds, percentile(&result, 0.5), percentile(&result, 0.99),
	       percentile(&result, 1));
	if (opt_json)
		write_json(&result);
	free(result.latency);
	network_destroy(&net);
	return 0;
}
