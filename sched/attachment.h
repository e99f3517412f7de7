/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that a program leaves with tallyd, or is given by it: memory whose meaning is
 * others'. */
#ifndef TALLY_SCHED_ATTACHMENT_H
#define TALLY_SCHED_ATTACHMENT_H

#include <stdint.h>

struct tally_attachment {
	int fd; /* used only where size is not 0 */
	uint32_t kind;
	uint64_t size; /* bytes; 0: there is none */
};

#endif
