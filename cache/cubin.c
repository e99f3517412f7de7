/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code of NVIDIA's: the part of a fatbin that a device can run, and what a cubin's symbols
 * say about its variables. See cache.h. A cubin is an ELF file of 64 bits; its kernels reach
 * variables through addresses that the driver fills in, so its symbols name all there are.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "cache/fatbin.h"

/* Symbol types of CUDA's own. */
#define STT_TEXTURE 10
#define STT_SURFACE 11
#define STT_SAMPLER 12

static bool is_cubin(const void *image, size_t size)
{
	Elf64_Ehdr elf;

	if (size < sizeof elf)
		return false;
	memcpy(&elf, image, sizeof elf);
	return !memcmp(elf.e_ident, ELFMAG, SELFMAG) && elf.e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf.e_machine == CUDA_MACHINE;
}

/* --- the part of a fatbin --- */

/* Code of the same major architecture, as old as the device or older. */
static bool runs(const struct fatbin_entry *entry, unsigned device)
{
	return entry->kind == FATBIN_CUBIN && entry->arch <= device &&
	       entry->arch / 10 == device / 10;
}

/* Copies the entries that run to `to` unless it is NULL; their size. */
static size_t pick(const char *image, size_t size, unsigned device, char *to)
{
	struct fatbin_entry entry;
	size_t total = 0;

	for (size_t at = fatbin_first(image); fatbin_entry_at(image, size, at, &entry);
	     at += fatbin_entry_bytes(&entry)) {
		if (!runs(&entry, device))
			continue;
		if (to)
			memcpy(to + total, image + at, fatbin_entry_bytes(&entry));
		total += fatbin_entry_bytes(&entry);
	}
	return total;
}

bool tally_image_machine_code(const void *image, size_t size, unsigned arch, void **part,
			      size_t *part_size)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
	} head = {FATBIN_MAGIC, 1, FATBIN_HEADER, 0};
	char *copy;

	_Static_assert(sizeof head == FATBIN_HEADER, "NVIDIA's layout");
	if (is_fatbin(image, size)) {
		head.size = pick(image, size, arch, NULL);
		if (!head.size || !(copy = malloc(sizeof head + head.size)))
			return false;
		memcpy(copy, &head, sizeof head);
		pick(image, size, arch, copy + sizeof head);
		*part_size = sizeof head + head.size;
	} else {
		if (!is_cubin(image, size) || !(copy = malloc(size)))
			return false;
		memcpy(copy, image, size);
		*part_size = size;
	}
	*part = copy;
	return true;
}

/* --- symbols --- */

/* Names of what nobody writes though it stands in memory that can be written: literals, and the
 * tables of CUDA's maths functions and of cuRAND's device functions. */
static const char *const tables[] = {
	"$str",	    "__unnamed_", "__cudart_i2opi_", "__cudart_sin_cos_", "precalc_xorwow_",
	"mrg32k3aM"};

/* Namespaces of objects that have no content: a byte that is there to have an address. */
static const char *const tags[] = {"4cuda3std", "6thrust", "3cub", "4cute", "St6ignore"};

struct cubin {
	const char *bytes;
	size_t size;
	Elf64_Ehdr header;
};

static bool section_at(const struct cubin *c, unsigned i, Elf64_Shdr *section)
{
	uint64_t at;

	if (i >= c->header.e_shnum ||
	    __builtin_add_overflow(c->header.e_shoff, (uint64_t)i * sizeof *section, &at) ||
	    at > c->size || c->size - at < sizeof *section)
		return false;
	memcpy(section, c->bytes + at, sizeof *section);
	return section->sh_type == SHT_NOBITS ||
	       (section->sh_offset <= c->size && section->sh_size <= c->size - section->sh_offset);
}

/* A text of a string section, or NULL. */
static const char *text_at(const struct cubin *c, unsigned table, uint32_t at)
{
	Elf64_Shdr s;

	if (!section_at(c, table, &s) || s.sh_type != SHT_STRTAB || at >= s.sh_size ||
	    !memchr(c->bytes + s.sh_offset + at, 0, s.sh_size - at))
		return NULL;
	return c->bytes + s.sh_offset + at;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_written_by_nobody(const char *name, const Elf64_Sym *symbol, bool zero)
{
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (begins(name, tables[i]))
			return true;
	for (size_t i = 0; zero && symbol->st_size <= 1 && i < sizeof tags / sizeof *tags; i++)
		if (strstr(name, tags[i]))
			return true;
	return false;
}

static void found(struct tally_cubin_facts *facts, const char *name)
{
	facts->variables = TALLY_YES;
	if (!facts->variable[0])
		strncat(facts->variable, name, sizeof facts->variable - 1);
}

/* One symbol; false when it does not make sense. */
static bool look_at(const struct cubin *c, const Elf64_Shdr *table, const Elf64_Sym *symbol,
		    struct tally_cubin_facts *facts)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	const char *name, *where;
	Elf64_Shdr in;

	if (type != STT_OBJECT && type != STT_COMMON && type != STT_TEXTURE &&
	    type != STT_SURFACE && type != STT_SAMPLER)
		return true;
	name = text_at(c, table->sh_link, symbol->st_name);
	if (!name)
		return false;
	if (begins(name, ".nv.")) /* the compiler's own: shared memory that is reserved */
		return true;
	/* Not in any section: somebody else's, or not placed yet. */
	if (type != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx >= SHN_LORESERVE) {
		found(facts, name);
		return true;
	}
	if (!section_at(c, symbol->st_shndx, &in) ||
	    !(where = text_at(c, c->header.e_shstrndx, in.sh_name)))
		return false;
	if (begins(where, ".nv.constant"))
		facts->constants = TALLY_YES;
	else if (!begins(where, ".nv.shared") && !begins(where, ".nv.local") &&
		 !begins(where, ".text.") &&
		 !is_written_by_nobody(name, symbol, in.sh_type == SHT_NOBITS))
		found(facts, name);
	return true;
}

struct tally_cubin_facts tally_cubin_look(const void *cubin, size_t size)
{
	static const struct tally_cubin_facts unknown = {TALLY_MAYBE, TALLY_MAYBE, ""};
	struct tally_cubin_facts facts = {TALLY_NO, TALLY_NO, ""};
	struct cubin c = {.bytes = cubin, .size = size};
	bool any = false;

	if (!is_cubin(cubin, size))
		return unknown;
	memcpy(&c.header, cubin, sizeof c.header);
	for (unsigned i = 0; i < c.header.e_shnum; i++) {
		Elf64_Shdr table;

		if (!section_at(&c, i, &table))
			return unknown;
		if (table.sh_type != SHT_SYMTAB)
			continue;
		any = true;
		for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size;
		     at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;

			memcpy(&symbol, c.bytes + table.sh_offset + at, sizeof symbol);
			if (!look_at(&c, &table, &symbol, &facts))
				return unknown;
		}
	}
	return any ? facts : unknown;
}
