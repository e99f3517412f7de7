/* SPDX-License-Identifier: Apache-2.0 */
/* What trace_json.c and trace_stream.c share: the form is documented in docs/trace.md. */
#ifndef TALLY_CLI_TRACE_WRITER_H
#define TALLY_CLI_TRACE_WRITER_H

#include "cli/trace.h"
#include "cli/trace_spans.h"

/* Thread rows of a process. */
enum { TRACE_ROW_ACTIVE = 1, TRACE_ROW_HELD = 2, TRACE_ROW_STREAMS = 10 };

/* A piece that was given to the driver and is not known done. */
struct trace_piece {
	uint32_t row;
	uint64_t start, blocks, queued;
};

#define TRACE_PIECES 256 /* of one stream; more than the launch protocol lets be under way */

struct trace_stream {
	uint32_t number;
	struct trace_piece pieces[TRACE_PIECES]; /* oldest first */
	unsigned count;
	uint64_t floor; /* what is first in the stream ran from here at the earliest */
	bool stopped;
	uint32_t launch_row; /* the last launch that the program asked for, */
	uint64_t launch_at;  /* 0: its call is over */
};

struct trace_writer {
	const struct trace *trace;
	struct tally_buffer *out;
	const char *separator;
	struct trace_spans spans;
	uint64_t flows;

	/* Of the program that is being written. */
	const struct trace_program *program;
	unsigned index, pid;
	struct trace_stream *streams;
	unsigned stream_count;
	int in_flight;
	char *names[TALLY_REPORT_ROWS]; /* JSON text of arguments and name, made when needed */
};

/* The number that stands for a program's process: two programs of one pid (one process on two
 * devices) are two rows. */
unsigned trace_pid(const struct trace *trace, unsigned program);

/* Begins an event: its phase, row and time (tally_now()'s nanoseconds); the caller appends the rest
 * and a brace. A slice is an event with a duration. */
void trace_event(struct trace_writer *w, const char *phase, unsigned pid, unsigned tid,
		 uint64_t at);
void trace_slice(struct trace_writer *w, unsigned tid, uint64_t begin, uint64_t end);

/* The name of a thread row; `format` takes the number. */
void trace_name_row(struct trace_writer *w, unsigned tid, const char *format, unsigned number);

/* The kernel's part of an event: ,"name":"...","args":{"grid":... - without the closing brace. */
const char *trace_kernel(struct trace_writer *w, uint32_t row);

/* trace_stream.c. An event of a stream; `closed_at`: when the program was last asked to give way.
 * The program has no work left, so that every piece is over. The recording ends. */
void trace_stream_event(struct trace_writer *w, const struct tally_trace_event *e,
			uint64_t closed_at);
void trace_all_over(struct trace_writer *w, uint64_t at);
void trace_streams_end(struct trace_writer *w);

#endif
