/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files: host programs, libraries and objects that carry device code, and device code itself.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/container/reader.h"

/* Sections of host files that hold device code. */
static const struct {
	const char *name;
	bool prefix;
} sections[] = {
	{".nv_fatbin", false},	     {"__nv_relfatbin", false},
	{".hip_fatbin", true}, /* .hip_fatbin.HASH with -fgpu-rdc and unique names */
	{".llvm.offloading", false}, {"__CLANG_OFFLOAD_BUNDLE__", true},
};

/* Sections that only point to device code: when nothing else is found, they say what is missing. */
static const char *const pointers[] = {".nvFatBinSegment", ".hipFatBinSegment"};

struct elf {
	const struct view *view;
	uint64_t table, count; /* section headers */
	uint64_t names, names_size;
};

static Elf64_Shdr section_header(const struct elf *elf, uint64_t index)
{
	Elf64_Shdr header;

	memcpy(&header, elf->view->data + elf->table + index * sizeof(header), sizeof(header));
	return header;
}

/* A section's name, or "" for one outside the table. */
static const char *section_name(const struct elf *elf, const Elf64_Shdr *header)
{
	const char *names = (const char *)elf->view->data + elf->names;

	if (header->sh_name >= elf->names_size ||
	    !memchr(names + header->sh_name, 0, elf->names_size - header->sh_name))
		return "";
	return names + header->sh_name;
}

/* Finds the section headers and their names. A file without them has count 0. */
static bool open_elf(struct reader *r, const struct view *view, const Elf64_Ehdr *head,
		     struct elf *elf)
{
	uint64_t names = head->e_shstrndx;
	Elf64_Shdr first;

	*elf = (struct elf){.view = view, .table = head->e_shoff, .count = head->e_shnum};
	if (!head->e_shoff) {
		elf->count = 0;
		return true;
	}
	if (head->e_shentsize != sizeof(Elf64_Shdr) ||
	    !within(elf->table, sizeof(Elf64_Shdr), view->size))
		return view_fail(r, view, offsetof(Elf64_Ehdr, e_shoff),
				 "the section headers at %llu lie outside the file of %zu bytes: "
				 "it is cut off or damaged",
				 (unsigned long long)head->e_shoff, view->size);
	first = section_header(elf, 0);
	if (!elf->count)
		elf->count = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (elf->count > (view->size - elf->table) / sizeof(Elf64_Shdr) || names >= elf->count)
		return view_fail(r, view, elf->table,
				 "%llu section headers do not fit the file of %zu bytes",
				 (unsigned long long)elf->count, view->size);
	first = section_header(elf, names);
	if (!within(first.sh_offset, first.sh_size, view->size))
		return view_fail(r, view, elf->table + names * sizeof(first),
				 "the section names lie outside the file");
	elf->names = first.sh_offset;
	elf->names_size = first.sh_size;
	return true;
}

static bool carries_device_code(const char *name)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		size_t n = strlen(sections[i].name);

		if (sections[i].prefix ? !strncmp(name, sections[i].name, n)
				       : !strcmp(name, sections[i].name))
			/* The bundler leaves an empty section for the host's part. */
			return strncmp(name + n, "host-", 5) != 0;
	}
	return false;
}

/* Whether the file only points to device code that it does not hold. */
static const char *dangling_pointer(const struct elf *elf)
{
	for (uint64_t i = 0; i < elf->count; i++) {
		Elf64_Shdr header = section_header(elf, i);

		for (size_t p = 0; p < sizeof(pointers) / sizeof(*pointers); p++)
			if (!strcmp(section_name(elf, &header), pointers[p]))
				return pointers[p];
	}
	return NULL;
}

static bool read_section(struct reader *r, const struct elf *elf, const Elf64_Shdr *header,
			 const char *name)
{
	struct view part;

	if (header->sh_type == SHT_NOBITS)
		return view_fail(r, elf->view, 0,
				 "section %s has no contents: this is a file of debug information",
				 name);
	if (!within(header->sh_offset, header->sh_size, elf->view->size))
		return view_fail(r, elf->view, header->sh_offset,
				 "section %s says %llu bytes at %llu, but the file has %zu", name,
				 (unsigned long long)header->sh_size,
				 (unsigned long long)header->sh_offset, elf->view->size);
	if (header->sh_flags & SHF_COMPRESSED)
		return view_fail(
			r, elf->view, header->sh_offset,
			"section %s is compressed: run objcopy --decompress-debug-sections "
			"on the file first",
			name);
	part = view_part(elf->view, header->sh_offset, header->sh_size, "%.100s", name);
	arch_of_bundle_id(name, part.arch);
	return read_sequence(r, &part);
}

/* Every section of that name or, for NULL, of the table. */
static bool read_sections(struct reader *r, const struct elf *elf, const char *only)
{
	for (uint64_t i = 0; i < elf->count; i++) {
		Elf64_Shdr header = section_header(elf, i);
		const char *name = section_name(elf, &header);

		if (only ? strcmp(name, only) != 0 : !carries_device_code(name))
			continue;
		if (!read_section(r, elf, &header, name))
			return false;
	}
	return true;
}

bool read_elf(struct reader *r, const struct view *view, size_t *used)
{
	size_t before = r->images->count;
	const char *pointer;
	struct view device;
	Elf64_Ehdr head;
	struct elf elf;

	*used = view->size;
	if (view->size < sizeof(head))
		return view_fail(r, view, 0, "the ELF header is cut off after %zu bytes",
				 view->size);
	memcpy(&head, view->data, sizeof(head));
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
		return view_fail(r, view, EI_CLASS,
				 "not a 64-bit little-endian ELF file: no GPU program is one");
	if (head.e_machine == EM_CUDA || head.e_machine == EM_AMDGPU) {
		device = *view;
		if (!device.arch[0])
			arch_of_elf(head.e_machine, head.e_ident[EI_ABIVERSION], head.e_flags,
				    device.arch);
		if (!reader_add(r, &device,
				head.e_machine == EM_CUDA ? TALLY_IMAGE_CUBIN : TALLY_IMAGE_HSACO,
				COMPRESSION_NONE, NULL, 0))
			return false;
		/* Machine code can carry its own bitcode (-fembed-bitcode). */
		return open_elf(r, &device, &head, &elf) && read_sections(r, &elf, ".llvmbc");
	}
	if (!open_elf(r, view, &head, &elf) || !read_sections(r, &elf, NULL))
		return false;
	/* A host file's .llvmbc is its host code, unless there is nothing else in it. */
	if (r->images->count == before && !read_sections(r, &elf, ".llvmbc"))
		return false;
	if (r->images->count > before)
		return true;
	pointer = dangling_pointer(&elf);
	if (pointer)
		return view_fail(r, view, 0,
				 "its %s points to device code that the file does not hold",
				 pointer);
	return view_fail(r, view, 0,
			 "an ELF file without device code (no .nv_fatbin, __nv_relfatbin, "
			 ".hip_fatbin, .llvm.offloading or .llvmbc section)%s",
			 elf.count ? "" : ": it has no section headers at all");
}
