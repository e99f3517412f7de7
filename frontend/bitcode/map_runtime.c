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
	/* C++'s new, new[], delete, delete[], and those that are told the size. */
	{"_Znwm", "pl", "tally.malloc"}, {"_Znam", "pl", "tally.malloc"}, {"_ZdlPv", "vp", "tally.free"}, {"_ZdaPv", "vp", "tally.free"},
	{"_ZdlPvm", "vpl", "call void @tally.free(ptr %a)"}, {"_ZdaPvm", "vpl", "call void @tally.free(ptr %a)"},
	{"llvm.trap", "v", "tally.trap"}, {"llvm.debugtrap", "v", "tally.breakpoint"},
	{"llvm.readcyclecounter", "l", "tally.clock"},
	{"llvm.readsteadycounter", "l", "tally.global.timer"},
};
/* clang-format on */

BITCODE_TABLE(bitcode_table_runtime, "runtime", rows);
