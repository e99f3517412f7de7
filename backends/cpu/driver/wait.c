/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: threads of the application for a point, the poll thread for values in memory, and the
 * host thread for functions of the application. */
#include <signal.h>

#include "backends/cpu/driver/engine.h"
#include "base/clock.h"
#include "base/futex.h"

#define SPIN_NS	      3000
#define POLL_FIRST_NS 20000
#define POLL_LAST_NS  500000
#define FOLLOWED      16 /* dependencies, from stream to stream */

/* The job that keeps `point` from being reached, if it is one that this thread may help with: the
 * head of its stream, or what that waits for, and so on. */
static struct operation *helpable(struct point point)
{
	for (int i = 0; i < FOLLOWED && !point_reached(point); i++) {
		struct operation *head = point.stream->head;
		if (!head)
			return NULL;
		if (!point.stream->running && head->dependency_count) {
			point = head->dependencies[head->dependency_count - 1];
			continue;
		}
		const struct job *job = &head->job;
		return job->listed && job->small_stack &&
				       job->level >= atomic_load(&engine.ready_level) &&
				       atomic_load(&job->next) < job->total
			       ? head
			       : NULL;
	}
	return NULL;
}

/* A fault of a kernel comes as a signal: on a thread that blocks it the process would die. Asked
 * once per thread. */
static bool may_help(void)
{
	static _Thread_local enum { UNKNOWN, YES, NO } answer;
	sigset_t mask;

	if (answer == UNKNOWN) {
		bool blocked = pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0 ||
			       sigismember(&mask, SIGSEGV) || sigismember(&mask, SIGBUS) ||
			       sigismember(&mask, SIGFPE) || sigismember(&mask, SIGILL);
		answer = blocked ? NO : YES;
	}
	return answer == YES;
}

/* In the background only the workers are SCHED_IDLE: others do not run blocks, unless no worker
 * could be made. */
static bool engine_may_help(void)
{
	return !atomic_load(&engine.background) || engine.threads == 0;
}

static bool spin(struct point point)
{
	uint64_t end = tally_now() + SPIN_NS;

	while (!point_reached(point)) {
		if (tally_now() > end)
			return false;
		__builtin_ia32_pause();
	}
	return true;
}

/*
 * The waiting thread has a CPU and nothing to do, and to wake a worker costs more than a small
 * launch: it runs blocks of what it waits for itself, in the place of a worker.
 */
void engine_wait(struct point point)
{
	while (!point_reached(point)) {
		struct stream *stream = point.stream;
		struct operation *operation;
		unsigned slot;

		engine_lock();
		operation = engine_may_help() && may_help() ? helpable(point) : NULL;
		if (operation && slot_take(&slot)) {
			job_run(operation, slot);
			slot_give(slot);
			if (atomic_load(&engine.ready_level) >= 0)
				engine_want_worker();
			engine_unlock();
			continue;
		}
		engine_unlock();
		if (spin(point))
			return;
		engine_lock();
		uint32_t seen = (uint32_t)atomic_load(&stream->completed);
		if (point_reached(point)) {
			engine_unlock();
			return;
		}
		if (!stream->sleepers++ || stream->wake_at > point.sequence)
			stream->wake_at = point.sequence;
		engine_unlock();
		tally_futex_wait((_Atomic uint32_t *)&stream->completed, seen, -1,
				 TALLY_FUTEX_PRIVATE);
		engine_lock();
		stream->sleepers--;
		engine_unlock();
	}
}

static void *poll_main(void *argument)
{
	int64_t pause = POLL_FIRST_NS;
	uint32_t pulse = 0;

	(void)argument;
	for (;;) {
		engine_lock();
		uint32_t now = atomic_load(&engine.poll_pulse);
		const struct operation *first = engine.waiting;
		engine_recheck_waits();
		engine_look();
		bool moved = engine.waiting != first || now != pulse;
		bool empty = !engine.waiting;
		engine_unlock();
		pulse = now;
		if (empty) {
			tally_futex_wait(&engine.poll_pulse, now, -1, TALLY_FUTEX_PRIVATE);
			continue;
		}
		pause = moved ? POLL_FIRST_NS : pause < POLL_LAST_NS ? 2 * pause : POLL_LAST_NS;
		tally_futex_wait(&engine.poll_pulse, now, pause, TALLY_FUTEX_PRIVATE);
	}
	return NULL;
}

static void *host_main(void *argument)
{
	(void)argument;
	engine_lock();
	for (;;) {
		struct operation *operation = engine.host;
		if (!operation) {
			uint32_t pulse = atomic_load(&engine.host_pulse);
			engine_unlock();
			tally_futex_wait(&engine.host_pulse, pulse, -1, TALLY_FUTEX_PRIVATE);
			engine_lock();
			continue;
		}
		engine.host = operation->next_waiter;
		operation->next_waiter = NULL;
		engine_unlock();
		operation->class->run(operation);
		engine_lock();
		operation_finished(operation);
		engine_look();
	}
	return NULL;
}

void poll_start_thread(void)
{
	if (engine_thread(poll_main, "tally-poll"))
		return;
	engine_lock();
	engine.poll_thread = false;
	engine_unlock();
}

void host_start_thread(void)
{
	if (engine_thread(host_main, "tally-host"))
		return;
	engine_lock();
	engine.host_thread = false;
	engine_unlock();
}
