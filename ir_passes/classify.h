/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of kernel a kernel is, as far as its code shows it. */
#ifndef TALLY_IR_PASSES_CLASSIFY_H
#define TALLY_IR_PASSES_CLASSIFY_H

#include <llvm-c/Core.h>
#include <stdbool.h>

enum tally_class {
	TALLY_CLASS_COOPERATIVE, /* synchronises its whole grid */
	TALLY_CLASS_CLUSTER,	 /* its blocks work together in clusters */
	TALLY_CLASS_DEPENDENT,	 /* orders itself with the next launch */
	TALLY_CLASS_LAUNCHES,	 /* launches kernels itself */
	TALLY_CLASS_WAITS,	 /* waits for other blocks: look-back scans and the like */
	TALLY_CLASS_SPECIALISED, /* its warps do different things and meet at barriers of their own
				  */
	TALLY_CLASSES,
};

/* As `tally-lower --classify` prints it, and what it says of a kernel. Static text. */
extern const struct tally_class_text {
	const char *name, *reason;
} tally_class_texts[TALLY_CLASSES];

/* The set (1 << class) of what `kernel`, in neutral IR and not transformed, is. A kernel may be
 * launched as a cooperative one without showing it. False when memory ran out. */
bool tally_classify(LLVMValueRef kernel, unsigned *set);

#endif
