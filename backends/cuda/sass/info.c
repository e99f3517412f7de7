/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of images and kernels: see info.h. */
#include "backends/cuda/sass/info.h"

#include <string.h>

uint16_t sass_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t sass_get32(const uint8_t *p)
{
	return sass_get16(p) | (uint32_t)sass_get16(p + 2) << 16;
}

void sass_put16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
}

void sass_put32(uint8_t *p, uint32_t value)
{
	sass_put16(p, (uint16_t)value);
	sass_put16(p + 2, (uint16_t)(value >> 16));
}

bool sass_info_next(const uint8_t *info, size_t size, size_t *at, struct sass_attribute *found)
{
	const uint8_t *p = info + *at;
	size_t left = size - *at;

	if (left < 4 || p[0] < SASS_NO_VALUE || p[0] > SASS_SIZED)
		return false;
	*found = (struct sass_attribute){
		.format = p[0], .name = p[1], .at = *at, .value = p + 2, .size = 2};
	if (found->format == SASS_SIZED) {
		found->size = sass_get16(p + 2);
		found->value = p + 4;
		if (found->size > left - 4)
			return false;
		*at += 4 + found->size;
	} else {
		*at += 4;
	}
	return true;
}

void sass_info_append(struct tally_buffer *out, unsigned format, unsigned name, const void *value,
		      size_t size)
{
	uint8_t head[4] = {(uint8_t)format, (uint8_t)name, 0, 0};

	if (format == SASS_SIZED) {
		sass_put16(head + 2, (uint16_t)size);
		tally_buffer_append(out, head, sizeof head);
		tally_buffer_append(out, value, size);
		return;
	}
	if (size)
		memcpy(head + 2, value, size < 2 ? size : 2);
	tally_buffer_append(out, head, sizeof head);
}
