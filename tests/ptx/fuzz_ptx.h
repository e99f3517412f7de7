/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzz target, for libFuzzer and for the replay of the kept corpus. */
#ifndef TALLY_TESTS_PTX_FUZZ_PTX_H
#define TALLY_TESTS_PTX_FUZZ_PTX_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
