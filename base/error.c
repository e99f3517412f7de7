/* SPDX-License-Identifier: Apache-2.0 */
/* Error values: see error.h. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* One error is one line, whatever LLVM, strerror or a file's name put into it; and nothing in it
 * may steer the terminal. */
static void make_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = ' ';
}

static void set(struct tally_error *error, const char *file, unsigned line, unsigned column,
		const char *format, va_list arguments)
{
	if (!error || tally_failed(error))
		return;
	vsnprintf(error->message, sizeof error->message, format, arguments);
	make_one_line(error->message);
	size_t length = strlen(error->message);
	while (length && error->message[length - 1] == ' ')
		error->message[--length] = '\0';
	if (!length)
		strcpy(error->message, "unknown error");
	snprintf(error->file, sizeof error->file, "%s", file ? file : "");
	make_one_line(error->file);
	error->line = line;
	error->column = column;
}

bool tally_fail(struct tally_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set(error, NULL, 0, 0, format, arguments);
	va_end(arguments);
	return false;
}

bool tally_fail_at(struct tally_error *error, const char *file, unsigned line, unsigned column,
		   const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set(error, file, line, column, format, arguments);
	va_end(arguments);
	return false;
}

void tally_error_print(const struct tally_error *error, const char *program)
{
	if (!error->file[0])
		fprintf(stderr, "%s: error: %s\n", program, error->message);
	else if (!error->line)
		fprintf(stderr, "%s: error: %s\n", error->file, error->message);
	else if (!error->column)
		fprintf(stderr, "%s:%u: error: %s\n", error->file, error->line, error->message);
	else
		fprintf(stderr, "%s:%u:%u: error: %s\n", error->file, error->line, error->column,
			error->message);
}
