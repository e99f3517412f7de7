/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads, and how the blocks of a job are run.
 *
 * Blocks are taken in ranges, in increasing order. The length of a range follows what its blocks
 * cost, so that a range takes a few microseconds: very short blocks go by in dozens, long ones
 * singly. Between ranges a more urgent job gets its turn.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "backends/cpu/driver/engine.h"
#include "base/clock.h"
#include "base/futex.h"

#define RANGE_SHORT_NS 2000 /* a range that took less: the next is twice as long */
#define RANGE_LONG_NS  8000 /* one that took more: half as long */
#define RANGE_MOST     32   /* blocks: the next ones may be long, and are promised to run */
#define SPIN_NS	       5000
#define STACK_BYTES    (8u << 20)
#define MXCSR_DEFAULT  0x1f80u

static void update_ready_level(void)
{
	int level = LEVELS - 1;

	while (level >= 0 && !engine.ready[level])
		level--;
	atomic_store(&engine.ready_level, level);
}

void engine_want_worker(void)
{
	atomic_fetch_add(&engine.pulse, 1);
	if (!atomic_load(&engine.spinner) && (engine.sleepers || engine.threads < engine.workers))
		engine.wake_workers++;
}

void job_ready(struct operation *operation)
{
	struct job *job = &operation->job;

	job->list_next = NULL;
	job->list_previous = engine.ready_last[job->level];
	if (job->list_previous)
		job->list_previous->job.list_next = operation;
	else
		engine.ready[job->level] = operation;
	engine.ready_last[job->level] = operation;
	job->listed = true;
	if (job->level > atomic_load(&engine.ready_level))
		atomic_store(&engine.ready_level, job->level);
	engine_want_worker();
}

static void job_unlist(struct operation *operation)
{
	struct job *job = &operation->job;

	if (!job->listed)
		return;
	job->listed = false;
	if (job->list_previous)
		job->list_previous->job.list_next = job->list_next;
	else
		engine.ready[job->level] = job->list_next;
	if (job->list_next)
		job->list_next->job.list_previous = job->list_previous;
	else
		engine.ready_last[job->level] = job->list_previous;
	update_ready_level();
}

bool slot_take(unsigned *slot)
{
	if (!engine.free_slot_count)
		return false;
	*slot = engine.free_slots[--engine.free_slot_count];
	return true;
}

void slot_give(unsigned slot)
{
	engine.free_slots[engine.free_slot_count++] = slot;
}

/* Runs [first, end). */
static enum tally_cpu_fault run_range(struct tally_cpu_worker *worker, struct operation *operation,
				      uint64_t first, uint64_t end)
{
	enum tally_cpu_fault fault = TALLY_CPU_OK;

	for (uint64_t block = first; block < end && !fault; block++)
		fault = operation->class->run_block(worker, operation, block);
	return fault;
}

static enum tally_cpu_fault run_ranges(struct tally_cpu_worker *worker, struct operation *operation)
{
	const struct operation_class *class = operation->class;
	struct job *job = &operation->job;
	uint64_t length = 1;
	uint64_t start = job->total > 1 ? tally_now() : 0;

	for (;;) {
		if (class->rest_is_idle && class->rest_is_idle(operation, atomic_load(&job->next)))
			atomic_store(&job->next, job->total);
		uint64_t first = atomic_fetch_add(&job->next, length);
		if (first >= job->total)
			return TALLY_CPU_OK;
		uint64_t left = job->total - first;
		enum tally_cpu_fault fault = run_range(worker, operation, first,
						       first + (length < left ? length : left));
		if (fault)
			return fault;
		if (length >= left)
			return TALLY_CPU_OK;
		if (atomic_load_explicit(&engine.ready_level, memory_order_relaxed) > job->level)
			return TALLY_CPU_OK;
		uint64_t now = tally_now();
		if (now - start < RANGE_SHORT_NS && length < RANGE_MOST)
			length *= 2;
		else if (now - start > RANGE_LONG_NS && length > 1)
			length /= 2;
		start = now;
	}
}

void job_run(struct operation *operation, unsigned slot)
{
	struct job *job = &operation->job;
	enum tally_cpu_fault fault = TALLY_CPU_MEMORY;

	job->workers++;
	engine_unlock();
	if (!engine.slots[slot])
		engine.slots[slot] = tally_cpu_worker_create(slot);
	if (engine.slots[slot]) {
		/* A thread of the application may flush denormals or round otherwise; a new
		 * thread has inherited it from such a one. */
		unsigned mxcsr = __builtin_ia32_stmxcsr();
		__builtin_ia32_ldmxcsr(MXCSR_DEFAULT);
		fault = run_ranges(engine.slots[slot], operation);
		__builtin_ia32_ldmxcsr(mxcsr);
	}
	engine_lock();
	if (fault) {
		if (fault != TALLY_CPU_ELSEWHERE)
			context_fail(operation->stream->context, fault);
		atomic_store(&job->next, job->total);
	}
	job->workers--;
	if (atomic_load(&job->next) < job->total)
		return;
	job_unlist(operation);
	if (!job->workers) {
		operation_finished(operation);
		engine_look();
	}
}

/* The most urgent job with blocks that nobody has taken. */
static struct operation *pick(void)
{
	int level;

	while ((level = atomic_load(&engine.ready_level)) >= 0) {
		struct operation *operation = engine.ready[level];
		if (atomic_load(&operation->job.next) < operation->job.total)
			return operation;
		job_unlist(operation);
	}
	return NULL;
}

/* Waits for the pulse to change; one of the idle threads looks for some microseconds first, which
 * saves both sides a system call when launches come one after another. */
static void idle(uint32_t pulse, bool spin)
{
	if (spin) {
		uint64_t end = tally_now() + SPIN_NS;
		while (atomic_load(&engine.pulse) == pulse && tally_now() < end)
			__builtin_ia32_pause();
		/* Whoever saw the spinner has changed the pulse before: the wait returns then. */
		atomic_store(&engine.spinner, false);
	}
	tally_futex_wait(&engine.pulse, pulse, -1, TALLY_FUTEX_PRIVATE);
}

/* The calling worker follows the process into the background. Failure leaves it where it was. */
static void step_back(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_IDLE, &none);
}

static void *worker_main(void *argument)
{
	struct operation *operation;
	bool background = false;
	unsigned slot;

	(void)argument;
	engine_lock();
	for (;;) {
		if (!background && atomic_load(&engine.background)) {
			background = true;
			step_back();
		}
		operation = pick();
		if (operation && slot_take(&slot)) {
			const struct job *job = &operation->job;
			if (job->total - atomic_load(&job->next) > 1 || job->list_next ||
			    job->list_previous)
				engine_want_worker();
			job_run(operation, slot);
			slot_give(slot);
			continue;
		}
		uint32_t pulse = atomic_load(&engine.pulse);
		bool spin = !atomic_exchange(&engine.spinner, true);
		engine.sleepers++;
		engine_unlock();
		idle(pulse, spin);
		engine_lock();
		engine.sleepers--;
	}
	return NULL;
}

bool engine_thread(void *(*main)(void *), const char *name)
{
	/* Signals are for the application's threads, but those that an instruction raises cannot
	 * be held back: blocked, they would kill the process. */
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t set, old;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		sigdelset(&set, own[i]);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &set, &old);
	bool ok = pthread_create(&thread, &attributes, main, NULL) == 0;
	if (ok)
		pthread_setname_np(thread, name);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return ok;
}

/* Without any thread the blocks are run by whoever waits for them. */
void worker_start_thread(void)
{
	if (engine_thread(worker_main, "tally-cpu"))
		return;
	engine_lock();
	engine.threads--;
	engine_unlock();
}
