/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a PTX file as one (join.h). The text is LLVM's: one directive a line. */
#include "backends/cuda/lower/join.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 4096 }; /* .file directives of one part; a line of any other has none */

struct text {
	const char *at, *end;
};

static bool begins(const struct text *t, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(t->end - t->at) >= n && !memcmp(t->at, word, n);
}

static struct text next_line(struct text *rest)
{
	const char *end = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	struct text line = {rest->at, end ? end + 1 : rest->end};

	rest->at = line.end;
	return line;
}

/* `.file 1 "name"` in the text that stays: parts that name the same file use its number. */
static void know_files(struct tally_cuda_join *j, struct text rest)
{
	while ((rest.at = memmem(rest.at, (size_t)(rest.end - rest.at), ".file", 5))) {
		struct text line = next_line(&rest);
		unsigned number;
		int used = 0;

		if (sscanf(line.at, ".file %u %n", &number, &used) != 1 || line.at[used] != '"')
			continue;
		j->files = number > j->files ? number : j->files;
		tally_buffer_print(&j->file_lines, "\t.file\t%u %.*s\n", number,
				   (int)(strcspn(line.at + used + 1, "\"\n") + 2), line.at + used);
	}
}

void tally_cuda_join_open(struct tally_cuda_join *join, struct tally_buffer *out,
			  const char *target, unsigned version, const char *text, size_t size)
{
	*join = (struct tally_cuda_join){.out = out,
					 .start = out->size,
					 .target = target,
					 .verbatim = text != NULL,
					 .version = version};
	if (text) {
		tally_buffer_append(out, text, size);
		know_files(join, (struct text){text, text + size});
	}
	join->own_files = join->file_lines.size;
}

static bool is_name(int c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* The name that a declaration's line gives: the last word before its end, brackets or value. */
static struct text name_in(struct text line)
{
	const char *stop = line.at;
	struct text name;

	while (stop < line.end && !strchr("[;=\n", *stop))
		stop++;
	while (stop > line.at && !is_name((unsigned char)stop[-1]))
		stop--;
	name.end = name.at = stop;
	while (name.at > line.at && is_name((unsigned char)name.at[-1]))
		name.at--;
	return name;
}

static uint64_t hash(struct text name)
{
	uint64_t h = 14695981039346656037u;

	for (; name.at < name.end; name.at++)
		h = (h ^ (unsigned char)*name.at) * 1099511628211u;
	return h ^ h >> 29;
}

static size_t *place_of(const struct tally_cuda_join *j, struct text name)
{
	size_t k = (size_t)hash(name) & (j->table_size - 1), length = (size_t)(name.end - name.at);

	for (;; k = (k + 1) & (j->table_size - 1)) {
		const char *known = j->table[k] ? j->names.data + j->table[k] - 1 : NULL;

		if (!known || (strlen(known) == length && !memcmp(known, name.at, length)))
			return &j->table[k];
	}
}

static bool grow(struct tally_cuda_join *j)
{
	size_t *old = j->table, count = j->table_size;

	j->table_size = count ? count * 2 : 256;
	j->table = calloc(j->table_size, sizeof *j->table);
	for (size_t k = 0; j->table && k < count; k++)
		if (old[k]) {
			const char *known = j->names.data + old[k] - 1;

			*place_of(j, (struct text){known, known + strlen(known)}) = old[k];
		}
	free(old);
	return j->table != NULL;
}

/* Whether a part declares `name` for the first time. */
static bool declare(struct tally_cuda_join *j, struct text name)
{
	size_t *place;

	if (j->name_count * 2 >= j->table_size && !grow(j)) {
		j->out->failed = true;
		return false;
	}
	place = place_of(j, name);
	if (*place)
		return false;
	*place = j->names.size + 1;
	j->name_count++;
	tally_buffer_append(&j->names, name.at, (size_t)(name.end - name.at));
	tally_buffer_append(&j->names, "", 1);
	return !j->names.failed;
}

/* `\t.file\t1 "name"`: its number in the whole file. Files with one name are one. */
static unsigned number_of(struct tally_cuda_join *j, struct text name)
{
	struct text lines = {j->file_lines.data, j->file_lines.data + j->file_lines.size};

	while (lines.at < lines.end) {
		struct text line = next_line(&lines);
		size_t length = (size_t)(name.end - name.at);
		const char *quote = memchr(line.at, '"', (size_t)(line.end - line.at));

		if (quote && (size_t)(line.end - quote) == length &&
		    !memcmp(quote, name.at, length))
			return (unsigned)strtoul(line.at + strlen("\t.file\t"), NULL, 10);
	}
	tally_buffer_print(&j->file_lines, "\t.file\t%u %.*s", ++j->files,
			   (int)(name.end - name.at), name.at);
	return j->files;
}

/* The numbers that the part's .file directives get, by their own. */
static void number_files(struct tally_cuda_join *j, struct text rest, unsigned *numbers)
{
	while ((rest.at = memmem(rest.at, (size_t)(rest.end - rest.at), "\n\t.file\t", 8))) {
		struct text line;
		unsigned long own;

		rest.at++;
		line = next_line(&rest);
		own = strtoul(line.at + strlen("\t.file\t"), NULL, 10);
		line.at = memchr(line.at, '"', (size_t)(line.end - line.at));
		if (line.at && own < MOST_FILES)
			numbers[own] = number_of(j, line);
	}
}

static void put(struct tally_cuda_join *j, struct text text)
{
	tally_buffer_append(j->out, text.at, (size_t)(text.end - text.at));
}

/* \t.loc\t1 12 3 */
static void put_place(struct tally_cuda_join *j, struct text line, const unsigned *numbers)
{
	char *behind;
	unsigned long own = strtoul(line.at + strlen("\t.loc\t"), &behind, 10);

	tally_buffer_print(j->out, "\t.loc\t%u", own < MOST_FILES ? numbers[own] : 0);
	line.at = behind;
	put(j, line);
}

/* A function of the driver's: a head of several lines, up to one that is a semicolon. */
static void put_function(struct tally_cuda_join *j, struct text line, struct text *rest)
{
	struct text all = line, name = name_in(line);

	while (rest->at < rest->end && !begins(rest, ";"))
		next_line(rest);
	all.end = next_line(rest).end;
	if (declare(j, name))
		put(j, all);
}

static void put_line(struct tally_cuda_join *j, struct text line, struct text *rest,
		     const unsigned *numbers)
{
	if (begins(&line, "\t.loc\t")) {
		put_place(j, line, numbers);
	} else if (begins(&line, "\t.file\t")) {
		return; /* they stand at the end, once */
	} else if (begins(&line, ".extern .func")) {
		put_function(j, line, rest);
	} else if (*line.at == '.' && line.end - line.at > 1 && line.end[-2] == ';') {
		/* A variable. Parts declare what the whole defines. */
		bool is_new = declare(j, name_in(line));

		if (is_new && !(j->verbatim && begins(&line, ".extern ")))
			put(j, line);
	} else {
		put(j, line);
	}
}

bool tally_cuda_join_add(struct tally_cuda_join *join, const char *text, size_t size,
			 struct tally_error *error)
{
	static const char version[] = "\n.version ", size_line[] = "\n.address_size 64\n";
	struct text rest = {text, text + size};
	unsigned numbers[MOST_FILES] = {0}, major, minor;
	const char *found = memmem(text, size, version, strlen(version));
	const char *body = memmem(text, size, size_line, strlen(size_line)), *sections;

	if (!found || !body || sscanf(found + strlen(version), "%u.%u", &major, &minor) != 2)
		return tally_fail(error, "LLVM wrote PTX without a header");
	if (major * 10 + minor > join->version)
		join->version = major * 10 + minor;
	rest.at = body + strlen(size_line);
	number_files(join, rest, numbers);
	/* What stands in sections describes code whose labels are one part's. */
	sections = memmem(rest.at, (size_t)(rest.end - rest.at), "\n\t.section\t", 11);
	if (sections)
		rest.end = sections + 1;
	while (rest.at < rest.end) {
		struct text line = next_line(&rest);

		put_line(join, line, &rest, numbers);
	}
	return !(join->out->failed || join->names.failed || join->file_lines.failed) ||
	       tally_fail(error, "out of memory");
}

/* The header goes in front of what is there: its version is known only now. */
static void put_header(struct tally_cuda_join *j)
{
	struct tally_buffer *out = j->out;
	char header[256];
	size_t body = out->size - j->start, size;

	snprintf(header, sizeof header,
		 "//\n// %s\n//\n\n.version %u.%u\n.target %s\n.address_size 64\n",
		 j->verbatim ? "The kernels as they came, and their variants by LLVM"
			     : "Generated by LLVM NVPTX Back-End",
		 j->version / 10, j->version % 10, j->target);
	size = strlen(header);
	tally_buffer_append(out, header, size); /* room */
	if (out->failed)
		return;
	memmove(out->data + j->start + size, out->data + j->start, body);
	memcpy(out->data + j->start, header, size);
}

bool tally_cuda_join_close(struct tally_cuda_join *join, struct tally_error *error)
{
	bool failed;

	if (join->file_lines.size > join->own_files)
		tally_buffer_append(join->out, join->file_lines.data + join->own_files,
				    join->file_lines.size - join->own_files);
	put_header(join);
	failed = join->out->failed || join->file_lines.failed || join->names.failed;
	tally_buffer_free(&join->file_lines);
	tally_buffer_free(&join->names);
	free(join->table);
	join->table = NULL;
	return !failed || tally_fail(error, "out of memory");
}
