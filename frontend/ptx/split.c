/* SPDX-License-Identifier: Apache-2.0 */
/* PTX files in parts, so that a large one is lifted piece by piece, and pieces side by side. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "frontend/ptx/scan.h"

struct splitter {
	struct ptx_contents contents;
	struct tally_ptx_split *split;
	size_t *chosen, chosen_count; /* items of the part that is being made */
	size_t *stack;
	size_t stamp, bytes;
	bool failed;
};

static void choose(struct splitter *s, size_t item, size_t *depth)
{
	struct ptx_item *i = &s->contents.items[item];

	if (i->stamp == s->stamp)
		return;
	i->stamp = s->stamp;
	s->chosen[s->chosen_count++] = item;
	s->bytes += (size_t)(i->segment.to - i->segment.from);
	s->stack[(*depth)++] = item;
}

/* Puts `item` into the part, and all that it names, what that names, ... */
static void add(struct splitter *s, size_t item)
{
	const struct ptx_contents *o = &s->contents;
	size_t depth = 0;

	choose(s, item, &depth);
	while (depth) {
		const struct ptx_item *i = &o->items[s->stack[--depth]];

		for (size_t u = i->first_use; u < i->end_use; u++)
			for (size_t k = o->uses[u].item; k != SIZE_MAX; k = o->items[k].next)
				choose(s, k, &depth);
	}
}

static int by_number(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

static void finish(struct splitter *s, struct tally_ptx_part *part)
{
	qsort(s->chosen, s->chosen_count, sizeof *s->chosen, by_number);
	part->segments = calloc(s->chosen_count, sizeof *part->segments);
	part->bytes = s->bytes;
	s->failed |= !part->segments;
	for (size_t k = 0; !s->failed && k < s->chosen_count; k++)
		part->segments[part->count++] = s->contents.items[s->chosen[k]].segment;
}

/* A new part has what every part has. */
static void start(struct splitter *s)
{
	s->stamp++;
	s->chosen_count = s->bytes = 0;
	for (size_t k = 0; k < s->contents.count; k++)
		if (s->contents.items[k].kind == PTX_ITEM_ALWAYS)
			add(s, k);
}

static void make_variables(struct splitter *s)
{
	start(s);
	for (size_t k = 0; k < s->contents.count; k++)
		if (s->contents.items[k].kind == PTX_ITEM_VARIABLE) {
			s->split->has_variables = true;
			add(s, k);
		}
	finish(s, &s->split->variables);
}

static void make_parts(struct splitter *s, size_t bytes)
{
	struct tally_ptx_split *split = s->split;
	size_t entries = 0;

	for (size_t k = 0; k < s->contents.count && !s->failed; k++) {
		if (s->contents.items[k].kind != PTX_ITEM_ENTRY)
			continue;
		if (!entries++)
			start(s);
		add(s, k);
		if (s->bytes < bytes)
			continue;
		finish(s, &split->parts[split->count++]);
		entries = 0;
	}
	if (entries && !s->failed)
		finish(s, &split->parts[split->count++]);
}

bool tally_ptx_split(struct tally_ptx_split *split, const char *text, size_t size, size_t bytes)
{
	struct splitter s = {.split = split};
	struct ptx_contents *o = &s.contents;
	bool ok;

	*split = (struct tally_ptx_split){0};
	ok = ptx_scan(o, text, size) && o->entries && !o->has_local_state &&
	     !ptx_takes_addresses(o);
	if (ok) {
		split->version = o->version.text;
		split->version_length = o->version.length;
		split->target = o->target.text;
		split->target_length = o->target.length;
		split->plain_target = o->plain_target;
		split->body = o->body;
		split->parts = calloc(o->entries, sizeof *split->parts);
		s.chosen = calloc(o->count, sizeof *s.chosen);
		s.stack = calloc(o->count, sizeof *s.stack);
		ok = split->parts && s.chosen && s.stack;
	}
	if (ok) {
		make_variables(&s);
		make_parts(&s, bytes);
		ok = !s.failed;
	}
	free(s.chosen);
	free(s.stack);
	ptx_contents_free(o);
	return ok;
}

void tally_ptx_split_free(struct tally_ptx_split *split)
{
	for (size_t k = 0; split->parts && k < split->count; k++)
		free(split->parts[k].segments);
	free(split->parts);
	free(split->variables.segments);
	*split = (struct tally_ptx_split){0};
}
