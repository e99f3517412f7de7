/* SPDX-License-Identifier: Apache-2.0 */
/* What our libcuda.so.1 has beyond the driver API: how libtally learns that it is ours. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_TALLY_CPU_H
#define TALLY_BACKENDS_CPU_DRIVER_TALLY_CPU_H

/* The tally-lower target that this driver loads ("x86-64"). NVIDIA's driver has no such symbol.
 * Static text; any thread, also before cuInit. */
const char *tallyCpuTarget(void);

/*
 * From now on this process's kernels get only CPU time that nobody else wants: its worker threads
 * run as SCHED_IDLE, and threads that wait for a launch sleep instead of running its blocks.
 *
 * On a GPU no thread of the host waits for a multiprocessor. Here kernels and threads share the
 * cores, and Linux lets a busy thread finish its time slice (some milliseconds) before one that
 * woke: without this a program of higher priority would wait that long to say that it has work.
 * There is no way back (an ordinary user may not leave SCHED_IDLE). Any thread, any time.
 */
void tallyCpuBackground(void);

#endif
