/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, by a table of options: see options.h. */
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

enum { SHOW_HELP = 'h', SHOW_VERSION = 'V', FIRST = 256 };

/* The table as getopt_long() wants it. */
struct tables {
	struct option longs[TALLY_OPTIONS_MOST + 3];
	char shorts[2 * TALLY_OPTIONS_MOST + 4];
};

static void fill(struct tables *t, const struct tally_command_line *line)
{
	char *s = t->shorts;
	int n = 0;

	if (line->command_follows)
		*s++ = '+';
	*s++ = ':';
	for (const struct tally_option *o = line->options; o->name; o++, n++) {
		t->longs[n] = (struct option){o->name, o->argument, NULL, FIRST + n};
		if (o->letter)
			*s++ = o->letter;
		if (o->letter && o->argument)
			*s++ = ':';
	}
	*s++ = SHOW_HELP;
	t->longs[n++] = (struct option){"help", no_argument, NULL, SHOW_HELP};
	t->longs[n++] = (struct option){"version", no_argument, NULL, SHOW_VERSION};
}

static const struct tally_option *find(const struct tally_command_line *line, int option)
{
	const struct tally_option *o = line->options;

	if (option >= FIRST)
		return o + (option - FIRST);
	while (o->letter != option)
		o++;
	return o;
}

static bool take(const struct tally_option *o, void *settings, const char *value,
		 struct tally_error *error)
{
	void *field = (char *)settings + o->at;

	if (o->read)
		return o->read(settings, value, error);
	if (o->argument)
		*(const char **)field = value;
	else
		*(bool *)field = true;
	return true;
}

static bool refuse(const struct tally_command_line *line, int option, const char *text,
		   struct tally_error *error)
{
	if (option == ':')
		return tally_fail(error, "%s wants a value (see %s --help)", text, line->program);
	if (optopt && optopt < FIRST && strncmp(text, "--", 2))
		return tally_fail(error, "unknown option \"-%c\" (see %s --help)", optopt,
				  line->program);
	return tally_fail(error, "unknown or ambiguous option \"%s\" (see %s --help)", text,
			  line->program);
}

int tally_options_read(const struct tally_command_line *line, int argc, char **argv, void *settings,
		       struct tally_error *error)
{
	struct tables tables = {0};
	bool ok = true;
	int option;

	fill(&tables, line);
	opterr = 0;
	while (ok && (option = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		if (option == SHOW_HELP || option == SHOW_VERSION) {
			fputs(option == SHOW_HELP ? line->help : line->version, stdout);
			return 0;
		}
		if (option == ':' || option == '?') {
			ok = refuse(line, option, argv[optind - 1], error);
			break;
		}
		const struct tally_option *row = find(line, option);

		ok = take(row, settings, optarg, error);
		if (line->given)
			*line->given |= UINT32_C(1) << (row - line->options);
	}
	if (ok && !line->command_follows && argc - optind > line->most_arguments)
		ok = tally_fail(error, "unexpected argument \"%s\" (see %s --help)",
				argv[optind + line->most_arguments], line->program);
	return ok ? optind : -1;
}

int tally_option_word(const char *option, const char *value, const char *const *words, int count,
		      struct tally_error *error)
{
	struct tally_buffer known = {0};

	for (int i = 0; i < count; i++)
		if (!strcmp(value, words[i]))
			return i;
	for (int i = 0; i < count; i++)
		tally_buffer_print(&known, "%s%s",
				   !i		   ? ""
				   : i + 1 < count ? ", "
						   : " or ",
				   words[i]);
	tally_fail(error, "%s wants %s, not \"%s\"", option, known.data ? known.data : "", value);
	tally_buffer_free(&known);
	return -1;
}
