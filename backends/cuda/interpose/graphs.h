/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs of a program that may be stopped. The driver runs a graph as one piece, which
 * nobody can hold up. So Tally reads the graph when it is instantiated, and where it is a chain of
 * nodes that can be given to the driver one by one just as well (kernels that can be stopped,
 * copies, memsets, a host function at the end) a launch does that instead: each node then goes
 * through the door that it would have come through without a graph. Everything else, and what is
 * short anyway, is launched whole.
 *
 * What a node does may change afterwards: cuGraphExecUpdate is read anew; any other change makes
 * the executable graph one that is launched whole for the rest of its life.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_GRAPHS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_GRAPHS_H

#include "backends/cuda/interpose/state.h"

/*
 * Launches `exec` into the stream, node by node or whole, of a program with guards; the driver's
 * answer. The stream is not captured; no lock held; inside a hook.
 */
CUresult tally_graph_launch(struct tally_stream *stream, CUgraphExec exec);

/* Takes the launch ahead (ahead.h) as a whole, if it would have to wait or comes behind others:
 * then the door's answer is in `result`. No lock held, nothing announced. */
bool tally_graph_ahead(struct tally_stream *stream, CUgraphExec exec, CUresult *result);

/* The program has a way to change executable graphs that is not hooked: all are launched whole from
 * now on. */
void tally_graphs_unseen(void);

/* The context ends, and its executable graphs with it. No lock held. */
void tally_graphs_forget(CUcontext context);

/* In the child of a fork(2): what the parent knew is forgotten, not freed. No other thread is
 * there. */
void tally_graphs_forked(void);

#endif
