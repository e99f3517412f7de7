/* SPDX-License-Identifier: Apache-2.0 */
/* What an executable graph does, as a list of what its nodes do (graphs.h). */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_GRAPH_NODES_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_GRAPH_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/cuda/interpose/hooks.h"

struct tally_node {
	CUgraphNodeType type;
	union {
		struct {
			CUfunction function;
			unsigned grid[3], block[3], shared;
			void **pointers; /* the parameters' bytes follow */
		} kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
	};
};

/* The nodes of one graph, in order. */
struct tally_nodes {
	struct tally_node *nodes;
	size_t count;
	bool chain;	/* each follows the one before */
	bool calls;	/* a function of the program has something behind it */
	bool stoppable; /* every kernel is known to have a stoppable form */
};

/*
 * Reads the graph; false where it is to be launched whole, and then `list` is empty. Asks the
 * driver about the graph alone; inside a hook.
 */
bool tally_nodes_read(struct tally_nodes *list, CUgraph graph);

/* Frees what it holds, and leaves it empty. Any thread. */
void tally_nodes_free(struct tally_nodes *list);

/* Tells waits.h of nodes that may wait for the program and of events that are recorded, which
 * matter however the graph is launched. */
void tally_nodes_wait(CUgraph graph);

#endif
