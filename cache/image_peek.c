/* SPDX-License-Identifier: Apache-2.0 */
/* What an image holds, as far as a look at its headers and words tells; see cache.h. */
#include <elf.h>
#include <string.h>

#include "cache/cache.h"
#include "cache/fatbin.h"

#define COMPRESSED 0xa000u /* flags: LZ4 or ZSTD */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether the text at `at` is `word` and ends there. */
static bool is_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(end - at) > length && !memcmp(at, word, length) && is_space(at[length]);
}

/* The end of a comment or string that begins at `at`, or `at`. */
static const char *skip(const char *at, const char *end)
{
	const char *p = at;

	if (end - at < 2)
		return at;
	if (at[0] == '/' && at[1] == '/') {
		p = memchr(at, '\n', (size_t)(end - at));
		return p ? p : end;
	}
	if (at[0] == '/' && at[1] == '*') {
		for (p = at + 2; end - p >= 2; p++)
			if (p[0] == '*' && p[1] == '/')
				return p + 2;
		return end;
	}
	if (at[0] == '"') {
		for (p = at + 1; p < end && *p != '"'; p++)
			p += *p == '\\';
		return p < end ? p + 1 : end;
	}
	return at;
}

/*
 * PTX (ISA 5.1): a variable's state space is a word of its own; in instructions it hangs on the
 * mnemonic (ld.global), and as an attribute of a parameter it stands between parentheses.
 */
static bool declares_variables(const char *text, size_t size)
{
	static const char *const spaces[] = {".global", ".const",      ".tex",
					     ".texref", ".samplerref", ".surfref"};
	const char *end = text + size;
	unsigned open = 0;

	for (const char *at = text; at < end;) {
		const char *next = skip(at, end);

		if (next != at) {
			at = next;
			continue;
		}
		open += *at == '(';
		open -= *at == ')' && open;
		if (*at == '.' && !open &&
		    (at == text || is_space(at[-1]) || strchr(";{}/", at[-1])))
			for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
				if (is_word(at, end, spaces[i]))
					return true;
		at++;
	}
	return false;
}

static enum tally_fact variables_of(const char *text, size_t size)
{
	return declares_variables(text, size) ? TALLY_YES : TALLY_NO;
}

static struct tally_image_facts peek_fatbin(const char *image, size_t size)
{
	struct tally_image_facts facts = {.variables = TALLY_NO};
	struct fatbin_entry entry;

	for (size_t at = fatbin_first(image); fatbin_entry_at(image, size, at, &entry);
	     at += fatbin_entry_bytes(&entry)) {
		enum tally_fact variables = TALLY_MAYBE;

		if (entry.kind != FATBIN_PTX)
			continue;
		if (!(entry.flags & COMPRESSED))
			variables = variables_of(image + at + entry.header_size, entry.payload);
		if (variables == TALLY_YES || facts.variables == TALLY_NO)
			facts.variables = variables;
		if (!facts.liftable || entry.arch < facts.arch)
			facts.arch = entry.arch;
		facts.liftable = true;
	}
	return facts;
}

struct tally_image_facts tally_image_peek(const void *image, size_t size)
{
	static const struct tally_image_facts unknown = {true, 0, TALLY_MAYBE};
	const char *text = image;
	Elf64_Ehdr elf;

	if (is_fatbin(image, size))
		return peek_fatbin(image, size);
	if (size >= sizeof elf && !memcmp(image, ELFMAG, SELFMAG)) {
		memcpy(&elf, image, sizeof elf);
		/* A cubin is machine code and nothing else. */
		return elf.e_machine == CUDA_MACHINE
			       ? (struct tally_image_facts){false, 0, TALLY_MAYBE}
			       : unknown;
	}
	if (size && strchr(" \t\r\n/.", text[0]))
		return (struct tally_image_facts){true, 0, variables_of(image, size)};
	return unknown;
}
