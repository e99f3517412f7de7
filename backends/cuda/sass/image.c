/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an ELF file of NVIDIA machine code: see image.h. */
#include "backends/cuda/sass/image.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/info.h"

/* Since ABI version 8 the chip stands one byte higher in the flags, and what kind of target it was
 * in a section of attributes. */
#define SPECIFIC_FLAG 0x800u
#define COMPAT_TARGET 0x09 /* 0: any; else this chip, or its family */

/* Of bytes in the file: code has 128. */
#define ALIGNMENT_MAX 4096

static bool within(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

static bool read_head(struct sass_image *image, struct tally_error *error)
{
	const Elf64_Ehdr *head = &image->head;

	if (image->input_size < sizeof *head || memcmp(image->input, ELFMAG, SELFMAG) ||
	    image->input[EI_CLASS] != ELFCLASS64 || image->input[EI_DATA] != ELFDATA2LSB)
		return tally_fail(error, "is no 64-bit ELF file");
	memcpy(&image->head, image->input, sizeof image->head);
	if (head->e_machine != EM_CUDA)
		return tally_fail(error, "holds no NVIDIA machine code");
	image->abi = head->e_ident[EI_ABIVERSION];
	image->arch = head->e_flags >> (image->abi >= 8 ? 8 : 0) & 0xff;
	image->specific = image->abi < 8 && (head->e_flags & SPECIFIC_FLAG);
	if (head->e_type != ET_EXEC)
		return tally_fail(error, "is not linked yet (relocatable device code)");
	if (!head->e_shnum || head->e_shstrndx >= head->e_shnum || head->e_shnum >= SASS_SECTIONS)
		return tally_fail(error, "damaged: %u sections, names in section %u", head->e_shnum,
				  head->e_shstrndx);
	if (head->e_shentsize != sizeof(Elf64_Shdr) ||
	    !within(head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr), image->input_size))
		return tally_fail(error, "damaged: its section headers are not in it");
	if (head->e_phnum && (head->e_phentsize != sizeof(Elf64_Phdr) ||
			      !within(head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr),
				      image->input_size)))
		return tally_fail(error, "damaged: its program headers are not in it");
	return true;
}

/* Whether the section takes room in the file. */
static bool has_bytes(const Elf64_Shdr *head)
{
	return head->sh_type != SHT_NULL && head->sh_type != SHT_NOBITS && head->sh_size;
}

static bool read_section(struct sass_image *image, unsigned index, struct tally_error *error)
{
	struct sass_section *section = &image->section[index];
	Elf64_Shdr *head = &section->head;

	memcpy(head, image->input + image->head.e_shoff + index * sizeof *head, sizeof *head);
	if (has_bytes(head) && !within(head->sh_offset, head->sh_size, image->input_size))
		return tally_fail(error,
				  "damaged: section %u says %llu bytes at %llu, but there are %zu",
				  index, (unsigned long long)head->sh_size,
				  (unsigned long long)head->sh_offset, image->input_size);
	if (has_bytes(head) &&
	    (head->sh_addralign > ALIGNMENT_MAX || (head->sh_addralign & (head->sh_addralign - 1))))
		return tally_fail(error, "damaged: section %u is aligned to %llu bytes", index,
				  (unsigned long long)head->sh_addralign);
	if (has_bytes(head)) {
		section->data = image->input + head->sh_offset;
		section->size = head->sh_size;
	}
	return true;
}

/* Names are C strings inside the table: it has to end in a NUL. */
static bool is_string_table(const struct sass_image *image, unsigned index)
{
	const struct sass_section *section;

	if (index >= image->sections)
		return false;
	section = &image->section[index];
	return section->head.sh_type == SHT_STRTAB && section->size &&
	       !section->data[section->size - 1];
}

static bool names_chip(const struct sass_section *compat)
{
	struct sass_attribute attribute;
	size_t at = 0;

	while (compat->data && sass_info_next(compat->data, compat->size, &at, &attribute))
		if (attribute.name == COMPAT_TARGET && attribute.value[0])
			return true;
	return false;
}

static bool name_sections(struct sass_image *image, struct tally_error *error)
{
	const struct sass_section *names = &image->section[image->head.e_shstrndx];

	if (!is_string_table(image, image->head.e_shstrndx))
		return tally_fail(error, "damaged: its sections have no names");
	for (unsigned k = 0; k < image->sections; k++) {
		struct sass_section *section = &image->section[k];

		if (section->head.sh_name >= names->size)
			return tally_fail(error, "damaged: section %u has its name at %u of %zu", k,
					  section->head.sh_name, names->size);
		section->name = (const char *)names->data + section->head.sh_name;
		image->mercury |= !strncmp(section->name, ".nv.capmerc.", 12);
		if (!strcmp(section->name, ".nv.compat"))
			image->specific |= names_chip(section);
	}
	return true;
}

static bool read_symbols(struct sass_image *image, struct tally_error *error)
{
	unsigned table = 0;

	for (unsigned k = 1; k < image->sections; k++)
		if (image->section[k].head.sh_type == SHT_SYMTAB) {
			if (table)
				return tally_fail(error, "damaged: two symbol tables");
			table = k;
		}
	const struct sass_section *section = &image->section[table];
	if (!table || !section->size)
		return tally_fail(error, "holds no kernel");
	if (section->head.sh_entsize != sizeof(Elf64_Sym) || section->size % sizeof(Elf64_Sym) ||
	    section->size / sizeof(Elf64_Sym) > UINT32_MAX ||
	    !is_string_table(image, section->head.sh_link))
		return tally_fail(error, "damaged: its symbol table");
	const struct sass_section *strings = &image->section[section->head.sh_link];
	image->symbol_section = table;
	image->symbols = (unsigned)(section->size / sizeof(Elf64_Sym));
	image->strings = (const char *)strings->data;
	image->strings_size = strings->size;
	image->symbol = malloc(section->size);
	if (!image->symbol)
		return tally_fail(error, "out of memory");
	memcpy(image->symbol, section->data, section->size);
	for (unsigned k = 0; k < image->symbols; k++)
		if (image->symbol[k].st_name >= image->strings_size)
			return tally_fail(error, "damaged: symbol %u has its name at %u of %zu", k,
					  image->symbol[k].st_name, image->strings_size);
	return true;
}

bool sass_image_read(struct sass_image *image, const void *data, size_t size,
		     struct tally_error *error)
{
	*image = (struct sass_image){.input = data, .input_size = size};
	if (!read_head(image, error))
		return false;
	image->sections = image->head.e_shnum;
	image->section = calloc(image->sections, sizeof *image->section);
	if (!image->section)
		return tally_fail(error, "out of memory");
	for (unsigned k = 0; k < image->sections; k++)
		if (!read_section(image, k, error))
			return false;
	return name_sections(image, error) && read_symbols(image, error);
}

void sass_image_free(struct sass_image *image)
{
	for (unsigned k = 0; image->section && k < image->sections; k++)
		free(image->section[k].own);
	free(image->section);
	free(image->symbol);
	*image = (struct sass_image){0};
}

const char *sass_symbol_name(const struct sass_image *image, unsigned symbol)
{
	return image->strings + image->symbol[symbol].st_name;
}

uint8_t *sass_section_own(struct sass_section *section, size_t size)
{
	uint8_t *bytes = calloc(1, size ? size : 1);

	if (!bytes)
		return NULL;
	if (section->size)
		memcpy(bytes, section->data, section->size < size ? section->size : size);
	free(section->own);
	section->own = bytes;
	section->data = bytes;
	section->size = size;
	return bytes;
}
