/* SPDX-License-Identifier: Apache-2.0 */
/* One case on the device: see execute.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "conformance/execute.h"

static size_t buffer_bytes(const struct case_buffer *b)
{
	return b->count * case_type_size(b->type);
}

/* Device words that belong to the protocol, in one allocation. */
enum { CONTROL = 0, GATE = 64, BROKEN = 128, WORDS = 256 };

bool running_create(struct running *r, const struct conformance_case *c, struct tally_error *error)
{
	*r = (struct running){.c = c};
	for (size_t i = 0; i < CASE_BUFFERS && c->buffer[i].count; i++) {
		const struct case_buffer *b = &c->buffer[i];

		r->expected[i] = calloc(1, buffer_bytes(b));
		if (!r->expected[i])
			return tally_fail(error, "out of memory");
		if (b->fill)
			b->fill(r->expected[i], b->count);
		if (!b->symbol && !device_ok(driver.allocate(&r->buffer[i], buffer_bytes(b)),
					     "cuMemAlloc", error))
			return false;
	}
	c->reference(r->expected, c);
	void *host = NULL;
	if ((!c->runs_symbol && !device_ok(driver.allocate(&r->runs, 4 * (size_t)case_blocks(c)),
					   "cuMemAlloc", error)) ||
	    !device_ok(driver.allocate(&r->control, WORDS), "cuMemAlloc", error) ||
	    !device_ok(driver.host_allocate(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc",
		       error) ||
	    !device_ok(driver.host_device_pointer(&r->mailbox_device, host, 0),
		       "cuMemHostGetDevicePointer", error) ||
	    !device_ok(driver.stream_create(&r->stream, CU_STREAM_NON_BLOCKING, 0),
		       "cuStreamCreateWithPriority", error))
		return false;
	r->mailbox = host;
	r->gate = r->control + GATE;
	r->broken = r->control + BROKEN;
	return true;
}

static void running_unload(struct running *r)
{
	if (r->module)
		driver.module_unload(r->module);
	r->module = NULL;
}

void running_destroy(struct running *r)
{
	running_unload(r);
	running_forget(r);
	for (size_t i = 0; i < CASE_BUFFERS; i++) {
		free(r->expected[i]);
		if (r->buffer[i] && !r->c->buffer[i].symbol)
			driver.release(r->buffer[i]);
	}
	if (r->runs && !r->c->runs_symbol)
		driver.release(r->runs);
	if (r->control)
		driver.release(r->control);
	if (r->mailbox)
		driver.host_release(r->mailbox);
	if (r->stream)
		driver.stream_destroy(r->stream);
}

static bool symbol(struct running *r, const char *name, size_t bytes, CUdeviceptr *address,
		   struct tally_error *error)
{
	size_t size = 0;

	if (!device_ok(driver.module_global(address, &size, r->module, name), name, error))
		return false;
	return size >= bytes || tally_fail(error, "%s has %zu bytes, not %zu", name, size, bytes);
}

bool running_load(struct running *r, const char *path, struct tally_error *error)
{
	const struct conformance_case *c = r->c;
	struct tally_buffer image = {0};

	running_unload(r);
	bool ok = tally_file_read(path, &image, error) &&
		  device_ok(driver.module_load(&r->module, image.data), "cuModuleLoadData", error);
	tally_buffer_free(&image);
	for (size_t i = 0; ok && i < CASE_BUFFERS && c->buffer[i].count; i++)
		if (c->buffer[i].symbol)
			ok = symbol(r, c->buffer[i].symbol, buffer_bytes(&c->buffer[i]),
				    &r->buffer[i], error);
	if (ok && c->runs_symbol)
		ok = symbol(r, c->runs_symbol, 4 * (size_t)case_blocks(c), &r->runs, error);
	return ok;
}

bool running_reset(struct running *r, struct tally_error *error)
{
	const struct conformance_case *c = r->c;
	bool ok = true;

	for (size_t i = 0; ok && i < CASE_BUFFERS && c->buffer[i].count; i++) {
		const struct case_buffer *b = &c->buffer[i];
		void *initial = calloc(1, buffer_bytes(b));

		if (!initial)
			return tally_fail(error, "out of memory");
		if (b->fill)
			b->fill(initial, b->count);
		ok = device_ok(driver.to_device(r->buffer[i], initial, buffer_bytes(b)),
			       "cuMemcpyHtoD", error);
		free(initial);
	}
	uint32_t *zero = calloc(case_blocks(c), 4);
	if (!zero)
		return tally_fail(error, "out of memory");
	ok = ok && device_ok(driver.to_device(r->runs, zero, 4 * (size_t)case_blocks(c)),
			     "cuMemcpyHtoD", error);
	free(zero);
	return ok;
}

bool running_control(struct running *r, uint64_t word, uint32_t sequence, struct tally_error *error)
{
	struct {
		struct tally_control control;
		char pad[GATE - sizeof(struct tally_control)];
		uint32_t gate, pad_gate[15], broken;
	} words = {0};

	_Static_assert(sizeof words.control + sizeof words.pad == GATE, "layout");
	words.control = (struct tally_control){
		.word = word,
		.gate = r->gate,
		.broken = r->broken,
		.mailbox = r->mailbox_device,
		.sequence = sequence,
		.hi = case_blocks(r->c),
	};
	__atomic_store_n(r->mailbox, 0, __ATOMIC_RELEASE);
	return device_ok(driver.to_device(r->control, &words, sizeof words), "cuMemcpyHtoD", error);
}

bool running_launch(struct running *r, const char *entry, const struct tally_launch *launch,
		    uint32_t line, struct tally_error *error)
{
	const struct conformance_case *c = r->c;
	void *parameters[16];
	size_t count = 0, next_buffer = 0, next_blob = 0;
	CUfunction function;

	for (const char *p = c->parameters; *p; p++)
		switch (*p) {
		case 'b':
			while (c->buffer[next_buffer].symbol)
				next_buffer++;
			parameters[count++] = &r->buffer[next_buffer++];
			break;
		case 'v':
			parameters[count++] = (void *)c->blob[next_blob++].data;
			break;
		default:
			parameters[count++] = &r->runs;
		}
	parameters[count] = (void *)launch;
	if (!device_ok(driver.module_function(&function, r->module, entry), entry, error))
		return false;
	uint32_t grid[3] = {c->grid[0], c->grid[1], c->grid[2]};
	if (line) {
		grid[0] = line;
		grid[1] = grid[2] = 1;
	}
	return device_ok(driver.launch(function, grid[0], grid[1], grid[2], c->block[0],
				       c->block[1], c->block[2], c->dynamic_shared, r->stream,
				       parameters, NULL),
			 "cuLaunchKernel", error);
}

bool running_check_runs(struct running *r, uint32_t until, struct tally_error *error)
{
	uint32_t blocks = case_blocks(r->c), *runs = malloc(4 * (size_t)blocks);

	if (!runs)
		return tally_fail(error, "out of memory");
	bool ok =
		device_ok(driver.to_host(runs, r->runs, 4 * (size_t)blocks), "cuMemcpyDtoH", error);
	for (uint32_t b = 0; ok && b < blocks; b++)
		if (runs[b] != (b < until))
			ok = tally_fail(error, "block %u of %u ran %u times, not %d", b, blocks,
					runs[b], b < until);
	free(runs);
	return ok;
}

static double value(const void *data, enum case_type type, size_t i)
{
	return type == CASE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static bool same(const struct case_buffer *b, size_t index, const void *got, const void *want,
		 double tolerance, const char *against, struct tally_error *error)
{
	size_t size = case_type_size(b->type);

	for (size_t i = 0; i < b->count; i++) {
		const unsigned char *g = (const unsigned char *)got + i * size,
				    *w = (const unsigned char *)want + i * size;
		uint64_t gb = 0, wb = 0;

		if (!memcmp(g, w, size))
			continue;
		if (tolerance > 0) {
			double x = value(got, b->type, i), y = value(want, b->type, i);

			if (fabs(x - y) <= tolerance * fmax(1, fabs(y)))
				continue;
			return tally_fail(error, "buffer %zu [%zu]: %.17g, %s has %.17g", index, i,
					  x, against, y);
		}
		memcpy(&gb, g, size);
		memcpy(&wb, w, size);
		return tally_fail(error, "buffer %zu [%zu]: bits %#llx, %s has %#llx", index, i,
				  (unsigned long long)gb, against, (unsigned long long)wb);
	}
	return true;
}

static bool fetch(struct running *r, size_t i, void **data, struct tally_error *error)
{
	size_t bytes = buffer_bytes(&r->c->buffer[i]);

	*data = malloc(bytes);
	if (!*data)
		return tally_fail(error, "out of memory");
	return device_ok(driver.to_host(*data, r->buffer[i], bytes), "cuMemcpyDtoH", error);
}

bool running_check(struct running *r, struct tally_error *error)
{
	bool ok = true;

	for (size_t i = 0; ok && i < CASE_BUFFERS && r->c->buffer[i].count; i++) {
		const struct case_buffer *b = &r->c->buffer[i];
		void *got = NULL;

		ok = fetch(r, i, &got, error) &&
		     same(b, i, got, r->expected[i], b->tolerance, "the C reference", error) &&
		     (!r->original[i] ||
		      same(b, i, got, r->original[i], 0, "the untransformed run", error));
		free(got);
	}
	return ok;
}

void running_forget(struct running *r)
{
	for (size_t i = 0; i < CASE_BUFFERS; i++) {
		free(r->original[i]);
		r->original[i] = NULL;
	}
}

bool running_keep(struct running *r, struct tally_error *error)
{
	bool ok = true;

	for (size_t i = 0; ok && i < CASE_BUFFERS && r->c->buffer[i].count; i++) {
		free(r->original[i]);
		ok = fetch(r, i, &r->original[i], error);
	}
	return ok;
}

static int saved_stdout = -1;
static FILE *captured;

bool capture_begin(struct tally_error *error)
{
	fflush(stdout);
	captured = tmpfile();
	saved_stdout = dup(STDOUT_FILENO);
	if (!captured || saved_stdout < 0 || dup2(fileno(captured), STDOUT_FILENO) < 0)
		return tally_fail(error, "cannot redirect stdout");
	return true;
}

bool capture_end(const struct conformance_case *c, struct tally_error *error)
{
	char text[256], want[256];
	uint32_t blocks = case_blocks(c), lines = 0;
	bool *seen = calloc(blocks, sizeof *seen), ok = seen != NULL;

	fflush(stdout);
	dup2(saved_stdout, STDOUT_FILENO);
	close(saved_stdout);
	rewind(captured);
	/* Blocks print in any order; each line once. */
	while (ok && fgets(text, sizeof text, captured)) {
		uint32_t b = 0;

		text[strcspn(text, "\n")] = '\0';
		for (; b < blocks; b++) {
			c->line(want, sizeof want, b, c);
			if (!strcmp(text, want))
				break;
		}
		if (b == blocks)
			ok = tally_fail(error, "printed \"%s\", block 0 should print \"%s\"", text,
					(c->line(want, sizeof want, 0, c), want));
		else if (seen[b])
			ok = tally_fail(error, "printed twice: \"%s\"", text);
		else
			seen[b] = true;
		lines++;
	}
	if (ok && lines != blocks)
		ok = tally_fail(error, "printed %u lines, not %u", lines, blocks);
	fclose(captured);
	free(seen);
	return ok;
}
