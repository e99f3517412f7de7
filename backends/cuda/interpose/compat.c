/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtally.so has to load where glibc is 2.31. Functions that the build machine's glibc gives a
 * newer version are defined here, hidden, by their old one: every object of the library, those of
 * base/, cache/ and sched/ too, then calls these. tests/interpose/symbols.sh finds what is missing.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

/* Pointers are handed on, not read, but only the headers' prototypes say so. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

/* NAME(arguments) calls NAME@VERSION, which every glibc has. */
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
OLD("GLIBC_2.2.5", int, pthread_create,
    (pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*main)(void *),
     void *restrict argument),
    (thread, attributes, main, argument))
OLD("GLIBC_2.2.5", int, pthread_once, (pthread_once_t * once, void (*routine)(void)),
    (once, routine))
OLD("GLIBC_2.2.5", int, pthread_sigmask,
    (int how, const sigset_t *restrict set, sigset_t *restrict old), (how, set, old))
OLD("GLIBC_2.2.5", int, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t size),
    (attributes, size))
OLD("GLIBC_2.2.5", int, pthread_key_create, (pthread_key_t * key, void (*destructor)(void *)),
    (key, destructor))
OLD("GLIBC_2.2.5", int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
