/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into an executable for what would keep Tally out of it: see command.h. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

static void look_inside(const unsigned char *image, size_t size, struct tally_program_look *look)
{
	Elf64_Ehdr header;

	if (size < sizeof header)
		return;
	memcpy(&header, image, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64)
		return;
	look->elf = true;
	look->statically_linked = !has_interpreter(image, size);
	look->static_cudart = memmem(image, size, cudart_mark, sizeof cudart_mark) &&
			      !memmem(image, size, shared_mark, strlen(shared_mark));
}

void tally_look_at_program(const char *program, struct tally_program_look *look)
{
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
	}
	close(fd);
}
