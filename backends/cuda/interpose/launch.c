/* SPDX-License-Identifier: Apache-2.0 */
/* The doors through which kernels go to the device. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/burst.h"
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
	/* Slices have one dimension: they would make a grid legal that the driver has to refuse. */
	if (at->grid[1] > 65535 || at->grid[2] > 65535)
		return NULL;
	k = tally_kernel_find(function);
	if (!k || !blocks || !at->grid[2] || blocks > INT32_MAX / at->grid[2] ||
	    !tally_kernel_guarded(k) || !has_guard(s))
		return NULL;
	return k;
}

/* What comes before every launch; the stream's record, or NULL: Tally keeps out. */
static inline struct tally_stream *before(CUstream handle, bool per_thread)
{
	struct tally_stream *s;

	if (!tally_enter() || !tally_on())
		return NULL;
	s = tally_stream_find(handle, per_thread);
	if (!s || (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) &&
		   tally_stream_captured(s->handle)))
		return NULL;
	tally_announce(s, true);
	tally_gate_pass(s->context->device);
	return s;
}

static inline void after(struct tally_stream *s)
{
	if (s)
		tally_given();
	tally_leave();
}

/*
 * In a program with guards: true when the launch is done, with the driver's answer in `result`;
 * false when the caller is to call the driver. `plain`: no attributes that a split launch would not
 * keep.
 */
static bool guarded(struct tally_stream *s, CUfunction function, const struct tally_dimensions *at,
		    bool plain, void **parameters, void **extra, CUresult *result)
{
	const void *packed = parameters ? NULL : packed_of(extra);
	struct tally_kernel *k = plain ? guardable(s, function, at) : NULL;

	if (k && (parameters || packed || !k->count) &&
	    tally_guard_launch(s, k, at, parameters, packed, result))
		return true;
	tally_fence(s);
	return false;
}

#define KERNEL(symbol, per_thread)                                                                 \
	CUresult symbol(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,                \
			unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,     \
			unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream stream,      \
			void **kernelParams, void **extra)                                         \
	{                                                                                          \
		struct tally_stream *s = before(stream, per_thread);                               \
		CUresult result;                                                                   \
                                                                                                   \
		if (s)                                                                             \
			tally_burst_launch(s->context->device, f, gridDimX, gridDimY, gridDimZ);   \
		if (!s || !tally_process.config.guards ||                                          \
		    !guarded(s, f,                                                                 \
			     &(struct tally_dimensions){{gridDimX, gridDimY, gridDimZ},            \
							{blockDimX, blockDimY, blockDimZ},         \
							sharedMemBytes},                           \
			     true, kernelParams, extra, &result))                                  \
			result = TALLY_REAL(symbol)(f, gridDimX, gridDimY, gridDimZ, blockDimX,    \
						    blockDimY, blockDimZ, sharedMemBytes, stream,  \
						    kernelParams, extra);                          \
		after(s);                                                                          \
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

static bool guarded_config(struct tally_stream *s, const CUlaunchConfig *config,
			   CUfunction function, void **parameters, void **extra, CUresult *result)
{
	const struct tally_dimensions at = {
		{config->gridDimX, config->gridDimY, config->gridDimZ},
		{config->blockDimX, config->blockDimY, config->blockDimZ},
		config->sharedMemBytes};

	return guarded(s, function, &at, plain(config), parameters, extra, result);
}

#define KERNEL_EX(symbol, per_thread)                                                              \
	CUresult symbol(const CUlaunchConfig *config, CUfunction f, void **kernelParams,           \
			void **extra)                                                              \
	{                                                                                          \
		struct tally_stream *s = before(config ? config->hStream : NULL, per_thread);      \
		CUresult result;                                                                   \
                                                                                                   \
		if (s && config)                                                                   \
			tally_burst_launch(s->context->device, f, config->gridDimX,                \
					   config->gridDimY, config->gridDimZ);                    \
		if (!s || !config || !tally_process.config.guards ||                               \
		    !guarded_config(s, config, f, kernelParams, extra, &result))                   \
			result = TALLY_REAL(symbol)(config, f, kernelParams, extra);               \
		after(s);                                                                          \
		return result;                                                                     \
	}
KERNEL_EX(cuLaunchKernelEx, false)
KERNEL_EX(cuLaunchKernelEx_ptsz, true)
