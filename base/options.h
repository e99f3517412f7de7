/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, by a table of options. For programs only: it prints what --help and --version ask
 * for. Not thread-safe, as getopt_long(3), which reads them. */
#ifndef TALLY_BASE_OPTIONS_H
#define TALLY_BASE_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A row; made by one of the macros below. */
struct tally_option {
	const char *name; /* without its dashes */
	char letter;	  /* of its short form; 0: none */
	int argument;	  /* required_argument or no_argument */
	size_t at;	  /* without `read`: of the bool or the const char * in the settings */
	bool (*read)(void *settings, const char *value, struct tally_error *error);
};

/* Sets a bool; keeps the value, which lives as long as argv; has the value read; is acted upon. */
#define TALLY_OPTION_FLAG(name, letter, settings, field)                                           \
	{name, letter, no_argument, offsetof(settings, field), NULL}
#define TALLY_OPTION_TEXT(name, letter, settings, field)                                           \
	{name, letter, required_argument, offsetof(settings, field), NULL}
#define TALLY_OPTION_READ(name, letter, function) {name, letter, required_argument, 0, function}
#define TALLY_OPTION_ACT(name, letter, function)  {name, letter, no_argument, 0, function}

#define TALLY_OPTIONS_MOST 32

struct tally_command_line {
	const char *program;	    /* as its messages name it: "tally run" */
	const char *help, *version; /* what --help and --version print */
	/* At most TALLY_OPTIONS_MOST, and a row without a name; --help (-h) and --version come by
	 * themselves. */
	const struct tally_option *options;
	bool command_follows; /* the first argument that is no option begins another command line */
	int most_arguments;   /* that are no options, where none follows */
	uint32_t *given;      /* NULL, or gets bit k for row k of the options that were there */
};

/*
 * Reads a command line into `settings`. The place in argv of the first argument that is no option
 * (argc: there is none); 0: what there was to show has been shown; -1, with an error that tells
 * what to do: it makes no sense.
 */
int tally_options_read(const struct tally_command_line *line, int argc, char **argv, void *settings,
		       struct tally_error *error);

/* The number of the word `value` among the `count` of `words`; -1 with an error that names them
 * all, said of `option`. */
int tally_option_word(const char *option, const char *value, const char *const *words, int count,
		      struct tally_error *error);

#endif
