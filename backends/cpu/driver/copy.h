/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of one, two or three dimensions, now or in a stream. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_COPY_H
#define TALLY_BACKENDS_CPU_DRIVER_COPY_H

#include "backends/cpu/driver/driver.h"

struct transfer {
	uintptr_t to, from;
	size_t width; /* bytes */
	size_t height, depth;
	size_t to_pitch, from_pitch; /* bytes from row to row */
	size_t to_slice, from_slice; /* bytes from plane to plane */
	unsigned element;	     /* 0: a copy; 1, 2, 4: a fill with elements of so many bytes */
	uint32_t value;
	bool to_made, from_made; /* of a node: these lay in memory that the driver had made */
};

/* Says so in `transfer`, which becomes a node's. */
void transfer_note(struct transfer *transfer);

/* Checks the addresses, waits for the stream, does it on the calling thread. */
CUresult transfer_now(CUstream handle, const struct transfer *transfer);

/* Queues it. Pageable memory has the rules of a GPU's driver: a source is read before the call
 * returns, a destination is written before it returns. */
CUresult transfer_queue(CUstream handle, const struct transfer *transfer);

#endif
