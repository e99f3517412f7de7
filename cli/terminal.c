/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: taking it, giving it back whatever happens; see terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"

#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l" /* other screen, no cursor, no wrapping */
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l"

static struct termios before;
static volatile sig_atomic_t taken, resized;

/* What ends a program by default, and what is our own fault: give the terminal back first. */
static const int ends[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1,
			   SIGUSR2, SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,	SIGABRT, SIGXCPU};

/* Async-signal-safe; a terminal that is gone is no error. */
static void put(const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t n = write(STDOUT_FILENO, text, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

/* Async-signal-safe. */
static void take(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* From a background job this waits until we are in front again (SIGTTOU). */
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	put(ENTER);
	taken = 1;
	resized = 1;
}

/* Async-signal-safe. */
void tally_terminal_close(void)
{
	int saved = errno;

	if (!taken)
		return;
	taken = 0;
	put(LEAVE);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	errno = saved;
}

/* The handler was reset on entry: the signal does what it does to everybody, once we return. */
static void end(int number)
{
	tally_terminal_close();
	raise(number);
}

static void stop(int number)
{
	int saved = errno;
	bool was = taken;

	tally_terminal_close();
	raise(SIGSTOP);
	/* Continued. */
	if (was)
		take();
	errno = saved;
}

static void resize(int number)
{
	resized = 1;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct sigaction old;

	/* What whoever started us wants ignored (nohup) stays ignored. */
	if (sigaction(number, NULL, &old) || old.sa_handler == SIG_IGN)
		return;
	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

bool tally_terminal_open(struct tally_error *error)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return tally_fail(error, "this is no terminal: use --batch");
	if (!term || !*term || !strcmp(term, "dumb"))
		return tally_fail(error,
				  "the terminal cannot move its cursor (TERM is \"%s\"): use "
				  "--batch",
				  term ? term : "");
	atexit(tally_terminal_close);
	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++)
		handle(ends[i], end, (int)SA_RESETHAND);
	handle(SIGTSTP, stop, 0);
	handle(SIGWINCH, resize, 0);
	take();
	return true;
}

void tally_terminal_size(unsigned *columns, unsigned *rows)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

static const struct {
	const char *sequence; /* behind ESC */
	enum tally_key key;
} keys[] = {
	{"[A", TALLY_KEY_UP},	{"OA", TALLY_KEY_UP},	    {"[B", TALLY_KEY_DOWN},
	{"OB", TALLY_KEY_DOWN}, {"[5~", TALLY_KEY_PAGE_UP}, {"[6~", TALLY_KEY_PAGE_DOWN},
	{"[H", TALLY_KEY_HOME}, {"OH", TALLY_KEY_HOME},	    {"[1~", TALLY_KEY_HOME},
	{"[F", TALLY_KEY_END},	{"OF", TALLY_KEY_END},	    {"[4~", TALLY_KEY_END},
};

/* What the terminal has sent and nobody has looked at. */
static char pending[64];
static size_t pending_size;

static int consume(size_t size, int key)
{
	pending_size -= size;
	memmove(pending, pending + size, pending_size);
	return key;
}

/* The key at the front of what is pending; a sequence comes in one piece as good as always, so a
 * lone ESC is the Escape key. */
static int decode(void)
{
	size_t end = 2;

	if (pending[0] != 0x1b || pending_size == 1)
		return consume(1, (unsigned char)pending[0]);
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
		size_t length = strlen(keys[i].sequence);
		if (pending_size > length && !memcmp(pending + 1, keys[i].sequence, length))
			return consume(length + 1, keys[i].key);
	}
	if (pending[1] != '[' && pending[1] != 'O')
		return consume(1, 0x1b);
	/* A sequence that we do not know, parameters and all. */
	while (end < pending_size && (pending[end] < 0x40 || pending[end] > 0x7e))
		end++;
	return consume(end < pending_size ? end + 1 : end, TALLY_KEY_OTHER);
}

int tally_terminal_key(uint64_t until_ns)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t window, old;

	if (pending_size)
		return decode();
	/* A resize between the look and the wait ends the wait. */
	sigemptyset(&window);
	sigaddset(&window, SIGWINCH);
	sigaddset(&window, SIGTSTP);
	for (;;) {
		uint64_t now = tally_now();
		uint64_t left = now < until_ns ? until_ns - now : 0;
		struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};

		sigprocmask(SIG_BLOCK, &window, &old);
		int ready = resized ? -1 : ppoll(&input, 1, &wait, &old);
		sigprocmask(SIG_SETMASK, &old, NULL);
		if (resized) {
			resized = 0;
			return TALLY_KEY_RESIZED;
		}
		if (!ready)
			return TALLY_KEY_NONE;
		if (ready < 0)
			continue;
		ssize_t n = read(STDIN_FILENO, pending, sizeof pending);
		if (n <= 0)
			return TALLY_KEY_GONE;
		pending_size = (size_t)n;
		return decode();
	}
}

bool tally_terminal_write(const struct tally_buffer *out)
{
	size_t done = 0;

	while (done < out->size) {
		ssize_t n = write(STDOUT_FILENO, out->data + done, out->size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

bool tally_terminal_colours(void)
{
	const char *no = getenv("NO_COLOR");

	return !no || !*no;
}

bool tally_terminal_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}
