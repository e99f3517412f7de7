/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the row of an instruction: see instruction.h and instructions.def. */
#include "frontend/ptx/instruction.h"

#include <stdio.h>
#include <string.h>

#define ptx_lower_VENDOR NULL

static const struct ptx_row rows[] = {
#define ROW(name, modifiers, operands, lowering, operation, section)                               \
	{#name, modifiers, operands, ptx_lower_##lowering, operation, section},
#include "frontend/ptx/instructions.def"
#undef ROW
};

const struct ptx_row *ptx_row_at(size_t index)
{
	return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

/* Groups of modifiers, each a list of words between bars. */
static const struct {
	const char *name, *words;
} groups[] = {
	{"rnd", "rn|rz|rm|rp"},
	{"irnd", "rni|rzi|rmi|rpi"},
	{"cmp", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"},
	{"compare", "eq|ne|lt|le|gt|ge"},
	{"bool", "and|or|xor"},
	{"testp", "finite|infinite|number|notanumber|normal|subnormal"},
	{"space", "global|shared|shared::cta|shared::cluster|const|local|param|param::entry|"
		  "param::func"},
	{"written", "global|shared|shared::cta|shared::cluster|local|param|param::func"},
	{"order", "relaxed|acquire|release|acq_rel"},
	{"scope", "cta|cluster|gpu|sys"},
	{"cop", "ca|cg|cs|lu|cv"},
	{"wcop", "wb|cg|cs|wt"},
	{"l1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|"
	       "L1::no_allocate"},
	{"l2", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"},
	{"hint", "L2::cache_hint"},
	{"prefetch", "L2::64B|L2::128B|L2::256B"},
	{"vec", "v2|v4|v8"},
	{"scale", "scaled::n2::ue8m0"},
	{"blocks", "kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4"},
	{"factors", "scale_vec::1X|scale_vec::2X|scale_vec::4X"},
	{"wmma", "m16n16k16|m32n8k16|m8n32k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128"},
	{"shfl", "up|down|bfly|idx"},
	{"prmt", "f4e|b4e|rc8|ecl|ecr|rc16"},
};

/* Named lists of types. */
static const struct {
	const char *name, *types;
} lists[] = {
	{"INT", "u16,u32,u64,s16,s32,s64"},
	{"I32", "u32,s32,u64,s64"},
	{"BITS", "b16,b32,b64"},
	{"HALF", "f16,f16x2,bf16,bf16x2"},
	{"MEMORY", "b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"},
	{"NARROW", "e4m3x2,e5m2x2,e4m3x4,e5m2x4,e2m1x2,e2m3x2,e3m2x2,ue8m0x2,e2m1x4,e2m3x4,"
		   "e3m2x4,s2f6x2,e4m3,e5m2"},
	{"F8F6F4", "e4m3,e5m2,e3m2,e2m3,e2m1"},
	{"WMMA", "f16,bf16,tf32,f32,f64,u8,s8,u4,s4,b1,s32"},
	{"PAIR2", "e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2"},
	{"CVT", "u8,u16,u32,u64,s8,s16,s32,s64,f16,bf16,f32,f64"},
};

/* Whether `word` (length bytes) stands in `list`, whose members `separator` divides. */
static bool in_list(const char *list, size_t list_length, char separator, const char *word,
		    size_t length)
{
	const char *end = list + list_length;

	while (list < end) {
		const char *stop = memchr(list, separator, (size_t)(end - list));
		size_t n = (size_t)((stop ? stop : end) - list);
		if (n == length && !memcmp(list, word, n))
			return true;
		list += n + 1;
	}
	return false;
}

static const char *group_words(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		if (strlen(groups[i].name) == length && !memcmp(groups[i].name, name, length))
			return groups[i].words;
	return NULL;
}

const char *ptx_words_of(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (strlen(lists[i].name) == length && !memcmp(lists[i].name, name, length))
			return lists[i].types;
	return group_words(name, length);
}

const char *ptx_pick(const struct ptx_statement *s, const char *group)
{
	const char *words = group_words(group, strlen(group));

	for (unsigned i = 0; words && i < s->modifiers; i++)
		if (in_list(words, strlen(words), '|', s->modifier[i], strlen(s->modifier[i])))
			return s->modifier[i];
	return NULL;
}

/* ":u32,INT": whether the list admits `type`. */
static bool type_in(const char *list, size_t length, enum ptx_type type)
{
	const char *name = ptx_type_name(type), *end = list + length;

	while (list < end) {
		const char *stop = memchr(list, ',', (size_t)(end - list));
		size_t n = (size_t)((stop ? stop : end) - list);
		if (in_list(list, n, ',', name, strlen(name)))
			return true;
		for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
			if (in_list(list, n, ',', lists[i].name, strlen(lists[i].name)) &&
			    in_list(lists[i].types, strlen(lists[i].types), ',', name,
				    strlen(name)))
				return true;
		list += n + 1;
	}
	return false;
}

/* One word of a row's modifiers against what is left of the statement's. */
static bool match_word(const struct ptx_statement *s, const char *word, size_t length,
		       unsigned *used)
{
	bool optional = word[length - 1] == '?';
	const char *words;

	length -= optional;
	words = group_words(word, length);
	for (unsigned i = 0; i < s->modifiers; i++) {
		const char *m = s->modifier[i];
		if (*used >> i & 1)
			continue;
		if (words ? !in_list(words, strlen(words), '|', m, strlen(m))
			  : !in_list(word, length, '|', m, strlen(m)))
			continue;
		*used |= 1u << i;
		return true;
	}
	return optional;
}

static bool match_modifiers(const struct ptx_statement *s, const char *pattern)
{
	unsigned used = 0, types = 0;

	for (; *pattern; pattern += *pattern == ' ') {
		size_t length = strcspn(pattern, " ");
		if (length == 1 && *pattern == '*')
			return true;
		if (*pattern != ':') {
			if (!match_word(s, pattern, length, &used))
				return false;
		} else {
			enum ptx_type type = types < 4 ? s->type[types++] : PTX_NO_TYPE;
			if (!type || !type_in(pattern + 1, length - 1, type))
				return false;
		}
		pattern += length;
	}
	for (unsigned i = 0; i < s->modifiers; i++)
		if (!(used >> i & 1) && !ptx_type_find(s->modifier[i], strlen(s->modifier[i])))
			return false;
	return types == 4 || !s->type[types];
}

bool ptx_row_has_form(const struct ptx_row *row, const struct ptx_statement *s)
{
	return !strcmp(row->name, s->name) && match_modifiers(s, row->modifiers);
}

static bool fits(const struct ptx_operand *o, char shape)
{
	bool name = o->kind == PTX_O_NAME, number = o->kind == PTX_O_INT || o->kind == PTX_O_FLOAT;

	if (o->negated && shape != 'p' && shape != 'z')
		return false;
	if ((o->second && shape != 'P') || (o->selector && shape < 'x'))
		return false;
	switch (shape) {
	case 'd':
	case 'x':
	case 'P':
		return name || o->kind == PTX_O_SINK;
	case 'D':
		return name || o->kind == PTX_O_SINK || o->kind == PTX_O_VECTOR;
	case 's':
	case 'y':
	case 'z':
	case 'p':
		return name || number;
	case 'v':
		return name || number || o->kind == PTX_O_VECTOR;
	case 'm':
		return (o->kind == PTX_O_MEMORY && !o->first) || o->indexed;
	case 'i':
		return o->kind == PTX_O_INT;
	case 'n':
		return name;
	}
	return false;
}

/* Optional operands are few: the shortest reading that fits all is found by trying each. */
static bool match_operands(const struct ptx_statement *s, unsigned at, const char *shape)
{
	bool optional = *shape && shape[1] == '?';

	if (*shape == '*')
		return true;
	if (!*shape)
		return at == s->operands;
	if (at < s->operands && fits(s->operand[at], *shape) &&
	    match_operands(s, at + 1, shape + 1 + optional))
		return true;
	return optional && match_operands(s, at, shape + 2);
}

bool ptx_match(struct ptx_statement *s, const char *file, const char *function, bool is_entry,
	       struct tally_error *error)
{
	bool name = false, form = false;
	const char *what = is_entry ? "kernel" : "function";

	for (size_t i = 0; i < sizeof rows / sizeof *rows && !s->row; i++) {
		if (strcmp(rows[i].name, s->name))
			continue;
		name = true;
		if (!match_modifiers(s, rows[i].modifiers))
			continue;
		form = true;
		if (match_operands(s, 0, rows[i].operands))
			s->row = &rows[i];
	}
	if (s->row)
		return true;
	if (!name)
		return tally_fail_at(error, file, s->line, s->column,
				     "%s '%s': unknown instruction '%s'", what, function,
				     s->opcode);
	if (!form)
		return tally_fail_at(error, file, s->line, s->column,
				     "%s '%s': instruction '%s' is not known in this form", what,
				     function, s->opcode);
	return tally_fail_at(error, file, s->line, s->column,
			     "%s '%s': instruction '%s' does not take these operands", what,
			     function, s->opcode);
}
