/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints docs/ptx-coverage.md: what the instruction table makes of each instruction of the ISA, and
 * which are executed: ptx_coverage cpu FILE ... h200 FILE ... marks the forms that the files write.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "frontend/ptx/instruction.h"

struct isa_instruction {
	const char *section, *name, *note;
};

static const struct isa_instruction instructions[] = {
#define ISA(section, name, note) {section, name, note},
#include "frontend/ptx/isa.def"
#undef ISA
};

enum { COUNT = sizeof instructions / sizeof *instructions };

enum state { PORTABLE, PARTLY, LOCKED, UNKNOWN, STATES };

static const char *const state_names[STATES] = {
	"portable",
	"portable, some forms locked",
	"vendor-locked",
	"unknown",
};

static const struct {
	const char *section, *title;
} chapters[] = {
	{"9.7.1", "Integer arithmetic"},
	{"9.7.2", "Extended-precision integer arithmetic"},
	{"9.7.3", "Floating point"},
	{"9.7.4", "Half-precision floating point"},
	{"9.7.5", "Mixed-precision floating point"},
	{"9.7.6", "Comparison and selection"},
	{"9.7.7", "Half-precision comparison"},
	{"9.7.8", "Logic and shift"},
	{"9.7.9", "Data movement and conversion"},
	{"9.7.10", "Texture"},
	{"9.7.11", "Surface"},
	{"9.7.12", "Control flow"},
	{"9.7.13", "Parallel synchronisation and communication"},
	{"9.7.14", "Warp-level matrix multiply-accumulate"},
	{"9.7.15", "Asynchronous warpgroup-level matrix multiply-accumulate"},
	{"9.7.16", "TensorCore, 5th generation"},
	{"9.7.17", "Stack manipulation"},
	{"9.7.18", "Video"},
	{"9.7.19", "Miscellaneous"},
};

static const struct {
	const char *section, *what, *result, *test;
} compared[] = {
#define COMPARED(section, what, result, test) {section, what, result, test},
#include "frontend/ptx/compared.def"
#undef COMPARED
};

enum { COMPARISONS = sizeof compared / sizeof *compared };

/* Every section of instructions was compared, and what holds the result is there. */
static bool check_compared(void)
{
	bool whole = true;

	for (size_t c = 0; c < sizeof chapters / sizeof *chapters; c++) {
		bool found = false;

		for (size_t i = 0; i < COMPARISONS && !found; i++)
			found = !strcmp(compared[i].section, chapters[c].section);
		if (!found)
			fprintf(stderr, "compared.def lacks section %s\n", chapters[c].section);
		whole &= found;
	}
	for (size_t i = 0; i < COMPARISONS; i++) {
		FILE *test = fopen(compared[i].test, "r");

		if (!test)
			fprintf(stderr, "compared.def: section %s: there is no %s\n",
				compared[i].section, compared[i].test);
		else
			fclose(test);
		whole &= test != NULL;
	}
	return whole;
}

/* Whether word `w` is one of the alternatives that stand in `modifiers`: 2 required, 1 optional. */
static int has_word(const char *modifiers, const char *w, size_t length)
{
	for (const char *p = modifiers; *p; p += *p == ' ') {
		size_t n = strcspn(p, " ");
		bool optional = n && p[n - 1] == '?';
		const char *end = p + n - optional;

		while (*p != ':' && p < end) {
			size_t k = strcspn(p, "| ?");
			if (k == length && !memcmp(p, w, k))
				return optional ? 1 : 2;
			p += k + (p + k < end);
		}
		p = end + optional;
	}
	return 0;
}

/* Whether the dotted `name` has all the words that stand before a row's `*`. */
static bool has_all_words(const char *name, const char *modifiers)
{
	while (*modifiers != '*') {
		size_t n = strcspn(modifiers, " ");
		bool found = false;

		for (const char *p = name; (p = strchr(p, '.')) && !found;)
			found = strcspn(++p, ".") == n && !memcmp(p, modifiers, n);
		if (!found)
			return false;
		modifiers += n + 1;
	}
	return true;
}

/*
 * Whether `row` can be a form of the instruction: same name, and each further word among the
 * modifiers, or behind the row's `*`.
 */
static bool is_form(const struct ptx_row *row, const struct isa_instruction *i)
{
	size_t length = strcspn(i->name, ".");
	const char *word = i->name + length;
	bool any = strchr(row->modifiers, '*');

	if (strlen(row->name) != length || memcmp(row->name, i->name, length))
		return false;
	if (!any && strcmp(row->section, i->section) &&
	    !(!strcmp(i->section, "9.7.7") && !strcmp(row->section, "9.7.6")))
		return false;
	while (*word == '.') {
		size_t n = strcspn(++word, ".");
		if (!has_word(row->modifiers, word, n) && !any)
			return false;
		word += n;
	}
	return !any || has_all_words(i->name, row->modifiers);
}

/* Whether a longer name of the ISA describes the row better: cp.async.bulk than cp.async. */
static bool is_other(const struct ptx_row *row, const struct isa_instruction *i)
{
	size_t length = strlen(i->name);

	for (size_t k = 0; k < COUNT; k++) {
		const struct isa_instruction *o = &instructions[k];
		const char *word = o->name + length;
		bool all = !strncmp(o->name, i->name, length) && *word == '.';

		while (all && *word == '.') {
			size_t n = strcspn(++word, ".");
			all = has_word(row->modifiers, word, n) == 2;
			word += n;
		}
		if (all)
			return true;
	}
	return false;
}

static enum state state_of(const struct isa_instruction *i)
{
	unsigned portable = 0, locked = 0;
	const struct ptx_row *row;

	for (size_t k = 0; (row = ptx_row_at(k)); k++) {
		if (!is_form(row, i) || is_other(row, i))
			continue;
		if (!row->lower)
			locked++;
		else
			portable++;
	}
	return portable && locked ? PARTLY : portable ? PORTABLE : locked ? LOCKED : UNKNOWN;
}

/* ---- which forms are executed ---- */

enum place { ON_CPU, ON_H200, PLACES };

enum { MAX_ROWS = 1024 };
static bool executed[PLACES][MAX_ROWS];

/* "add.rn.f32" as a statement without operands; false when it is none. */
static bool read_opcode(char *text, struct ptx_statement *s)
{
	char *save = NULL;
	unsigned types = 0;

	s->name = strtok_r(text, ".", &save);
	for (char *m; s->name && (m = strtok_r(NULL, ".", &save));) {
		enum ptx_type type = ptx_type_find(m, strlen(m));

		if (s->modifiers == PTX_MAX_MODIFIERS || (type && types == 4))
			return false;
		s->modifier[s->modifiers++] = m;
		if (type)
			s->type[types++] = type;
	}
	return s->name != NULL;
}

static void mark_opcode(const char *text, size_t length, enum place place)
{
	char copy[160];
	struct ptx_statement s = {0};
	const struct ptx_row *row;

	if (length >= sizeof copy)
		return;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (!read_opcode(copy, &s))
		return;
	for (size_t k = 0; k < MAX_ROWS && (row = ptx_row_at(k)); k++)
		if (ptx_row_has_form(row, &s)) {
			executed[place][k] = true;
			return;
		}
}

/* Every word of the file that can be an opcode. */
static bool mark_file(const char *path, enum place place)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	bool ok = tally_file_read(path, &text, &error);

	if (!ok)
		tally_error_print(&error, "ptx_coverage");
	for (const char *p = text.data; ok && p && *p;) {
		const char *end = p;

		while (isalnum((unsigned char)*end) || *end == '_' || *end == '.' || *end == ':')
			end++;
		if (end > p && (p == text.data || (p[-1] != '%' && p[-1] != '$')))
			mark_opcode(p, (size_t)(end - p), place);
		p = end > p ? end : p + 1;
	}
	tally_buffer_free(&text);
	return ok;
}

static const char *where(const struct isa_instruction *i, enum place place)
{
	const struct ptx_row *row;

	for (size_t k = 0; k < MAX_ROWS && (row = ptx_row_at(k)); k++)
		if (executed[place][k] && is_form(row, i) && !is_other(row, i))
			return "yes";
	return "";
}

/* A row that no instruction of the list describes is a gap of the list. */
static bool check_rows(void)
{
	const struct ptx_row *row;
	bool whole = true;

	for (size_t k = 0; (row = ptx_row_at(k)); k++) {
		bool found = false;
		for (size_t i = 0; i < COUNT && !found; i++)
			found = is_form(row, &instructions[i]);
		if (!found)
			fprintf(stderr, "isa.def lacks the instruction of row %s '%s' (%s)\n",
				row->name, row->modifiers, row->section);
		whole &= found;
	}
	return whole;
}

static void print_head(void)
{
	unsigned count[STATES] = {0};

	for (size_t i = 0; i < COUNT; i++)
		count[state_of(&instructions[i])]++;
	printf("# PTX instructions\n\n"
	       "Made by `ptx_coverage` from `frontend/ptx/instructions.def` and "
	       "`frontend/ptx/isa.def`; a test fails when this page\n"
	       "is stale (`ninja ptx_coverage_page` writes it anew). All instructions of release "
	       "9.0 of the PTX ISA.\n\n"
	       "- portable: has a neutral meaning (docs/ir-contract.md) and runs wherever the "
	       "target has the operation\n"
	       "- portable, some forms locked: forms that the note names, or that the table gives "
	       "to the vendor, stay assembly\n"
	       "- vendor-locked: stays assembly, the kernel runs on NVIDIA's GPUs only\n"
	       "- unknown: an error, 'unknown instruction' or 'not known in this form'\n"
	       "- run on the CPU: some form of it stands in a test that executes it there "
	       "(tests/ptx, conformance/kernels)\n"
	       "- checked on an H200: some form of it stands in the conformance kernels or tables "
	       "that an "
	       "H200 "
	       "ran (bench/results/h200/instructions.txt)\n"
	       "- every form that ptxas takes is lifted, and taken again after lowering "
	       "(tests/ptx/forms; `ninja ptx_forms_all`); so is every inline assembly statement "
	       "of\n"
	       "  the toolkit's own headers, cuda::ptx first (`ninja ptx_headers_all`)\n\n"
	       "| state | instructions |\n|---|---|\n");
	for (unsigned s = 0; s < STATES; s++)
		printf("| %s | %u |\n", state_names[s], count[s]);
	printf("| all | %d |\n", COUNT);
}

static void print_compared(void)
{
	printf("\n## Compared with the text\n\n"
	       "Section by section (`frontend/ptx/compared.def`): syntax, types and modifiers of "
	       "each form, what it gives, and what ptxas 13.0\n"
	       "takes. What both the text and ptxas refuse is refused where the reading met it; "
	       "the "
	       "table still takes about a thousand combinations\n"
	       "of modifiers that ptxas refuses (shapes of mma and wmma, sizes of ld, st, atom, "
	       "cvt, red "
	       "and mbarrier).\n\n"
	       "| section | compared | result | held by |\n|---|---|---|---|\n");
	for (size_t i = 0; i < COMPARISONS; i++)
		printf("| %s | %s | %s | `%s` |\n", compared[i].section, compared[i].what,
		       compared[i].result, compared[i].test);
}

int main(int argc, char **argv)
{
	enum place place = ON_CPU;

	if (!check_rows() || !check_compared())
		return 1;
	for (int a = 1; a < argc; a++) {
		if (!strcmp(argv[a], "cpu") || !strcmp(argv[a], "h200"))
			place = *argv[a] == 'c' ? ON_CPU : ON_H200;
		else if (!mark_file(argv[a], place))
			return 1;
	}
	print_head();
	print_compared();
	for (size_t c = 0; c < sizeof chapters / sizeof *chapters; c++) {
		printf("\n## %s %s\n\n| instruction | state | run on the CPU | checked on an H200 "
		       "| note |\n"
		       "|---|---|---|---|---|\n",
		       chapters[c].section, chapters[c].title);
		for (size_t i = 0; i < COUNT; i++)
			if (!strcmp(instructions[i].section, chapters[c].section))
				printf("| `%s` | %s | %s | %s | %s |\n", instructions[i].name,
				       state_names[state_of(&instructions[i])],
				       where(&instructions[i], ON_CPU),
				       where(&instructions[i], ON_H200), instructions[i].note);
	}
	return fflush(stdout) != 0;
}
