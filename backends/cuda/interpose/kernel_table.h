/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels.c and kernel_form.c share of the table of kernels; see kernels.h. */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_KERNEL_TABLE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_KERNEL_TABLE_H

#include <pthread.h>

#include "backends/cuda/interpose/kernels.h"

/* What struct tally_kernel's `state` and `layout` say. */
enum { TALLY_FORM_UNKNOWN, TALLY_FORM_STOPPABLE, TALLY_FORM_WHOLE };
enum { TALLY_LAYOUT_UNASKED, TALLY_LAYOUT_KNOWN, TALLY_LAYOUT_NOT_TOLD };

/* Held by whoever changes a record or the table. */
extern pthread_mutex_t tally_kernels_lock;

/* Every record there is, also those that are gone. The lock is held. */
void tally_kernels_each(void (*see)(struct tally_kernel *, void *), void *user);

#endif
