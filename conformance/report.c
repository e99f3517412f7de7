/* SPDX-License-Identifier: Apache-2.0 */
/* Collects outcomes; prints one table, writes it as a file, writes JUnit XML. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"
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

	if (!TALLY_GROW(lines, line_count))
		exit(2); /* a test program without memory has nothing to report */
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

/* The outcome of a cell, which stands for all lines of that name and column, from line `from` on:
 * the worst wins. -1: there is none. */
static int cell_of(const char *name, const char *column, size_t from)
{
	int worst = -1;

	for (size_t j = from; j < line_count; j++)
		if (!strcmp(lines[j].name, name) && !strcmp(lines[j].column, column)) {
			int o = (int)lines[j].outcome;
			worst = o == FAILED || worst == FAILED ? FAILED : o > worst ? o : worst;
		}
	return worst;
}

static void table(FILE *out)
{
	static const char *const cell[] = {".", "R", "FAIL", "-"};
	const char *columns[COLUMNS];
	size_t count = 0;

	for (size_t i = 0; i < line_count; i++) {
		size_t k = 0;
		while (k < count && strcmp(columns[k], lines[i].column))
			k++;
		if (k == count && count < COLUMNS)
			columns[count++] = lines[i].column;
	}
	fprintf(out, "%-22s", "kernel");
	for (size_t k = 0; k < count; k++)
		fprintf(out, " %s", columns[k]);
	fprintf(out, "\n");
	for (size_t i = 0; i < line_count; i++) {
		bool first = true;
		for (size_t j = 0; j < i && first; j++)
			first = strcmp(lines[j].name, lines[i].name) != 0;
		if (!first)
			continue;
		fprintf(out, "%-22s", lines[i].name);
		for (size_t k = 0; k < count; k++) {
			int worst = cell_of(lines[i].name, columns[k], i);

			fprintf(out, " %*s", (int)strlen(columns[k]),
				worst < 0 ? "~" : cell[worst]);
		}
		fprintf(out, "\n");
	}
	fprintf(out, "\n. passed   R refused by name, as expected   - not run here   ~ not a run   "
		     "FAIL\n");
}

/* Why, for everything that did not pass; each reason once. */
static void reasons(FILE *out, enum outcome outcome)
{
	for (size_t i = 0; i < line_count; i++) {
		bool first = lines[i].outcome == outcome;
		for (size_t j = 0; j < i && first; j++)
			first = lines[j].outcome != outcome ||
				strcmp(lines[j].name, lines[i].name) ||
				strcmp(lines[j].column, lines[i].column) ||
				strcmp(lines[j].text, lines[i].text);
		if (first)
			fprintf(out, "%s, %s: %s\n", lines[i].name, lines[i].column, lines[i].text);
	}
}

/* The table and the reasons of refusals: the same text for the same outcomes. */
static bool table_file(const char *path, struct tally_error *error)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return tally_fail(error, "out of memory");
	table(out);
	reasons(out, REFUSED);
	if (fclose(out))
		return tally_fail(error, "out of memory");
	bool ok = tally_file_write(path, text, size, error);
	free(text);
	return ok;
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

	table(stdout);
	reasons(stdout, FAILED);
	printf("\n%u %s, %u %s, %u %s, %u %s\n", totals[PASSED], word[PASSED], totals[FAILED],
	       word[FAILED], totals[REFUSED], word[REFUSED], totals[SKIPPED], word[SKIPPED]);
	bool ok = totals[FAILED] == 0 && totals[PASSED] > 0;
	if (o->junit && !junit(o->junit, &error)) {
		tally_error_print(&error, "conformance");
		ok = false;
	}
	if (o->table && !table_file(o->table, &error)) {
		tally_error_print(&error, "conformance");
		ok = false;
	}
	free(lines);
	return ok;
}
