/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers every kernel for every target, assembles or inspects the result; several at a time. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/embed.h"
#include "base/file.h"
#include "conformance/runner.h"

extern char **environ;
TALLY_EMBEDDED(conformance_refusals); /* refusals.txt */

const char *const forms[FORMS] = {"ptx", "bc", FORM_TEXT, FORM_AGAIN};

/* What a case of the device needs compiled; GPU targets get the combined variant. The last is for
 * machine code, which only a GPU runs. */
static const char *const device_transforms[] = {"none",	       "slice",	  "guard",
						"slice,guard", "persist", "opaque"};
enum { DEVICE_TRANSFORMS = sizeof device_transforms / sizeof *device_transforms };

/* Workers are lowered for one machine of each vendor: it takes as long again. */
static const char *transform_for(const char *target)
{
	return !strcmp(target, "sm_90") || !strcmp(target, "gfx942") ? "slice,guard,persist"
								     : "slice,guard";
}

/* Text or again. */
static bool form_is_derived(const char *form)
{
	return !strcmp(form, FORM_TEXT) || !strcmp(form, FORM_AGAIN);
}

bool form_has(const struct options *o, const char *form, const char *transform)
{
	if (!strcmp(transform, "opaque"))
		return o->ptxas && !strcmp(form, "ptx") && !strncmp(o->device_target, "sm_", 3);
	return !form_is_derived(form) ||
	       (strncmp(o->device_target, "sm_", 3) && !strcmp(transform, TEXT_TRANSFORM));
}

struct task {
	const char *kernel, *form, *target, *transform;
	bool check; /* assemble or inspect: a GPU target */
	pid_t pid;  /* while it runs */
	double start;
};

bool selected(const struct options *o, const struct conformance_case *c)
{
	return !o->filter || strstr(c->name, o->filter);
}

void compile_path(const struct options *o, const char *kernel, const char *form, const char *target,
		  const char *transform, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s.%s.%s.%s", o->work, kernel, form, target, transform);
}

/* Runs a program with its stdout and stderr in `log`; its exit status, or -1. */
static int run(char *const argv[], const char *log)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status = -1;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	int failed = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (failed || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What an NVIDIA machine would get: that is made first, and is the input of what follows. */
static bool make_first(const struct options *o, const struct task *t, char input[PATH_MAX],
		       const char *log)
{
	char text[PATH_MAX], form[16];

	snprintf(form, sizeof form, "%s.first", t->form);
	compile_path(o, t->kernel, form, "sm_90", t->transform, text);
	char *first[] = {(char *)o->tally_lower,
			 input,
			 "--target",
			 "sm_90",
			 "--transform",
			 (char *)t->transform,
			 "--verify",
			 "-o",
			 text,
			 !strcmp(t->form, FORM_AGAIN) ? "--lift" : NULL,
			 NULL};
	bool ok = !run(first, log);
	snprintf(input, PATH_MAX, "%s", text);
	return ok;
}

/* PTX assembled to machine code, and a guard put into that. As perform(). */
static int perform_opaque(const struct options *o, const char *ptx, const char *target,
			  const char *cubin, const char *output, const char *log)
{
	char arch[32];

	snprintf(arch, sizeof arch, "-arch=%s", target);
	char *ptxas[] = {(char *)o->ptxas, arch, (char *)ptx, "-o", (char *)cubin, NULL};
	char *lower[] = {(char *)o->tally_lower,
			 (char *)cubin,
			 "--target",
			 (char *)target,
			 "--transform",
			 "opaque",
			 "-o",
			 (char *)output,
			 NULL};

	return run(ptxas, log) ? 2 : run(lower, log) ? 3 : 0;
}

/* As perform(): what ptxas makes of the PTX in `output` takes a guard too, like any machine code.
 */
static int check_cuda(const struct options *o, const struct task *t, const char *output,
		      const char *cubin)
{
	/* CUDA 13's ptxas begins at sm_75; older PTX is valid there. */
	const char *assembled = atoi(t->target + 3) < 75 ? "sm_75" : t->target;
	char guarded[PATH_MAX + 8], log[PATH_MAX + 8];
	int result;

	if (!o->ptxas)
		return 0;
	snprintf(guarded, sizeof guarded, "%s.opaque", output);
	snprintf(log, sizeof log, "%s.log", output);
	result = perform_opaque(o, output, assembled, cubin, guarded, log);
	unlink(cubin);
	unlink(guarded);
	return result;
}

/* As perform(): a code object must carry metadata for the kernel and for its variant. */
static int check_amd(const struct options *o, const struct task *t, char *output, const char *notes)
{
	char *readelf[] = {(char *)o->readelf, "--notes", output, NULL};
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	char original[128], variant[128];
	int result = 2;

	snprintf(original, sizeof original, ".name:           %s\n", t->kernel);
	snprintf(variant, sizeof variant, "%s$slice_guard", t->kernel);
	if (!run(readelf, notes) && tally_file_read(notes, &text, &error) && text.data &&
	    strstr(text.data, original) && strstr(text.data, variant) &&
	    strstr(text.data, ".kernarg_segment_size") && strstr(text.data, t->target))
		result = 0;
	tally_buffer_free(&text);
	return result;
}

/* In a child: 3 no guard could be put into its machine code, 0 worked, 1 tally-lower refused, 2 it
 * was not accepted by the target's own tools. */
static int perform(const struct options *o, const struct task *t)
{
	char input[PATH_MAX], output[PATH_MAX], log[PATH_MAX + 8], second[PATH_MAX + 8];

	bool derived = form_is_derived(t->form);

	snprintf(input, sizeof input, "%s/%s.%s", o->kernels, t->kernel, derived ? "ptx" : t->form);
	compile_path(o, t->kernel, t->form, t->target, t->transform, output);
	snprintf(log, sizeof log, "%s.log", output);
	snprintf(second, sizeof second, "%s.out", output);
	unlink(log);
	unlink(output);
	if (derived && !make_first(o, t, input, log))
		return 1;
	if (!strcmp(t->transform, "opaque")) {
		snprintf(second, sizeof second, "%s.cubin", output);
		return perform_opaque(o, input, t->target, second, output, log);
	}
	char *lower[] = {(char *)o->tally_lower,
			 input,
			 "--target",
			 (char *)t->target,
			 "--transform",
			 derived ? "none" : (char *)t->transform,
			 "--verify",
			 "-o",
			 output,
			 NULL};
	if (run(lower, log))
		return 1;
	if (!t->check)
		return 0;
	return strncmp(t->target, "sm_", 3) ? check_amd(o, t, output, second)
					    : check_cuda(o, t, output, second);
}

/* The last line of a task's log, for the report. */
static void log_line(const struct options *o, const struct task *t, char *line, size_t size)
{
	char path[PATH_MAX], log[PATH_MAX + 8];
	struct tally_buffer text = {0};
	struct tally_error error = {0};

	compile_path(o, t->kernel, t->form, t->target, t->transform, path);
	snprintf(log, sizeof log, "%s.log", path);
	line[0] = '\0';
	if (tally_file_read(log, &text, &error) && text.size)
		snprintf(line, size, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	tally_buffer_free(&text);
}

/* Refusals that are known: lines "kernel target [transform]" (target may end in *); # starts a
 * comment. */
bool refused(const char *kernel, const char *target, const char *transform)
{
	char line_kernel[64], line_target[32], line_transform[32];

	for (const char *p = conformance_refusals, *end; *p; p = *end ? end + 1 : end) {
		char line[160];

		end = strchrnul(p, '\n');
		snprintf(line, sizeof line, "%.*s", (int)(end - p), p);
		int fields =
			sscanf(line, "%63s %31s %31s", line_kernel, line_target, line_transform);
		if (fields < 2 || line_kernel[0] == '#' || strcmp(line_kernel, kernel) ||
		    (fields == 3 && strcmp(line_transform, transform)))
			continue;
		size_t n = strlen(line_target);
		if (line_target[n - 1] == '*' ? !strncmp(line_target, target, n - 1)
					      : !strcmp(line_target, target))
			return true;
	}
	return false;
}

static void finished(const struct options *o, const struct task *t, int status)
{
	char column[24], line[240];
	double seconds = now_seconds() - t->start;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 4;

	snprintf(column, sizeof column, "%s", t->check ? t->target : "compile");
	log_line(o, t, line, sizeof line);
	bool expected = refused(t->kernel, t->target, t->transform);
	if (code == 0 && !expected)
		report(t->kernel, column, PASSED, seconds, "%s", t->form);
	else if (code == 0)
		report(t->kernel, column, FAILED, seconds,
		       "%s for %s: was expected to be refused, and is not", t->form, t->target);
	else if (code == 1 && expected && strstr(line, t->kernel))
		report(t->kernel, column, REFUSED, seconds, "%s: %s", t->form, line);
	else
		report(t->kernel, column, FAILED, seconds, "%s %s for %s: %s: %s", t->form,
		       t->transform, t->target,
		       code == 1   ? "tally-lower"
		       : code == 2 ? "the target's own tools"
		       : code == 3 ? "a guard for its machine code"
				   : "crashed",
		       line);
}

/* Runs the tasks, at most `jobs` at once. */
static bool run_tasks(const struct options *o, struct task *tasks, size_t count,
		      struct tally_error *error)
{
	size_t next = 0, running = 0;

	while (next < count || running) {
		if (next < count && running < o->jobs) {
			struct task *t = &tasks[next++];

			t->start = now_seconds();
			t->pid = fork();
			if (t->pid < 0)
				return tally_fail(error, "fork: %s", strerror(errno));
			if (t->pid == 0)
				_exit(perform(o, t));
			running++;
			continue;
		}
		int status;
		pid_t pid = wait(&status);

		if (pid < 0)
			return tally_fail(error, "wait: %s", strerror(errno));
		for (size_t i = 0; i < next; i++)
			if (tasks[i].pid == pid) {
				tasks[i].pid = 0;
				finished(o, &tasks[i], status);
				running--;
			}
	}
	return true;
}

/* The compiler knows which targets there are: it says so before it looks at its input. */
bool check_targets(const struct options *o, struct tally_error *error)
{
	static const char unknown[] = "unknown target";
	char log[PATH_MAX];

	if (!tally_make_folders(o->work, error))
		return false;
	snprintf(log, sizeof log, "%s/targets.%d.log", o->work, (int)getpid());
	for (size_t k = 0; o->targets[k] && !tally_failed(error); k++) {
		char *lower[] = {(char *)o->tally_lower, "/dev/null", "--target",
				 (char *)o->targets[k], NULL};
		struct tally_error ignored = {0};
		struct tally_buffer text = {0};
		char *found;

		unlink(log);
		run(lower, log);
		if (tally_file_read(log, &text, &ignored) && text.size &&
		    (found = strstr(text.data, unknown)))
			tally_fail(error, "%.*s", (int)strcspn(found, "\n"), found);
		tally_buffer_free(&text);
	}
	unlink(log);
	return !tally_failed(error);
}

bool compile_all(const struct options *o, struct tally_error *error)
{
	struct task *tasks = NULL;
	size_t count = 0, capacity = 0;

	if (!tally_make_folders(o->work, error))
		return false;
	for (size_t g = 0; conformance_groups[g]; g++)
		for (const struct conformance_case *c = conformance_groups[g]; c->name; c++) {
			bool seen = false;

			for (size_t i = 0; i < count && !seen; i++)
				seen = !strcmp(tasks[i].kernel, c->kernel);
			if (seen || !selected(o, c))
				continue;
			for (size_t f = 0; f < FORMS; f++) {
				size_t transforms = o->driver ? DEVICE_TRANSFORMS : 0, targets = 0;

				while (o->targets[targets] && !form_is_derived(forms[f]))
					targets++;
				if (count + transforms + targets > capacity) {
					capacity = 2 * capacity + transforms + targets;
					tasks = realloc(tasks, capacity * sizeof *tasks);
					if (!tasks)
						return tally_fail(error, "out of memory");
				}
				for (size_t k = 0; k < transforms; k++)
					if (form_has(o, forms[f], device_transforms[k]))
						tasks[count++] = (struct task){c->kernel,
									       forms[f],
									       o->device_target,
									       device_transforms[k],
									       false,
									       0,
									       0};
				for (size_t k = 0; k < targets; k++)
					tasks[count++] = (struct task){c->kernel,
								       forms[f],
								       o->targets[k],
								       transform_for(o->targets[k]),
								       true,
								       0,
								       0};
			}
		}
	bool ok = run_tasks(o, tasks, count, error);
	free(tasks);
	return ok;
}
