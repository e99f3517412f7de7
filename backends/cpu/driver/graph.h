/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes that do work, edges that order them. As in the driver API a graph may be used by
 * one thread at a time; nothing here locks, but for what captures do (capture.h).
 *
 * An executable graph is a copy of the graph's nodes, child graphs written out, in an order that
 * keeps every edge, each node with a lane: a stream of its own of the executable graph. Launching
 * it puts one operation after another into the lanes, each behind what it depends on, between two
 * markers in the stream that the program named.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_GRAPH_H
#define TALLY_BACKENDS_CPU_DRIVER_GRAPH_H

#include "backends/cpu/driver/work.h"

struct graph_node {
	struct graph *graph;
	struct work work;
	struct graph_node **before; /* what it depends on, in the order of the edges */
	size_t count;
	const struct graph_node *origin; /* what it is a copy of, or NULL */
	bool disabled;			 /* of an executable graph: cuGraphNodeSetEnabled */
	size_t index;			 /* in graph->nodes */
	size_t mark;			 /* for walks */
};

struct graph {
	struct graph_node **nodes; /* in the order in which they were made */
	size_t count;
	struct graph_node *parent; /* the node that it is the child of, or NULL */
	struct user_reference *objects;
	struct graph *next_lost; /* capture.c */
};

/* What a handle of the program means; CUDA_ERROR_INVALID_VALUE: nothing that is alive. */
CUresult graph_check(CUgraph handle, struct graph **graph);
CUresult graph_node_check(CUgraphNode handle, struct graph_node **node);

/* NULL out of memory. A copy's nodes remember their origin. Deleting frees the nodes, their work
 * and child graphs; NULL is nothing. */
struct graph *graph_new(void);
struct graph *graph_copy(const struct graph *graph);
void graph_delete(struct graph *graph);

/* A node that does `work` (which it owns from then on) after `count` others. On failure the caller
 * still has the work. */
CUresult graph_add(struct graph *graph, struct work *work, struct graph_node *const *before,
		   size_t count, struct graph_node **node);

/* Removes the node, with its edges, and frees it. */
void graph_node_delete(struct graph_node *node);

/* `to` depends on `from` from now on; CUDA_ERROR_INVALID_VALUE where it does already, or both are
 * of different graphs. And no longer; the same error where it did not. */
CUresult graph_connect(struct graph_node *from, struct graph_node *to);
CUresult graph_disconnect(struct graph_node *from, struct graph_node *to);

/* The node of `graph` or of its children that is a copy of `origin`. */
struct graph_node *graph_find_copy(const struct graph *graph, const struct graph_node *origin);

/* All nodes, each behind those that it depends on; NULL when they go in a circle (or out of memory:
 * `*error` says which). To be freed. */
struct graph_node **graph_sort(const struct graph *graph, CUresult *error);

/* Edges that mean anything but "after the whole node" are not there. */
CUresult graph_check_edges(const CUgraphEdgeData *edges, size_t count);

/* pool.c: memory of an allocation node. */
CUresult graph_memory_make(struct graph_memory **memory, const CUDA_MEM_ALLOC_NODE_PARAMS *params);

/* copy_api.c: a copy node's work from what the API is given, and back. */
CUresult copy_node_work(struct work *work, const CUDA_MEMCPY3D *params);
CUresult copy_node_params(const struct work *work, CUDA_MEMCPY3D *params);

/* graph_object.c */
struct user_reference;
/* What cuGraphRetainUserObject tied to a graph: a copy holds it too (false out of memory, with what
 * was copied to be released); a graph that goes lets it go, which may wait for all work and call
 * the program: the engine's lock is not held. */
bool user_references_copy(struct graph *to, const struct graph *from);
void user_references_release(struct graph *graph);

#endif
