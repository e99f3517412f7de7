/* SPDX-License-Identifier: Apache-2.0 */
/* For the CUDA programs of this folder: a check that says where and why, then ends the program. */
#ifndef TESTS_CUDART_CHECK_H
#define TESTS_CUDART_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* The call has to answer exactly this. */
#define EXPECT(expected, call)                                                                     \
	do {                                                                                       \
		cudaError_t got_ = (call);                                                         \
		if (got_ != (expected)) {                                                          \
			fprintf(stderr, "%s:%d: %s: got %s, expected %s\n", __FILE__, __LINE__,    \
				#call, cudaGetErrorName(got_), cudaGetErrorName(expected));        \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define OK(call) EXPECT(cudaSuccess, call)

#endif
