/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: from the API's many arguments to a job of numbered blocks. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/capture.h"
#include "ir_passes/launch_abi.h"

/* In an operation's data; the packed parameters follow, 64-byte aligned. */
struct launch {
	_Alignas(64) struct tally_cpu_launch cpu;
	const struct tally_launch *range; /* of a guarded variant: inside the parameters, or NULL */
	struct tally_cpu_grid grid;	  /* of a cooperative launch */
};

/* One line for one fault: what comes after it in a failed context is its consequence. */
static void report(const struct operation *operation, const struct tally_cpu_worker *worker,
		   enum tally_cpu_fault fault)
{
	static const char *const words[] = {
		[TALLY_CPU_TRAP] = "trap",
		[TALLY_CPU_ASSERT] = "assertion failed",
		[TALLY_CPU_DEADLOCK] = "its threads wait for each other",
		[TALLY_CPU_ILLEGAL] = "illegal address",
		[TALLY_CPU_MEMORY] = "no memory to run it",
	};
	const struct launch *launch = operation->data;
	const char *message = tally_cpu_worker_message(worker);

	if (!context_error(operation->stream->context))
		driver_complain(NULL, "kernel %s failed: %s", launch->cpu.kernel->name,
				message[0] ? message : words[fault]);
}

static enum tally_cpu_fault run_block(struct tally_cpu_worker *worker, struct operation *operation,
				      uint64_t block)
{
	const struct launch *launch = operation->data;
	enum tally_cpu_fault fault = tally_cpu_run_block(worker, &launch->cpu, block);

	if (__builtin_expect(fault && fault != TALLY_CPU_ELSEWHERE, 0))
		report(operation, worker, fault);
	return fault;
}

/*
 * A launch that was stopped ends every block from max on at once, so nobody has to ask for each of
 * them: once the stop bit is set max is frozen (launch_abi.h).
 */
static bool rest_is_idle(const struct operation *operation, uint64_t next)
{
	const struct launch *launch = operation->data;
	const struct tally_launch *range = launch->range;
	uint64_t word;

	if (!range->control)
		return false;
	word = __atomic_load_n(&tally_control_of(range->control)->word, __ATOMIC_ACQUIRE);
	uint64_t id = launch->cpu.kernel->flags & TALLY_CPU_SLICE ? range->lo + next : next;
	return word >= TALLY_WORD_STOP && TALLY_WORD_MAX(word) <= id;
}

static const struct operation_class kernel_class = {
	.name = "kernel",
	.start = START_JOB,
	.run_block = run_block,
};

static const struct operation_class guarded_class = {
	.name = "kernel",
	.start = START_JOB,
	.run_block = run_block,
	.rest_is_idle = rest_is_idle,
};

/* `extra`: pairs of a key and a value; one packed buffer and its size. */
static CUresult copy_packed(const struct tally_cpu_kernel *kernel, void **extra, char *params)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size < kernel->param_bytes || (kernel->param_bytes && !buffer))
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->param_bytes)
		memcpy(params, buffer, kernel->param_bytes);
	return CUDA_SUCCESS;
}

static CUresult copy_params(const struct tally_cpu_kernel *kernel, void **list, void **extra,
			    char *params)
{
	if (list && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra)
		return copy_packed(kernel, extra, params);
	if (!list)
		return kernel->param_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	for (uint32_t i = 0; i < kernel->param_count; i++)
		memcpy(params + kernel->params[i].offset, list[i], kernel->params[i].bytes);
	return CUDA_SUCCESS;
}

static CUresult check_shape(const struct function *function, const CUlaunchConfig *c)
{
	const struct tally_cpu_kernel *kernel = function->kernel;
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;

	if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || c->gridDimX > INT32_MAX ||
	    c->gridDimY > 65535 || c->gridDimZ > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (!threads || c->blockDimX > 1024 || c->blockDimY > 1024 || c->blockDimZ > 64 ||
	    threads > BLOCK_THREADS || threads > kernel->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->required[0] &&
	    (c->blockDimX != kernel->required[0] || c->blockDimY != kernel->required[1] ||
	     c->blockDimZ != kernel->required[2]))
		return CUDA_ERROR_INVALID_VALUE;
	return c->sharedMemBytes > function->dynamic_shared ? CUDA_ERROR_INVALID_VALUE
							    : CUDA_SUCCESS;
}

/* Which blocks of the grid there is anything to do for. */
static void set_blocks(struct job *job, const struct launch *launch)
{
	const uint32_t *grid = launch->cpu.grid;
	const struct tally_launch *range = launch->range;

	job->total = (uint64_t)grid[0] * grid[1] * grid[2];
	if (!range || launch->cpu.kernel->flags & TALLY_CPU_SLICE)
		return;
	/* Blocks outside [lo, hi) end at once: a resumed launch does not even begin them. */
	if (job->total > range->hi)
		job->total = range->hi;
	atomic_store_explicit(&job->next, range->lo, memory_order_relaxed);
}

static struct operation *make(const struct function *function, const CUlaunchConfig *c, void **list,
			      void **extra, CUresult *error)
{
	static _Atomic uint64_t grids;
	const struct tally_cpu_kernel *kernel = function->kernel;
	bool guarded = kernel->flags & TALLY_CPU_GUARD &&
		       kernel->param_bytes >= sizeof(struct tally_launch);
	struct operation *operation = operation_new(guarded ? &guarded_class : &kernel_class,
						    sizeof(struct launch) + kernel->param_bytes);

	if (!operation) {
		*error = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	struct launch *launch = operation->data;
	char *params = (char *)(launch + 1);
	*error = copy_params(kernel, list, extra, params);
	if (*error) {
		operation_free(operation);
		return NULL;
	}
	launch->cpu = (struct tally_cpu_launch){
		.kernel = kernel,
		.params = params,
		.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
		.block = {c->blockDimX, c->blockDimY, c->blockDimZ},
		.dynamic_shared = c->sharedMemBytes,
		.grid_id = ++grids,
	};
	if (guarded)
		launch->range = (const struct tally_launch *)(params + kernel->param_bytes -
							      sizeof(struct tally_launch));
	set_blocks(&operation->job, launch);
	/* A waiting thread of the application may have a small stack. */
	operation->job.small_stack = kernel->local_bytes <= 4096;
	return operation;
}

/* Its blocks can wait for each other, and have what they meet in. */
static void make_cooperative(struct operation *operation)
{
	struct launch *launch = operation->data;

	launch->cpu.workspace = &launch->grid;
	operation->job.gang = operation->job.total > 1;
}

/* --- launches as work (work.h) --- */

CUresult kernel_work_make(struct kernel_work *work, const void *handle,
			  const CUlaunchConfig *config, void **list, void **extra)
{
	struct function *function;
	CUresult error = function_check(handle, &function);

	if (!error)
		error = check_shape(function, config);
	if (error)
		return error;
	const struct tally_cpu_kernel *kernel = function->kernel;
	size_t pointers = (kernel->param_count + 1) * sizeof(void *);
	*work = (struct kernel_work){.function = function,
				     .param_count = kernel->param_count,
				     .param_bytes = kernel->param_bytes,
				     .config = *config,
				     .level = -1};
	work->config.attrs = NULL;
	work->config.numAttrs = 0;
	work->pointers = calloc(1, pointers + kernel->param_bytes);
	if (!work->pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->params = (char *)work->pointers + pointers;
	for (uint32_t i = 0; i < kernel->param_count; i++)
		work->pointers[i] = (char *)work->params + kernel->params[i].offset;
	error = copy_params(kernel, list, extra, work->params);
	if (error)
		free(work->pointers);
	else
		function_hold(function);
	return error;
}

/* Asks nothing of the kernel, which may be gone. */
bool kernel_work_copy(struct kernel_work *to, const struct kernel_work *from)
{
	size_t pointers = (from->param_count + 1) * sizeof(void *);

	*to = *from;
	to->pointers = malloc(pointers + from->param_bytes);
	if (!to->pointers)
		return false;
	to->params = (char *)to->pointers + pointers;
	memcpy(to->params, from->params, from->param_bytes);
	for (size_t i = 0; i < from->param_count; i++)
		to->pointers[i] =
			(char *)to->params + ((char *)from->pointers[i] - (char *)from->params);
	to->pointers[from->param_count] = NULL;
	function_hold(to->function);
	return true;
}

/* Blocks that wait for each other have to run at the same time, each in a worker. */
static bool fits(const CUlaunchConfig *config)
{
	uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;

	return blocks == 1 || blocks <= engine.workers;
}

bool kernel_work_fits(const struct kernel_work *work)
{
	return !work->cooperative || fits(&work->config);
}

struct operation *kernel_work_operation(const struct kernel_work *work, int level)
{
	size_t bytes = work->param_bytes;
	void *packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &bytes, CU_LAUNCH_PARAM_END};
	CUresult error;
	struct operation *operation = make(work->function, &work->config, NULL, packed, &error);

	if (operation) {
		operation->job.level = level;
		if (work->cooperative)
			make_cooperative(operation);
	}
	return operation;
}

struct extras {
	int level; /* -1: the stream's */
	bool cooperative;
	struct event *events[2];
	unsigned event_count;
};

static CUresult read_attributes(const CUlaunchConfig *config, struct extras *extras)
{
	static atomic_bool said;
	CUresult error = CUDA_SUCCESS;

	*extras = (struct extras){.level = -1};
	if (config->numAttrs && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < config->numAttrs && !error; i++) {
		const CUlaunchAttributeValue *v = &config->attrs[i].value;
		CUevent event = NULL;

		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
			if (v->priority > 0 || v->priority <= -LEVELS)
				return CUDA_ERROR_INVALID_VALUE;
			extras->level = -v->priority;
		} else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
			extras->cooperative = v->cooperative;
		} else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
			if ((uint64_t)v->clusterDim.x * v->clusterDim.y * v->clusterDim.z > 1)
				return driver_unsupported("clusters of blocks", &said);
		} else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
			event = v->programmaticEvent.event;
		} else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
			event = v->launchCompletionEvent.event;
		}
		/* The others are hints, or allow what need not be done. */
		if (event && extras->event_count < 2)
			error = event_check(event, &extras->events[extras->event_count++]);
	}
	return error;
}

/* A launch into a stream that is captured. */
static CUresult capture(struct stream *stream, const void *handle, const CUlaunchConfig *config,
			void **params, void **extra, const struct extras *extras)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (extras->event_count)
		return capture_refuse(stream);
	CUresult error = kernel_work_make(&work.kernel, handle, config, params, extra);
	if (error)
		return error;
	/* cuda.h at cuGraphInstantiate: priorities are copied from the stream. */
	work.kernel.level = extras->level >= 0 ? extras->level : stream->level;
	work.kernel.cooperative = extras->cooperative;
	return capture_work(stream, &work);
}

static CUresult launch(const void *handle, const CUlaunchConfig *config, void **params,
		       void **extra, const struct extras *extras)
{
	struct function *function;
	struct stream *stream;
	bool captured = false;
	CUresult error = function_check(handle, &function);

	if (!error)
		error = stream_resolve(config->hStream, &stream);
	if (!error)
		error = check_shape(function, config);
	if (!error && extras->cooperative && !fits(config))
		error = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	if (!error)
		error = capture_admit(stream, &captured);
	if (error)
		return error;
	if (captured)
		return capture(stream, handle, config, params, extra, extras);
	struct operation *operation = make(function, config, params, extra, &error);
	if (!operation)
		return error;
	operation->job.level = extras->level >= 0 ? extras->level : stream->level;
	if (extras->cooperative)
		make_cooperative(operation);
	error = stream_submit(stream, operation, (struct point){0});
	/* "Triggered by the launch's blocks": at the latest when they have ended. */
	for (unsigned i = 0; i < extras->event_count && !error; i++)
		error = event_record(extras->events[i], stream);
	return error;
}

#define SHAPE_PARAMETERS                                                                           \
	unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,                       \
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,            \
		unsigned int sharedMemBytes, CUstream hStream
#define SHAPE                                                                                      \
	{gridDimX,  gridDimY,	    gridDimZ, blockDimX, blockDimY,                                \
	 blockDimZ, sharedMemBytes, hStream,  NULL,	 0}

CUresult cuLaunchKernel(CUfunction f, SHAPE_PARAMETERS, void **kernelParams, void **extra)
{
	static const struct extras none = {.level = -1};
	const CUlaunchConfig config = SHAPE;

	return launch(f, &config, kernelParams, extra, &none);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, SHAPE_PARAMETERS, void **kernelParams)
{
	static const struct extras cooperative = {.level = -1, .cooperative = true};
	const CUlaunchConfig config = SHAPE;

	return launch(f, &config, kernelParams, NULL, &cooperative);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
			  void **extra)
{
	struct extras extras;

	REQUIRE_INIT();
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = read_attributes(config, &extras);
	return error ? error : launch(f, config, kernelParams, extra, &extras);
}
