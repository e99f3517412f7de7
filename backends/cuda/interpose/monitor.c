/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for each device that the program uses. In a program with guards it mirrors the board
 * into the gate, sleeping on the board; in others it only looks, now and then, for lulls in which
 * work ended that nobody waited for, and sleeps on a word of its own, so that a program of high
 * priority never wakes itself through the board. Both look after the daemon.
 */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/futex.h"

#define MS	     1000000ll
#define CHECK_NS     (200 * MS) /* the daemon is gone within this time, give or take */
#define LULL_NS	     (1 * MS)
#define LONG_LULL_NS (16 * MS)
#define IDLE_NS	     (1000 * MS) /* after so long without activity the ticks end */

/* What the monitor of a program with guards waits for besides a change of the board, and so how
 * closely it looks. */
enum attention {
	ATTENTION_QUIET,    /* nothing: the program is idle */
	ATTENTION_ACTIVE,   /* the program's work ends */
	ATTENTION_LATE,	    /* a block that met the closed gate may report so only now */
	ATTENTION_DRAINING, /* a stop is under way, and its length is being measured */
};

/* At most so long between two looks, in nanoseconds: asleep, and while spinning. */
static const struct {
	int64_t sleep_ns, spin_ns;
} paces[] = {
	[ATTENTION_QUIET] = {CHECK_NS, LULL_NS},
	[ATTENTION_ACTIVE] = {2 * LULL_NS, LULL_NS},
	[ATTENTION_LATE] = {LULL_NS, LULL_NS},
	[ATTENTION_DRAINING] = {MS / 4, MS / 200},
};

static bool must_yield(struct tally_device *d)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);

	return client && tally_client_must_yield(client);
}

/* How long to wait for a change of the board, at most `ns`: less where whoever holds the program
 * until `until` is idle, and it may go on without one. Ask for `until` before looking whether the
 * program is held: a time that passes in between is then not slept through. */
static int64_t until_freed(uint64_t until, int64_t ns)
{
	uint64_t now = tally_now();

	if (!until)
		return ns;
	if (until <= now)
		return 0;
	return until - now < (uint64_t)ns ? (int64_t)(until - now) : ns;
}

bool tally_gate_closed(struct tally_device *d)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);
	uint32_t epoch = client ? tally_client_epoch(client) : 0;

	if (!client ||
	    atomic_load_explicit(&d->no_yield, memory_order_relaxed) == (uint64_t)epoch + 1)
		return false;
	if (tally_client_held_until(client))
		return true;
	atomic_store_explicit(&d->no_yield, (uint64_t)epoch + 1, memory_order_relaxed);
	return false;
}

void tally_gate_wait(struct tally_device *d)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);
	uint64_t began = 0;

	while (client && atomic_load(&tally_mode) == TALLY_ON) {
		uint32_t epoch = tally_client_epoch(client);
		uint64_t until = tally_client_held_until(client);

		if (!until) {
			atomic_store_explicit(&d->no_yield, (uint64_t)epoch + 1,
					      memory_order_relaxed);
			break;
		}
		tally_burst_disturbed(d);
		began = began ? began : tally_now();
		tally_client_wait(client, epoch, until_freed(until, CHECK_NS));
	}
	if (began) {
		tally_report_count(d->report, TALLY_COUNT_GATE_WAITS, 1);
		tally_report_count(d->report, TALLY_COUNT_GATE_NS, tally_now() - began);
	}
}

/* On a board: a new one knows nothing of us. */
static void joined(struct tally_device *d, struct tally_client *client)
{
	tally_reporting_joined(d, tally_client_given(client));
	/* Before the first launch of a program that comes while somebody records. */
	tally_report_trace_until(d->report, tally_client_trace_until(client));
	atomic_store_explicit(&tally_client_slot(client)->sharing, d->sharing,
			      memory_order_relaxed);
}

static bool join(struct tally_device *d, struct tally_error *error)
{
	struct tally_client *client = atomic_load(&d->client);
	struct tally_client_options options = {.priority = tally_process.config.priority,
					       .name = tally_process.config.name,
					       .device_name = d->name,
					       .attachment = tally_reporting_attachment(d),
					       .grace_ns = tally_process.config.grace_ns};

	if (client) {
		if (!tally_client_reconnect(client, error))
			return false;
		joined(d, client);
		return true;
	}
	__builtin_memcpy(options.device, d->uuid, sizeof options.device);
	client = tally_client_connect(&options, error);
	if (!client)
		return false;
	joined(d, client);
	tally_client_set_active(client, atomic_load(&d->active));
	atomic_store_explicit(&d->client, client, memory_order_release);
	return true;
}

/* Whether the daemon is there; warns once when it goes, and joins again when it is back. */
static void look_after_daemon(struct tally_device *d)
{
	static _Atomic bool said;
	struct tally_client *client = atomic_load(&d->client);
	struct tally_error error = {0};

	if (client && tally_client_check(client))
		return;
	if (client)
		tally_warn_once(&said, "tallyd is gone; the program goes on unscheduled");
	if (join(d, &error))
		atomic_store(&d->no_yield, 0);
}

/* What the monitor remembers between two looks. */
struct watch {
	uint64_t checked_at, busy_at;
	uint64_t announced;  /* over all streams, at the last look */
	int64_t period;	     /* of a program without guards */
	uint64_t guarded_at; /* when launches that can be stopped were last seen in flight */
};

static uint64_t total_announced(const struct tally_device *d)
{
	uint64_t total = 0;

	for (const struct tally_context *c = d->contexts; c; c = c->next)
		for (const struct tally_stream *s = c->streams; s; s = s->next)
			total += atomic_load_explicit(&s->announced, memory_order_relaxed);
	return total;
}

/*
 * A lull is a look at which nothing was announced since the last one. A program that ends its
 * bursts itself is looked at less and less often, one that does not is looked at every millisecond.
 * Device lock held.
 */
static void look_for_lull(struct tally_device *d, struct watch *w, uint64_t now)
{
	uint64_t announced = total_announced(d);

	if (atomic_load(&d->active)) {
		w->busy_at = now;
		if (announced == w->announced) {
			tally_activity_lull(d);
			w->period = LULL_NS;
		}
	} else if (announced != w->announced) {
		w->busy_at = now;
		w->period = w->period * 2 > LONG_LULL_NS ? LONG_LULL_NS : w->period * 2;
	}
	if (announced != w->announced)
		tally_activity_publish(d);
	w->announced = announced;
}

/*
 * On the CPU device a program that has to give way does so with its worker threads too (tally_cpu.h
 * says why), from the first time on: one that never meets a program of higher priority keeps its
 * share of a busy machine.
 */
static void step_back(void)
{
	static _Atomic bool done;

	if (tally_process.cpu_background && !atomic_exchange(&done, true))
		tally_process.cpu_background();
}

/* Mirrors the board into the gate. Device lock held. */
static enum attention mirror(struct tally_device *d)
{
	bool yield = must_yield(d), left;

	if (yield && !d->closed) {
		tally_guard_close(d);
		step_back();
	} else if (!yield && d->closed)
		tally_guard_open(d);
	left = tally_guard_look(d);
	if (tally_guard_draining(d))
		return ATTENTION_DRAINING;
	if (left)
		return ATTENTION_LATE;
	return atomic_load(&d->active) ? ATTENTION_ACTIVE : ATTENTION_QUIET;
}

/* A program without guards: sleeps for the period, or until tally_activity_begin(). */
static void sleep_alone(struct tally_device *d, struct watch *w, uint64_t now)
{
	bool deep = now - w->busy_at > IDLE_NS;
	int64_t ns = deep ? CHECK_NS * 2 : w->period;
	uint32_t tick = atomic_load(&d->tick);

	if (deep)
		atomic_store(&d->asleep, true);
	if (!deep || !atomic_load(&d->active))
		tally_futex_wait(&d->tick, tick, ns, TALLY_FUTEX_PRIVATE);
	atomic_store(&d->asleep, false);
}

/* On a GPU the gate has to close within microseconds: while launches are in flight, and between
 * launches that follow one another, the board is watched without sleeping, for at most a
 * millisecond at a time. */
static bool spin(struct tally_device *d, struct watch *w, struct tally_client *client,
		 uint32_t epoch, int64_t ns)
{
	uint64_t now = tally_now(), until;

	if (atomic_load(&d->in_flight))
		w->guarded_at = now;
	if (d->cpu || now - w->guarded_at > (uint64_t)LULL_NS)
		return false;
	until = now + (uint64_t)ns;
	while (tally_client_epoch(client) == epoch && tally_now() < until)
		__builtin_ia32_pause();
	return true;
}

static void *monitor(void *argument)
{
	struct tally_device *d = argument;
	bool guards = tally_process.config.guards;
	struct watch w = {.period = LULL_NS};
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	/* The driver's own hooks on exported functions are not the program's calls. */
	tally_enter();
	TALLY_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
	for (;;) {
		struct tally_client *client;
		uint64_t now = tally_now(), freed = 0;
		enum attention attention = ATTENTION_QUIET;
		uint32_t epoch = 0;

		if (now - w.checked_at >= (uint64_t)CHECK_NS) {
			look_after_daemon(d);
			w.checked_at = now;
		}
		client = atomic_load(&d->client);
		if (guards && client) {
			epoch = tally_client_epoch(client);
			freed = tally_client_held_until(client);
		}
		tally_fair_take_first(&d->lock);
		/* Checked under the lock: whoever leaves waits for it, and after that the driver
		 * may be gone. */
		if (atomic_load(&tally_mode) != TALLY_ON) {
			tally_unlock(d);
			return NULL;
		}
		if (guards)
			attention = mirror(d);
		look_for_lull(d, &w, now);
		tally_burst_look(d);
		tally_unlock(d);
		if (guards && client &&
		    !spin(d, &w, client, epoch, until_freed(freed, paces[attention].spin_ns)))
			tally_client_wait(client, epoch,
					  until_freed(freed, paces[attention].sleep_ns));
		else if (!guards || !client)
			sleep_alone(d, &w, now);
	}
}

bool tally_monitor_start(struct tally_device *d)
{
	static _Atomic bool said;
	struct tally_error error = {0};

	if (!join(d, &error))
		tally_warn_once(&said, "%s; the program runs unscheduled until tallyd is there",
				error.message);
	return tally_thread_start(monitor, d, 512 * 1024);
}
