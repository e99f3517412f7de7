/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of machine code is written down nowhere, so whether this driver takes what was patched
 * is tried before it is relied on: the driver compiles a small kernel, the kernel is patched, runs
 * whole, is told not to begin, is stopped in the middle by one of its own blocks, and is started
 * again; every block has to have run once, and the protocol's words have to say so.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "ir_passes/launch_abi.h"

/* Each block counts itself, a while after it began; block `who` then closes the gate. */
static const char text[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry tally_opaque(.param .u64 counts, .param .u64 gate,"
			   " .param .u32 who)\n{\n"
			   "\t.reg .pred %p<4>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<8>;\n"
			   "\tmov.u32 %r1, %tid.x;\n\tmov.u32 %r2, %ctaid.x;\n"
			   "\tmov.u32 %r3, %clock;\n"
			   "WAIT:\n"
			   "\tmov.u32 %r4, %clock;\n\tsub.u32 %r4, %r4, %r3;\n"
			   "\tsetp.lt.u32 %p1, %r4, 4000;\n\t@%p1 bra WAIT;\n"
			   "\tsetp.ne.u32 %p2, %r1, 0;\n\t@%p2 bra END;\n"
			   "\tld.param.u64 %rd1, [counts];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
			   "\tmul.wide.u32 %rd3, %r2, 4;\n\tadd.s64 %rd4, %rd2, %rd3;\n"
			   "\tred.global.add.u32 [%rd4], 1;\n"
			   "\tld.param.u32 %r5, [who];\n\tsetp.ne.u32 %p3, %r2, %r5;\n"
			   "\t@%p3 bra END;\n"
			   "\tld.param.u64 %rd5, [gate];\n\tcvta.to.global.u64 %rd6, %rd5;\n"
			   "\tmov.u32 %r6, 1;\n\tst.volatile.global.u32 [%rd6], %r6;\n"
			   "END:\n\tret;\n}\n";

/* More blocks than any device runs at once, so that some are left when the gate closes. */
enum { BLOCKS = 32768, THREADS = 512, NOBODY = BLOCKS, STOPS_AT = 100, SEQUENCE = 7 };

/* In device memory. */
struct words {
	struct tally_control control;
	uint64_t mailbox;
	uint32_t gate, broken;
	uint32_t counts[BLOCKS];
};

struct trial {
	CUstream stream;
	CUfunction kernel;
	CUdeviceptr words;  /* struct words */
	struct words *seen; /* a copy */
	char why[256];	    /* it did not pass */
};

static bool failed(struct trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool failed(struct trial *t, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!t->why[0])
		vsnprintf(t->why, sizeof t->why, format, arguments);
	va_end(arguments);
	return false;
}

/* One call of the driver's; `what` it was to do. */
static bool did(struct trial *t, CUresult result, const char *what)
{
	return !result || failed(t, "the driver refuses to %s (error %d)", what, (int)result);
}

/*
 * Two locks, each held while the driver works for us on this thread. Its compiler has threads and
 * state of its own: a child that is forked meanwhile, or a program that exits, would clean up after
 * a compiler that is at work. What the trial launches is over before the driver goes.
 */
static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER, running = PTHREAD_MUTEX_INITIALIZER;
static bool all_over; /* under either */

void tally_opaque_before_fork(void)
{
	pthread_mutex_lock(&compiling);
}

void tally_opaque_after_fork(void)
{
	pthread_mutex_unlock(&compiling);
}

void tally_opaque_leave(void)
{
	pthread_mutex_lock(&compiling);
	pthread_mutex_lock(&running);
	all_over = true;
	pthread_mutex_unlock(&running);
	pthread_mutex_unlock(&compiling);
}

/* The small kernel as the driver's own compiler makes it; NULL: it did not. */
static void *compile(struct trial *t, size_t *size)
{
	void *code = NULL, *copy = NULL;
	CUlinkState link = NULL;

	pthread_mutex_lock(&compiling);
	if (!all_over && did(t, TALLY_DRIVER(cuLinkCreate_v2)(0, NULL, NULL, &link), "compile")) {
		if (did(t,
			TALLY_DRIVER(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX,
						       (void *)(uintptr_t)text, sizeof text,
						       "tally", 0, NULL, NULL),
			"compile a text") &&
		    did(t, TALLY_DRIVER(cuLinkComplete)(link, &code, size), "link") &&
		    (copy = malloc(*size)))
			memcpy(copy, code, *size);
		TALLY_DRIVER(cuLinkDestroy)(link);
	}
	pthread_mutex_unlock(&compiling);
	return copy;
}

/* The same, patched; or NULL. */
static void *patched(struct trial *t, const char *target)
{
	struct tally_cache_request request = {.target = target, .transform = TALLY_CACHE_OPAQUE};
	struct tally_error error = {0};
	void *code = compile(t, &request.size), *image = NULL;
	char path[PATH_MAX];

	request.image = code;
	if (code && tally_cache_get(&request, path, &error))
		image = tally_image_read(path, NULL, &error);
	if (code && !image)
		failed(t, "%s", error.message);
	free(code);
	return image;
}

/* Puts the words into the device, launches, and reads them. */
static bool run(struct trial *t, struct tally_launch launch, uint32_t who)
{
	CUdeviceptr counts = t->words + offsetof(struct words, counts);
	CUdeviceptr gate = t->words + offsetof(struct words, gate);
	void *parameters[] = {&counts, &gate, &who, &launch};

	t->seen->control.word = launch.lo;
	return did(t,
		   TALLY_DRIVER(cuMemcpyHtoDAsync_v2)(t->words, t->seen, sizeof *t->seen,
						      t->stream),
		   "copy") &&
	       did(t,
		   TALLY_DRIVER(cuLaunchKernel)(t->kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0,
						t->stream, parameters, NULL),
		   "launch patched code") &&
	       did(t,
		   TALLY_DRIVER(cuMemcpyDtoHAsync_v2)(t->seen, t->words, sizeof *t->seen,
						      t->stream),
		   "copy") &&
	       did(t, TALLY_DRIVER(cuStreamSynchronize)(t->stream), "run patched code");
}

/* Whether blocks [0, n) have run `times`, and the others once less. */
static bool ran(struct trial *t, uint32_t n, uint32_t times, const char *when)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (t->seen->counts[i] != times - (i >= n))
			return failed(t, "%s block %u of %u ran %u times", when, i, BLOCKS,
				      t->seen->counts[i]);
	return true;
}

static bool try(struct trial *t)
{
	CUdeviceptr control = t->words;
	struct words *w = t->seen;
	struct tally_launch whole = {0}, all = {.control = control, .hi = BLOCKS};
	uint32_t max;

	w->control = (struct tally_control){
		.gate = t->words + offsetof(struct words, gate),
		.broken = t->words + offsetof(struct words, broken),
		.mailbox = t->words + offsetof(struct words, mailbox),
		.sequence = SEQUENCE,
		.hi = BLOCKS,
	};
	if (!run(t, whole, NOBODY) || !ran(t, BLOCKS, 1, "passed through,"))
		return false;
	if (!run(t, all, NOBODY) || !ran(t, BLOCKS, 2, "not stopped,"))
		return false;
	if (w->control.word != BLOCKS || w->mailbox || w->broken)
		return failed(t, "a launch that nobody stopped says that it was");
	w->gate = 1;
	if (!run(t, all, NOBODY) || !ran(t, 0, 3, "behind a closed gate"))
		return false;
	if (w->mailbox != TALLY_MAILBOX(SEQUENCE, 0) || !w->broken)
		return failed(t, "a launch behind a closed gate does not say so");
	w->gate = w->broken = 0;
	w->mailbox = 0;
	if (!run(t, all, STOPS_AT))
		return false;
	max = TALLY_WORD_MAX(w->control.word);
	if (!(w->control.word & TALLY_WORD_STOP) || max <= STOPS_AT || max >= BLOCKS ||
	    w->mailbox != TALLY_MAILBOX(SEQUENCE, max) || !w->broken)
		return failed(t, "a launch that was stopped does not say where");
	if (!ran(t, max, 3, "stopped,"))
		return false;
	w->gate = w->broken = 0;
	w->mailbox = 0;
	all.lo = max;
	return run(t, all, NOBODY) && ran(t, BLOCKS, 3, "started again,");
}

/* With a context that is current: everything that the trial needs, the trial, and away with it. */
static void prepare(struct trial *t, const void *image)
{
	CUmodule module = NULL;

	if (t->seen &&
	    did(t, TALLY_DRIVER(cuModuleLoadData)(&module, image), "load patched code") &&
	    did(t, TALLY_DRIVER(cuModuleGetFunction)(&t->kernel, module, "tally_opaque"),
		"find a patched kernel") &&
	    did(t, TALLY_DRIVER(cuStreamCreateWithPriority)(&t->stream, CU_STREAM_NON_BLOCKING, 0),
		"make a stream") &&
	    did(t, TALLY_DRIVER(cuMemAlloc_v2)(&t->words, sizeof *t->seen), "give memory"))
		try(t);
	else
		failed(t, "out of memory");
	if (t->stream) {
		TALLY_DRIVER(cuStreamSynchronize)(t->stream);
		TALLY_DRIVER(cuStreamDestroy_v2)(t->stream);
	}
	if (t->words)
		TALLY_DRIVER(cuMemFree_v2)(t->words);
	if (module)
		TALLY_DRIVER(cuModuleUnload)(module);
}

/* Whether the program is on its way out: what the driver answers then says nothing. */
static bool leaving(void)
{
	bool over;

	pthread_mutex_lock(&running);
	over = all_over;
	pthread_mutex_unlock(&running);
	return over;
}

static bool works(CUcontext context, const char *target)
{
	static _Atomic bool said;
	struct trial t = {.seen = calloc(1, sizeof *t.seen)};
	struct tally_device *d;
	CUcontext popped;
	CUdevice ordinal;
	void *image = NULL;

	if (!leaving() && did(&t, TALLY_DRIVER(cuCtxPushCurrent_v2)(context), "enter a context")) {
		/* It is a program's work like any other. */
		if (!TALLY_DRIVER(cuCtxGetDevice)(&ordinal) && (d = tally_device_of(ordinal)))
			tally_gate_pass(d);
		image = patched(&t, target);
		pthread_mutex_lock(&running);
		if (image && !all_over)
			prepare(&t, image);
		if (!all_over)
			TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
		pthread_mutex_unlock(&running);
	}
	if (!image)
		failed(&t, "out of memory");
	free(image);
	free(t.seen);
	if (leaving())
		return false;
	if (t.why[0])
		tally_warn_once(&said,
				"machine code cannot be stopped between blocks here, only between "
				"launches: %s",
				t.why);
	return !t.why[0];
}

/* What was found, for each target; devices of a process are of few kinds. */
static struct {
	char target[32];
	bool works;
} found[8];
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tally_opaque_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&compiling, NULL);
	pthread_mutex_init(&running, NULL);
	count = 0;
	all_over = false;
}

bool tally_opaque_works(CUcontext context, const char *target)
{
	bool result;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < count && strcmp(found[i].target, target); i++)
		;
	if (i == count) {
		result = works(context, target);
		if (count < sizeof found / sizeof *found) {
			snprintf(found[count].target, sizeof found[count].target, "%s", target);
			found[count++].works = result;
		}
	} else {
		result = found[i].works;
	}
	pthread_mutex_unlock(&lock);
	return result;
}
