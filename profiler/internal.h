/* SPDX-License-Identifier: Apache-2.0 */
/* What the report's writer and its readers have to agree on. */
#ifndef TALLY_PROFILER_INTERNAL_H
#define TALLY_PROFILER_INTERNAL_H

#include "profiler/report.h"

/* The stamp of event n when it is whole; 0 before the first one. */
#define TALLY_STAMP(n)	 ((uint32_t)(n) | 0x80000000u)
#define TALLY_STAMP_BUSY 1u

struct tally_choice tally_choice_unpack(uint64_t packed);

#endif
