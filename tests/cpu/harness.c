/* SPDX-License-Identifier: Apache-2.0 */
/* See harness.h. */
#include "tests/cpu/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>

#include "backends/backend.h"
#include "base/file.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/passes.h"

bool cpu_test_coroutines, cpu_test_portable_matrix;

/* Whether a line of `text` declares `name`. */
static bool declares(const char *text, const char *name)
{
	char call[160];

	snprintf(call, sizeof call, "@%s(", name);
	for (const char *p = text; (p = strstr(p, call)); p++) {
		const char *line = p;

		while (line > text && line[-1] != '\n')
			line--;
		if (!strncmp(line, "declare ", 8))
			return true;
	}
	return false;
}

/* The declaration of every operation that `text` calls and does not declare, as text in front. */
static void declare_operations(const char *text, struct tally_buffer *out)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = tally_module_create("declarations", context);
	char *declarations;

	for (const char *p = text; (p = strstr(p, "@tally.")); p++) {
		char name[128];
		size_t length = strcspn(p + 1, "( )\n,");

		snprintf(name, sizeof name, "%.*s", (int)length, p + 1);
		if (!declares(text, name))
			tally_operation_declare(module, name);
	}
	declarations = LLVMPrintModuleToString(module);
	tally_buffer_print(out, "%s\n%s", declarations, text);
	LLVMDisposeMessage(declarations);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

static LLVMModuleRef parse(LLVMContextRef context, const char *text, struct tally_error *error)
{
	struct tally_buffer whole = {0};
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef module = NULL;
	char *message = NULL;

	declare_operations(text, &whole);
	buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(whole.data, whole.size, "test");
	if (LLVMParseIRInContext(context, buffer, &module, &message)) {
		tally_fail(error, "%s", message);
		LLVMDisposeMessage(message);
		module = NULL;
	}
	tally_buffer_free(&whole);
	if (module)
		TALLY_EACH_FUNCTION (module, function)
			if (tally_is_kernel(function) &&
			    !tally_attribute(function, TALLY_ATTR_WARP))
				tally_attribute_set(function, TALLY_ATTR_WARP, "32");
	return module;
}

bool cpu_test_lower(const char *text, const char *transforms, int emit, struct tally_buffer *out,
		    struct tally_error *error)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_pass_options passes = {.verify = true};
	struct tally_lower_options options = {.target = "x86-64",
					      .emit = (enum tally_emit)emit,
					      .optimise = 2,
					      .coroutines = cpu_test_coroutines};
	LLVMModuleRef module = parse(context, text, error);
	bool ok = module && tally_contract_verify(module, error) &&
		  tally_transforms_parse(transforms, &passes.transforms, error) &&
		  tally_passes_run(module, &passes, error) &&
		  (!cpu_test_portable_matrix || tally_lower_matrix(module, 0, error)) &&
		  tally_lowering_cpu.lower(module, &options, out, error);

	if (module)
		LLVMDisposeModule(module);
	LLVMContextDispose(context);
	return ok;
}

struct tally_cpu_image cpu_test_image(const char *text, const char *transforms)
{
	struct tally_cpu_image image = {0};
	struct tally_error error = {0};
	struct tally_buffer object = {0};
	char path[] = "/tmp/tally-cpu-test-XXXXXX";
	int file = mkstemp(path);

	assert_true(file >= 0);
	close(file);
	if (!cpu_test_lower(text, transforms, TALLY_EMIT_DEFAULT, &object, &error) ||
	    !tally_file_write(path, object.data, object.size, &error) ||
	    !tally_cpu_image_open(path, &image, &error))
		fail_msg("%s", error.message);
	unlink(path);
	tally_buffer_free(&object);
	return image;
}

enum tally_cpu_fault cpu_test_run(const struct tally_cpu_image *image,
				  const struct cpu_test_launch *launch, char *message)
{
	struct tally_cpu_launch l = {
		.kernel = tally_cpu_image_kernel(image, launch->kernel),
		.params = launch->params,
		.grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
		.block = {launch->block[0], launch->block[1], launch->block[2]},
		.dynamic_shared = launch->dynamic_shared,
		.grid_id = 77,
	};
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);
	uint64_t blocks = (uint64_t)l.grid[0] * l.grid[1] * l.grid[2];
	enum tally_cpu_fault fault = TALLY_CPU_OK;

	assert_non_null(worker);
	assert_non_null(l.kernel);
	for (uint64_t b = 0; b < blocks && fault == TALLY_CPU_OK; b++)
		fault = tally_cpu_run_block(worker, &l, b);
	if (message)
		snprintf(message, 256, "%s", tally_cpu_worker_message(worker));
	tally_cpu_worker_destroy(worker);
	return fault;
}

uint32_t cpu_test_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}
