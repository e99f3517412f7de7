/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the guard into one kernel. Its code keeps its place: the guard comes behind it, and the
 * kernel's first word, which loads the stack's address, makes way for a branch there. The guard
 * ends with that word and a branch to the second one.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/info.h"
#include "backends/cuda/sass/kernel.h"

#define PARAMETER_BYTES 16 /* of struct tally_launch: control, lo, hi */
/* Of all parameters together, as they are described in one way and the other. */
#define PARAMETER_MOST	  4096
#define PARAMETER_MOST_V2 32764
/* What ptxas says of every parameter besides its size: no place of its own in other banks. */
#define KPARAM_PLAIN	      0x1f000u
#define KPARAM_SIZE_SHIFT     18
#define CODE_ALIGNMENT	      128
#define BARRIERS_SHIFT	      20 /* in sh_flags, before ABI version 8 */
#define BARRIERS_MASK	      0x7fu
#define REGISTERS_SHIFT	      24 /* in sh_info, where it stands there */
#define ABI_WITH_NUM_BARRIERS 8

struct kernel {
	struct sass_index *index;
	unsigned symbol, code, info, constants; /* sections */
	/* From its attributes. */
	unsigned parameters; /* bytes */
	unsigned bank;	     /* where they begin */
	unsigned ordinal;    /* the new one's */
	unsigned max_registers;
	bool large; /* described as kernels with more than 4 KiB of parameters are */
	bool has_size, has_bank, has_exits, has_barriers, has_z;
	uint16_t place; /* the launch parameter's, from the first one */
};

/* How the attributes that are read or changed have to look. */
static const struct {
	unsigned name, format;
	size_t size;
} forms[] = {
	{SASS_KPARAM_INFO_V2, SASS_SIZED, 12}, {SASS_KPARAM_INFO, SASS_SIZED, 12},
	{SASS_CBANK_PARAM_SIZE, SASS_HALF, 2}, {SASS_PARAM_CBANK, SASS_SIZED, 8},
	{SASS_MAXREG_COUNT, SASS_HALF, 2},     {SASS_EXIT_INSTR_OFFSETS, SASS_SIZED, 0},
	{SASS_NUM_BARRIERS, SASS_BYTE, 2},
};

static enum tally_sass_reason read_attribute(struct kernel *kernel,
					     const struct sass_attribute *attribute)
{
	const uint8_t *value = attribute->value;

	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
		if (attribute->name == forms[k].name &&
		    (attribute->format != forms[k].format || attribute->size < forms[k].size))
			return TALLY_SASS_ATTRIBUTES;
	switch (attribute->name) {
	case SASS_BLOCKS_ARE_CLUSTERS:
		return TALLY_SASS_CLUSTER_GRID;
	case SASS_KPARAM_INFO_V2:
		kernel->large = true;
		/* fallthrough */
	case SASS_KPARAM_INFO:
		if (sass_get16(value + 4) >= kernel->ordinal)
			kernel->ordinal = sass_get16(value + 4) + 1u;
		break;
	case SASS_CBANK_PARAM_SIZE:
		kernel->has_size = true;
		kernel->parameters = sass_get16(value);
		break;
	case SASS_PARAM_CBANK:
		kernel->has_bank = true;
		kernel->bank = sass_get16(value + 4);
		break;
	case SASS_MAXREG_COUNT:
		kernel->max_registers = sass_get16(value);
		break;
	case SASS_EXIT_INSTR_OFFSETS:
		kernel->has_exits = true;
		break;
	case SASS_NUM_BARRIERS:
		kernel->has_barriers = true;
		break;
	case SASS_CTAIDZ_USED:
		kernel->has_z = true;
		break;
	default:
		break;
	}
	return TALLY_SASS_PATCHED;
}

static enum tally_sass_reason read_attributes(struct kernel *kernel)
{
	const struct sass_section *info = &kernel->index->image->section[kernel->info];
	enum tally_sass_reason reason = TALLY_SASS_PATCHED;
	struct sass_attribute attribute;
	size_t at = 0;

	kernel->bank = kernel->index->prelude->parameters;
	kernel->max_registers = UINT16_MAX;
	while (!reason && info->data && sass_info_next(info->data, info->size, &at, &attribute))
		reason = read_attribute(kernel, &attribute);
	if (!reason && at != info->size)
		reason = TALLY_SASS_ATTRIBUTES;
	return reason;
}

/* Whether a direct branch or call goes to the first instruction, which would ask again. */
static bool branches_to_entry(const struct sass_section *code, bool split)
{
	for (size_t k = 0; k < code->size / SASS_WORD_BYTES; k++) {
		struct sass_word word = sass_word_at(code->data, k);
		unsigned opcode = sass_opcode(word);

		if ((opcode == SASS_BRA || opcode == SASS_BRA_UNIFORM ||
		     opcode == SASS_CALL_RELATIVE) &&
		    sass_branch_target(split, word, k * SASS_WORD_BYTES) == 0)
			return true;
	}
	return false;
}

/* Whether the code is what write_code() writes. */
static bool has_guard(const struct sass_section *code, const struct sass_prelude *prelude)
{
	size_t count = code->size / SASS_WORD_BYTES, leave;
	struct sass_word first = sass_word_at(code->data, 0), wait = sass_wait_for_all(), word;
	int64_t target;

	if (sass_opcode(first) != SASS_BRA)
		return false;
	target = sass_branch_target(prelude->split, first, 0);
	if (target <= 0 || target % SASS_WORD_BYTES || (uint64_t)target >= code->size)
		return false;
	leave = (size_t)target / SASS_WORD_BYTES + prelude->leave;
	if (leave + 2 >= count)
		return false;
	word = sass_word_at(code->data, leave);
	return !memcmp(&word, &wait, sizeof word) &&
	       sass_branch_target(prelude->split, sass_word_at(code->data, leave + 2),
				  (leave + 2) * SASS_WORD_BYTES) == SASS_WORD_BYTES;
}

static enum tally_sass_reason check_code(const struct kernel *kernel)
{
	const struct sass_index *index = kernel->index;
	const struct sass_section *code = &index->image->section[kernel->code];
	const Elf64_Sym *symbol = &index->image->symbol[kernel->symbol];

	if (symbol->st_value)
		return TALLY_SASS_ENTRY;
	if (symbol->st_size != code->size || code->size % SASS_WORD_BYTES ||
	    code->size < 2 * SASS_WORD_BYTES || code->own)
		return TALLY_SASS_SIZE;
	if (has_guard(code, index->prelude))
		return TALLY_SASS_GUARDED;
	if (!sass_loads_stack(sass_word_at(code->data, 0), index->prelude->stack))
		return TALLY_SASS_FIRST;
	if (index->moved_entry[kernel->code])
		return TALLY_SASS_RELOCATED;
	if (branches_to_entry(code, index->prelude->split))
		return TALLY_SASS_LOOP;
	return TALLY_SASS_PATCHED;
}

static enum tally_sass_reason check_parameters(struct kernel *kernel)
{
	const struct sass_index *index = kernel->index;
	unsigned place = (kernel->parameters + 7u) & ~7u;

	if (place + PARAMETER_BYTES > (kernel->large ? PARAMETER_MOST_V2 : PARAMETER_MOST))
		return TALLY_SASS_LARGE;
	if (kernel->bank != index->prelude->parameters ||
	    index->image->section[kernel->constants].size != kernel->bank + kernel->parameters ||
	    kernel->ordinal > UINT16_MAX || (!kernel->has_bank && !index->base[kernel->constants]))
		return TALLY_SASS_PARAMETERS;
	kernel->place = (uint16_t)place;
	return TALLY_SASS_PATCHED;
}

static enum tally_sass_reason check_registers(const struct kernel *kernel)
{
	const struct sass_index *index = kernel->index;

	return !index->registers[kernel->symbol] ||
			       kernel->max_registers < index->prelude->registers
		       ? TALLY_SASS_REGISTERS
		       : TALLY_SASS_PATCHED;
}

/* Finds the sections of the kernel: the names have to say the same as the links. */
static enum tally_sass_reason find_sections(struct kernel *kernel)
{
	const struct sass_index *index = kernel->index;
	const struct sass_image *image = index->image;
	const char *name = sass_symbol_name(image, kernel->symbol);

	kernel->code = image->symbol[kernel->symbol].st_shndx;
	if (kernel->code >= image->sections)
		return TALLY_SASS_PIECES;
	kernel->info = index->info[kernel->code];
	kernel->constants = index->constants[kernel->code];
	const struct {
		unsigned section, type;
		const char *prefix;
	} parts[] = {{kernel->code, SHT_PROGBITS, ".text."},
		     {kernel->info, SASS_NV_INFO, ".nv.info."},
		     {kernel->constants, SHT_PROGBITS, ".nv.constant0."}};
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		const struct sass_section *own = &image->section[parts[k].section];
		size_t length = strlen(parts[k].prefix);

		if (!parts[k].section || own->head.sh_type != parts[k].type || !own->data ||
		    strncmp(own->name, parts[k].prefix, length) || strcmp(own->name + length, name))
			return TALLY_SASS_PIECES;
	}
	return TALLY_SASS_PATCHED;
}

static enum tally_sass_reason examine(struct kernel *kernel)
{
	static enum tally_sass_reason (*const steps[])(struct kernel *) = {
		find_sections, read_attributes, check_parameters};
	enum tally_sass_reason reason = TALLY_SASS_PATCHED;

	if (kernel->index->launches)
		return TALLY_SASS_LAUNCHES;
	if (kernel->index->address[kernel->symbol])
		return TALLY_SASS_ADDRESS;
	for (size_t k = 0; !reason && k < sizeof steps / sizeof *steps; k++)
		reason = steps[k](kernel);
	if (!reason)
		reason = check_code(kernel);
	return reason ? reason : check_registers(kernel);
}

/* The code: branch to the guard, the rest as it was, the guard, padding. */
static bool write_code(const struct kernel *kernel)
{
	struct sass_image *image = kernel->index->image;
	const struct sass_prelude *prelude = kernel->index->prelude;
	struct sass_section *code = &image->section[kernel->code];
	size_t begin = code->size, words = begin / SASS_WORD_BYTES, count = prelude->count;
	size_t end = begin + count * SASS_WORD_BYTES;
	size_t padded = (end + CODE_ALIGNMENT - 1) / CODE_ALIGNMENT * CODE_ALIGNMENT;
	size_t leave = words + prelude->leave;
	struct sass_word first = sass_word_at(code->data, 0);
	struct sass_word *to = (struct sass_word *)(void *)sass_section_own(code, padded);

	if (!to)
		return false;
	memcpy(&to[words], prelude->word, count * sizeof *to);
	for (unsigned k = 0; k < prelude->fixups; k++) {
		const struct sass_fixup *fixup = &prelude->fixup[k];
		struct sass_word *word = &to[words + fixup->word];

		*word = sass_set_constant(*word, fixup->lowest,
					  kernel->bank + kernel->place + fixup->field);
	}
	to[leave] = sass_wait_for_all();
	to[leave + 1] = first;
	to[leave + 2] = sass_branch(prelude->split, (leave + 2) * sizeof *to, sizeof *to);
	for (size_t k = words + count; k < padded / sizeof *to; k++)
		to[k] = sass_nop();
	to[0] = sass_branch(prelude->split, 0, begin);
	image->symbol[kernel->symbol].st_size = padded;
	return true;
}

static void append_parameter(const struct kernel *kernel, struct tally_buffer *out)
{
	uint8_t value[12] = {0};

	sass_put16(value + 4, (uint16_t)kernel->ordinal);
	sass_put16(value + 6, kernel->place);
	sass_put32(value + 8, kernel->large ? PARAMETER_BYTES
					    : PARAMETER_BYTES << KPARAM_SIZE_SHIFT | KPARAM_PLAIN);
	sass_info_append(out, SASS_SIZED, kernel->large ? SASS_KPARAM_INFO_V2 : SASS_KPARAM_INFO,
			 value, sizeof value);
}

/* The kernel's own exits, if any, and the guard's. */
static bool append_exits(const struct kernel *kernel, const uint8_t *old, size_t old_size,
			 struct tally_buffer *out)
{
	const struct sass_prelude *prelude = kernel->index->prelude;
	size_t begin = kernel->index->image->symbol[kernel->symbol].st_size;
	struct tally_buffer all = {0};
	bool ok;

	tally_buffer_append(&all, old, old_size);
	for (unsigned k = 0; k < prelude->count; k++) {
		uint8_t offset[4];

		sass_put32(offset, (uint32_t)(begin + k * SASS_WORD_BYTES));
		if (sass_opcode(prelude->word[k]) == SASS_EXIT)
			tally_buffer_append(&all, offset, sizeof offset);
	}
	ok = !all.failed && all.size <= UINT16_MAX;
	if (ok)
		sass_info_append(out, SASS_SIZED, SASS_EXIT_INSTR_OFFSETS, all.data, all.size);
	tally_buffer_free(&all);
	return ok;
}

/* One attribute of the kernel as it has to be with the guard. */
static bool copy_attribute(const struct kernel *kernel, const struct sass_attribute *attribute,
			   struct tally_buffer *out)
{
	uint16_t size = (uint16_t)(kernel->place + PARAMETER_BYTES);
	uint8_t value[8];

	switch (attribute->name) {
	case SASS_CBANK_PARAM_SIZE:
		sass_put16(value, size);
		sass_info_append(out, attribute->format, attribute->name, value, 2);
		return true;
	case SASS_PARAM_CBANK:
		memcpy(value, attribute->value, 8);
		sass_put16(value + 6, size);
		sass_info_append(out, attribute->format, attribute->name, value, 8);
		return true;
	case SASS_EXIT_INSTR_OFFSETS:
		return append_exits(kernel, attribute->value, attribute->size, out);
	case SASS_NUM_BARRIERS:
		memcpy(value, attribute->value, 2);
		if (!value[0])
			value[0] = 1;
		sass_info_append(out, attribute->format, attribute->name, value, 2);
		return true;
	default:
		sass_info_append(out, attribute->format, attribute->name, attribute->value,
				 attribute->size);
		return true;
	}
}

/* What the kernel did not need to say before. */
static bool append_missing(const struct kernel *kernel, struct tally_buffer *out)
{
	const struct sass_index *index = kernel->index;
	uint16_t size = (uint16_t)(kernel->place + PARAMETER_BYTES);
	uint8_t value[8];

	sass_put16(value, size);
	if (!kernel->has_size)
		sass_info_append(out, SASS_HALF, SASS_CBANK_PARAM_SIZE, value, 2);
	sass_put32(value, index->base[kernel->constants]);
	sass_put16(value + 4, (uint16_t)kernel->bank);
	sass_put16(value + 6, size);
	if (!kernel->has_bank)
		sass_info_append(out, SASS_SIZED, SASS_PARAM_CBANK, value, 8);
	value[0] = 1;
	if (!kernel->has_barriers && index->image->abi >= ABI_WITH_NUM_BARRIERS)
		sass_info_append(out, SASS_BYTE, SASS_NUM_BARRIERS, value, 1);
	if (!kernel->has_z && index->prelude->reads_z)
		sass_info_append(out, SASS_NO_VALUE, SASS_CTAIDZ_USED, NULL, 0);
	return kernel->has_exits || append_exits(kernel, NULL, 0, out);
}

/* Where the new parameter stands: before the others, which are in falling order; without any, first
 * or behind the version. */
static size_t parameter_at(const struct sass_section *info)
{
	struct sass_attribute attribute;
	size_t at = 0, none = 0;

	while (sass_info_next(info->data, info->size, &at, &attribute)) {
		if (attribute.name == SASS_KPARAM_INFO || attribute.name == SASS_KPARAM_INFO_V2)
			return attribute.at;
		if (attribute.at == 0 && attribute.name == SASS_CUDA_API_VERSION)
			none = at;
	}
	return none;
}

static bool make_attributes(const struct kernel *kernel, struct tally_buffer *out)
{
	const struct sass_section *info = &kernel->index->image->section[kernel->info];
	size_t at = 0, parameter = parameter_at(info);
	struct sass_attribute attribute;
	bool ok = true;

	while (ok && sass_info_next(info->data, info->size, &at, &attribute)) {
		if (attribute.at == parameter)
			append_parameter(kernel, out);
		ok = copy_attribute(kernel, &attribute, out);
	}
	if (parameter == info->size)
		append_parameter(kernel, out);
	return ok && append_missing(kernel, out) && !out->failed;
}

/* The guard needs as many registers and one barrier; where that stands depends on the version. */
static bool raise_needs(const struct kernel *kernel)
{
	struct sass_image *image = kernel->index->image;
	unsigned need = kernel->index->prelude->registers;
	struct sass_section *info = &image->section[kernel->index->info_section];
	Elf64_Shdr *head = &image->section[kernel->code].head;
	size_t at = kernel->index->registers[kernel->symbol];

	if (sass_get32(info->data + at) < need) {
		if (!info->own && !sass_section_own(info, info->size))
			return false;
		sass_put32(info->own + at, need);
	}
	if (head->sh_info >> REGISTERS_SHIFT && head->sh_info >> REGISTERS_SHIFT < need)
		head->sh_info = (head->sh_info & ((1u << REGISTERS_SHIFT) - 1)) |
				(uint32_t)need << REGISTERS_SHIFT;
	if (image->abi < ABI_WITH_NUM_BARRIERS &&
	    !(head->sh_flags >> BARRIERS_SHIFT & BARRIERS_MASK))
		head->sh_flags |= (uint64_t)1 << BARRIERS_SHIFT;
	return true;
}

bool sass_kernel_patch(struct sass_index *index, unsigned symbol, enum tally_sass_reason *reason,
		       struct tally_error *error)
{
	struct kernel kernel = {.index = index, .symbol = symbol};
	struct tally_buffer attributes = {0};
	uint8_t *info;

	*reason = examine(&kernel);
	if (*reason)
		return true;
	/* Before the code: the exits count from the old end. */
	if (!make_attributes(&kernel, &attributes)) {
		bool failed = attributes.failed;

		tally_buffer_free(&attributes);
		*reason = TALLY_SASS_ATTRIBUTES;
		return !failed || tally_fail(error, "out of memory");
	}
	info = sass_section_own(&index->image->section[kernel.info], attributes.size);
	if (info)
		memcpy(info, attributes.data, attributes.size);
	tally_buffer_free(&attributes);
	if (!info || !write_code(&kernel) || !raise_needs(&kernel) ||
	    !sass_section_own(&index->image->section[kernel.constants],
			      kernel.bank + kernel.place + PARAMETER_BYTES))
		return tally_fail(error, "out of memory");
	return true;
}
