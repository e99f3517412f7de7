/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What single calls of the driver API cost, asked for again and again while other ways of the same
 * program wait (micro.py): a line "NAME COUNT" on stdin, a line of JSON on stdout.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/device.h"

enum { GRAPH_NODES = 200, COPY = 4096, PIECE = 1 << 20, BURST = 400 };

/* One thread that takes so many ns by the GPU's clock. */
static const char spin_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			       ".visible .entry spin(.param .u64 length)\n{\n"
			       "\t.reg .pred %p<2>;\n\t.reg .b64 %rd<5>;\n"
			       "\tld.param.u64 %rd1, [length];\n"
			       "\tmov.u64 %rd2, %globaltimer;\n"
			       "\tadd.s64 %rd3, %rd2, %rd1;\n"
			       "LOOP:\n"
			       "\tmov.u64 %rd4, %globaltimer;\n"
			       "\tsetp.lt.u64 %p1, %rd4, %rd3;\n"
			       "\t@%p1 bra LOOP;\n"
			       "\tret;\n}\n";

static struct {
	CUfunction empty, spin;
	CUstream stream;
	CUgraphExec graph;
	CUdeviceptr memory;
	CUevent event;
	char *host;
} all;

static void launch(void)
{
	OK(cuLaunchKernel(all.empty, 1, 1, 1, 32, 1, 1, 0, all.stream, NULL, NULL));
}

static void replay(void)
{
	OK(cuGraphLaunch(all.graph, all.stream));
	OK(cuStreamSynchronize(all.stream));
}

static void copy(void)
{
	OK(cuMemcpyHtoD(all.memory, all.host, COPY));
}

static void copy_async(void)
{
	OK(cuMemcpyHtoDAsync(all.memory, all.host, COPY, all.stream));
}

static void event(void)
{
	OK(cuEventRecord(all.event, all.stream));
	OK(cuEventSynchronize(all.event));
}

static void record(void)
{
	OK(cuEventRecord(all.event, all.stream));
}

static void synchronize(void)
{
	OK(cuStreamSynchronize(all.stream));
}

static void spin(uint64_t ns)
{
	void *parameters[] = {&ns};

	OK(cuLaunchKernel(all.spin, 1, 1, 1, 1, 1, 1, 0, all.stream, parameters, NULL));
}

static void spin_10(void)
{
	spin(10000);
}

static void spin_50(void)
{
	spin(50000);
}

static void spin_200(void)
{
	spin(200000);
}

static void launch_and_wait(void)
{
	launch();
	OK(cuStreamSynchronize(all.stream));
}

static void piece(void)
{
	CUdeviceptr memory;

	OK(cuMemAlloc(&memory, PIECE));
	OK(cuMemFree(memory));
}

static void current(void)
{
	CUcontext context;

	OK(cuCtxGetCurrent(&context));
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{"launch", launch},	      {"launch-and-wait", launch_and_wait},
	{"graph-replay", replay},     {"copy", copy},
	{"copy-async", copy_async},   {"event", event},
	{"event-record", record},     {"synchronize", synchronize},
	{"allocate-and-free", piece}, {"current-context", current},
	{"spin-10us", spin_10},	      {"spin-50us", spin_50},
	{"spin-200us", spin_200},
};

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* A graph of empty kernels, one after another; none where the driver has no graphs. */
static void make_graph(void)
{
	CUgraph graph;

	if (cuStreamBeginCapture(all.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
		return;
	for (int i = 0; i < GRAPH_NODES; i++)
		launch();
	if (cuStreamEndCapture(all.stream, &graph) || cuGraphInstantiate(&all.graph, graph, 0))
		all.graph = NULL;
}

static void prepare(void)
{
	bench_device();
	all.empty = bench_function(BENCH_EMPTY_PTX, "empty");
	all.spin = bench_function(spin_ptx, "spin");
	OK(cuStreamCreate(&all.stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&all.memory, COPY));
	OK(cuMemAllocHost((void **)&all.host, COPY));
	OK(cuEventCreate(&all.event, CU_EVENT_DISABLE_TIMING));
	launch_and_wait();
	make_graph();
}

/*
 * Of one call, in ns: elapsed and CPU time (all threads) with the wait for what was asked, and
 * elapsed time in the calls alone. A wait every BURST calls keeps the device's queue from filling.
 */
static void measure(void (*call)(void), int count)
{
	double cpu = cpu_us(), start = bench_now_us(), inside = 0;

	for (int done = 0; done < count; done += BURST) {
		int end = done + BURST < count ? done + BURST : count;
		double from = bench_now_us();

		for (int i = done; i < end; i++)
			call();
		inside += bench_now_us() - from;
		OK(cuCtxSynchronize());
	}
	printf("{\"ok\": true, \"ns\": %.2f, \"call_ns\": %.2f, \"cpu_ns\": %.2f}\n",
	       (bench_now_us() - start) * 1e3 / count, inside * 1e3 / count,
	       (cpu_us() - cpu) * 1e3 / count);
}

static bool answer(const char *name, int count)
{
	size_t free_bytes, total;

	if (!strcmp(name, "free")) {
		OK(cuMemGetInfo(&free_bytes, &total));
		printf("{\"ok\": true, \"free\": %zu}\n", free_bytes);
		return true;
	}
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (strcmp(name, calls[i].name))
			continue;
		if (calls[i].call == replay && !all.graph)
			return false;
		measure(calls[i].call, count);
		return true;
	}
	return false;
}

int main(void)
{
	char line[256], name[64];
	int count;

	prepare();
	printf("{\"ok\": true}\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		count = 1;
		if (sscanf(line, "%63s %d", name, &count) < 1 || count < 1 || !answer(name, count))
			printf("{\"ok\": false, \"error\": \"cannot do that\"}\n");
		fflush(stdout);
	}
	return 0;
}
