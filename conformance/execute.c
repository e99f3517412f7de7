/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every case: whole, in slices, stopped at every boundary, stopped while it runs. */
#include "conformance/execute.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_BOUNDARY = 64, SOME_BOUNDARIES = 24 };

static struct tally_launch range(const struct running *r, uint32_t lo, uint32_t hi, bool guarded)
{
	const uint32_t *g = r->c->grid;

	return (struct tally_launch){.control = guarded ? r->control : 0,
				     .lo = lo,
				     .hi = hi,
				     .grid = {g[0], g[1], g[2]}};
}

static bool wait_for(struct running *r, struct tally_error *error)
{
	return device_ok(driver.stream_synchronize(r->stream), "cuStreamSynchronize", error);
}

/* How the blocks of a variant's launch are counted. */
enum blocks { AS_ORIGINAL, AS_SLICE, AS_WORKERS };

/* One complete execution: `run` does all launches of it; then everything is compared. */
struct way {
	const char *entry;
	bool variant;
	enum blocks blocks;
	uint32_t cut;	 /* slices: number of pieces; stops: blocks before the stop */
	unsigned seed;	 /* live stops */
	bool at_once;	 /* live stops: all blocks run, or none */
	unsigned *stops; /* live stops: counts those that happened */
};

/* The launch of [lo, hi): fewer workers than blocks, so that each has several. */
static bool start(struct running *r, const struct way *w, const struct tally_launch *launch,
		  struct tally_error *error)
{
	uint32_t blocks = launch->hi - launch->lo;
	uint32_t line = w->blocks == AS_SLICE	  ? blocks
			: w->blocks == AS_WORKERS ? 1 + blocks / 3
						  : 0;

	return running_launch(r, w->entry, w->variant ? launch : NULL, line, error);
}

static bool whole(struct running *r, const struct way *w, struct tally_error *error)
{
	struct tally_launch launch = range(r, 0, case_blocks(r->c), false);

	return start(r, w, &launch, error) && wait_for(r, error);
}

static bool slices(struct running *r, const struct way *w, struct tally_error *error)
{
	uint64_t blocks = case_blocks(r->c);

	for (uint32_t k = 0; k < w->cut; k++) {
		struct tally_launch launch = range(r, (uint32_t)(blocks * k / w->cut),
						   (uint32_t)(blocks * (k + 1) / w->cut), false);

		if (launch.lo < launch.hi && !start(r, w, &launch, error))
			return false;
	}
	return wait_for(r, error);
}

/* Stopped by a word that says so from the start, after `cut` blocks were let in: deterministic. */
static bool stop_at(struct running *r, const struct way *w, struct tally_error *error)
{
	uint32_t blocks = case_blocks(r->c);
	struct tally_launch launch = range(r, 0, blocks, true);

	if (!running_control(r, TALLY_WORD_STOP | w->cut, 1, error) ||
	    !start(r, w, &launch, error) || !wait_for(r, error) ||
	    !running_check_runs(r, w->cut, error))
		return false;
	if (w->cut == blocks)
		return true;
	launch.lo = w->cut;
	return running_control(r, w->cut, 1, error) && start(r, w, &launch, error) &&
	       wait_for(r, error);
}

/* Stopped through the gate while it runs, as often as it takes; resumed from where the mailbox
 * says. */
static bool stop_live(struct running *r, const struct way *w, struct tally_error *error)
{
	uint32_t blocks = case_blocks(r->c), lo = 0;
	unsigned random = w->seed * 2654435761u + 1;
	CUstream side;
	int least = 0, greatest = 0;

	driver.priority_range(&least, &greatest);
	if (!device_ok(driver.stream_create(&side, CU_STREAM_NON_BLOCKING, greatest),
		       "cuStreamCreateWithPriority", error))
		return false;
	bool ok = true;
	for (uint32_t sequence = 1; ok && lo < blocks; sequence++) {
		struct tally_launch launch = range(r, lo, blocks, true);
		uint64_t posted;

		/* The delay grows with the attempts, and after many nobody stops it any more: so
		 * every case comes to its end, also on a device that takes long to start one. */
		bool stop = sequence < 50;
		if (w->at_once)
			launch.control |= TALLY_CONTROL_WHOLE;
		random = random * 1664525u + 1013904223u;
		struct timespec delay = {0, (long)(random >> 8) % 60000 + 20000L * (sequence - 1)};
		ok = running_control(r, lo, sequence, error) && start(r, w, &launch, error);
		if (stop)
			nanosleep(&delay, NULL);
		ok = ok &&
		     (!stop ||
		      (device_ok(driver.write32(side, r->gate, 1, 0), "cuStreamWriteValue32",
				 error) &&
		       device_ok(driver.stream_synchronize(side), "cuStreamSynchronize", error))) &&
		     wait_for(r, error);
		posted = __atomic_load_n(r->mailbox, __ATOMIC_ACQUIRE);
		if (ok && posted) {
			uint32_t max = TALLY_MAILBOX_MAX(posted);

			if (TALLY_MAILBOX_SEQUENCE(posted) != sequence || max < lo || max >= blocks)
				ok = tally_fail(error,
						"mailbox says launch %u, max %u; it was launch %u, "
						"from %u",
						TALLY_MAILBOX_SEQUENCE(posted), max, sequence, lo);
			if (ok && w->at_once && max)
				ok = tally_fail(error, "stopped at block %u, not as a whole", max);
			ok = ok && running_check_runs(r, max, error);
			lo = max;
			++*w->stops;
		} else {
			lo = blocks;
		}
	}
	driver.stream_destroy(side);
	return ok;
}

static bool execute(struct running *r, const struct way *w,
		    bool (*run)(struct running *, const struct way *, struct tally_error *),
		    struct tally_error *error)
{
	bool prints = r->c->line != NULL;

	if (!running_reset(r, error) || (prints && !capture_begin(error)))
		return false;
	bool ok = run(r, w, error);
	if (prints)
		ok = capture_end(r->c, error) && ok;
	return ok && running_check_runs(r, case_blocks(r->c), error) && running_check(r, error);
}

/* Says before the error in which run it came up. Always false. */
static bool prefix(struct tally_error *error, const char *what, uint32_t number)
{
	struct tally_error inner = *error;

	*error = (struct tally_error){0};
	return tally_fail(error, "%s %u: %.900s", what, number, inner.message);
}

/* Stops that a word asks for before the launch: after each number of blocks, or some numbers. */
static bool stops_at_boundaries(struct running *r, struct way *w, struct tally_error *error)
{
	uint32_t blocks = case_blocks(r->c);
	uint32_t boundaries = blocks <= EVERY_BOUNDARY ? blocks + 1 : SOME_BOUNDARIES;
	unsigned random = 7;

	for (uint32_t k = 0; k < boundaries; k++) {
		random = random * 1664525u + 1013904223u;
		w->cut = blocks <= EVERY_BOUNDARY ? k : (random >> 4) % (blocks + 1);
		if (!execute(r, w, stop_at, error))
			return prefix(error, "stopped at block", w->cut);
		++*w->stops;
	}
	return true;
}

/* A column of the table. */
struct variant {
	const char *transform, *suffix;
	bool guarded;
	enum blocks blocks;
};

/* Everything that one entry of a module is put through. Workers take their blocks as they come, so
 * they are stopped while they run, and more often. */
static bool variant(struct running *r, const struct variant *v, const struct options *o,
		    unsigned *stops, struct tally_error *error)
{
	char entry[128];
	uint32_t blocks = case_blocks(r->c);
	unsigned rounds = v->blocks == AS_WORKERS ? 4 * o->live_stops : o->live_stops;

	snprintf(entry, sizeof entry, "%s%s", r->c->kernel, v->suffix);
	struct way w = {.entry = entry, .variant = true, .blocks = v->blocks, .stops = stops};
	if (!execute(r, &w, whole, error))
		return false;
	const uint32_t cuts[] = {2, 3, 7, blocks <= EVERY_BOUNDARY ? blocks : 31};
	for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
		w.cut = cuts[k];
		if (!execute(r, &w, slices, error))
			return prefix(error, "pieces:", w.cut);
	}
	if (!v->guarded)
		return true;
	if (v->blocks != AS_WORKERS && !stops_at_boundaries(r, &w, error))
		return false;
	for (w.seed = 0; w.seed < rounds; w.seed++)
		if (!execute(r, &w, stop_live, error))
			return prefix(error, "live stops, round", w.seed);
	w.at_once = v->blocks != AS_WORKERS;
	for (w.seed = 0; w.at_once && w.seed < o->live_stops; w.seed++)
		if (!execute(r, &w, stop_live, error))
			return prefix(error, "live stops as a whole, round", w.seed);
	return true;
}

/* A case that hangs ends the run and says which one it was; other cases cannot follow on a device
 * that is stuck. */
static char watched[160];

static void watchdog(int signal)
{
	static const char text[] = "conformance: error: no end after 60 s: ";

	if (write(STDERR_FILENO, text, sizeof text - 1) > 0 &&
	    write(STDERR_FILENO, watched, strlen(watched)) > 0 && write(STDERR_FILENO, "\n", 1) > 0)
		_exit(1);
	_exit(1);
}

/* A launch parameter of zeros: everything runs, nothing is asked. */
static bool untouched(struct running *r, const struct way *w, struct tally_error *error)
{
	struct tally_launch launch = {0};

	return running_launch(r, w->entry, &launch, 0, error) && wait_for(r, error);
}

/* Machine code that a guard was put into, compared with the same machine code without, which lies
 * beside it (compile.c). The kernel keeps its name. */
static void opaque_case(const struct options *o, struct running *r, const char *form)
{
	static const struct variant guarded = {"opaque", "", true, AS_ORIGINAL};
	struct way way = {.entry = r->c->kernel};
	struct tally_error error = {0};
	char path[PATH_MAX], original[PATH_MAX + 8], column[24];
	double began = now_seconds();
	unsigned stops = 0;

	snprintf(column, sizeof column, "%s$opaque", form);
	snprintf(watched, sizeof watched, "%s, %s", r->c->name, column);
	if (refused(r->c->kernel, o->device_target, "opaque"))
		return;
	compile_path(o, r->c->kernel, form, o->device_target, "opaque", path);
	snprintf(original, sizeof original, "%s.cubin", path);
	running_forget(r);
	bool passed = running_load(r, original, &error) && execute(r, &way, whole, &error) &&
		      running_keep(r, &error) && running_load(r, path, &error) &&
		      execute(r, &way, untouched, &error) &&
		      variant(r, &guarded, o, &stops, &error);
	report(r->c->name, column, passed ? PASSED : FAILED, now_seconds() - began, "%s%u stops",
	       passed ? "" : error.message, stops);
}

static void one_case(const struct options *o, const struct conformance_case *c, const char *form)
{
	static const struct variant variants[] = {
		{"slice", "$slice", false, AS_SLICE},
		{"guard", "$guard", true, AS_ORIGINAL},
		{"slice,guard", "$slice_guard", true, AS_SLICE},
		{"persist", "$persist", true, AS_WORKERS},
	};
	struct tally_error error = {0};
	struct running r;
	char path[PATH_MAX], column[24];
	struct way original = {.entry = c->kernel};
	unsigned stops = 0;
	double began = now_seconds();

	bool ok = running_create(&r, c, &error);
	snprintf(column, sizeof column, "%s.original", form);
	snprintf(watched, sizeof watched, "%s, %s", c->name, column);
	compile_path(o, c->kernel, form, o->device_target,
		     form_has(o, form, "none") ? "none" : TEXT_TRANSFORM, path);
	ok = ok && running_load(&r, path, &error) && execute(&r, &original, whole, &error) &&
	     running_keep(&r, &error);
	report(c->name, column, ok ? PASSED : FAILED, now_seconds() - began, "%s", error.message);
	for (size_t k = 0; ok && k < sizeof variants / sizeof *variants; k++) {
		if (!form_has(o, form, variants[k].transform) ||
		    refused(c->kernel, o->device_target, variants[k].transform))
			continue;
		began = now_seconds();
		stops = 0;
		error = (struct tally_error){0};
		snprintf(column, sizeof column, "%s%s", form, variants[k].suffix);
		snprintf(watched, sizeof watched, "%s, %s", c->name, column);
		compile_path(o, c->kernel, form, o->device_target, variants[k].transform, path);
		bool passed = running_load(&r, path, &error) &&
			      execute(&r, &original, whole, &error) &&
			      variant(&r, &variants[k], o, &stops, &error);
		report(c->name, column, passed ? PASSED : FAILED, now_seconds() - began,
		       "%s%u stops", passed ? "" : error.message, stops);
	}
	if (ok && form_has(o, form, "opaque"))
		opaque_case(o, &r, form);
	running_destroy(&r);
}

bool execute_all(const struct options *o, struct tally_error *error)
{
	if (!device_open(o->driver, error))
		return false;
	printf("device: %s\n", driver.device);
	signal(SIGALRM, watchdog);
	for (size_t g = 0; conformance_groups[g]; g++)
		for (const struct conformance_case *c = conformance_groups[g]; c->name; c++)
			for (size_t f = 0; f < FORMS && selected(o, c); f++) {
				if (!form_has(o, forms[f], TEXT_TRANSFORM))
					continue;
				alarm(60);
				one_case(o, c, forms[f]);
			}
	alarm(0);
	return true;
}
