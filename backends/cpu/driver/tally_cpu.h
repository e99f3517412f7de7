/* SPDX-License-Identifier: Apache-2.0 */
/* What our libcuda.so.1 has beyond the driver API: how libtally learns that it is ours. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_TALLY_CPU_H
#define TALLY_BACKENDS_CPU_DRIVER_TALLY_CPU_H

/* The tally-lower target that this driver loads ("x86-64"). NVIDIA's driver has no such symbol.
 * Static text; any thread, also before cuInit. */
const char *tallyCpuTarget(void);

#endif
