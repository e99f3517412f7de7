/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that a kernel causes (a wild pointer, mostly) end the launch instead of the process. The
 * handlers are the process's: in a thread that is not inside a kernel they hand the signal on to
 * whoever had it before us, as if we were not there.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/executor/internal.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static struct sigaction earlier[SIGNAL_COUNT];

/* The worker whose kernel runs on this thread. Initial-exec: the first access to another kind of
 * thread-local variable of a loaded library may allocate, which a signal handler must not. */
static _Thread_local struct tally_cpu_worker *running __attribute__((tls_model("initial-exec")));
static _Thread_local bool has_stack __attribute__((tls_model("initial-exec")));

static void hand_on(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *old = NULL;

	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		if (signals[i] == signal)
			old = &earlier[i];
	if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		sigset_t mask = old->sa_mask, before;

		if (!(old->sa_flags & SA_NODEFER))
			sigaddset(&mask, signal);
		pthread_sigmask(SIG_BLOCK, &mask, &before);
		if (old->sa_flags & SA_SIGINFO)
			old->sa_sigaction(signal, info, context);
		else
			old->sa_handler(signal);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	} else {
		/* The default: put it back, return, and the instruction faults again (or, for a
		 * signal that somebody sent, raise it again). */
		struct sigaction standard = {.sa_handler = old->sa_handler};

		if (info->si_code > 0)
			standard.sa_handler = SIG_DFL;
		sigaction(signal, &standard, NULL);
		if (info->si_code <= 0)
			raise(signal);
	}
}

/* By hand: a signal handler may not call snprintf. */
static void describe(char *message, const void *address)
{
	static const char text[] = "a kernel used an illegal address or instruction: 0x";
	uint64_t value = (uint64_t)(uintptr_t)address;

	memcpy(message, text, sizeof text);
	for (int i = 0; i < 16; i++)
		message[sizeof text - 1 + i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
	message[sizeof text - 1 + 16] = '\0';
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct tally_cpu_worker *worker = running;

	/* si_code <= 0: sent by kill() and the like, not caused by the kernel. */
	if (!worker || !worker->inside || info->si_code <= 0) {
		hand_on(signal, info, context);
		return;
	}
	worker->inside = 0;
	describe(worker->message, info->si_addr);
	siglongjmp(worker->escape, TALLY_CPU_ILLEGAL);
}

static void install_handlers(void)
{
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		sigaction(signals[i], &action, &earlier[i]);
}

static pthread_key_t stack_key;

static void free_stack(void *stack)
{
	stack_t off = {.ss_flags = SS_DISABLE};

	sigaltstack(&off, NULL);
	munmap(stack, (size_t)SIGSTKSZ + 65536);
}

/* Endless recursion in a kernel needs another stack for its handler. A thread that has one keeps
 * it. */
static void give_stack(void)
{
	size_t size = (size_t)SIGSTKSZ + 65536;
	stack_t stack = {0};

	has_stack = true;
	if (sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_DISABLE))
		return;
	stack.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return;
	stack.ss_size = size;
	stack.ss_flags = 0;
	if (sigaltstack(&stack, NULL) || pthread_setspecific(stack_key, stack.ss_sp))
		munmap(stack.ss_sp, size);
}

static void install_once(void)
{
	if (!pthread_key_create(&stack_key, free_stack))
		install_handlers();
}

void tally_cpu_faults_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (has_stack)
		return;
	pthread_once(&once, install_once);
	give_stack();
}

void tally_cpu_faults_enter(struct tally_cpu_worker *worker)
{
	running = worker;
	worker->inside = 1;
}

void tally_cpu_faults_leave(void)
{
	if (running)
		running->inside = 0;
	running = NULL;
}
