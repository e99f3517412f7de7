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

/* Whether the launch may be split and stopped: a plain grid of a kernel with a guarded variant. */
static struct tally_kernel *guardable(struct tally_stream *s, const void *function,
				      const struct tally_dimensions *at)
{
	uint64_t blocks = (uint64_t)at->grid[0] * at->grid[1];
	struct tally_kernel *k;

	/* While something is captured nothing may have to be started again: the stream could have
	 * joined the capture by then. */
	if (atomic_load_explicit(&tally_process.captures, memory_order_relaxed))
		return NULL;
	k = tally_kernel_find(function);
	if (!k || !blocks || !at->grid[2] || blocks > INT32_MAX / at->grid[2] ||
	    !tally_kernel_guarded(k) || !has_guard(s))
		return NULL;
	return k;
}

/*
 * What comes before every launch; `plain` when it has no attributes that a split launch would not
 * keep. True when the launch is done, with the driver's answer in `result`; false when the caller
 * is to call the driver, and after that, where `announced` was set, tally_given().
 */
static bool launch(bool *announced, bool per_thread, CUfunction function,
		   const struct tally_dimensions *at, bool plain, void **parameters, void **extra,
		   CUstream handle, CUresult *result)
{
	struct tally_stream *s = tally_stream_find(handle, per_thread);
	const void *packed = parameters ? NULL : packed_of(extra);
	struct tally_kernel *k;

	if (!s || (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) &&
		   tally_stream_captured(s->handle)))
		return false;
	*announced = true;
	tally_announce(s, true);
	tally_gate_pass(s->context->device);
	if (!tally_process.config.guards)
		return false;
	k = plain ? guardable(s, function, at) : NULL;
	if (!k || !(parameters || packed || !k->count)) {
		tally_fence(s);
		return false;
	}
	*result = tally_guard_launch(s, k, at, parameters, packed);
	tally_given();
	return true;
}

#define KERNEL(symbol, per_thread)                                                                 \
	CUresult symbol(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,                \
			unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,     \
			unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream stream,      \
			void **kernelParams, void **extra)                                         \
	{                                                                                          \
		struct tally_dimensions at = {{gridDimX, gridDimY, gridDimZ},                      \
					      {blockDimX, blockDimY, blockDimZ},                   \
					      sharedMemBytes};                                     \
		bool announced = false;                                                            \
		CUresult result;                                                                   \
                                                                                                   \
		if (!tally_enter() || !tally_on() ||                                               \
		    !launch(&announced, per_thread, f, &at, true, kernelParams, extra, stream,     \
			    &result)) {                                                            \
			result = TALLY_REAL(symbol)(f, gridDimX, gridDimY, gridDimZ, blockDimX,    \
						    blockDimY, blockDimZ, sharedMemBytes, stream,  \
						    kernelParams, extra);                          \
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

#define KERNEL_EX(symbol, per_thread)                                                              \
	CUresult symbol(const CUlaunchConfig *config, CUfunction f, void **kernelParams,           \
			void **extra)                                                              \
	{                                                                                          \
		bool announced = false;                                                            \
		struct tally_dimensions at;                                                        \
		CUresult result;                                                                   \
		bool done = false;                                                                 \
                                                                                                   \
		if (tally_enter() && tally_on() && config) {                                       \
			at = (struct tally_dimensions){                                            \
				{config->gridDimX, config->gridDimY, config->gridDimZ},            \
				{config->blockDimX, config->blockDimY, config->blockDimZ},         \
				config->sharedMemBytes};                                           \
			done = launch(&announced, per_thread, f, &at, plain(config), kernelParams, \
				      extra, config->hStream, &result);                            \
		}                                                                                  \
		if (!done) {                                                                       \
			result = TALLY_REAL(symbol)(config, f, kernelParams, extra);               \
			if (announced)                                                             \
				tally_given();                                                     \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
KERNEL_EX(cuLaunchKernelEx, false)
KERNEL_EX(cuLaunchKernelEx_ptsz, true)
