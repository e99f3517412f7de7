/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that docs/ir-contract.md names every operation and attribute of the contract, and no
 * operation that there is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/grow.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* A name as the document writes it: {a,b} one of them, [.a|.b] perhaps one of them, WORD or the
 * dots of an ellipsis anything. */
struct pattern {
	char *text;
	regex_t regex;
	bool used;
};

static struct pattern *patterns;
static size_t pattern_count;
static struct tally_buffer document;

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* One word of a name, as a regular expression; where it ends. */
static const char *add_word(struct tally_buffer *out, const char *from, const char *end)
{
	const char *to = from;
	bool placeholder = true;

	for (; to < end && is_word(*to); to++)
		placeholder &= isupper((unsigned char)*to) != 0;
	if (placeholder)
		tally_buffer_print(out, "[a-z0-9_]+");
	else
		tally_buffer_append(out, from, (size_t)(to - from));
	return to;
}

static void add_pattern(const char *from, const char *end)
{
	static const char ellipsis[] = "…";
	static const struct {
		char c;
		const char *regex;
	} signs[] = {{'{', "("}, {'}', ")"}, {'[', "("},   {']', ")?"},
		     {',', "|"}, {'|', "|"}, {'.', "\\."}, {'*', ".*"}};
	struct tally_buffer out = {0};
	struct pattern *p;

	tally_buffer_print(&out, "^(");
	for (const char *c = from; c < end;) {
		if (is_word(*c)) {
			c = add_word(&out, c, end);
			continue;
		}
		if (!strncmp(c, ellipsis, sizeof ellipsis - 1)) {
			tally_buffer_print(&out, ".*");
			c += sizeof ellipsis - 1;
			continue;
		}
		for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
			if (signs[k].c == *c)
				tally_buffer_print(&out, "%s", signs[k].regex);
		c++;
	}
	tally_buffer_print(&out, ")$");
	assert_true(TALLY_GROW(patterns, pattern_count));
	p = &patterns[pattern_count++];
	*p = (struct pattern){.text = strndup(from, (size_t)(end - from))};
	if (regcomp(&p->regex, out.data, REG_EXTENDED | REG_NOSUB))
		fail_msg("'%s' is no name", p->text);
	tally_buffer_free(&out);
}

/* Every tally.NAME but attributes ("tally.kernel"), metadata (!tally.opaque), and tally.* for all.
 */
static int read_document(void **state)
{
	static const char prefix[] = "tally.";
	struct tally_error error = {0};
	const char *c;

	if (!tally_file_read(TALLY_SOURCE_DIR "/docs/ir-contract.md", &document, &error))
		fail_msg("%s: %s", error.file, error.message);
	for (c = document.data; (c = strstr(c, prefix)); c += sizeof prefix - 1) {
		char before = c == document.data ? ' ' : c[-1];
		const char *end = c;

		while (*end && !strchr(" \n(`\"", *end))
			end++;
		/* The end of a sentence, or of a part of one. */
		while (strchr(".,:)", end[-1]))
			end--;
		if (!strncmp(c, "tally.*", 7))
			continue;
		if (before != '"' && before != '!' && !is_word(before) && before != '/')
			add_pattern(c, end);
	}
	return 0;
}

static int forget_document(void **state)
{
	for (size_t i = 0; i < pattern_count; i++) {
		regfree(&patterns[i].regex);
		free(patterns[i].text);
	}
	free(patterns);
	tally_buffer_free(&document);
	return 0;
}

static void every_operation_is_in_the_document(void **state)
{
	const struct tally_operation *operation;
	unsigned missing = 0;

	assert_true(pattern_count > 50);
	for (size_t i = 0; (operation = tally_operation_at(i)); i++) {
		bool found = false;

		for (size_t k = 0; k < pattern_count; k++)
			if (!regexec(&patterns[k].regex, operation->name, 0, NULL, 0))
				found = patterns[k].used = true;
		if (!found)
			print_error("docs/ir-contract.md does not name %s\n", operation->name);
		missing += !found;
	}
	for (size_t k = 0; k < pattern_count; k++) {
		if (!patterns[k].used)
			print_error(
				"docs/ir-contract.md names %s, and there is no such operation\n",
				patterns[k].text);
		missing += !patterns[k].used;
	}
	assert_int_equal(missing, 0);
}

static void every_attribute_is_in_the_document(void **state)
{
	static const char *const attributes[] = {
		TALLY_ATTR_KERNEL,     TALLY_ATTR_WARP,	       TALLY_ATTR_MAXNTID,
		TALLY_ATTR_REQNTID,    TALLY_ATTR_MINCTAPERSM, TALLY_ATTR_MAXNREG,
		TALLY_ATTR_MAXCLUSTER, TALLY_ATTR_CLUSTER,     TALLY_ATTR_VARIANT,
		TALLY_ATTR_OF,	       TALLY_ATTR_REFUSE,      TALLY_ATTR_WHOLE,
		TALLY_ATTR_VENDOR,     TALLY_ATTR_LOCKED,      TALLY_ATTR_ALIGNED};

	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
		struct tally_buffer quoted = {0};

		tally_buffer_print(&quoted, "\"%s\"", attributes[i]);
		if (!strstr(document.data, quoted.data))
			fail_msg("docs/ir-contract.md does not name %s", quoted.data);
		tally_buffer_free(&quoted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_is_in_the_document),
		cmocka_unit_test(every_attribute_is_in_the_document),
	};

	return cmocka_run_group_tests(tests, read_document, forget_document);
}
