/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run by the build: takes the guard's words out of what ptxas made of prelude.ptx, and writes them
 * as a table in C. Everything that the patcher relies on is checked here; where ptxas writes
 * something else the build ends with a line that says what.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/image.h"
#include "backends/cuda/sass/info.h"
#include "backends/cuda/sass/prelude.h"
#include "base/file.h"

#define ENTRY	       "tally_prelude"
#define LAUNCH_BYTES   16
#define REGISTERS_MOST 32
#define STACK_MOST     4096
#define LEAVE_WORDS    3
#define WORDS_MOST     4096

/* How many bytes of parameters stand before the launch's, in each of the images of a chip. */
static const unsigned before[] = {8, 24, 1032};
enum { IMAGES = sizeof before / sizeof *before };

/* Attributes that ptxas gives to any kernel, and those that the patcher adds. */
static const unsigned known_attributes[] = {
	SASS_CTAIDZ_USED,
	SASS_PARAM_CBANK,
	SASS_KPARAM_INFO,
	SASS_CBANK_PARAM_SIZE,
	SASS_MAXREG_COUNT,
	SASS_EXIT_INSTR_OFFSETS,
	SASS_CRS_STACK_SIZE,
	SASS_CUDA_API_VERSION,
	SASS_NUM_BARRIERS,
	0x35,
	0x36, /* workarounds for the chip */
	0x41, /* shared memory of the driver's own */
	0x4a, /* how blocks start */
	0x50, /* sparse matrices */
	0x5f, /* the version of the instruction set */
};

struct image {
	struct tally_buffer file;
	struct sass_image elf;
	const struct sass_section *code, *info;
	size_t words; /* without the padding */
};

static struct sass_word word_of(const struct image *image, size_t k)
{
	return sass_word_at(image->code->data, k);
}

static const struct sass_section *section(const struct sass_image *elf, const char *name)
{
	for (unsigned k = 1; k < elf->sections; k++)
		if (!strcmp(elf->section[k].name, name))
			return elf->section[k].data ? &elf->section[k] : NULL;
	return NULL;
}

static bool read_image(struct image *image, const char *path, struct tally_error *error)
{
	if (!tally_file_read(path, &image->file, error) ||
	    !sass_image_read(&image->elf, image->file.data, image->file.size, error))
		return false;
	image->code = section(&image->elf, ".text." ENTRY);
	image->info = section(&image->elf, ".nv.info." ENTRY);
	if (!image->code || !image->info || image->code->size % SASS_WORD_BYTES)
		return tally_fail(error, "has no code or no attributes");
	for (unsigned k = 1; k < image->elf.sections; k++) {
		const struct sass_section *other = &image->elf.section[k];

		if (!strncmp(other->name, ".nv.constant", 12) &&
		    strcmp(other->name, ".nv.constant0." ENTRY))
			return tally_fail(error, "needs constants: %s", other->name);
		if (!strncmp(other->name, ".rel", 4) && strstr(other->name, ".text.") &&
		    other->size)
			return tally_fail(error, "needs relocations: %s", other->name);
	}
	image->words = image->code->size / SASS_WORD_BYTES;
	while (image->words && sass_opcode(word_of(image, image->words - 1)) == SASS_NOP)
		image->words--;
	if (image->words < 8 || image->words > WORDS_MOST)
		return tally_fail(error, "has %zu instructions", image->words);
	return true;
}

/* ptxas ends code with a branch to itself, which shows how it writes branches. */
static bool learn_branches(const struct image *image, struct sass_prelude *prelude,
			   struct tally_error *error)
{
	size_t at = (image->words - 1) * SASS_WORD_BYTES;
	struct sass_word last = word_of(image, image->words - 1);

	for (int split = 0; split < 2; split++) {
		struct sass_word branch = sass_branch(split, at, at);

		if (last.lo == branch.lo && (uint32_t)last.hi == (uint32_t)branch.hi) {
			prelude->split = split;
			return true;
		}
	}
	return tally_fail(error, "ends with %016llx, which is no branch to itself",
			  (unsigned long long)last.lo);
}

/* Branches stay inside, and there is nothing else that leaves the straight line. */
static bool check_flow(const struct image *image, const struct sass_prelude *prelude,
		       struct tally_error *error)
{
	for (size_t k = 1; k < image->words; k++) {
		struct sass_word word = word_of(image, k);
		unsigned opcode = sass_opcode(word), family = opcode & 0xff0;
		size_t at = k * SASS_WORD_BYTES;
		int64_t target = SASS_WORD_BYTES;

		if (opcode == SASS_BRA || opcode == SASS_BRA_UNIFORM)
			target = sass_branch_target(prelude->split, word, at);
		else if (opcode == SASS_BSSY)
			target = sass_meeting_target(word, at);
		else if ((family == 0x940 || family == 0x950 || family == 0x340 ||
			  family == 0x350 || family == 0x540) &&
			 opcode != SASS_EXIT && opcode != SASS_BSYNC && opcode != SASS_BMOV_CLEAR)
			return tally_fail(error, "instruction %zu is unknown control flow, %03x", k,
					  opcode);
		if (target < (int64_t)SASS_WORD_BYTES || target % (int64_t)SASS_WORD_BYTES ||
		    target >= (int64_t)(image->words * SASS_WORD_BYTES))
			return tally_fail(error, "instruction %zu branches to %lld", k,
					  (long long)target);
	}
	return true;
}

static bool find_leave(const struct image *image, struct sass_prelude *prelude,
		       struct tally_error *error)
{
	size_t first = 0, count = 0;

	for (size_t k = 0; k < image->words; k++)
		if (sass_opcode(word_of(image, k)) == SASS_PMTRIG) {
			first = count++ ? first : k;
			if (k != first + count - 1)
				return tally_fail(error, "its pmevents are apart");
		}
	if (count != LEAVE_WORDS || sass_opcode(word_of(image, first + count)) != SASS_EXIT)
		return tally_fail(error, "%zu pmevents, not %d before an exit", count, LEAVE_WORDS);
	/* The kernel's first word does not go along. */
	prelude->leave = (uint16_t)(first - 1);
	return true;
}

static bool is_known(unsigned name)
{
	for (size_t k = 0; k < sizeof known_attributes / sizeof *known_attributes; k++)
		if (known_attributes[k] == name)
			return true;
	return false;
}

/* The list of exits has to be what the patcher will take for exits. */
static bool check_exits(const struct image *image, const struct sass_attribute *list,
			struct tally_error *error)
{
	size_t listed = 0;

	for (size_t k = 0; k < image->words; k++) {
		if (sass_opcode(word_of(image, k)) != SASS_EXIT)
			continue;
		if (listed + 4 > list->size ||
		    sass_get32(list->value + listed) != k * SASS_WORD_BYTES)
			return tally_fail(error, "instruction %zu is an exit that is not listed",
					  k);
		listed += 4;
	}
	return listed == list->size || tally_fail(error, "an exit is none");
}

static bool read_attributes(const struct image *image, struct sass_prelude *prelude,
			    struct tally_error *error)
{
	struct sass_attribute attribute;
	bool barrier = false, exits = false;
	size_t at = 0;

	while (sass_info_next(image->info->data, image->info->size, &at, &attribute)) {
		if (!is_known(attribute.name))
			return tally_fail(error, "has an attribute that is unknown here: %#x",
					  attribute.name);
		prelude->reads_z |= attribute.name == SASS_CTAIDZ_USED;
		if (attribute.name == SASS_PARAM_CBANK)
			prelude->parameters = sass_get16(attribute.value + 4);
		if (attribute.name == SASS_NUM_BARRIERS)
			barrier = attribute.value[0] == 1;
		if (attribute.name == SASS_EXIT_INSTR_OFFSETS) {
			if (!check_exits(image, &attribute, error))
				return false;
			exits = true;
		}
	}
	/* Before ABI version 8 the number of barriers is no attribute. */
	if (at != image->info->size || !prelude->parameters || !exits ||
	    (!barrier && image->elf.abi >= 8))
		return tally_fail(error, "its attributes cannot be read");
	return true;
}

static bool read_needs(const struct image *image, struct sass_prelude *prelude,
		       struct tally_error *error)
{
	const struct sass_section *info = section(&image->elf, ".nv.info");
	struct sass_attribute attribute;
	size_t at = 0;

	while (info && sass_info_next(info->data, info->size, &at, &attribute)) {
		uint32_t value = attribute.size >= 8 ? sass_get32(attribute.value + 4) : 0;

		if (attribute.name == SASS_REGCOUNT)
			prelude->registers = (uint16_t)value;
		if ((attribute.name == SASS_FRAME_SIZE || attribute.name == SASS_MIN_STACK_SIZE) &&
		    value)
			return tally_fail(error, "needs %u bytes of stack", value);
	}
	return (prelude->registers && prelude->registers <= REGISTERS_MOST) ||
	       tally_fail(error, "needs %u registers", prelude->registers);
}

static bool learn_stack(const struct image *image, struct sass_prelude *prelude,
			struct tally_error *error)
{
	for (unsigned stack = 4; stack < STACK_MOST; stack += 4)
		if (sass_loads_stack(word_of(image, 0), stack)) {
			prelude->stack = (uint16_t)stack;
			return true;
		}
	return tally_fail(error, "begins with %016llx, which does not load the stack's address",
			  (unsigned long long)word_of(image, 0).lo);
}

/* Whether the images' words differ as an operand does that begins at bit `lowest`. */
static bool is_operand(const struct image *images, size_t k, unsigned lowest)
{
	struct sass_word first = word_of(&images[0], k);
	unsigned offset = sass_constant(first, lowest);

	for (int i = 1; i < IMAGES; i++) {
		struct sass_word other = word_of(&images[i], k);
		struct sass_word expected =
			sass_set_constant(first, lowest, offset + before[i] - before[0]);

		if (memcmp(&expected, &other, sizeof other))
			return false;
	}
	return true;
}

/* The words that differ between the images are those that read the launch. */
static bool find_fixups(const struct image *images, struct sass_prelude *prelude,
			struct sass_fixup *fixups, struct tally_error *error)
{
	for (size_t k = 1; k < images->words; k++) {
		struct sass_word first = word_of(&images[0], k), second = word_of(&images[1], k),
				 third = word_of(&images[2], k);
		unsigned lowest = SASS_CONSTANT;
		int field;

		if (!memcmp(&first, &second, sizeof first) && !memcmp(&first, &third, sizeof first))
			continue;
		if (!is_operand(images, k, lowest))
			lowest--;
		field = (int)sass_constant(first, lowest) - (int)(prelude->parameters + before[0]);
		if (!is_operand(images, k, lowest) || field < 0 || field >= LAUNCH_BYTES ||
		    field % 4)
			return tally_fail(
				error,
				"instruction %zu changes with the size of the parameters, "
				"but not by its operand",
				k);
		fixups[prelude->fixups++] =
			(struct sass_fixup){(uint16_t)(k - 1), (uint16_t)field, (uint16_t)lowest};
	}
	return prelude->fixups >= 3 ||
	       tally_fail(error, "does not read all of the launch parameter");
}

static void write_table(FILE *out, const struct image *image, const struct sass_prelude *prelude,
			const struct sass_fixup *fixups)
{
	fprintf(out, "\nstatic const struct sass_word words_%u[] = {\n", prelude->arch);
	for (size_t k = 1; k < image->words; k++)
		fprintf(out, "\t{0x%016llxu, 0x%016llxu},\n",
			(unsigned long long)word_of(image, k).lo,
			(unsigned long long)word_of(image, k).hi);
	fprintf(out, "};\nstatic const struct sass_fixup fixups_%u[] = {", prelude->arch);
	for (unsigned k = 0; k < prelude->fixups; k++)
		fprintf(out, "{%u, %u, %u}, ", fixups[k].word, fixups[k].field, fixups[k].lowest);
	fprintf(out, "};\n");
}

static bool make_one(FILE *out, unsigned arch, char *const paths[IMAGES],
		     struct sass_prelude *prelude, struct tally_error *error)
{
	struct image images[IMAGES] = {0};
	struct sass_fixup *fixups = calloc(WORDS_MOST, sizeof *fixups);
	bool ok = fixups != NULL;

	*prelude = (struct sass_prelude){.arch = arch};
	for (int i = 0; ok && i < IMAGES; i++) {
		ok = read_image(&images[i], paths[i], error);
		if (ok && images[i].elf.arch != arch)
			ok = tally_fail(error, "is for sm_%u, not sm_%u", images[i].elf.arch, arch);
		if (ok && images[i].words != images[0].words)
			ok = tally_fail(error, "has %zu instructions, not %zu", images[i].words,
					images[0].words);
		if (!ok)
			snprintf(error->file, sizeof error->file, "%s", paths[i]);
	}
	prelude->count = (uint16_t)(images[0].words - 1);
	ok = ok && learn_stack(&images[0], prelude, error) &&
	     learn_branches(&images[0], prelude, error) && check_flow(&images[0], prelude, error) &&
	     find_leave(&images[0], prelude, error) &&
	     read_attributes(&images[0], prelude, error) &&
	     read_needs(&images[0], prelude, error) && find_fixups(images, prelude, fixups, error);
	if (ok)
		write_table(out, &images[0], prelude, fixups);
	else if (!error->file[0])
		snprintf(error->file, sizeof error->file, "%s", paths[0]);
	free(fixups);
	for (int i = 0; i < IMAGES; i++) {
		sass_image_free(&images[i].elf);
		tally_buffer_free(&images[i].file);
	}
	return ok;
}

static void write_list(FILE *out, const struct sass_prelude *preludes, size_t count)
{
	fprintf(out, "\nconst struct sass_prelude sass_preludes[] = {\n");
	for (size_t k = 0; k < count; k++)
		fprintf(out, "\t{%u, %u, %u, %u, %d, %d, %u, %u, %u, words_%u, fixups_%u},\n",
			preludes[k].arch, preludes[k].parameters, preludes[k].stack,
			preludes[k].registers, preludes[k].split, preludes[k].reads_z,
			preludes[k].count, preludes[k].leave, preludes[k].fixups, preludes[k].arch,
			preludes[k].arch);
	fprintf(out, "\t{0},\n};\n");
}

/* make_prelude OUT.c [ARCH CUBIN CUBIN CUBIN]... */
int main(int argc, char **argv)
{
	static struct sass_prelude preludes[64];
	struct tally_error error = {0};
	size_t count = 0;
	FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
	bool ok = out != NULL;

	if (ok)
		fprintf(out, "/* Made by make_prelude from prelude.ptx.in. */\n"
			     "#include \"backends/cuda/sass/prelude.h\"\n");
	for (int k = 2; ok && k + IMAGES < argc && count < 64; k += 1 + IMAGES)
		ok = make_one(out, (unsigned)strtoul(argv[k], NULL, 10), &argv[k + 1],
			      &preludes[count++], &error);
	if (ok)
		write_list(out, preludes, count);
	if (out && fclose(out))
		ok = false;
	if (!ok) {
		tally_fail(&error, "cannot write %s", argc > 1 ? argv[1] : "nothing");
		tally_error_print(&error, "make_prelude");
		if (argc > 1)
			remove(argv[1]);
	}
	return !ok;
}
