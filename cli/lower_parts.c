/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PTX file lowered to PTX in parts: a process for each, some at a time, so that a file of any
 * size needs the memory of a few parts, and all cores. What the parts are depends on the text
 * alone, so the output is the same however many run at once.
 *
 * Where variants are asked for, the kernels themselves stay as they came: only variants go through
 * LLVM.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/lower/join.h"
#include "base/file.h"
#include "cli/lower.h"
#include "frontend/frontend.h"

/* Of text, for one part: LLVM takes about a hundred times as much memory. */
enum { PART_BYTES = 64 * 1024 };

/* Parts that may be done before one that they have to wait for, for each job. */
enum { AHEAD = 4 };

struct part {
	const struct tally_ptx_part *text;
	bool variables; /* the file's variables and nothing else */
	pid_t process;	/* 0: none */
	bool done;
	int status;	      /* as waitpid() gives it */
	int output, messages; /* files without a name; -1: none */
};

struct parts {
	struct lower_options *options;
	const struct tally_lowering *lowering;
	const struct tally_image *image;
	const char *path;
	struct tally_ptx_split split;
	bool verbatim;
	struct part *part;
	size_t count, started, running;
	struct tally_cuda_join join;
};

/* Whether PTX for `have` runs on `want` as it is: the same machine, or an older one without
 * features of its own. */
static bool runs_on(const char *have, size_t length, const char *want)
{
	char *end;
	unsigned long number;

	if (strlen(want) == length && !memcmp(have, want, length))
		return true;
	if (length < 4 || memcmp(have, "sm_", 3) || strncmp(want, "sm_", 3))
		return false;
	number = strtoul(have + 3, &end, 10);
	return end == have + length && number <= strtoul(want + 3, NULL, 10);
}

static bool stays_verbatim(const struct lower_options *o, const struct tally_ptx_split *split)
{
	return o->passes.transforms && o->lower.optimise == 2 && !o->lower.ptx && !o->lift &&
	       split->plain_target && runs_on(split->target, split->target_length, o->target);
}

/* The name that part `k` gives to what is its own. */
static void suffix_of(size_t k, char *text, size_t size)
{
	snprintf(text, size, "_$p%zu", k);
}

/* Lowers part `k` into `out`, in whichever process. */
static bool lower_part(const struct parts *p, size_t k, struct tally_buffer *out,
		       struct tally_error *error)
{
	struct lower_options options = *p->options;
	struct tally_lift_options lift = {.file = p->path,
					  .target = options.target,
					  .part = p->part[k].text,
					  .verify = options.passes.verify};
	LLVMContextRef context = lower_context(error);
	LLVMModuleRef module;
	char suffix[32];

	suffix_of(k, suffix, sizeof suffix);
	options.lower.part = p->part[k].variables ? NULL : suffix;
	options.variants_only = p->verbatim;
	lower_step(LOWER_STEP_READ);
	tally_lower_stats(&options.lower, NULL);
	module = tally_frontend_lift_image(context, p->path, p->image, &lift, error);
	tally_lower_stats(&options.lower, "read");
	return module && lower_module(module, &options, p->lowering, out, error);
}

/* In the part's process: an error value, then the text. */
static void work(const struct parts *p, size_t k, pid_t parent)
{
	struct tally_error error = {0};
	struct tally_buffer out = {0};
	const struct part *part = &p->part[k];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(part->messages, STDERR_FILENO) < 0)
		_exit(1);
	if (!lower_part(p, k, &out, &error) && !tally_failed(&error))
		tally_fail(&error, "a part could not be lowered");
	fflush(stderr);
	_exit(tally_write_all(part->output, &error, sizeof error) &&
			      tally_write_all(part->output, out.data, out.size)
		      ? 0
		      : 1);
}

static bool start(struct parts *p, struct tally_error *error)
{
	struct part *part = &p->part[p->started];
	pid_t parent = getpid();

	part->output = memfd_create("tally-lower output", MFD_CLOEXEC);
	part->messages = memfd_create("tally-lower messages", MFD_CLOEXEC);
	if (part->output < 0 || part->messages < 0)
		return tally_fail(error, "cannot make a file in memory: %s", strerror(errno));
	fflush(stderr);
	part->process = fork();
	if (part->process < 0)
		return tally_fail(error, "cannot start a process: %s", strerror(errno));
	if (!part->process)
		work(p, p->started, parent);
	p->started++;
	p->running++;
	return true;
}

/* Waits until one more part is done. */
static void wait_for_one(struct parts *p)
{
	int status;
	pid_t process = waitpid(-1, &status, 0);

	for (size_t k = 0; process > 0 && k < p->started; k++)
		if (p->part[k].process == process) {
			p->part[k].process = 0;
			p->part[k].done = true;
			p->part[k].status = status;
			p->running--;
		}
	if (process < 0 && errno != EINTR) /* nobody is left: cannot be */
		for (size_t k = 0; k < p->started; k++)
			p->part[k].done = true;
}

/* A file's bytes, to be read; NULL for none. */
static const char *map(int file, size_t *size)
{
	struct stat status;
	void *data;

	*size = 0;
	if (fstat(file, &status) || !status.st_size)
		return NULL;
	data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (data == MAP_FAILED)
		return NULL;
	*size = (size_t)status.st_size;
	return data;
}

static void unmap(const char *data, size_t size)
{
	if (data)
		munmap((void *)(uintptr_t)data, size);
}

/* What the part's process said, said again by this one: in the parts' order. */
static size_t pass_messages(const struct part *part)
{
	size_t size;
	const char *text = map(part->messages, &size);

	if (text)
		fwrite(text, 1, size, stderr);
	unmap(text, size);
	return size;
}

static void close_files(struct part *part)
{
	if (part->output >= 0)
		close(part->output);
	if (part->messages >= 0)
		close(part->messages);
	part->output = part->messages = -1;
}

static bool take_output(struct parts *p, const char *data, size_t size, struct tally_error *error)
{
	struct tally_error failed;

	memcpy(&failed, data, sizeof failed);
	if (tally_failed(&failed)) {
		*error = failed;
		return false;
	}
	return size == sizeof failed ||
	       tally_cuda_join_add(&p->join, data + sizeof failed, size - sizeof failed, error);
}

static bool take(struct parts *p, size_t k, struct tally_error *error)
{
	struct part *part = &p->part[k];
	size_t size, said = pass_messages(part);
	const char *data = map(part->output, &size);
	bool ok;

	if (data && size >= sizeof *error && WIFEXITED(part->status) &&
	    !WEXITSTATUS(part->status)) {
		ok = take_output(p, data, size, error);
	} else if (WIFEXITED(part->status) && said) {
		_exit(1); /* it crashed, and its line says how */
	} else {
		ok = tally_fail(error, "a part's process ended by signal %d: out of memory?",
				WIFSIGNALED(part->status) ? WTERMSIG(part->status) : 0);
	}
	unmap(data, size);
	close_files(part);
	return ok;
}

static void end_all(struct parts *p)
{
	for (size_t k = 0; k < p->started; k++) {
		if (p->part[k].process > 0) {
			kill(p->part[k].process, SIGKILL);
			waitpid(p->part[k].process, NULL, 0);
		}
		close_files(&p->part[k]);
	}
}

static bool run_all(struct parts *p, struct tally_error *error)
{
	unsigned jobs = p->options->jobs;

	for (size_t next = 0; next < p->count;) {
		while (p->started < p->count && p->running < jobs &&
		       p->started < next + (size_t)jobs * AHEAD)
			if (!start(p, error))
				return false;
		while (!p->part[next].done)
			wait_for_one(p);
		if (!take(p, next++, error))
			return false;
	}
	return true;
}

/* One part alone needs no process of its own. */
static bool run_one(struct parts *p, struct tally_error *error)
{
	struct tally_buffer text = {0};
	bool ok = lower_part(p, 0, &text, error) &&
		  (!text.size || tally_cuda_join_add(&p->join, text.data, text.size, error));

	tally_buffer_free(&text);
	return ok;
}

static bool list_parts(struct parts *p)
{
	bool variables = p->split.has_variables && !p->verbatim;

	p->part = calloc(p->split.count + 1, sizeof *p->part);
	if (!p->part)
		return false;
	if (variables)
		p->part[p->count++] = (struct part){.text = &p->split.variables, .variables = true};
	for (size_t k = 0; k < p->split.count; k++)
		p->part[p->count++] = (struct part){.text = &p->split.parts[k]};
	for (size_t k = 0; k < p->count; k++)
		p->part[k].output = p->part[k].messages = -1;
	return true;
}

static void open_join(struct parts *p, struct tally_buffer *out)
{
	const struct tally_ptx_split *split = &p->split;
	const char *text = p->verbatim ? split->body : NULL;
	unsigned major = 0, minor = 0;

	if (p->verbatim)
		sscanf(split->version, "%u.%u", &major, &minor);
	tally_cuda_join_open(&p->join, out, p->options->target, major * 10 + minor, text,
			     text ? (size_t)((const char *)p->image->data + p->image->size - text)
				  : 0);
}

static bool lower_all(struct parts *p, struct tally_buffer *out, struct tally_error *error)
{
	bool ok;

	if (!list_parts(p))
		return tally_fail(error, "out of memory");
	open_join(p, out);
	ok = p->count == 1 ? run_one(p, error) : run_all(p, error);
	end_all(p);
	ok &= tally_cuda_join_close(&p->join, error);
	free(p->part);
	return ok;
}

bool lower_in_parts(struct lower_options *options, const struct tally_lowering *lowering,
		    const struct tally_images *images, const char *path, struct tally_buffer *out,
		    bool *done, struct tally_error *error)
{
	struct parts p = {.options = options, .lowering = lowering, .path = path};
	bool ok = true;

	*done = false;
	if (strcmp(lowering->vendor, "nvidia") || options->passes.kernel || options->print_after ||
	    options->lower.emit == TALLY_EMIT_IR)
		return true;
	p.image = tally_frontend_only(images, options->target);
	if (!p.image || p.image->kind != TALLY_IMAGE_PTX)
		return true;
	if (tally_ptx_split(&p.split, (const char *)p.image->data, p.image->size, PART_BYTES)) {
		p.verbatim = stays_verbatim(options, &p.split);
		*done = p.verbatim || p.split.count > 1;
		if (*done)
			ok = lower_all(&p, out, error);
	}
	tally_ptx_split_free(&p.split);
	return ok;
}
