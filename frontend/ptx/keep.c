/* SPDX-License-Identifier: Apache-2.0 */
/* Stoppable copies of kernels whose bodies stay as they are: see outline.h. */
#include <string.h>

#include "frontend/ptx/lexer.h"
#include "frontend/ptx/outline.h"

static const char *const read_names[] = {"%tally_block_x", "%tally_block_y", "%tally_block_z",
					 "%tally_grid_x",  "%tally_grid_y",  "%tally_grid_z"};
static const char parameter[] = "tally$launch", own[] = "%tally_", body_mark[] = "tally_body";

static void append(struct tally_buffer *out, const char *text)
{
	tally_buffer_append(out, text, strlen(text));
}

static bool starts(const struct ptx_token *t, const char *prefix)
{
	return t->length >= strlen(prefix) && !memcmp(t->text, prefix, strlen(prefix));
}

/* A name of the frame as one that no body has. `special`: a register of the machine. */
static void rename_to(struct tally_buffer *out, const struct ptx_token *t, const char *kernel,
		      bool special)
{
	if (special || starts(t, own))
		tally_buffer_append(out, t->text, t->length);
	else if (*t->text == '%')
		tally_buffer_print(out, "%s%.*s", own, (int)t->length - 1, t->text + 1);
	else if (*t->text == '$')
		tally_buffer_print(out, "$tally%.*s", (int)t->length, t->text);
	else if (starts(t, kernel))
		append(out, parameter);
	else
		tally_buffer_append(out, t->text, t->length);
}

/* The inside of a variant, in two halves round its body. */
static bool cut_body(struct ptx_frame *frame, const char *text, size_t size, const char *kernel)
{
	struct tally_error ignored = {0};
	struct tally_buffer *out = &frame->before;
	struct ptx_lexer lexer;
	const char *copied = text;
	bool found = false;

	ptx_lexer_start(&lexer, "", text, size, &ignored);
	while (lexer.token.kind != PTX_END) {
		const struct ptx_token t = lexer.token;

		ptx_next(&lexer);
		if (t.kind != PTX_NAME)
			continue;
		tally_buffer_append(out, copied, (size_t)(t.text - copied));
		copied = t.text + t.length;
		if (starts(&t, body_mark)) {
			found = true;
			out = &frame->after;
			copied = lexer.at;
		} else {
			rename_to(out, &t, kernel,
				  lexer.token.kind == PTX_DOT && lexer.token.adjacent);
		}
	}
	tally_buffer_append(out, copied, (size_t)(text + size - copied));
	return found && !lexer.failed;
}

bool ptx_frame_cut(struct ptx_frame *frame, const char *text, size_t size, const char *name)
{
	struct ptx_outline outline;
	size_t length = strlen(name);
	bool ok = ptx_outline(&outline, text, size);

	*frame = (struct ptx_frame){0};
	for (size_t k = 0; ok && k < outline.entries; k++) {
		const struct ptx_entry *e = &outline.entry[k];

		if (e->name_length <= length || memcmp(text + e->name, name, length))
			continue;
		tally_buffer_append(&frame->suffix, text + e->name + length,
				    e->name_length - length);
		ok = cut_body(frame, text + e->body, e->end - e->body, name);
	}
	ptx_outline_free(&outline);
	return ok && frame->before.size && !frame->suffix.failed && !frame->before.failed &&
	       !frame->after.failed;
}

void ptx_frame_free(struct ptx_frame *frame)
{
	tally_buffer_free(&frame->suffix);
	tally_buffer_free(&frame->before);
	tally_buffer_free(&frame->after);
}

static void copy_head(const struct ptx_outline *o, const struct ptx_entry *e,
		      const struct ptx_frame *frame, struct tally_buffer *out)
{
	size_t name_end = e->name + e->name_length;
	size_t at = e->parameters ? e->parameters : name_end;

	tally_buffer_append(out, o->text + e->start, name_end - e->start);
	append(out, frame->suffix.data);
	tally_buffer_append(out, o->text + name_end, at - name_end);
	tally_buffer_print(out, "%s\t.param .align 8 .b8 %s[32]\n%s",
			   !e->parameters      ? "(\n"
			   : e->has_parameters ? ",\n"
					       : "\n",
			   parameter, e->parameters ? "" : ")");
	tally_buffer_append(out, o->text + at, e->body - at);
}

static void copy_body(const struct ptx_outline *o, const struct ptx_entry *e, bool moved,
		      struct tally_buffer *out)
{
	size_t at = e->body;

	for (size_t k = e->first_read; moved && k < e->first_read + e->reads; k++) {
		const struct ptx_read *r = &o->read[k];

		tally_buffer_append(out, o->text + at, r->at - at);
		append(out, read_names[r->which]);
		at = r->at + r->length;
	}
	tally_buffer_append(out, o->text + at, e->end - at);
}

void ptx_keep(const struct ptx_outline *outline, const struct ptx_frame *frame, bool moved,
	      struct tally_buffer *out)
{
	tally_buffer_append(out, outline->text, outline->size);
	for (size_t k = 0; k < outline->entries; k++) {
		const struct ptx_entry *e = &outline->entry[k];

		if (e->reason)
			continue;
		append(out, "\n");
		copy_head(outline, e, frame, out);
		tally_buffer_append(out, frame->before.data, frame->before.size);
		append(out, "{");
		copy_body(outline, e, moved, out);
		append(out, "}");
		tally_buffer_append(out, frame->after.data, frame->after.size);
		append(out, "}\n");
	}
}
