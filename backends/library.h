/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the contract's operations, written as textual IR and built into the program. */
#ifndef TALLY_BACKENDS_LIBRARY_H
#define TALLY_BACKENDS_LIBRARY_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "base/embed.h"
#include "base/error.h"

/* One library: textual IR, one directive a line, a definition's brace at the start of its own. */
struct tally_library {
	const char *name; /* for messages */
	const char *text, *end;
};

/* What tally_embed() in CMake embeds as `symbol` (and TALLY_EMBEDDED declares) as a library. */
#define TALLY_LIBRARY(symbol, name) {name, symbol, symbol##_end}

/*
 * Links what `module` declares and `library` defines into it, always-inline and discardable, and
 * what that needs. Definitions already present win, so a backend links its own library first and
 * the portable ones after it. False with an error when LLVM cannot.
 */
bool tally_lower_link_library(LLVMModuleRef module, const struct tally_library *library,
			      struct tally_error *error);

/*
 * Links `library` (consumed). Definitions are made linkonce_odr first: the linker then takes only
 * those that `module` declares and what they need, and keeps a definition that is there already.
 * `inlined`: they are always-inline.
 */
bool tally_lower_link_module(LLVMModuleRef module, LLVMModuleRef library, bool inlined,
			     const char *name, struct tally_error *error);

#endif
