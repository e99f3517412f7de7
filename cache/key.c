/* SPDX-License-Identifier: Apache-2.0 */
/* Which tally-lower makes a result, and the name under which the result is kept. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cache/internal.h"

struct own_object {
	uintptr_t address;
	char path[PATH_MAX];
};

/* dl_iterate_phdr's callback: is this the loaded object that holds our own code? */
static int is_own_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct own_object *own = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type != PT_LOAD || own->address < start ||
		    own->address >= start + segment->p_memsz)
			continue;
		snprintf(own->path, sizeof own->path, "%s",
			 info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
		return 1;
	}
	return 0;
}

static bool is_program(const char *path)
{
	struct statx info;

	return statx(AT_FDCWD, path, 0, STATX_TYPE, &info) == 0 && S_ISREG(info.stx_mode) &&
	       access(path, X_OK) == 0;
}

/* PREFIX/bin for what is in PREFIX/lib or, installed, in PREFIX/lib/tally. */
static bool beside_own_object(char path[PATH_MAX])
{
	struct own_object own = {.address = (uintptr_t)&tally_cache_get};
	char folder[PATH_MAX];

	if (!dl_iterate_phdr(is_own_object, &own) || !realpath(own.path, folder))
		return false;
	for (int up = 1; up <= 3; up++) {
		char *slash = strrchr(folder, '/');
		if (!slash)
			return false;
		*slash = '\0';
		if (up > 1 && snprintf(path, PATH_MAX, "%s/bin/tally-lower", folder) < PATH_MAX &&
		    is_program(path))
			return true;
	}
	return false;
}

static bool in_search_path(char path[PATH_MAX])
{
	const char *part = getenv("PATH");

	while (part && *part) {
		int length = (int)strcspn(part, ":");
		if (length &&
		    snprintf(path, PATH_MAX, "%.*s/tally-lower", length, part) < PATH_MAX &&
		    is_program(path))
			return true;
		part += length + (part[length] == ':');
	}
	return false;
}

bool tally_cache_find_lower(char path[PATH_MAX], struct tally_error *error)
{
	const char *given = getenv("TALLY_LOWER");

	if (given && *given) {
		if (snprintf(path, PATH_MAX, "%s", given) < PATH_MAX && is_program(path))
			return true;
		return tally_fail_at(error, given, 0, 0,
				     "TALLY_LOWER names no program that can be run");
	}
	if (beside_own_object(path) || in_search_path(path))
		return true;
	return tally_fail(error, "cannot find tally-lower: set TALLY_LOWER to its path, or put it "
				 "into PATH");
}

/* Code for x86-64 is made for the very machine: the same home may be mounted on several. */
static void host_name(char *text, size_t size)
{
	text[0] = '\0';
#if defined(__x86_64__)
	unsigned r[4], brand[13] = {0}, features[4] = {0};

	for (unsigned i = 0; i < 3; i++)
		if (__get_cpuid(0x80000002u + i, &r[0], &r[1], &r[2], &r[3]))
			memcpy(&brand[4 * i], r, sizeof r);
	/* Not ebx of leaf 1: it holds the number of the core that asks. */
	if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3])) {
		features[0] = r[2];
		features[1] = r[3];
	}
	if (__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3])) {
		features[2] = r[1];
		features[3] = r[2];
	}
	snprintf(text, size, "%s %x %x %x %x", (const char *)brand, features[0], features[1],
		 features[2], features[3]);
#endif
}

/* Of which build the compiler is: its version alone stays while it is being worked on. */
static void describe(const char *lower, char *text, size_t size)
{
	struct statx info = {0};

	statx(AT_FDCWD, lower, 0, STATX_SIZE | STATX_MTIME, &info);
	snprintf(text, size, "%s %llu %lld.%09u", TALLY_VERSION, (unsigned long long)info.stx_size,
		 (long long)info.stx_mtime.tv_sec, info.stx_mtime.tv_nsec);
}

void tally_cache_compiler(char *text, size_t size)
{
	struct tally_error error = {0};
	char lower[PATH_MAX], all[256];

	if (!tally_cache_find_lower(lower, &error)) {
		snprintf(text, size, "%s", TALLY_VERSION);
		return;
	}
	describe(lower, all, sizeof all);
	snprintf(text, size, "%s-%.8s", TALLY_VERSION, tally_hash_bytes(all, strlen(all)).hex);
}

struct tally_hash tally_cache_key(const struct tally_cache_request *request, const char *lower)
{
	struct tally_hash hash = tally_hash_bytes(request->image, request->size);
	char text[256];

	describe(lower, text, sizeof text);
	hash = tally_hash_extend(hash, text);
	hash = tally_hash_extend(hash, request->target);
	hash = tally_hash_extend(hash, request->transform);
	if (!strcmp(request->target, "x86-64")) {
		host_name(text, sizeof text);
		hash = tally_hash_extend(hash, text);
	}
	return hash;
}

const char *tally_cache_extension(const struct tally_cache_request *request)
{
	static const struct {
		const char *prefix, *extension;
	} table[] = {{"x86", ".so"}, {"sm_", ".ptx"}, {"gfx", ".hsaco"}};

	if (!strcmp(request->transform, TALLY_CACHE_OPAQUE))
		return ".cubin";
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strncmp(request->target, table[i].prefix, strlen(table[i].prefix)))
			return table[i].extension;
	return ".bin";
}
