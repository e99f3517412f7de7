/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs; see graph.h. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_GRAPH_EXEC_H
#define TALLY_BACKENDS_CPU_DRIVER_GRAPH_EXEC_H

#include "backends/cpu/driver/graph.h"

/* The node of the executable graph that was made from `handle`. */
CUresult graph_exec_node(CUgraphExec exec, CUgraphNode handle, struct graph_node **node);

/* Gives the nodes of `graph` what those of `from` do, if both have the same nodes and edges in the
 * same order; else nothing changes and `info` (may be NULL) says why. */
CUresult graph_update(struct graph *graph, const struct graph *from,
		      CUgraphExecUpdateResultInfo *info);

/* The graph that an executable one launches: a copy, its own. */
CUresult graph_exec_graph(CUgraphExec exec, struct graph **graph);

#endif
