/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of forms.txt to statements, and statements to kernels. */
#include "tests/ptx/forms/expand.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/grow.h"
#include "frontend/ptx/ptx.h"

enum { MAX_TEXT = 8192, MAX_TYPES = 6, MAX_REGISTERS = 256 };

/* The register of a type: its letter. */
static char letter(enum ptx_type type)
{
	unsigned bits = ptx_type_bits(type);

	if (type == PTX_pred)
		return 'p';
	if (type == PTX_f32)
		return 'f';
	if (type == PTX_f64)
		return 'e';
	if (type == PTX_e2m1x2)
		return 'c';
	return bits == 128 ? 'q' : bits == 64 ? 'd' : bits == 32 ? 'r' : 'h';
}

static unsigned find_types(const char *opcode, size_t length, enum ptx_type *types, unsigned *lanes)
{
	unsigned n = 0;

	*lanes = 1;
	for (size_t i = 0; i < length; i++) {
		size_t k = i + 1;
		enum ptx_type type;

		if (opcode[i] != '.')
			continue;
		while (k < length && opcode[k] != '.')
			k++;
		type = ptx_type_find(opcode + i + 1, k - i - 1);
		if (type && n < MAX_TYPES)
			types[n++] = type;
		if (k - i - 1 == 2 && opcode[i + 1] == 'v' && isdigit((unsigned char)opcode[i + 2]))
			*lanes = (unsigned)(opcode[i + 2] - '0');
	}
	return n;
}

static bool add(struct forms *forms, const char *text, unsigned line, const char *section)
{
	struct form *f;

	if (!TALLY_GROW(forms->form, forms->count))
		return false;
	f = &forms->form[forms->count];
	memset(f, 0, sizeof *f);
	f->text = strdup(text);
	f->line = line;
	snprintf(f->section, sizeof f->section, "%s", section);
	forms->count += f->text != NULL;
	return f->text != NULL;
}

/* T0 is register 0 of the first type that the opcode names, U0 of the second, V0 and X0; W0 as
 * many registers as .v2, .v4 or .v8 say, in braces; $g and $s addresses in global and shared. */
static bool finish(struct forms *forms, const char *pattern, unsigned line, const char *section)
{
	static const char letters[] = "TUVX";
	enum ptx_type types[MAX_TYPES] = {0};
	unsigned lanes;
	size_t length = strcspn(pattern, " "), n = length;
	char text[MAX_TEXT];
	unsigned count = find_types(pattern, length, types, &lanes);

	memcpy(text, pattern, length);
	for (const char *p = pattern + length; *p && n < MAX_TEXT - 160; p++) {
		const char *which = strchr(letters, *p);
		bool operand = isdigit((unsigned char)p[1]) && !isalnum((unsigned char)p[-1]) &&
			       p[-1] != '_' && p[-1] != '%';
		unsigned at = which ? (unsigned)(which - letters) : 0;

		if (*p == '$' && (p[1] == 'g' || p[1] == 's')) {
			n += (size_t)snprintf(text + n, MAX_TEXT - n, "%%%ca", *++p);
		} else if (operand && *p == 'W' && lanes > 1) {
			for (unsigned i = 0; i < lanes; i++)
				n += (size_t)snprintf(text + n, MAX_TEXT - n, "%s%%%c%u",
						      i ? ", " : "{", letter(types[0]),
						      (unsigned)(p[1] - '0') * 8 + i);
			text[n++] = '}';
			p++;
		} else if (operand && (which || *p == 'W') && at < count) {
			n += (size_t)snprintf(text + n, MAX_TEXT - n, "%%%c%c", letter(types[at]),
					      p[1]);
			p++;
		} else {
			text[n++] = *p;
		}
	}
	snprintf(text + n, MAX_TEXT - n, "%s", *text == '{' ? "" : ";");
	return add(forms, text, line, section);
}

/* Where the alternatives that open at `p` end: behind the closing bracket. */
static const char *closing(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		depth += *p == '<';
		depth -= *p == '>';
		if (!depth)
			return p;
	}
	return NULL;
}

/* <a|b|c> is one of the three, <|a> may be missing; they nest. */
static bool expand(struct forms *forms, const char *pattern, unsigned line, const char *section)
{
	const char *open = strchr(pattern, '<'), *close = open ? closing(open) : NULL, *p;
	char text[MAX_TEXT];

	if (!open)
		return finish(forms, pattern, line, section);
	if (!close || strlen(pattern) + 1 > MAX_TEXT)
		return false;
	for (p = open; p < close;) {
		const char *from = ++p;
		int depth = 0;

		for (; depth || (*p != '|' && p != close); p++)
			depth += (*p == '<') - (*p == '>');
		snprintf(text, sizeof text, "%.*s%.*s%s", (int)(open - pattern), pattern,
			 (int)(p - from), from, close + 1);
		if (!expand(forms, text, line, section))
			return false;
	}
	return true;
}

bool forms_read(struct forms *forms, const char *path)
{
	struct tally_error error = {0};
	struct tally_buffer text = {0};
	char section[16] = "", *save = NULL;
	unsigned number = 0;
	bool ok = tally_file_read(path, &text, &error);

	if (!ok)
		tally_error_print(&error, "forms");
	tally_buffer_append(&text, "", 1);
	for (char *line = text.data; ok && line && *line; line = save) {
		save = strchr(line, '\n');
		if (save)
			*save++ = '\0';
		number++;
		if (*line == '=')
			snprintf(section, sizeof section, "%.15s", line + 1);
		else if (*line && *line != '#' && !expand(forms, line, number, section)) {
			fprintf(stderr, "%s:%u: no pattern\n", path, number);
			ok = false;
		}
	}
	tally_buffer_free(&text);
	return ok;
}

void forms_free(struct forms *forms)
{
	for (size_t i = 0; i < forms->count; i++)
		free(forms->form[i].text);
	free(forms->form);
}

static const struct {
	char letter;
	const char *type;
} registers[] = {
	{'r', "b32"}, {'d', "b64"}, {'h', "b16"},  {'c', "b8"},
	{'f', "f32"}, {'e', "f64"}, {'q', "b128"}, {'p', "pred"},
};

static void print_register(struct tally_buffer *out, size_t kind, const char *name, unsigned at,
			   bool store)
{
	if (!store)
		tally_buffer_print(out, ".reg .%s %s; ", registers[kind].type, name);
	if (registers[kind].letter == 'q' && store)
		tally_buffer_print(out,
				   "mov.b128 {lo, hi}, %s; st.global.v2.b64 [base+%u], {lo, hi}; ",
				   name, at);
	else if (registers[kind].letter == 'q')
		tally_buffer_print(out,
				   "ld.global.v2.b64 {lo, hi}, [base+%u]; mov.b128 %s, {lo, hi}; ",
				   at, name);
	else if (registers[kind].letter == 'p' && store)
		tally_buffer_print(out, "selp.u32 word, 1, 0, %s; st.global.b32 [base+%u], word; ",
				   name, at);
	else if (registers[kind].letter == 'p')
		tally_buffer_print(out, "ld.global.b32 word, [base+%u]; setp.ne.u32 %s, word, 0; ",
				   at, name);
	else if (store)
		tally_buffer_print(out, "st.global.%s [base+%u], %s; ", registers[kind].type, at,
				   name);
	else
		tally_buffer_print(out, "ld.global.%s %s, [base+%u]; ", registers[kind].type, name,
				   at);
}

/* Loads or stores each register that the statement names, once. */
static void print_registers(struct tally_buffer *out, const char *text, bool store)
{
	bool seen[sizeof registers / sizeof *registers][MAX_REGISTERS] = {{false}};

	for (const char *p = text; (p = strchr(p, '%')); p++) {
		unsigned number = (unsigned)atoi(p + 2) % MAX_REGISTERS;
		char name[8];

		if (!isdigit((unsigned char)p[2]))
			continue;
		for (size_t i = 0; i < sizeof registers / sizeof *registers; i++) {
			if (registers[i].letter != p[1] || seen[i][number])
				continue;
			seen[i][number] = true;
			snprintf(name, sizeof name, "%%%c%u", p[1], number);
			print_register(out, i, name, (unsigned)i * 4096 + number * 16, store);
		}
	}
}

void forms_print_head(struct tally_buffer *out, const char *arch)
{
	tally_buffer_print(out,
			   ".version 9.0\n.target %s\n"
			   ".address_size 64 .shared .align 128 .b8 pool[4096]; .const .align 16 "
			   ".b8 table[256];\n",
			   arch);
}

void forms_print_kernel(struct tally_buffer *out, size_t number, const char *text)
{
	tally_buffer_print(
		out,
		".visible .entry k%zu(.param .align 16 .b8 in[64]) { .reg .b64 base, lo, hi, "
		"%%ga; .reg .b32 word, %%sa; .local .align 16 .b8 own[64]; ld.param.u64 base, "
		"[in]; "
		"cvta.to.global.u64 base, base; add.u64 %%ga, base, 65536; mov.u32 "
		"%%sa, pool; ",
		number);
	print_registers(out, text, false);
	tally_buffer_print(out, "%s ", text);
	print_registers(out, text, true);
	tally_buffer_print(out, "ret; }\n");
}
