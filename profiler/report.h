/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: what one program has to say about its kernels on one device. Shared memory (a memfd
 * of sealed size) that the program writes without locks and hands to tallyd, so that others read it
 * while the program lives, and after it died, however it died. docs/profiler.md says what always
 * holds.
 *
 * The writer's side is part of the preload library: libc only, no call fails in a way that its
 * caller would have to care about, nothing blocks.
 */
#ifndef TALLY_PROFILER_REPORT_H
#define TALLY_PROFILER_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/row.h"

#define TALLY_REPORT_MAGIC   0x70655254u /* "TRep" */
#define TALLY_REPORT_VERSION 2		 /* of this layout */
#define TALLY_REPORT_KIND    1		 /* among what programs leave with tallyd */
#define TALLY_REPORT_ROWS    4096
#define TALLY_REPORT_INDEX   8192  /* places of the table that finds rows */
#define TALLY_REPORT_TRACE   65536 /* records of the ring */

/* X(NAME, word, text): counters of the program that the board's slot does not have. */
#define TALLY_COUNTERS(X)                                                                          \
	X(GATE_WAITS, "gate_waits", "launches that waited because the gate was closed")            \
	X(GATE_NS, "gate_ns", "time that the program's threads waited so, ns")                     \
	X(DEPTH_WAITS, "depth_waits", "launches that waited because enough was queued ahead")      \
	X(DEPTH_NS, "depth_ns", "time that the program's threads waited so, ns")                   \
	X(AHEAD, "ahead", "launches, copies and events taken ahead of the depth limit")            \
	X(AHEAD_WAITING, "ahead_waiting", "of those, what waits now")                              \
	X(FENCE_WAITS, "fence_waits", "pieces that waited for guarded launches in front of them")  \
	X(FENCE_NS, "fence_ns", "time that the program's threads waited so, ns")                   \
	X(COPIES, "copies", "copies and memsets")                                                  \
	X(GRAPHS, "graphs", "graphs launched")                                                     \
	X(IMAGES, "images", "images loaded")                                                       \
	X(COMPILED, "compiled", "images whose stoppable form was made or found")                   \
	X(NOT_COMPILED, "not_compiled", "images that have none")                                   \
	X(COMPILE_NS, "compile_ns", "time until the stoppable forms were there, ns")               \
	X(DRIVER_REFUSED, "driver_refused", "stoppable forms that the driver refused")             \
	X(EXPLORED, "explored", "launches that ran in another form to measure it")                 \
	X(ROWS_LOST, "rows_lost", "kernels that found no row: they count in \"(other kernels)\"")  \
	X(TRACE_DROPPED, "trace_dropped",                                                          \
	  "events dropped: two threads met in one place of the ring")

enum tally_counter {
#define TALLY_COUNTER_NUMBER(name, word, text) TALLY_COUNT_##name,
	TALLY_COUNTERS(TALLY_COUNTER_NUMBER)
#undef TALLY_COUNTER_NUMBER
		TALLY_COUNTER_COUNT
};
const char *tally_counter_word(enum tally_counter counter);
const char *tally_counter_text(enum tally_counter counter);

/* X(NAME, word, meaning of `value`). `row` is the kernel's, 0 where there is none; `stream` is any
 * number that names a stream of the program, 0 where there is none. */
#define TALLY_EVENTS(X)                                                                            \
	X(LAUNCH, "launch", "level")	    /* the program asked for it */                         \
	X(START, "start", "blocks, 0: all") /* it, or a slice of it, was given to the driver */    \
	X(END, "end", "duration on the device, ns; 0: unknown")                                    \
	X(STOP, "stop", "latency, ns") /* everything of the stream has stopped */                  \
	X(RESUME, "resume", "first block")                                                         \
	X(GATE_CLOSED, "gate-closed", "pid of who is more urgent, 0: unknown")                     \
	X(GATE_OPEN, "gate-open", "time that it was closed, ns")                                   \
	X(ACTIVE, "active", "") /* the program has work on the device */                           \
	X(IDLE, "idle", "time that it was active, ns")                                             \
	X(COPY, "copy", "bytes; 0: unknown")                                                       \
	X(FENCE, "fence", "time waited, ns")                                                       \
	X(CHOICE, "choice", "level, from now on")

enum tally_event_kind {
#define TALLY_EVENT_NUMBER(name, word, value) TALLY_TRACE_##name,
	TALLY_EVENTS(TALLY_EVENT_NUMBER)
#undef TALLY_EVENT_NUMBER
		TALLY_TRACE_KINDS
};
const char *tally_event_word(enum tally_event_kind kind);

/* ------------------------------------------------------------------------------------ the memory
 */

/* struct tally_stats while it is being written: the same fields, each on its own. */
struct tally_report_stats {
	_Atomic uint64_t launches, samples, ns, blocks, ns_min, stops, drain_ns;
	_Atomic uint32_t stop[TALLY_COARSE];
};

struct tally_report_row {
	_Alignas(64) _Atomic uint32_t ready; /* 1: key, name and number are there for good */
	uint32_t number;
	_Atomic uint64_t choice; /* level | reason << 8 | slice << 32 */
	struct tally_row_key key;
	char name[TALLY_ROW_NAME];
	struct tally_report_stats level[TALLY_LEVELS];
};

/* One event. `stamp` is TALLY_STAMP(n) for the ring's number n when all else is there. */
struct tally_report_record {
	_Atomic uint64_t time_ns, value;
	_Atomic uint32_t row, stream, kind, stamp;
};
_Static_assert(sizeof(struct tally_report_record) == 32, "two in a cache line");

/* The program writes all of it, but `trace_until_ns`, which readers push on (or both). */
struct tally_report {
	uint32_t magic, version;
	uint64_t size;
	uint64_t id; /* of this report, unlike any other's */
	int32_t pid; /* as the program sees it; tallyd knows it better */
	int32_t priority;
	uint64_t started_ns;
	uint8_t device[16]; /* UUID */
	char name[64], device_name[64];
	char driver[32];    /* version of the driver */
	char transform[32]; /* version of the compiler that made the stoppable forms */

	_Alignas(64) _Atomic uint64_t trace_until_ns; /* events are recorded until then; 0: none */
	_Alignas(64) _Atomic uint64_t trace_head;     /* events ever recorded */
	_Atomic uint32_t rows_end;		      /* no row at or above this is in use */
	_Alignas(64) _Atomic uint64_t counters[TALLY_COUNTER_COUNT];
	_Atomic uint32_t stop[TALLY_FINE]; /* stop latencies of the program, shape tally_fine */

	_Alignas(64) _Atomic uint16_t index[TALLY_REPORT_INDEX]; /* row numbers by key; 0: free */
	struct tally_report_row
		rows[TALLY_REPORT_ROWS]; /* 0: "(other kernels)", not in the index */
	struct tally_report_record trace[TALLY_REPORT_TRACE]; /* n is in [n % TALLY_REPORT_TRACE] */
};

/* ---------------------------------------------------------------------------- for the program */

struct tally_report_identity {
	uint8_t device[16]; /* UUID */
	int priority;
	const char *name, *device_name; /* cut and copied; NULL: "" */
	const char *driver,
		*transform; /* versions; measurements of others are never used with them */
};

/*
 * An empty report, mapped, and in *fd the descriptor to hand to tallyd (close-on-exec, the
 * caller's; closing it does not end the report). Where the system has no memfd *fd is -1 and the
 * report is the process's alone. NULL out of memory. Memory is taken as it is written: 12 KiB at
 * first, 1.25 KiB for each kernel and configuration, 2 MiB once for a trace. In a forked child the
 * report is a copy that nobody sees, in the same place.
 */
struct tally_report *tally_report_create(const struct tally_report_identity *identity, int *fd);

/* Nobody may be inside a call with it. NULL is allowed. */
void tally_report_destroy(struct tally_report *report);

/*
 * The row of a kernel in a configuration: found, or made. Any thread, lock-free, some 10 ns for one
 * that is there; a row stays where it is for the report's life, so keep the pointer. Never NULL:
 * when the table is full the answer is row 0, "(other kernels)". `name` is the kernel's whole name,
 * looked at only for a new row.
 */
struct tally_report_row *tally_report_row(struct tally_report *report,
					  const struct tally_row_key *key, const char *name);

/* Says what the kernel runs as from now on. */
void tally_report_choose(struct tally_report_row *row, const struct tally_choice *choice);
struct tally_choice tally_report_choice(const struct tally_report_row *row);

/* A launch: what the hot path pays, one relaxed addition. */
static inline void tally_report_launch(struct tally_report_row *row, enum tally_level level)
{
	atomic_fetch_add_explicit(&row->level[level].launches, 1, memory_order_relaxed);
}

/* `blocks` blocks of the kernel took `ns` on the device: a whole launch, a slice, or what ran
 * before a stop. 0 blocks are ignored. */
void tally_report_sample(struct tally_report_row *row, enum tally_level level, uint64_t ns,
			 uint64_t blocks);

/* A stop that met the kernel: from the request until the stream had drained; `drain_ns` of it were
 * spent skipping blocks (0: unknown). `row` may be NULL: counts for the program alone. */
void tally_report_stop(struct tally_report *report, struct tally_report_row *row,
		       enum tally_level level, uint64_t latency_ns, uint64_t drain_ns);

static inline void tally_report_count(struct tally_report *report, enum tally_counter counter,
				      uint64_t n)
{
	atomic_fetch_add_explicit(&report->counters[counter], n, memory_order_relaxed);
}

/* Somebody wants events until then: tally_trace_request() from the inside. Any thread. */
void tally_report_trace_until(struct tally_report *report, uint64_t until_ns);

/* Whether somebody wants events: one load. */
static inline bool tally_report_tracing(const struct tally_report *report)
{
	return __builtin_expect(
		atomic_load_explicit(&report->trace_until_ns, memory_order_relaxed) != 0, 0);
}

/* Records an event of `time_ns` (0: now), whether or not somebody wants it still. `row` may be
 * NULL. Any thread, async-signal-safe. */
void tally_report_record(struct tally_report *report, enum tally_event_kind kind, uint64_t time_ns,
			 uint32_t stream, const struct tally_report_row *row, uint64_t value);

/* The same when somebody wants it: for the hot path. */
static inline void tally_report_trace(struct tally_report *report, enum tally_event_kind kind,
				      uint32_t stream, const struct tally_report_row *row,
				      uint64_t value)
{
	if (tally_report_tracing(report))
		tally_report_record(report, kind, 0, stream, row, value);
}

/* A key from what a launch has: `image` may be NULL (unknown), `kernel` is tally_hash_64() of the
 * name, best computed once for each kernel. */
struct tally_row_key tally_report_key(const uint64_t image[2], uint64_t kernel,
				      const unsigned grid[3], const unsigned block[3],
				      unsigned shared);

/* ------------------------------------------------------------------------------- for readers */

/* Whether `fd` is memory as large as a report, of sealed size. */
bool tally_report_is(int fd);

/* Maps the report in `fd` read-only; `fd` stays the caller's. NULL with an error for anything else
 * than a report of this version, of sealed size. */
const struct tally_report *tally_report_map(int fd, struct tally_error *error);
void tally_report_unmap(const struct tally_report *report); /* NULL is allowed */

/* Rows have numbers below this, now. */
unsigned tally_report_rows(const struct tally_report *report);

/* Copies row `number`; false where there is none. Each number in it was true at some moment of the
 * call; two of them need not belong to the same moment. What a broken program wrote is brought into
 * range. */
bool tally_report_read(const struct tally_report *report, unsigned number, struct tally_row *row);

bool tally_report_read_row(const struct tally_report_row *from, struct tally_row *row);

/* The launches of row `number` and its samples and stops: cheap, to see whether it changed. */
uint64_t tally_report_changes(const struct tally_report *report, unsigned number);

uint64_t tally_report_counter(const struct tally_report *report, enum tally_counter counter);

/* Stop latency of the whole program, ns; 0 when it was never stopped. */
uint64_t tally_report_stop_quantile(const struct tally_report *report, double q);

/* A copy of a text of the header: NUL at the end whatever is there, no control characters. */
void tally_report_text(char *to, size_t size, const char *from);

struct tally_trace_event {
	enum tally_event_kind kind;
	uint64_t time_ns, value;
	uint32_t stream, row;
};

/* Where a reader is in the ring. Start with next = 0 for all that is still there, or with
 * trace_head for what comes. */
struct tally_trace_cursor {
	uint64_t next, lost; /* number of the next event; how many were overwritten or never done */
	bool ended;	     /* the program is dead: an unfinished event will not be finished */
};

/* The next event in the order in which they were begun (times may be out of order by a little);
 * false when there is none now. */
bool tally_trace_next(const struct tally_report *report, struct tally_trace_cursor *cursor,
		      struct tally_trace_event *event);

/* Asks the program behind `fd` (open for writing) to record events until `until_ns` (tally_now()'s
 * clock): ask again in time, and recording ends by itself when you are gone. Several may ask. */
bool tally_trace_request(int fd, uint64_t until_ns, struct tally_error *error);

#endif
