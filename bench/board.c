/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the board costs: a high-priority program's set_active(), a best-effort program's
 * must_yield(), how fast a sleeper wakes, and how fast a killed program's claim is gone. One run,
 * medians; a call's time is printed beside as a multiple of a plain atomic exchange's.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/report.h"
#include "sched/client.h"
#include "sched/daemon.h"
#include "sched/listener.h"

#define ROUNDS 41
#define CALLS  20000
#define WAKES  2000
#define KILLS  101

static char folder[] = "/tmp/tally-bench-XXXXXX";
static char socket_path[64];
static double exchange_ns;

static void check(bool ok, const char *what)
{
	if (!ok)
		bench_fail("%s", what);
}

/* Nanoseconds of one of CALLS calls of `call(argument, i)`, each round. */
static void time_calls(void (*call)(void *argument, unsigned i), void *argument,
		       double values[ROUNDS])
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t start = tally_board_now();
		for (unsigned i = 0; i < CALLS; i++)
			call(argument, i);
		values[round] = (double)(tally_board_now() - start) / CALLS;
	}
}

static void show(const char *what, const double *ns, size_t count)
{
	bench_info(what, "ns", ns, count, "%.2fx of an exchange",
		   bench_median(ns, count) / exchange_ns);
}

static void show_calls(const char *what, void (*call)(void *argument, unsigned i), void *argument)
{
	double values[ROUNDS];

	time_calls(call, argument, values);
	show(what, values, ROUNDS);
}

static void call_exchange(void *argument, unsigned i)
{
	atomic_exchange((_Atomic uint32_t *)argument, i);
}

static void call_set_active(void *argument, unsigned i)
{
	tally_client_set_active(argument, i % 2 == 0);
}

static void call_set_same(void *argument, unsigned i)
{
	tally_client_set_active(argument, false);
}

static void call_must_yield(void *argument, unsigned i)
{
	tally_client_must_yield(argument);
}

static struct tally_client *join(int priority)
{
	struct tally_client_options options = {
		.priority = priority, .name = "bench", .socket = socket_path};
	struct tally_error error = {0};
	struct tally_client *client = tally_client_connect(&options, &error);

	check(client, error.message);
	return client;
}

static pid_t start_daemon(void)
{
	struct tally_daemon_options options = {.socket_path = socket_path,
					       .policy = &tally_policy_strict,
					       .quantum_ns = 20000000,
					       .idle_ns = UINT64_MAX,
					       .stop_fd = -1};
	struct tally_error error = {0};

	check(tally_listener_claim(socket_path, &options.lock, &error) == TALLY_CLAIM_OURS,
	      "cannot lock");
	struct tally_daemon *daemon = tally_daemon_open(&options, &error);
	check(daemon, error.message);
	pid_t pid = fork();
	check(pid >= 0, "cannot fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tally_daemon_serve(daemon, &error);
		_exit(0);
	}
	return pid;
}

/* A process that joined and then runs `body` until it is killed. */
static pid_t start_member(int priority, void (*body)(struct tally_client *, void *), void *argument)
{
	int ready[2];
	char byte;

	check(!pipe(ready), "cannot make a pipe");
	pid_t pid = fork();
	check(pid >= 0, "cannot fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct tally_client *client = join(priority);
		check(write(ready[1], "", 1) == 1, "cannot write");
		for (;;)
			body(client, argument);
	}
	check(read(ready[0], &byte, 1) == 1, "a member did not start");
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_member(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void body_sleep(struct tally_client *client, void *argument)
{
	tally_client_wait(client, tally_client_epoch(client), -1);
}

static void body_spin(struct tally_client *client, void *argument)
{
	tally_client_must_yield(client);
}

static void body_active(struct tally_client *client, void *argument)
{
	tally_client_set_active(client, true);
	pause();
}

/* A program that is woken up, and the one that measures. */
struct report {
	_Atomic uint64_t seen_ns;  /* when it saw that it has to give way */
	_Atomic uint32_t released; /* it has seen that it need not any more */
};

/* Sleeps until it has to give way, and says when it saw that. */
static void body_report(struct tally_client *client, void *argument)
{
	struct report *report = argument;
	uint32_t seen = tally_client_epoch(client);

	if (!tally_client_must_yield(client)) {
		atomic_store(&report->released, 1);
		tally_client_wait(client, seen, -1);
		return;
	}
	atomic_store(&report->seen_ns, tally_board_now());
	while (tally_client_must_yield(client))
		tally_client_wait(client, tally_client_epoch(client), 1000000);
}

static void bench_wake(struct tally_client *high)
{
	static double call[WAKES], wake[WAKES];
	struct report *report =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(report != MAP_FAILED, "cannot map memory");
	pid_t pid = start_member(0, body_report, report);
	for (unsigned i = 0; i < WAKES; i++) {
		atomic_store(&report->seen_ns, 0);
		do
			usleep(300); /* asleep by now */
		while (i && !atomic_load(&report->released));
		uint64_t start = tally_board_now();
		tally_client_set_active(high, true);
		call[i] = (double)(tally_board_now() - start);
		while (!atomic_load(&report->seen_ns))
			;
		wake[i] = (double)(atomic_load(&report->seen_ns) - start) / 1e3;
		atomic_store(&report->released, 0);
		tally_client_set_active(high, false);
	}
	end_member(pid);
	show("set_active(true) that wakes a sleeper", call, WAKES);
	bench_info("until the sleeper knows", "us", wake, WAKES, "in another process; p99 %.1f us",
		   bench_quantile(wake, WAKES, 0.99));
}

static void bench_kill(struct tally_client *low)
{
	double ms[KILLS];
	char beside[64];

	for (unsigned i = 0; i < KILLS; i++) {
		pid_t pid = start_member(TALLY_PRIORITY_HIGH, body_active, NULL);
		while (!tally_client_must_yield(low))
			usleep(100);
		uint64_t start = tally_board_now();
		kill(pid, SIGKILL);
		while (tally_client_must_yield(low))
			usleep(20);
		ms[i] = (double)(tally_board_now() - start) / 1e6;
		waitpid(pid, NULL, 0);
	}
	/* What the other programs are promised: they go on within a second. */
	snprintf(beside, sizeof beside, "the longest; median %.2f ms", bench_median(ms, KILLS));
	bench_report(&(struct bench_figure){.name = "until a killed program holds nobody any more",
					    .unit = "ms",
					    .value = bench_quantile(ms, KILLS, 1),
					    .bound = 1000,
					    .samples = ms,
					    .count = KILLS,
					    .beside = beside});
}

static void bench_calls(struct tally_client *high, struct tally_client *low)
{
	struct tally_client *others[TALLY_BOARD_SLOTS - 2];
	unsigned count = 0;
	char text[64];

	show_calls("set_active() that changes nothing", call_set_same, high);
	show_calls("set_active() true and false: nobody sleeps", call_set_active, high);
	pid_t pid = start_member(0, body_spin, NULL);
	show_calls("set_active() while another polls the board", call_set_active, high);
	end_member(pid);
	pid = start_member(0, body_sleep, NULL);
	show_calls("set_active() while another sleeps each time", call_set_active, high);
	end_member(pid);
	usleep(50000); /* the daemon takes the dead ones' slots back */
	for (unsigned target = 2; target <= TALLY_BOARD_SLOTS; target *= 8) {
		for (; count < target - 2; count++)
			others[count] = join(0);
		snprintf(text, sizeof text, "must_yield() with %u programs on the board", target);
		show_calls(text, call_must_yield, low);
	}
	while (count)
		tally_client_disconnect(others[--count]);
}

int main(void)
{
	_Alignas(64) _Atomic uint32_t word = 0;
	double exchange[ROUNDS];
	char path[128];

	bench_begin("board", "what the board costs the programs that share a device");
	check(mkdtemp(folder), "cannot make a folder");
	snprintf(socket_path, sizeof socket_path, "%s/d.sock", folder);
	pid_t daemon = start_daemon();
	struct tally_client *high = join(TALLY_PRIORITY_HIGH), *low = join(0);

	time_calls(call_exchange, &word, exchange);
	exchange_ns = bench_median(exchange, ROUNDS);
	bench_info("an atomic exchange", "ns", exchange, ROUNDS, "for comparison");
	bench_calls(high, low);
	bench_wake(high);
	tally_client_disconnect(high);
	bench_kill(low);
	tally_client_disconnect(low);

	end_member(daemon);
	unlink(socket_path);
	snprintf(path, sizeof path, "%s.lock", socket_path);
	unlink(path);
	rmdir(folder);
	return 0;
}
