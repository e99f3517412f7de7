/* SPDX-License-Identifier: Apache-2.0 */
/* What capture.c and capture_api.c share. All of it under the engine's lock but for the thread's
 * own mode. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_CAPTURE_STATE_H
#define TALLY_BACKENDS_CPU_DRIVER_CAPTURE_STATE_H

#include "backends/cpu/driver/capture.h"

/* A set of nodes. */
struct nodes {
	struct graph_node **list;
	size_t count;
};

struct capture {
	uint64_t id;
	struct graph *graph;
	bool given; /* the graph is the application's */
	bool invalid;
	CUstreamCaptureMode mode;
	pthread_t thread; /* that began it */
	struct stream *origin;
	struct capturing *streams;
	struct capture *next;
};

/* A stream's part in a capture. */
struct capturing {
	struct capture *capture;
	struct stream *stream;
	struct nodes tail;	/* what the stream's next work depends on */
	CUgraphEdgeData *edges; /* zeroes, as many as the tail has room */
	struct capturing *next;
};

extern struct capture *captures;
extern struct graph *captures_lost; /* of streams that went away: deleted when somebody may wait */
extern _Thread_local CUstreamCaptureMode capture_thread_mode;

/* Adds a node that is not in the set, or those of `count` that are not. False out of memory. */
bool nodes_add(struct nodes *nodes, struct graph_node *node);
bool nodes_insert_all(struct nodes *to, struct graph_node *const *list, size_t count);

/* The stream comes into the capture, behind `count` nodes. False out of memory. */
bool capture_join(struct capture *capture, struct stream *stream, struct graph_node *const *tail,
		  size_t count);

/* Takes the capture apart and frees it; its graph is the caller's. */
void capture_end(struct capture *capture);

#endif
