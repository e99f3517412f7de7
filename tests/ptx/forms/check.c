/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds every form of forms.txt to ptxas, lifts those that it takes, lowers them again and feeds
 * the result to ptxas: what it took once it has to take twice. Portable forms are compiled for the
 * CPU as well.
 *
 * ptx_forms LIST ARCH PTXAS TALLY-LOWER FOLDER [every] prints one line for each form that fails and
 * a summary of all; exit status 1 when any failed. `every` takes each n-th form only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "tests/ptx/forms/expand.h"

enum { HEAD_LINES = 3, BATCH = 256 };

struct check {
	struct forms forms;
	const char *arch, *ptxas, *lower, *folder;
	char plain[32]; /* the target without .target's options */
};

static bool write_text(struct check *c, const char *name, const struct tally_buffer *text,
		       char path[256])
{
	struct tally_error error = {0};

	snprintf(path, 256, "%s/%s", c->folder, name);
	return !text->failed && tally_file_write(path, text->data, text->size, &error);
}

static int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs ptxas on a file, its messages to FOLDER/log. */
static bool assemble(struct check *c, const char *path)
{
	char command[1024];

	snprintf(command, sizeof command, "%s -O0 -arch=%s %s -o /dev/null >%s/log 2>&1", c->ptxas,
		 c->plain, path, c->folder);
	return run(command) == 0;
}

/* The forms of `list` that ptxas's messages name by their line are taken off. How many were. */
static size_t drop_named(struct check *c, struct form **list, size_t *count,
			 size_t (*find)(struct check *, unsigned line, size_t count))
{
	char path[256], text[1024];
	bool *bad = calloc(*count + 1, sizeof *bad);
	size_t kept = 0, dropped = 0;
	FILE *log;

	snprintf(path, sizeof path, "%s/log", c->folder);
	log = fopen(path, "r");
	while (log && bad && fgets(text, sizeof text, log)) {
		const char *at = strstr(text, ", line ");
		size_t i = at && strstr(text, "error") ? find(c, (unsigned)atoi(at + 7), *count)
						       : *count;

		if (i >= *count)
			continue;
		if (!bad[i])
			snprintf(list[i]->why, sizeof list[i]->why, "%.190s",
				 strchr(at + 7, ':') ? strchr(at + 7, ':') + 2 : text);
		list[i]->why[strcspn(list[i]->why, "\n")] = '\0';
		bad[i] = true;
	}
	for (size_t i = 0; bad && i < *count; i++)
		if (!bad[i])
			list[kept++] = list[i];
	dropped = *count - kept;
	*count = kept;
	if (log)
		fclose(log);
	free(bad);
	return dropped;
}

static void print_module(struct check *c, struct tally_buffer *out, struct form **list,
			 size_t count)
{
	forms_print_head(out, c->arch);
	for (size_t i = 0; i < count; i++)
		forms_print_kernel(out, i, list[i]->text);
}

static size_t by_source_line(struct check *c, unsigned line, size_t count)
{
	return line > HEAD_LINES ? line - HEAD_LINES - 1 : count;
}

/* Marks the forms that ptxas takes; a message without a line makes halves of the list. */
static void judge(struct check *c, struct form **list, size_t count)
{
	struct tally_buffer text = {0};
	char path[256];
	bool ok;

	while (count) {
		text.size = 0;
		print_module(c, &text, list, count);
		ok = write_text(c, "original.ptx", &text, path) && assemble(c, path);
		if (ok || !drop_named(c, list, &count, by_source_line))
			break;
	}
	tally_buffer_free(&text);
	if (ok)
		for (size_t i = 0; i < count; i++)
			list[i]->legal = true;
	else if (count > 1) {
		judge(c, list, count / 2);
		judge(c, list + count / 2, count - count / 2);
	}
}

/* Whether the lifter takes it, and whether the kernel is locked then. */
static void lift(struct check *c, struct form *f)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	struct tally_lift_options options = {.file = "form", .verify = true};
	LLVMModuleRef module;

	print_module(c, &text, &f, 1);
	module = tally_ptx_lift(context, text.data, text.size, &options, &error);
	f->lifted = module && tally_contract_verify(module, &error);
	if (f->lifted)
		f->locked = tally_attribute(LLVMGetNamedFunction(module, "k0"),
					    TALLY_ATTR_LOCKED) != NULL;
	else
		snprintf(f->why, sizeof f->why, "%.190s", error.message);
	if (module)
		LLVMDisposeModule(module);
	tally_buffer_free(&text);
	LLVMContextDispose(context);
}

static unsigned *kernel_of_line; /* of the file that was written last */
static size_t lines;

static size_t by_result_line(struct check *c, unsigned line, size_t count)
{
	return line && line <= lines ? kernel_of_line[line - 1] : count;
}

/* Which kernel each line of our own output belongs to. */
static bool map_lines(const char *path)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	unsigned kernel = UINT32_MAX;
	bool ok = tally_file_read(path, &text, &error);

	lines = 0;
	free(kernel_of_line);
	kernel_of_line = calloc(text.size + 1, sizeof *kernel_of_line);
	for (const char *p = text.data; ok && kernel_of_line && p && *p; lines++) {
		const char *end = strchr(p, '\n'), *entry = strstr(p, ".entry k");

		if (entry && (!end || entry < end))
			kernel = (unsigned)atoi(entry + 8);
		kernel_of_line[lines] = kernel;
		p = end ? end + 1 : NULL;
	}
	tally_buffer_free(&text);
	return ok && kernel_of_line;
}

static void note_log(struct check *c, struct form *f)
{
	char path[256];
	struct tally_buffer text = {0};
	struct tally_error error = {0};

	snprintf(path, sizeof path, "%s/log", c->folder);
	if (tally_file_read(path, &text, &error) && text.data)
		snprintf(f->why, sizeof f->why, "%.*s",
			 (int)(strcspn(text.data, "\n") < 190 ? strcspn(text.data, "\n") : 190),
			 text.data);
	tally_buffer_free(&text);
}

/* Lowers and assembles again; what fails as a whole is tried in halves. */
static void again(struct check *c, struct form **list, size_t count)
{
	struct tally_buffer text = {0};
	char from[256], to[256], command[1024];
	bool lowered = false, ok = false;

	while (count) {
		text.size = 0;
		print_module(c, &text, list, count);
		snprintf(to, sizeof to, "%s/result.ptx", c->folder);
		if (!write_text(c, "again.ptx", &text, from))
			break;
		snprintf(command, sizeof command, "%s %s --target %s -o %s >%s/log 2>&1", c->lower,
			 from, c->plain, to, c->folder);
		lowered = run(command) == 0;
		if (!lowered || !map_lines(to))
			break;
		ok = assemble(c, to);
		if (ok || !drop_named(c, list, &count, by_result_line))
			break;
	}
	tally_buffer_free(&text);
	for (size_t i = 0; i < count && lowered; i++) {
		list[i]->lowered = true;
		list[i]->assembled = ok;
	}
	if (ok || !count)
		return;
	if (count > 1) {
		again(c, list, count / 2);
		again(c, list + count / 2, count - count / 2);
	} else {
		note_log(c, list[0]);
	}
}

/* Compiles portable forms for the CPU; what fails as a whole is tried in halves. */
static void compile(struct check *c, struct form **list, size_t count)
{
	struct tally_buffer text = {0};
	char from[256], command[1024];
	bool ok;

	if (!count)
		return;
	print_module(c, &text, list, count);
	ok = write_text(c, "cpu.ptx", &text, from);
	tally_buffer_free(&text);
	snprintf(command, sizeof command, "%s %s --target x86-64 -O 0 -o %s/cpu.so >%s/log 2>&1",
		 c->lower, from, c->folder, c->folder);
	ok = ok && run(command) == 0;
	for (size_t i = 0; ok && i < count; i++)
		list[i]->compiled = true;
	if (ok)
		return;
	if (count > 1) {
		compile(c, list, count / 2);
		compile(c, list + count / 2, count - count / 2);
	} else {
		note_log(c, list[0]);
	}
}

static void check_all(struct check *c, struct form **list)
{
	size_t count = 0;

	for (size_t i = 0; i < c->forms.count; i++)
		list[count++] = &c->forms.form[i];
	for (size_t i = 0; i < count; i += BATCH * 8)
		judge(c, list + i, count - i < BATCH * 8 ? count - i : BATCH * 8);
	count = 0;
	for (size_t i = 0; i < c->forms.count; i++) {
		lift(c, &c->forms.form[i]);
		if (c->forms.form[i].legal && c->forms.form[i].lifted)
			list[count++] = &c->forms.form[i];
	}
	for (size_t i = 0; i < count; i += BATCH)
		again(c, list + i, count - i < BATCH ? count - i : BATCH);
	count = 0;
	for (size_t i = 0; i < c->forms.count; i++)
		if (c->forms.form[i].legal && c->forms.form[i].lifted && !c->forms.form[i].locked)
			list[count++] = &c->forms.form[i];
	for (size_t i = 0; i < count; i += BATCH)
		compile(c, list + i, count - i < BATCH ? count - i : BATCH);
}

static int report(const struct check *c)
{
	size_t legal = 0, refused = 0, broken = 0, locked = 0, loose = 0;

	for (size_t i = 0; i < c->forms.count; i++) {
		const struct form *f = &c->forms.form[i];

		legal += f->legal;
		locked += f->legal && f->locked;
		if (f->legal && !f->lifted) {
			printf("refused: %u: %s  -- %s\n", f->line, f->text, f->why);
			refused++;
		} else if (f->legal && !f->assembled) {
			printf("broken: %u: %s  -- %s\n", f->line, f->text, f->why);
			broken++;
		} else if (f->legal && !f->locked && !f->compiled) {
			printf("not for the CPU: %u: %s  -- %s\n", f->line, f->text, f->why);
			broken++;
		} else if (!f->legal && f->lifted && !f->locked) {
			loose++;
			if (getenv("LOOSE"))
				printf("loose: %u: %s  -- %s\n", f->line, f->text, f->why);
		} else if (!f->legal && getenv("ILLEGAL")) {
			printf("illegal: %u: %s  -- %s\n", f->line, f->text, f->why);
		}
		if (f->legal && f->locked && getenv("LOCKED"))
			printf("locked: %u: %s\n", f->line, f->text);
	}
	printf("%s: %zu forms, %zu that ptxas takes: %zu refused, %zu broken, %zu locked; %zu that "
	       "it "
	       "does not are lifted\n",
	       c->plain, c->forms.count, legal, refused, broken, locked, loose);
	return refused || broken;
}

int main(int argc, char **argv)
{
	struct check c = {0};
	size_t every = argc > 6 ? (size_t)atoi(argv[6]) : 1, kept = 0;
	struct form **list;
	int status;

	if (argc < 6 || !every || !forms_read(&c.forms, argv[1])) {
		fprintf(stderr, "usage: ptx_forms LIST ARCH PTXAS TALLY-LOWER FOLDER [every]\n");
		return 2;
	}
	c.arch = argv[2];
	snprintf(c.plain, sizeof c.plain, "%.*s", (int)strcspn(c.arch, ","), c.arch);
	c.ptxas = argv[3];
	c.lower = argv[4];
	c.folder = argv[5];
	for (size_t i = 0; i < c.forms.count; i++) {
		if (i % every)
			free(c.forms.form[i].text);
		else
			c.forms.form[kept++] = c.forms.form[i];
	}
	c.forms.count = kept;
	list = calloc(kept + 1, sizeof *list);
	if (!list)
		return 2;
	check_all(&c, list);
	status = report(&c);
	free(list);
	free(kernel_of_line);
	forms_free(&c.forms);
	return status;
}
