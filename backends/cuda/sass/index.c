/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to which kernel of an image: see kernel.h. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/info.h"
#include "backends/cuda/sass/kernel.h"

/* Functions through which device code launches kernels, in all versions of NVIDIA's device runtime:
 * what is launched there gets no launch parameter. */
static const char *const launching[] = {"__cuda_syscall_cnp", "__cudaCDP", "cudaLaunchDevice",
					"cnpLaunch"};

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static void index_sections(struct sass_index *index)
{
	const struct sass_image *image = index->image;

	for (unsigned k = 1; k < image->sections; k++) {
		const struct sass_section *section = &image->section[k];
		unsigned code = section->head.sh_info;

		if (!strcmp(section->name, ".nv.info") && section->head.sh_type == SASS_NV_INFO)
			index->info_section = k;
		if (code >= image->sections)
			continue;
		if (starts_with(section->name, ".nv.info."))
			index->info[code] = k;
		else if (starts_with(section->name, ".nv.constant0."))
			index->constants[code] = k;
	}
}

static void index_symbols(struct sass_index *index)
{
	const struct sass_image *image = index->image;

	for (unsigned k = 1; k < image->symbols; k++) {
		const Elf64_Sym *symbol = &image->symbol[k];
		const char *name = sass_symbol_name(image, k);

		if (ELF64_ST_TYPE(symbol->st_info) == STT_SECTION &&
		    symbol->st_shndx < image->sections)
			index->base[symbol->st_shndx] = k;
		for (size_t f = 0; f < sizeof launching / sizeof *launching; f++)
			index->launches |= starts_with(name, launching[f]);
	}
}

static void index_relocations(struct sass_index *index)
{
	const struct sass_image *image = index->image;

	for (unsigned k = 1; k < image->sections; k++) {
		const struct sass_section *section = &image->section[k];
		unsigned target = section->head.sh_info;
		size_t entry = section->head.sh_type == SHT_RELA  ? sizeof(Elf64_Rela)
			       : section->head.sh_type == SHT_REL ? sizeof(Elf64_Rel)
								  : 0;

		if (!entry || target >= image->sections)
			continue;
		for (size_t at = 0; at + entry <= section->size; at += entry) {
			Elf64_Rel relocation; /* how both begin */
			uint64_t symbol;

			memcpy(&relocation, section->data + at, sizeof relocation);
			symbol = ELF64_R_SYM(relocation.r_info);
			if (relocation.r_offset < SASS_WORD_BYTES)
				index->moved_entry[target] = true;
			/* Debuggers' tables name kernels too: they are not loaded. */
			if (symbol < image->symbols &&
			    (image->section[target].head.sh_flags & SHF_ALLOC) &&
			    image->symbol[symbol].st_shndx != target)
				index->address[symbol] = true;
		}
	}
}

static void index_registers(struct sass_index *index)
{
	const struct sass_section *info = &index->image->section[index->info_section];
	struct sass_attribute attribute;
	size_t at = 0;

	while (info->data && sass_info_next(info->data, info->size, &at, &attribute)) {
		uint32_t symbol;

		if (attribute.name != SASS_REGCOUNT || attribute.format != SASS_SIZED ||
		    attribute.size < 8)
			continue;
		symbol = sass_get32(attribute.value);
		if (symbol < index->image->symbols)
			index->registers[symbol] = (size_t)(attribute.value + 4 - info->data);
	}
}

bool sass_index_make(struct sass_index *index, struct sass_image *image,
		     const struct sass_prelude *prelude, struct tally_error *error)
{
	unsigned sections = image->sections, symbols = image->symbols;

	*index = (struct sass_index){
		.image = image,
		.prelude = prelude,
		.info = calloc(sections, sizeof *index->info),
		.constants = calloc(sections, sizeof *index->constants),
		.moved_entry = calloc(sections, sizeof *index->moved_entry),
		.base = calloc(sections, sizeof *index->base),
		.address = calloc(symbols, sizeof *index->address),
		.registers = calloc(symbols, sizeof *index->registers),
	};
	if (!index->info || !index->constants || !index->moved_entry || !index->base ||
	    !index->address || !index->registers)
		return tally_fail(error, "out of memory");
	index_sections(index);
	index_symbols(index);
	index_relocations(index);
	if (index->info_section)
		index_registers(index);
	return true;
}

void sass_index_free(struct sass_index *index)
{
	free(index->info);
	free(index->constants);
	free(index->moved_entry);
	free(index->base);
	free(index->address);
	free(index->registers);
	*index = (struct sass_index){0};
}
