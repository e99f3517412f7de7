/* SPDX-License-Identifier: Apache-2.0 */
/* The table that orders the passes, and what runs it. */
#include <stdio.h>
#include <string.h>

#include "ir_passes/passes.h"

const struct tally_pass_entry tally_passes[] = {
	{"select", tally_pass_select},	 {"refuse", tally_pass_refuse},
	{"inline", tally_pass_inline},	 {"body", tally_pass_body},
	{"variant", tally_pass_variant}, {NULL, NULL},
};

static bool check_name(const char *name, struct tally_error *error)
{
	char known[256] = "";

	for (const struct tally_pass_entry *entry = tally_passes; entry->name; entry++) {
		size_t used = strlen(known);

		if (!strcmp(entry->name, name))
			return true;
		snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", entry->name);
	}
	return tally_fail(error, "no pass '%s' (there are: %s)", name, known);
}

static void print_module(LLVMModuleRef module, const char *pass)
{
	char *text = LLVMPrintModuleToString(module);

	fprintf(stderr, "; after %s\n%s", pass, text);
	LLVMDisposeMessage(text);
}

bool tally_passes_run(LLVMModuleRef module, const struct tally_pass_options *options,
		      struct tally_error *error)
{
	if (options->print_after && !check_name(options->print_after, error))
		return false;
	for (const struct tally_pass_entry *entry = tally_passes; entry->name; entry++) {
		if (!entry->run(module, options, error))
			return false;
		if (options->print_after && !strcmp(entry->name, options->print_after))
			print_module(module, entry->name);
		if (options->verify && !tally_contract_verify(module, error)) {
			char message[sizeof error->message];

			snprintf(message, sizeof message, "%s", error->message);
			*error = (struct tally_error){0};
			return tally_fail(error, "after pass '%s': %.900s", entry->name, message);
		}
	}
	return true;
}

/* Transforms by name, as a user writes them. */
static const struct {
	const char *name;
	unsigned bit;
} transforms[] = {
	{"slice", TALLY_SLICE}, {"guard", TALLY_GUARD}, {"persist", TALLY_PERSIST}, {"none", 0}};

bool tally_transforms_parse(const char *text, unsigned *set, struct tally_error *error)
{
	bool none = false;

	*set = 0;
	while (*text) {
		size_t length = strcspn(text, ","), k;
		size_t count = sizeof transforms / sizeof *transforms;

		for (k = 0; k < count; k++)
			if (strlen(transforms[k].name) == length &&
			    !strncmp(transforms[k].name, text, length))
				break;
		if (k == count)
			return tally_fail(
				error,
				"unknown transform '%.*s' (known: slice, guard, persist, none)",
				(int)length, text);
		*set |= transforms[k].bit;
		none |= !transforms[k].bit;
		text += length;
		if (*text == ',' && !*++text)
			return tally_fail(error, "a transform is missing after the last comma");
	}
	return !none || !*set || tally_fail(error, "transform 'none' does not go with others");
}
