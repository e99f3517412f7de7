/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, the rival and the chains: see steps.h. */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/resolve.h"
#include "base/file.h"

bool steps_waited(uint64_t end)
{
	usleep(200);
	return tally_now() > end;
}

static _Atomic float told_ms, added_ms;
static __typeof__(&cuEventElapsedTime) measured_elapsed;

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
	CUresult result = measured_elapsed(ms, from, to);

	if (!result && atomic_load(&told_ms) > 0)
		*ms = atomic_load(&told_ms);
	if (!result)
		*ms += atomic_load(&added_ms);
	return result;
}

static void say_elapsed(_Atomic float *what, float ms)
{
	if (!measured_elapsed)
		measured_elapsed = TALLY_DRIVER(cuEventElapsedTime);
	atomic_store(what, ms);
	atomic_store(&tally_driver_table[TALLY_HOOK_cuEventElapsedTime], (void *)elapsed);
}

void steps_events_take(float ms)
{
	say_elapsed(&added_ms, ms);
}

void steps_say_took(float ms)
{
	say_elapsed(&told_ms, ms);
}

CUcontext context;
CUfunction step, empty;
CUdeviceptr memory, other;
struct tally_device *device;

CUmodule load_steps(bool stoppable)
{
	struct tally_buffer image = {0};
	struct tally_error error = {0};
	struct tally_module *m;
	CUmodule loaded;

	assert_true(tally_file_read(TALLY_BUILD_DIR "/tests/interpose/guard_kernels.so", &image,
				    &error));
	OK(cuModuleLoadData(&loaded, image.data));
	tally_buffer_free(&image);
	m = tally_module_find(loaded);
	if (stoppable) {
		assert_non_null(m);
		atomic_store(&m->variants, loaded);
		tally_module_is(m, TALLY_MODULE_STOPPABLE, TALLY_WHY_NONE);
	}
	return loaded;
}

/* The rival ------------------------------------------------------------------------------------ */

struct tally_client *rival;
static _Atomic bool rival_stop;
static pthread_t rival_thread;

static void rival_connect(void)
{
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = 1000, .name = "rival"};

	memcpy(options.device, device->uuid, sizeof options.device);
	rival = tally_client_connect(&options, &error);
	assert_non_null(rival);
}

static void *rival_run(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!atomic_load(&rival_stop)) {
		tally_client_set_active(rival, true);
		usleep((useconds_t)(rand_r(&seed) % 300));
		tally_client_set_active(rival, false);
		usleep((useconds_t)(rand_r(&seed) % 900));
	}
	return NULL;
}

void rival_begins(unsigned seed)
{
	atomic_store(&rival_stop, false);
	pthread_create(&rival_thread, NULL, rival_run, (void *)(uintptr_t)seed);
}

void rival_ends(void)
{
	atomic_store(&rival_stop, true);
	pthread_join(rival_thread, NULL);
}

static uint32_t turn(uint32_t x, uint32_t number)
{
	return x * 1664525u + 1013904223u + number;
}

void chain_open(struct chain *c, CUstream stream)
{
	memset(c, 0, sizeof *c);
	c->stream = stream;
	c->step = step;
	OK(cuMemAlloc_v2(&c->values, sizeof c->expected));
	OK(cuMemAlloc_v2(&c->ran, sizeof c->expected + sizeof *c->expected));
	OK(cuMemsetD32_v2(c->values, 0, BLOCKS));
	OK(cuMemsetD32_v2(c->ran, 0, BLOCKS + 1));
}

CUgraphNode chain_node(struct chain *c, CUgraph graph, CUfunction kernel, uint32_t number,
		       uint32_t work, const CUgraphNode *after, size_t count)
{
	void *pointers[] = {&c->values, &c->ran, &number, &work};
	CUDA_KERNEL_NODE_PARAMS p = {.func = kernel,
				     .gridDimX = BLOCKS,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = 1,
				     .blockDimY = 1,
				     .blockDimZ = 1,
				     .kernelParams = pointers};
	CUgraphNode node;

	OK(cuGraphAddKernelNode_v2(&node, graph, after, count, &p));
	return node;
}

void chain_expect(struct chain *c, uint32_t number)
{
	c->launches++;
	for (unsigned b = 0; b < BLOCKS; b++)
		c->expected[b] = turn(c->expected[b], number);
}

void chain_step(struct chain *c, uint32_t number, uint32_t work, bool packed)
{
	struct {
		CUdeviceptr values, ran;
		uint32_t number, work;
	} p = {c->values, c->ran, number, work};
	void *pointers[] = {&p.values, &p.ran, &p.number, &p.work};
	size_t size = sizeof p;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};

	/* A grid of three dimensions: the linear ids have to come out right. */
	OK(cuLaunchKernel(c->step, c->flat ? BLOCKS : BLOCKS / 6, c->flat ? 1 : 3, c->flat ? 1 : 2,
			  1, 1, 1, 0, c->stream, packed ? NULL : pointers, packed ? extra : NULL));
	memset(&p, 0xee, sizeof p); /* the caller's copy is the caller's */
	chain_expect(c, number);
}

void chain_stop(struct chain *c, unsigned count)
{
	uint64_t before = stops(), end = tally_now() + PATIENCE_S * UINT64_C(1000000000);

	for (;;) {
		for (unsigned i = 0; i < count; i++)
			chain_step(c, 7, LONG_US, false);
		tally_client_set_active(rival, true);
		/* Of what was stopped a block is left at least. */
		while (stops() == before && chain_ran(c) < c->launches * BLOCKS)
			if (steps_waited(end))
				fail_msg("neither stopped nor over");
		if (stops() > before)
			return;
		tally_client_set_active(rival, false);
		if (steps_waited(end))
			fail_msg("never stopped");
	}
}

void chain_let_go(struct chain *c)
{
	/* The device's memory is the host's. */
	atomic_store((_Atomic uint32_t *)(uintptr_t)c->ran + BLOCKS, 1);
}

uint32_t chain_ran(const struct chain *c)
{
	const volatile uint32_t *ran =
		(const uint32_t *)c->ran; /* the host's own, on this device */
	uint32_t sum = 0;

	for (unsigned b = 0; b < BLOCKS; b++)
		sum += ran[b];
	return sum;
}

void chain_check(struct chain *c)
{
	uint32_t got[BLOCKS];

	OK(cuMemcpyDtoH_v2(got, c->ran, sizeof got));
	for (unsigned b = 0; b < BLOCKS; b++)
		assert_int_equal(got[b], c->launches);
	OK(cuMemcpyDtoH_v2(got, c->values, sizeof got));
	assert_memory_equal(got, c->expected, sizeof got);
	OK(cuMemFree_v2(c->values));
	OK(cuMemFree_v2(c->ran));
}

struct tally_configuration *chain_configuration(CUfunction k, bool flat)
{
	struct tally_configuration *c = atomic_load(&tally_kernel_find(k)->configurations);

	while (c && (c->at.grid[0] == BLOCKS) != flat)
		c = c->next;
	assert_non_null(c);
	return c;
}

static unsigned usual_ahead;

int doors_wait(void **state)
{
	tally_ahead_flush_all();
	usual_ahead = tally_process.config.ahead;
	tally_process.config.ahead = 0;
	return 0;
}

int doors_run_ahead(void **state)
{
	tally_process.config.ahead = usual_ahead;
	return 0;
}

uint64_t stops(void)
{
	return atomic_load(&tally_slot(device)->stops);
}

const CUDA_MEMCPY3D *some_copy(void)
{
	static CUDA_MEMCPY3D c;

	c = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			    .srcDevice = memory,
			    .srcPitch = 16,
			    .srcHeight = 2,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .dstDevice = other,
			    .dstPitch = 16,
			    .dstHeight = 2,
			    .WidthInBytes = 8,
			    .Height = 2,
			    .Depth = 2};
	return &c;
}

int steps_setup(void **state)
{
	CUdevice ordinal;
	CUmodule module;

	OK(cuInit(0));
	OK(cuDeviceGet(&ordinal, 0));
	OK(cuDevicePrimaryCtxRetain(&context, ordinal));
	OK(cuCtxSetCurrent(context));
	module = load_steps(tally_process.config.guards);
	OK(cuModuleGetFunction(&step, module, "step"));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	device = tally_device_of(ordinal);
	assert_non_null(device);
	assert_non_null(atomic_load(&device->client));
	rival_connect();
	OK(cuMemAlloc_v2(&memory, 4096));
	OK(cuMemAlloc_v2(&other, 4096));
	return 0;
}
