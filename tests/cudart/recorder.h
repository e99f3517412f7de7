/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that does nothing but write down what it is asked: the runtime's half of the
 * conversation, seen from the other side. */
#ifndef TESTS_CUDART_RECORDER_H
#define TESTS_CUDART_RECORDER_H

#include <cuda.h>

struct recorder {
	char log[1 << 16]; /* one line a call: name, then what matters of the arguments */
	int version;	   /* of the driver */
	int devices;
	CUresult next;	     /* what the next call that can fail answers, once */
	const char *missing; /* a name that cuGetProcAddress does not know */
	unsigned requests;   /* of cuGetProcAddress */
};

/* The one object, in the library; reached by dlsym("recorder"). */
extern struct recorder recorder;

#endif
