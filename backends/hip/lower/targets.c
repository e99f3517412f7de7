/* SPDX-License-Identifier: Apache-2.0 */
/* The AMD machines that Tally lowers for. */
#include <stddef.h>

#include "backends/hip/lower/hip_lower.h"

/* clang-format off */
#define TARGETS(X) \
	X("gfx906", 64, false, 9006) \
	X("gfx90a", 64, false, 9010) \
	X("gfx942", 64, false, 9402) \
	X("gfx950", 64, false, 9500) \
	X("gfx1030", 32, true, 10300) \
	X("gfx1100", 32, true, 11000) \
	X("gfx1201", 32, true, 12001)
/* clang-format on */

#define ENTRY(name, wave, both, isa) {name, wave, both, isa},
#define NAME(name, wave, both, isa)  name,

const struct tally_hip_target tally_hip_targets[] = {TARGETS(ENTRY){NULL, 0, false, 0}};
const char *const tally_hip_target_names[] = {TARGETS(NAME) NULL};
