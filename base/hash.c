/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes: see hash.h. xxHash is inlined from its header, so that nothing is linked. */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct tally_hash tally_hash_bytes(const void *data, size_t size)
{
	struct tally_hash hash;
	XXH128_hash_t h = XXH3_128bits(data, size);

	snprintf(hash.hex, sizeof hash.hex, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
	return hash;
}

uint64_t tally_hash_64(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

uint64_t tally_hash_64_on(uint64_t hash, const void *data, size_t size)
{
	return XXH3_64bits_withSeed(data, size, hash);
}

struct tally_hash tally_hash_extend(struct tally_hash hash, const char *text)
{
	XXH128_hash_t seed = XXH3_128bits(hash.hex, sizeof hash.hex - 1);
	XXH128_hash_t h = XXH3_128bits_withSeed(text, strlen(text), seed.low64 ^ seed.high64);
	struct tally_hash result;

	snprintf(result.hex, sizeof result.hex, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
	return result;
}
