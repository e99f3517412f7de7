/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that device code calls without a vendor's prefix, and LLVM's machine-dependent ones. */
#include "frontend/bitcode/mapping.h"

/* clang-format off */
static const struct bitcode_mapping rows[] = {
	{"vprintf", "ipp", "tally.printf"},
	/* The last argument of CUDA's is sizeof(char). */
	{"__assertfail", "vppipl", "call void @tally.assert.fail(ptr %a, ptr %b, i32 %c, ptr %d)"},
	{"__assert_fail", "vppip", "tally.assert.fail"},
	{"malloc", "pl", "tally.malloc"}, {"free", "vp", "tally.free"},
	{"llvm.trap", "v", "tally.trap"}, {"llvm.debugtrap", "v", "tally.breakpoint"},
	{"llvm.readcyclecounter", "l", "tally.clock"},
	{"llvm.readsteadycounter", "l", "tally.global.timer"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_runtime, "runtime", rows);
