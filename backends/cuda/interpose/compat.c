/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtally.so has to load where glibc is 2.31. Functions that the build machine's glibc gives a
 * newer version are defined here, hidden, by their old one: every object of the library, those of
 * base/, cache/ and sched/ too, then calls these. tests/interpose/symbols.sh finds what is missing.
 */
#include <dlfcn.h>
#include <pthread.h>

/* NAME(arguments) calls NAME@VERSION, which all glibc's have. */
#define OLD(version, type, name, parameters, arguments)                                            \
	type tally_old_##name parameters;                                                          \
	__asm__(".symver tally_old_" #name ", " #name "@" version);                                \
	__attribute__((visibility("hidden"))) type name parameters                                 \
	{                                                                                          \
		return tally_old_##name arguments;                                                 \
	}

OLD("GLIBC_2.2.5", void *, dlopen, (const char *path, int flags), (path, flags))
OLD("GLIBC_2.2.5", int, dlclose, (void *handle), (handle))
OLD("GLIBC_2.2.5", int, dladdr, (const void *address, Dl_info *info), (address, info))
OLD("GLIBC_2.2.5", void *, dlvsym,
    (void *restrict handle, const char *restrict name, const char *restrict version),
    (handle, name, version))
