/* SPDX-License-Identifier: Apache-2.0 */
/* Modules whose stoppable form is compiled while the program runs, by a real tally-lower. As
 * depth_test.c, started by levels.sh. */
#include "tests/interpose/steps.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/profile.h"
#include "base/clock.h"

#if defined(__SANITIZE_THREAD__)
/* The compiler's workers are children that share our memory but have descriptors of their own:
 * those are not the same though they have the same numbers. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:nanny_main\nrace:worker_main\n";
}
#endif

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
/* Adds one to a word of its own for each block. */
#define COUNTS(name)                                                                               \
	".visible .entry " name "(.param .u64 .ptr .global .align 4 p)\n{\n"                       \
	".reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n"                                                    \
	"ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %ctaid.x;\n"        \
	"mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"                                  \
	"ld.global.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd3], %r2;\nret;\n}\n"
/* The same, for a variable of the module. */
#define COUNTS_TOTAL                                                                               \
	".visible .global .align 4 .u32 total;\n.visible .entry count_total()\n{\n"                \
	".reg .b32 %r<3>;\natom.global.add.u32 %r1, [total], 1;\nret;\n}\n"

static struct tally_module *record(CUmodule module)
{
	struct tally_module *m = tally_module_find(module);

	assert_non_null(m);
	return m;
}

static void count(CUfunction f, CUdeviceptr words, unsigned launches)
{
	void *parameters[] = {&words};

	for (unsigned i = 0; i < launches; i++)
		OK(cuLaunchKernel(f, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void counted(CUdeviceptr words, uint32_t launches)
{
	uint32_t got[BLOCKS];

	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(got[i], launches);
}

/* A compiler that makes nothing stoppable before open_gate(): beside the daemon's socket. */
static void gate_path(char *path, size_t size)
{
	snprintf(path, size, "%s.gate", getenv("TALLY_SOCKET"));
}

static void close_gate(void)
{
	char path[PATH_MAX], gate[PATH_MAX];
	FILE *script;

	gate_path(gate, sizeof gate);
	snprintf(path, sizeof path, "%s.lower", getenv("TALLY_SOCKET"));
	script = fopen(path, "w");
	assert_non_null(script);
	fprintf(script,
		"#!/bin/sh\ncase \" $* \" in *' --transform none '*) ;; *)\n"
		"while [ ! -e '%s' ]; do sleep 0.01; done ;; esac\nexec '%s' \"$@\"\n",
		gate, getenv("TALLY_LOWER"));
	fclose(script);
	chmod(path, 0700);
	setenv("TALLY_LOWER", path, 1);
}

static void open_gate(void)
{
	char gate[PATH_MAX];
	FILE *file;

	gate_path(gate, sizeof gate);
	file = fopen(gate, "w");
	assert_non_null(file);
	fclose(file);
}

/* A module without variables is there at once, and changes over when its stoppable form is. */
static void compiled_while_it_runs(void **state)
{
	struct tally_module *m;
	struct tally_report_row *row;
	CUcontext same;
	CUmodule module;
	CUdeviceptr words;
	CUfunction f;
	uint64_t guarded = 0;
	uint32_t launches = 0;

	tally_process.config.level = TALLY_RUN_GUARD;
	close_gate();
	OK(cuMemAlloc_v2(&words, 4 * BLOCKS));
	OK(cuMemsetD32_v2(words, 0, BLOCKS));
	OK(cuModuleLoadData(&module, HEAD COUNTS("in_background")));
	m = record(module);
	OK(cuModuleGetFunction(&f, module, "in_background"));
	count(f, words, 20);
	launches += 20;
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_COMPILING);
	open_gate();
	while (atomic_load(&m->form) == TALLY_MODULE_COMPILING) {
		/* Somebody else's hold on the context ends, not the context. */
		OK(cuDevicePrimaryCtxRetain(&same, device->ordinal));
		OK(cuDevicePrimaryCtxRelease_v2(device->ordinal));
		count(f, words, 1);
		launches++;
		usleep(1000);
	}
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_not_equal(atomic_load(&m->variants), module);
	row = atomic_load(&tally_kernel_find(f)->last)->row;
	guarded = atomic_load(&row->level[TALLY_LEVEL_GUARD].launches);
	/* From the next launch on. */
	count(f, words, 30);
	launches += 30;
	assert_int_equal(atomic_load(&row->level[TALLY_LEVEL_GUARD].launches), guarded + 30);
	assert_true(atomic_load(&row->level[TALLY_LEVEL_GATE].launches) >= 20);
	counted(words, launches);
	OK(cuModuleUnload(module));
	/* Warm: the stoppable form is loaded instead, and there is one module. */
	OK(cuModuleLoadData(&module, HEAD COUNTS("in_background")));
	m = record(module);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_equal(atomic_load(&m->variants), module);
	OK(cuModuleGetFunction(&f, module, "in_background"));
	count(f, words, 5);
	counted(words, launches + 5);
	OK(cuModuleUnload(module));
	OK(cuMemFree_v2(words));
	tally_process.config.level = TALLY_RUN_AUTO;
}

/* One with a variable exists once: its load waits for the compiler. */
static void variables_exist_once(void **state)
{
	struct tally_module *m;
	CUdeviceptr total;
	CUmodule module;
	CUfunction f;
	uint32_t got;
	size_t bytes;

	tally_process.config.level = TALLY_RUN_GUARD;
	OK(cuModuleLoadData(&module, HEAD COUNTS_TOTAL));
	m = record(module);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_equal(atomic_load(&m->variants), module);
	OK(cuModuleGetFunction(&f, module, "count_total"));
	for (unsigned i = 0; i < 10; i++) {
		/* Both forms. */
		tally_process.config.level = i % 2 ? TALLY_RUN_GUARD : TALLY_RUN_GATE;
		OK(cuLaunchKernel(f, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	}
	OK(cuModuleGetGlobal_v2(&total, &bytes, module, "total"));
	assert_int_equal(bytes, 4);
	OK(cuMemcpyDtoH_v2(&got, total, 4));
	assert_int_equal(got, 10 * BLOCKS);
	assert_true(atomic_load(&m->asked));
	OK(cuModuleUnload(module));

	/* Asked never to wait, it stays as it is and says why. */
	tally_process.config.level = TALLY_RUN_GUARD;
	tally_process.config.compile = TALLY_COMPILE_BACKGROUND;
	OK(cuModuleLoadData(&module, HEAD "// another text\n" COUNTS_TOTAL));
	m = record(module);
	UNTIL(atomic_load(&m->form) != TALLY_MODULE_COMPILING);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_WHOLE);
	assert_int_equal(atomic_load(&m->barred), TALLY_WHY_VARIABLES);
	OK(cuModuleUnload(module));
	tally_process.config.compile = TALLY_COMPILE_AUTO;
	tally_process.config.level = TALLY_RUN_AUTO;
}

/* Unloading a module that is being compiled, again and again: nothing is loaded beside what is
 * gone, and nothing hangs. */
static void unloaded_meanwhile(void **state)
{
	char text[1024];
	CUmodule module;
	struct tally_module *m;

	for (unsigned i = 0; i < 6; i++) {
		snprintf(text, sizeof text, "%s// %u\n%s", HEAD, i, COUNTS("gone"));
		OK(cuModuleLoadData(&module, text));
		m = record(module);
		if (i % 2)
			usleep(i * 20000);
		OK(cuModuleUnload(module));
		assert_null(atomic_load(&m->handle));
	}
	/* The compiler's thread is through when a later one is. */
	OK(cuModuleLoadData(&module, HEAD COUNTS("last")));
	m = record(module);
	UNTIL(atomic_load(&m->form) != TALLY_MODULE_COMPILING);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	OK(cuModuleUnload(module));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(compiled_while_it_runs, doors_wait,
						doors_run_ahead),
		cmocka_unit_test(variables_exist_once),
		cmocka_unit_test(unloaded_meanwhile),
	};

	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
