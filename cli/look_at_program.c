/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into an executable for what would keep Tally out of it: see command.h. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/command.h"

/* A name that NVIDIA's runtime carries as text, for tables of its own, even when stripped. A
 * program that calls the function in a shared runtime holds the name too, but then the library's as
 * well. */
static const char cudart_mark[] = "cudaGetTextureObjectResourceViewDesc";
static const char shared_mark[] = "libcudart.so";

/* Opens what execvp() would run. */
static int open_program(const char *program)
{
	const char *path = getenv("PATH");
	char name[PATH_MAX];

	if (strchr(program, '/'))
		return open(program, O_RDONLY | O_CLOEXEC);
	for (path = path ? path : "/bin:/usr/bin"; *path;) {
		size_t length = strcspn(path, ":");
		snprintf(name, sizeof name, "%.*s%s%s", (int)length, path, length ? "/" : "",
			 program);
		if (!access(name, X_OK))
			return open(name, O_RDONLY | O_CLOEXEC);
		path += length + (path[length] == ':');
	}
	return -1;
}

static bool has_interpreter(const unsigned char *image, size_t size)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	memcpy(&header, image, sizeof header);
	for (unsigned i = 0; i < header.e_phnum; i++) {
		size_t at = header.e_phoff + (size_t)i * sizeof segment;
		if (header.e_phentsize != sizeof segment || header.e_phoff > size ||
		    at > size - sizeof segment)
			return true; /* broken: the kernel will say so */
		memcpy(&segment, image + at, sizeof segment);
		if (segment.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Of this very program, from the linker. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* Made for another kind of process: libtally.so cannot be loaded into it. */
static const char *foreign(const Elf64_Ehdr *header)
{
	if (header->e_ident[EI_CLASS] == ELFCLASS32)
		return "is a program of 32 bits";
	return header->e_machine != __ehdr_start.e_machine ? "is for another kind of processor"
							   : NULL;
}

static void look_inside(const unsigned char *image, size_t size, struct tally_program_look *look)
{
	Elf64_Ehdr header;

	if (size < sizeof header)
		return;
	memcpy(&header, image, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG))
		return;
	look->closed = foreign(&header);
	if (look->closed)
		return;
	if (!has_interpreter(image, size))
		look->closed = "is linked statically";
	look->static_cudart = memmem(image, size, cudart_mark, sizeof cudart_mark) &&
			      !memmem(image, size, shared_mark, strlen(shared_mark));
}

/* Who runs with more rights than the one who starts it gets nothing preloaded (ld.so(8), secure
 * execution). On a file system without such rights these bits mean nothing. */
static const char *rights(int fd, const struct stat *is)
{
	struct statvfs where;
	bool other = (is->st_mode & S_ISUID && is->st_uid != getuid()) ||
		     (is->st_mode & S_ISGID && is->st_mode & S_IXGRP && is->st_gid != getgid());
	bool capable = fgetxattr(fd, "security.capability", NULL, 0) > 0 && getuid() != 0;

	if ((!other && !capable) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (!fstatvfs(fd, &where) && where.f_flag & ST_NOSUID))
		return NULL;
	return capable ? "has capabilities of its own"
		       : "runs with the rights of another user or group (set-user-ID)";
}

void tally_look_at_program(const char *program, struct tally_program_look *look)
{
	const char *more;
	struct stat is;

	*look = (struct tally_program_look){0};
	int fd = open_program(program);
	if (fd < 0)
		return;
	if (!fstat(fd, &is) && S_ISREG(is.st_mode) && is.st_size > 0) {
		void *image = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (image != MAP_FAILED) {
			look_inside(image, (size_t)is.st_size, look);
			munmap(image, (size_t)is.st_size);
		}
		more = rights(fd, &is);
		if (more && !look->closed)
			look->closed = more;
	}
	close(fd);
}
