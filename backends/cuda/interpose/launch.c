/* SPDX-License-Identifier: Apache-2.0 */
/* The doors through which kernels go to the device. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"

/* The packed parameters of cuLaunchKernel's `extra`, or NULL. */
static const void *packed_of(void **extra)
{
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2)
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			return extra[1];
	return NULL;
}

static bool has_guard(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	bool has;

	if (__atomic_load_n(&s->guard, __ATOMIC_ACQUIRE))
		return !s->guard->lost;
	pthread_mutex_lock(&d->lock);
	has = s->guard || tally_guard_memory(s);
	pthread_mutex_unlock(&d->lock);
	return has;
}

/* A launch as the program asked for it, by whatever door. */
struct call {
	CUstream stream;
	bool per_thread; /* what the null stream means */
	bool plain;	 /* no attributes that a split launch would not keep */
	CUfunction function;
	struct tally_dimensions at;
	void **parameters, **extra;
};

/* Whether the launch may be split and stopped: a plain grid of a kernel with a guarded variant. */
static struct tally_kernel *guardable(struct tally_stream *s, const struct call *c)
{
	const unsigned *grid = c->at.grid;
	uint64_t blocks = (uint64_t)grid[0] * grid[1];
	struct tally_kernel *k;

	/* While something is captured nothing may have to be started again: the stream could have
	 * joined the capture by then. */
	if (atomic_load_explicit(&tally_process.captures, memory_order_relaxed))
		return NULL;
	k = tally_kernel_find(c->function);
	if (!k || !blocks || !grid[2] || blocks > INT32_MAX / grid[2] || !tally_kernel_guarded(k) ||
	    !has_guard(s))
		return NULL;
	return k;
}

/*
 * What comes before every launch. True when the launch is done, with the driver's answer in
 * `result`; false when the caller is to call the driver, and after that, where `announced` was set,
 * tally_given().
 */
static bool launch(const struct call *c, bool *announced, CUresult *result)
{
	struct tally_stream *s = tally_stream_find(c->stream, c->per_thread);
	const void *packed = c->parameters ? NULL : packed_of(c->extra);
	struct tally_kernel *k;

	if (!s || (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) &&
		   tally_stream_captured(s->handle)))
		return false;
	*announced = true;
	tally_announce(s, true);
	tally_gate_pass(s->context->device);
	if (!tally_process.config.guards)
		return false;
	k = c->plain ? guardable(s, c) : NULL;
	if (k && (c->parameters || packed || !k->count) &&
	    tally_guard_launch(s, k, &c->at, c->parameters, packed, result)) {
		tally_given();
		return true;
	}
	tally_fence(s);
	return false;
}

#define KERNEL(symbol, null_is_own)                                                                \
	CUresult symbol(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,                \
			unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,     \
			unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,     \
			void **kernelParams, void **extraParams)                                   \
	{                                                                                          \
		const struct call call = {.stream = hStream,                                       \
					  .per_thread = null_is_own,                               \
					  .plain = true,                                           \
					  .function = f,                                           \
					  .at = {{gridDimX, gridDimY, gridDimZ},                   \
						 {blockDimX, blockDimY, blockDimZ},                \
						 sharedMemBytes},                                  \
					  .parameters = kernelParams,                              \
					  .extra = extraParams};                                   \
		bool announced = false;                                                            \
		CUresult result;                                                                   \
                                                                                                   \
		if (!tally_enter() || !tally_on() || !launch(&call, &announced, &result)) {        \
			result = TALLY_REAL(symbol)(f, gridDimX, gridDimY, gridDimZ, blockDimX,    \
						    blockDimY, blockDimZ, sharedMemBytes, hStream, \
						    kernelParams, extraParams);                    \
			if (announced)                                                             \
				tally_given();                                                     \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
KERNEL(cuLaunchKernel, false)
KERNEL(cuLaunchKernel_ptsz, true)

/* Attributes that say nothing about how blocks run together. */
static bool plain(const CUlaunchConfig *config)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		switch (a->id) {
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			if (a->value.cooperative)
				return false;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z !=
			    1)
				return false;
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool launch_config(const CUlaunchConfig *config, bool per_thread, CUfunction function,
			  void **parameters, void **extra, bool *announced, CUresult *result)
{
	const struct call call = {
		.stream = config->hStream,
		.per_thread = per_thread,
		.plain = plain(config),
		.function = function,
		.at = {{config->gridDimX, config->gridDimY, config->gridDimZ},
		       {config->blockDimX, config->blockDimY, config->blockDimZ},
		       config->sharedMemBytes},
		.parameters = parameters,
		.extra = extra,
	};

	return launch(&call, announced, result);
}

#define KERNEL_EX(symbol, null_is_own)                                                             \
	CUresult symbol(const CUlaunchConfig *config, CUfunction f, void **kernelParams,           \
			void **extra)                                                              \
	{                                                                                          \
		bool announced = false;                                                            \
		CUresult result;                                                                   \
                                                                                                   \
		if (!tally_enter() || !tally_on() || !config ||                                    \
		    !launch_config(config, null_is_own, f, kernelParams, extra, &announced,        \
				   &result)) {                                                     \
			result = TALLY_REAL(symbol)(config, f, kernelParams, extra);               \
			if (announced)                                                             \
				tally_given();                                                     \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
KERNEL_EX(cuLaunchKernelEx, false)
KERNEL_EX(cuLaunchKernelEx_ptsz, true)
