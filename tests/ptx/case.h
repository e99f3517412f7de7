/* SPDX-License-Identifier: Apache-2.0 */
/* One case of a table (run.h) as the text of a kernel. */
#ifndef TALLY_TESTS_PTX_CASE_H
#define TALLY_TESTS_PTX_CASE_H

#include "base/buffer.h"
#include "run.h"

/* Kernel `k<number>(in, out)`: loads the registers, executes the snippet, stores its result. */
void ptx_write_kernel(struct tally_buffer *out, size_t number, const struct ptx_case *c);

#endif
