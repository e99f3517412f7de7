/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that the CPU lowering wrote, loaded without a linker. */
#ifndef TALLY_TESTS_FUZZ_JIT_H
#define TALLY_TESTS_FUZZ_JIT_H

#include "backends/cpu/executor.h"
#include "base/buffer.h"

/* Aborts where it cannot. `image` ends with fuzz_unload(handle), not with tally_cpu_image_close().
 */
void *fuzz_load(const struct tally_buffer *object, struct tally_cpu_image *image);
void fuzz_unload(void *handle);

#endif
