/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of the interface: every function that is exported, so that any program linked against
 * libcudart.so.13 loads, and answers cudaErrorNotSupported, naming itself once. */
#include <stdbool.h>

/* No toolkit header here: these definitions have no parameters. The caller removes its arguments
 * itself, so the answer is the same whatever they are. */
int cudart_unsupported(const char *function, bool *once);

#define CUDART_UNSUPPORTED(name)                                                                   \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		static bool said;                                                                  \
		return cudart_unsupported(#name, &said);                                           \
	}
#include "runtimes/cudart/unsupported.h"
