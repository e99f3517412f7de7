/* SPDX-License-Identifier: Apache-2.0 */
/* Files of NVIDIA's CUDA toolkit, wherever it is installed. */
#ifndef TALLY_BACKENDS_CUDA_TOOLKIT_H
#define TALLY_BACKENDS_CUDA_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of the first of `names` (relative to a toolkit's folder; ends in NULL) that can be read:
 * below $CUDA_HOME, $CUDA_PATH, the folder cuda of the build tree that this program is in, or where
 * distributions put toolkits. False when there is none. Any thread.
 */
bool tally_cuda_toolkit_file(const char *const names[], char *path, size_t size);

#endif
