/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA machines that LLVM 22 can write PTX for. */
#include <stddef.h>

#include "backends/cuda/lower/cuda_lower.h"

/* clang-format off */
#define TARGETS(X) \
	X("sm_70", 70, 80) \
	X("sm_72", 72, 80) \
	X("sm_75", 75, 80) \
	X("sm_80", 80, 80) \
	X("sm_86", 86, 80) \
	X("sm_87", 87, 80) \
	X("sm_88", 88, 90) \
	X("sm_89", 89, 80) \
	X("sm_90", 90, 80) \
	X("sm_90a", 90, 80) \
	X("sm_100", 100, 86) \
	X("sm_100a", 100, 86) \
	X("sm_100f", 100, 88) \
	X("sm_101", 101, 86) \
	X("sm_101a", 101, 86) \
	X("sm_101f", 101, 88) \
	X("sm_103", 103, 88) \
	X("sm_103a", 103, 88) \
	X("sm_103f", 103, 88) \
	X("sm_110", 110, 90) \
	X("sm_110a", 110, 90) \
	X("sm_110f", 110, 90) \
	X("sm_120", 120, 87) \
	X("sm_120a", 120, 87) \
	X("sm_120f", 120, 88) \
	X("sm_121", 121, 88) \
	X("sm_121a", 121, 88) \
	X("sm_121f", 121, 88)
/* clang-format on */

#define ENTRY(name, sm, ptx) {name, sm, ptx},
#define NAME(name, sm, ptx)  name,

const struct tally_cuda_target tally_cuda_targets[] = {TARGETS(ENTRY){NULL, 0, 0}};
const char *const tally_cuda_target_names[] = {TARGETS(NAME) NULL};
