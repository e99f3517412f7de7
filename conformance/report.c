/* SPDX-License-Identifier: Apache-2.0 */
/* Collects outcomes; prints one table, writes JUnit XML. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "conformance/runner.h"

#define COLUMNS 32

struct line {
	char name[64], column[24], text[320];
	enum outcome outcome;
	double seconds;
};

static struct line *lines;
static size_t line_count;
static unsigned totals[4];
static const char *const word[] = {"passed", "refused", "failed", "skipped"};

double now_seconds(void)
{
	return 1e-9 * (double)tally_now();
}

void report(const char *name, const char *column, enum outcome outcome, double seconds,
	    const char *format, ...)
{
	va_list arguments;
	struct line *more = realloc(lines, (line_count + 1) * sizeof *lines);

	if (!more)
		exit(2); /* a test program without memory has nothing to report */
	lines = more;
	struct line *l = &lines[line_count++];
	snprintf(l->name, sizeof l->name, "%s", name);
	snprintf(l->column, sizeof l->column, "%s", column);
	va_start(arguments, format);
	vsnprintf(l->text, sizeof l->text, format, arguments);
	va_end(arguments);
	l->outcome = outcome;
	l->seconds = seconds;
	totals[outcome]++;
	if (outcome == FAILED)
		fprintf(stderr, "FAILED %s, %s: %s\n", name, column, l->text);
}

static void table(void)
{
	const char *columns[COLUMNS], *seen = "";
	size_t count = 0;

	for (size_t i = 0; i < line_count; i++) {
		size_t k = 0;
		while (k < count && strcmp(columns[k], lines[i].column))
			k++;
		if (k == count && count < COLUMNS)
			columns[count++] = lines[i].column;
	}
	printf("%-22s", "kernel");
	for (size_t k = 0; k < count; k++)
		printf(" %s", columns[k]);
	printf("\n");
	for (size_t i = 0; i < line_count; i++) {
		bool first = true;
		for (size_t j = 0; j < i && first; j++)
			first = strcmp(lines[j].name, lines[i].name) != 0;
		if (!first || !strcmp(lines[i].name, seen))
			continue;
		seen = lines[i].name;
		printf("%-22s", seen);
		for (size_t k = 0; k < count; k++) {
			/* A cell stands for all lines of that name and column: the worst wins. */
			int worst = -1;
			for (size_t j = i; j < line_count; j++)
				if (!strcmp(lines[j].name, seen) &&
				    !strcmp(lines[j].column, columns[k])) {
					int o = (int)lines[j].outcome;
					worst = o == FAILED || worst == FAILED ? FAILED
						: o > worst		       ? o
									       : worst;
				}
			static const char *const cell[] = {".", "R", "FAIL", "-"};
			printf(" %*s", (int)strlen(columns[k]), worst < 0 ? "" : cell[worst]);
		}
		printf("\n");
	}
	printf("\n. passed   R refused by name, as expected   - not run here   FAIL\n");
	for (size_t i = 0; i < line_count; i++)
		if (lines[i].outcome == FAILED)
			printf("%s, %s: %s\n", lines[i].name, lines[i].column, lines[i].text);
}

static void xml_text(struct tally_buffer *b, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<':
			tally_buffer_print(b, "&lt;");
			break;
		case '&':
			tally_buffer_print(b, "&amp;");
			break;
		case '"':
			tally_buffer_print(b, "&quot;");
			break;
		default:
			tally_buffer_print(b, "%c", (unsigned char)*text < 0x20 ? ' ' : *text);
		}
}

static bool junit(const char *path, struct tally_error *error)
{
	struct tally_buffer b = {0};

	tally_buffer_print(
		&b,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"conformance\" "
		"tests=\"%zu\" failures=\"%u\" skipped=\"%u\">\n",
		line_count, totals[FAILED], totals[SKIPPED]);
	for (size_t i = 0; i < line_count; i++) {
		const struct line *l = &lines[i];

		tally_buffer_print(&b, "<testcase classname=\"conformance.%s\" name=\"", l->column);
		xml_text(&b, l->name);
		tally_buffer_print(&b, "\" time=\"%.3f\">", l->seconds);
		if (l->outcome != PASSED) {
			static const char *const tag[] = {"", "system-out", "failure", "skipped"};
			tally_buffer_print(&b, "<%s>", tag[l->outcome]);
			xml_text(&b, l->text);
			tally_buffer_print(&b, "</%s>", tag[l->outcome]);
		}
		tally_buffer_print(&b, "</testcase>\n");
	}
	tally_buffer_print(&b, "</testsuite>\n");
	bool ok = b.failed ? tally_fail(error, "out of memory")
			   : tally_file_write(path, b.data, b.size, error);
	tally_buffer_free(&b);
	return ok;
}

bool report_finish(const struct options *o)
{
	struct tally_error error = {0};

	table();
	printf("\n%u %s, %u %s, %u %s, %u %s\n", totals[PASSED], word[PASSED], totals[FAILED],
	       word[FAILED], totals[REFUSED], word[REFUSED], totals[SKIPPED], word[SKIPPED]);
	bool ok = totals[FAILED] == 0 && totals[PASSED] > 0;
	if (o->junit && !junit(o->junit, &error)) {
		tally_error_print(&error, "conformance");
		ok = false;
	}
	free(lines);
	return ok;
}
