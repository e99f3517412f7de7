/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower never ends in a backtrace: crashes, LLVM's fatal errors and time limits as one line.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <llvm-c/ErrorHandling.h>

#include "backends/program.h"
#include "cli/lower.h"

/*
 * What ends a C++ program that finds no memory, or throws, prints lines of its own. There are hooks
 * for all of it, but none of them in LLVM's C interface; these are their C++ names.
 */
void install_bad_alloc_handler(void (*)(void *, const char *, bool), void *) __asm__(
	"_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
void install_new_handler(void) __asm__("_ZN4llvm33install_out_of_memory_new_handlerEv");
void (*set_terminate(void (*)(void)))(void) __asm__("_ZSt13set_terminatePFvvE");

/* What nothing needs: 1 MiB of PTX takes some 50 MiB. */
#define MEMORY_FLOOR_MIB 4096
#define MEMORY_OF_INPUT	 256

static const char *input_name = "";
static const char *volatile step = "starting";
static unsigned time_limit;
static char memory_text[64]; /* the limit of memory, as a message ends with it */
/* LLVM's readers trust their input: a crash in them is the input's fault, not ours. */
static volatile sig_atomic_t reading;

void lower_step(const char *what)
{
	step = what;
	reading = !strcmp(what, LOWER_STEP_READ);
}

/* Only what a signal handler may do: puts a line together and writes it. */
static void say(const char *const *parts)
{
	char line[1024];
	size_t used = 0;

	for (; *parts; parts++) {
		size_t length = strlen(*parts);

		if (length > sizeof line - 1 - used)
			length = sizeof line - 1 - used;
		memcpy(line + used, *parts, length);
		used += length;
	}
	/* The input's name may hold anything; this stays one line. */
	for (size_t k = 0; k < used; k++)
		if ((unsigned char)line[k] < ' ' || line[k] == 127)
			line[k] = ' ';
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		_exit(1);
}

static const char *signal_text(int number)
{
	switch (number) {
	case SIGSEGV:
	case SIGBUS:
		return "LLVM touched memory that is not there";
	case SIGABRT:
		return "LLVM gave up";
	default:
		return "LLVM executed what it must not";
	}
}

static void end_child(void)
{
	pid_t child = tally_program_running();

	if (child > 0)
		kill(child, SIGKILL);
}

static void on_crash(int number)
{
	const char *const parts[] = {input_name,
				     ": error: crash while ",
				     step,
				     " (",
				     signal_text(number),
				     reading ? "): damaged input?" : "): please report this input",
				     NULL};

	end_child();
	say(parts);
	_exit(1);
}

static void on_alarm(int number)
{
	char digits[16];
	unsigned value = time_limit, used = sizeof digits;
	const char *parts[] = {input_name, ": error: still ", step, " after ",
			       NULL,	   " s (--timeout)",  NULL};

	digits[--used] = '\0';
	do
		digits[--used] = (char)('0' + value % 10);
	while (value /= 10);
	parts[4] = digits + used;
	end_child();
	say(parts);
	_exit(1);
}

static void on_fatal_error(const char *reason)
{
	char first[512];
	const char *const parts[] = {input_name, ": error: LLVM: ", first, NULL};

	snprintf(first, sizeof first, "%s", reason);
	first[strcspn(first, "\n")] = '\0';
	end_child();
	say(parts);
	_exit(1);
}

static void on_no_memory(void *data, const char *reason, bool crash)
{
	const char *const parts[] = {input_name,  ": error: out of memory while ",
				     step,	  reading ? " (damaged input?)" : "",
				     memory_text, NULL};

	(void)data, (void)reason, (void)crash;
	end_child();
	say(parts);
	_exit(1);
}

void lower_limit_memory(unsigned mib, size_t size)
{
	struct rlimit limit;

	if (mib == LOWER_MEMORY_BY_SIZE)
		mib = MEMORY_FLOOR_MIB + (unsigned)(size / (1 << 20) * MEMORY_OF_INPUT);
	/* Sanitizers map terabytes to keep books in. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	mib = 0;
#endif
	if (!mib || getrlimit(RLIMIT_DATA, &limit))
		return;
	snprintf(memory_text, sizeof memory_text, ": the limit is %u MiB (--memory)", mib);
	if ((rlim_t)mib << 20 < limit.rlim_cur)
		limit.rlim_cur = (rlim_t)mib << 20;
	setrlimit(RLIMIT_DATA, &limit);
}

void lower_crash_install(const char *input, unsigned timeout)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
	/* A stack overflow leaves no room for a handler on the same stack. */
	stack_t stack = {.ss_size = 64 * 1024};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_RESETHAND};
	const struct rlimit no_core = {0, 0};

	input_name = strcmp(input, "-") ? input : "tally-lower";
	time_limit = timeout;
	stack.ss_sp = malloc(stack.ss_size);
	if (stack.ss_sp)
		sigaltstack(&stack, NULL);
	for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
		sigaction(signals[k], &action, NULL);
	/* A file that grows too large is an error of write(), not the end. */
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_CORE, &no_core);
	install_bad_alloc_handler(on_no_memory, NULL);
	install_new_handler();
	set_terminate(abort);
	LLVMInstallFatalErrorHandler(on_fatal_error);
	if (timeout) {
		action.sa_handler = on_alarm;
		sigaction(SIGALRM, &action, NULL);
		alarm(timeout);
	}
}
