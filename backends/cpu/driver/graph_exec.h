/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs; see graph.h. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_GRAPH_EXEC_H
#define TALLY_BACKENDS_CPU_DRIVER_GRAPH_EXEC_H

#include "backends/cpu/driver/graph.h"

#define LANES 16 /* branches that run side by side, at most */

/* What one node does; a child graph has a step before it and one behind it that do nothing. */
struct step {
	struct graph_node *node; /* NULL: nothing */
	unsigned lane;
	size_t first, count; /* of links: the steps that it follows */
};

struct graph_exec {
	cuuint64_t flags;
	struct graph *graph;
	struct step *steps;
	size_t count;
	size_t *links;
	size_t link_count;
	unsigned lanes_used;

	pthread_mutex_t lock; /* one launch at a time */
	struct context *context;
	uint64_t context_id;
	struct stream *lanes[LANES];
	struct point last; /* the end of the launch before */
};

/* The node of the executable graph that was made from `handle`. */
CUresult graph_exec_node(CUgraphExec exec, CUgraphNode handle, struct graph_node **node);

/* Gives the nodes of `graph` what those of `from` do, if both have the same nodes and edges in the
 * same order; else nothing changes and `info` (may be NULL) says why. */
CUresult graph_update(struct graph *graph, const struct graph *from,
		      CUgraphExecUpdateResultInfo *info);

/* The graph that an executable one launches: a copy, its own. */
CUresult graph_exec_graph(CUgraphExec exec, struct graph **graph);

/* graph_launch.c: one launch into the stream; what is queued is queued whole or not at all. No lock
 * held. And gives back the streams that launches went through; what is queued there still runs. */
CUresult graph_exec_launch(struct graph_exec *exec, struct stream *stream);
void graph_exec_drop_lanes(struct graph_exec *exec);

#endif
