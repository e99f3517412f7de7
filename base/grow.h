/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow one element at a time, by doubling. */
#ifndef TALLY_BASE_GROW_H
#define TALLY_BASE_GROW_H

#include <stdbool.h>
#include <stdlib.h>

/*
 * Room for one more element of `size` bytes behind the `count` that the array at `*place` has: all
 * were added with this, some may have been taken out again. False, with the array as it was, when
 * memory runs out. The caller frees the array.
 */
static inline bool tally_grow(void **place, size_t count, size_t size)
{
	void *more;

	if (count & (count - 1)) /* it grows when it has 0, 1, 2, 4, 8 ... */
		return true;
	more = reallocarray(*place, count ? 2 * count : 1, size);
	if (more)
		*place = more;
	return more != NULL;
}

#define TALLY_GROW(array, count) tally_grow((void **)&(array), (count), sizeof *(array))

#endif
