/* SPDX-License-Identifier: Apache-2.0 */
/* How long a kernel image is that a driver API gave by its address alone. */
#include <elf.h>
#include <string.h>

#include "cache/cache.h"
#include "cache/fatbin.h"

#define FATBIN_WRAPPER_MAGIC  0x466243B1u
#define BITCODE_WRAPPER_MAGIC 0x0B17C0DEu

struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* of what follows the header */
};

struct fatbin_wrapper {
	uint32_t magic, version;
	const void *data;
	void *unused;
};

/* https://llvm.org/docs/BitCodeFormat.html#bitcode-wrapper-format */
struct bitcode_wrapper {
	uint32_t magic, version, offset, size, cpu;
};

static bool size_of_fatbin(const void *image, size_t *size)
{
	struct fatbin_header header;

	memcpy(&header, image, sizeof header);
	return header.header_size >= sizeof header &&
	       !__builtin_add_overflow(header.size, header.header_size, size);
}

static bool size_of_bitcode_wrapper(const void *image, size_t *size)
{
	struct bitcode_wrapper wrapper;

	memcpy(&wrapper, image, sizeof wrapper);
	*size = (size_t)wrapper.offset + wrapper.size;
	return wrapper.offset >= sizeof wrapper;
}

/* The end of whatever reaches furthest: header tables, sections, segments. */
static bool size_of_elf(const void *image, size_t *size)
{
	const char *base = image;
	Elf64_Ehdr header;
	uint64_t end;

	memcpy(&header, image, sizeof header);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_ehsize != sizeof header ||
	    (header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr)) ||
	    (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)))
		return false;
	*size = sizeof header;
	if (header.e_shnum) {
		end = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
		*size = end > *size ? end : *size;
	}
	if (header.e_phnum) {
		end = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
		*size = end > *size ? end : *size;
	}
	for (unsigned i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;
		memcpy(&section, base + header.e_shoff + i * sizeof section, sizeof section);
		end = section.sh_offset + section.sh_size;
		if (section.sh_type != SHT_NOBITS && end > *size)
			*size = end;
	}
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;
		memcpy(&segment, base + header.e_phoff + i * sizeof segment, sizeof segment);
		end = segment.p_offset + segment.p_filesz;
		if (end > *size)
			*size = end;
	}
	return true;
}

/* PTX begins with .version, after white space and comments. */
static bool size_of_ptx(const char *text, size_t *size)
{
	const char *c = text;

	for (;;) {
		c += strspn(c, " \t\r\n");
		if (c[0] == '/' && c[1] == '/') {
			c += strcspn(c, "\n");
		} else if (c[0] == '/' && c[1] == '*') {
			c = strstr(c + 2, "*/");
			if (!c)
				return false;
			c += 2;
		} else {
			break;
		}
	}
	if (strncmp(c, ".version", 8))
		return false;
	*size = strlen(text);
	return true;
}

bool tally_image_size(const void *image, const void **start, size_t *size)
{
	uint32_t magic;
	const char *text = image;

	*start = image;
	*size = 0;
	if (!image || !text[0])
		return false;
	/* A text may be shorter than a word, and end at the end of a page. */
	if (strchr(" \t\r\n/.", text[0]))
		return size_of_ptx(text, size);
	memcpy(&magic, image, sizeof magic);
	if (magic == FATBIN_MAGIC)
		return size_of_fatbin(image, size);
	if (magic == FATBIN_WRAPPER_MAGIC) {
		struct fatbin_wrapper wrapper;
		memcpy(&wrapper, image, sizeof wrapper);
		*start = wrapper.data;
		if (!wrapper.data)
			return false;
		memcpy(&magic, wrapper.data, sizeof magic);
		return magic != FATBIN_WRAPPER_MAGIC && tally_image_size(wrapper.data, start, size);
	}
	if (magic == BITCODE_WRAPPER_MAGIC)
		return size_of_bitcode_wrapper(image, size);
	if (!memcmp(image, ELFMAG, SELFMAG))
		return size_of_elf(image, size);
	return false;
}
