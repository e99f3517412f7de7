/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA machines that LLVM 22 can write PTX for. */
#include <stddef.h>

#include "backends/cuda/lower/cuda_lower.h"

/* clang-format off */
#define TARGETS(X) \
	X("sm_70", 70, 80, 60) \
	X("sm_72", 72, 80, 61) \
	X("sm_75", 75, 80, 63) \
	X("sm_80", 80, 80, 70) \
	X("sm_86", 86, 80, 71) \
	X("sm_87", 87, 80, 74) \
	X("sm_88", 88, 90, 90) \
	X("sm_89", 89, 80, 78) \
	X("sm_90", 90, 80, 78) \
	X("sm_90a", 90, 80, 80) \
	X("sm_100", 100, 86, 86) \
	X("sm_100a", 100, 86, 86) \
	X("sm_100f", 100, 88, 88) \
	X("sm_101", 101, 86, 86) \
	X("sm_101a", 101, 86, 86) \
	X("sm_101f", 101, 88, 88) \
	X("sm_103", 103, 88, 88) \
	X("sm_103a", 103, 88, 88) \
	X("sm_103f", 103, 88, 88) \
	X("sm_110", 110, 90, 90) \
	X("sm_110a", 110, 90, 90) \
	X("sm_110f", 110, 90, 90) \
	X("sm_120", 120, 87, 87) \
	X("sm_120a", 120, 87, 87) \
	X("sm_120f", 120, 88, 88) \
	X("sm_121", 121, 88, 88) \
	X("sm_121a", 121, 88, 88) \
	X("sm_121f", 121, 88, 88)
/* clang-format on */

const unsigned tally_cuda_ptx_versions[] = {60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76,
					    77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 0};

/* PTX ISA 4.3 and ptxas: 4,352 bytes, and with PTX 8.1 32,764. */
const unsigned tally_cuda_parameter_limits[] = {4352, 32764, 0};

#define ENTRY(name, sm, ptx, oldest) {name, sm, ptx, oldest},
#define NAME(name, sm, ptx, oldest)  name,

const struct tally_cuda_target tally_cuda_targets[] = {TARGETS(ENTRY){NULL, 0, 0, 0}};
const char *const tally_cuda_target_names[] = {TARGETS(NAME) NULL};
