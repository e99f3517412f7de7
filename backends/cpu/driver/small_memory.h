/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks of device memory. They do not come from the process's heap, where a block that was
 * freed is anybody's again and looks like memory of the host: in pages of the driver's own an
 * address is of an allocation, or of nobody.
 *
 * memory.c's lock is held by all callers: for reading by small_memory_holds(), for writing by the
 * others.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_SMALL_MEMORY_H
#define TALLY_BACKENDS_CPU_DRIVER_SMALL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SMALL_ALIGNMENT 512
#define SMALL_MOST	(256u << 10) /* bytes of the largest block */

/* A block of at least `bytes`, at most SMALL_MOST, at a multiple of SMALL_ALIGNMENT; from 4 KiB on
 * of whole pages, which nothing else shares. NULL: out of memory. */
void *small_memory_get(size_t bytes);

/* Takes back what small_memory_get() gave. Pages without any block go back to the system. */
void small_memory_put(void *block);

/* Whether the address lies in such pages, in a block or not. */
bool small_memory_holds(uintptr_t address);

#endif
