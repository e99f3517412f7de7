/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of machine code, without a GPU: whose may be made stoppable, when somebody asks for it,
 * what happens where it does not work, and the launch protocol for kernels that keep their grid
 * (patched_kernels.c stands for what the patcher makes). Tally's hooks are linked in, the driver is
 * the CPU device's, the daemon a real one (guard.sh). That this driver runs patched code is not
 * tried here: the test says what the trial is to find.
 */
#include "tests/interpose/steps.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/opaque.h"
#include "base/file.h"

static _Atomic bool trial_passes;

bool tally_opaque_works(CUcontext current, const char *target)
{
	(void)current, (void)target;
	return trial_passes;
}

void tally_opaque_forked(void)
{
}

void tally_opaque_before_fork(void)
{
}

void tally_opaque_after_fork(void)
{
}

void tally_opaque_leave(void)
{
}

/* The kernels, as a module whose image is machine code. */
static CUmodule load_machine_code(const void *image, size_t size)
{
	CUmodule module = load_steps(false);
	struct tally_module *m = tally_module_find(module);
	struct tally_machine_code *code = calloc(1, sizeof *code);

	code->image = image;
	code->size = size;
	strcpy(code->target, "sm_90");
	m->machine_code = code;
	tally_module_is(m, TALLY_MODULE_MACHINE_CODE, TALLY_WHY_NONE);
	return module;
}

/* --- the protocol --- */

/* With its patched form beside it. */
static CUfunction load_patched(CUmodule *module)
{
	struct tally_buffer image = {0};
	struct tally_error error = {0};
	struct tally_module *m;
	CUmodule patched;
	CUfunction f;

	assert_true(tally_file_read(TALLY_BUILD_DIR "/tests/interpose/patched_kernels.so", &image,
				    &error));
	*module = load_machine_code(NULL, 0);
	OK(cuModuleLoadData(&patched, image.data));
	tally_buffer_free(&image);
	m = tally_module_find(*module);
	atomic_store(&m->variants, patched);
	tally_module_is(m, TALLY_MODULE_STOPPABLE, TALLY_WHY_NONE);
	OK(cuModuleGetFunction(&f, *module, "step"));
	return f;
}

/* The original grid, from where it was stopped: every block once and in its turn. */
static void stopped_and_started_again(void **state)
{
	uint64_t before = stops();
	struct chain c[2];
	CUstream stream;
	CUmodule module;
	CUfunction f = load_patched(&module);

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c[0], NULL);
	chain_open(&c[1], stream);
	c[0].step = c[1].step = f;
	c[1].flat = true;
	rival_begins(7);
	for (unsigned i = 0; i < 150 || (stops() < before + 20 && i < 4000); i++) {
		chain_step(&c[0], i, 40, i % 3 == 0);
		chain_step(&c[1], i, 20, false);
	}
	OK(cuCtxSynchronize());
	rival_ends();
	chain_check(&c[0]);
	chain_check(&c[1]);
	print_message("%lu stops\n", (unsigned long)(stops() - before));
	assert_true(stops() >= before + 20);
	assert_true(tally_kernel_find(f)->opaque);
	assert_true(atomic_load(&atomic_load(&tally_kernel_find(f)->configurations)
					 ->row->level[TALLY_LEVEL_OPAQUE]
					 .launches) > 0);
	OK(cuStreamDestroy_v2(stream));
	OK(cuModuleUnload(module));
}

/* A launch with attributes keeps them when it is started again, and those that allow what need not
 * happen bar nothing; what cannot be kept makes it run whole. */
static void attributes(void **state)
{
	CUlaunchAttribute a[2] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		 .value.programmaticStreamSerializationAllowed = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0},
	};
	CUlaunchConfig config = {.gridDimX = BLOCKS,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .attrs = a,
				 .numAttrs = 2};
	_Atomic uint64_t *guarded;
	uint32_t number = 3, work = 10;
	uint64_t before;
	CUmodule module;
	struct chain c;
	CUfunction f = load_patched(&module);
	void *parameters[] = {NULL, NULL, &number, &work};

	chain_open(&c, NULL);
	c.step = f;
	parameters[0] = &c.values;
	parameters[1] = &c.ran;
	guarded = &tally_slot(device)->guarded;
	before = atomic_load(guarded);
	OK(cuLaunchKernelEx(&config, f, parameters, NULL));
	chain_expect(&c, number);
	OK(cuCtxSynchronize());
	assert_int_equal(atomic_load(guarded), before + 1);
	a[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	a[1].value.cooperative = 1;
	if (!cuLaunchKernelEx(&config, f, parameters, NULL))
		chain_expect(&c, number);
	OK(cuCtxSynchronize());
	assert_int_equal(atomic_load(guarded), before + 1);
	chain_check(&c);
	OK(cuModuleUnload(module));
}

/* Who has the address of a constant may write it: the second copy is not used any more. */
static void constants_are_asked_for(void **state)
{
	uint64_t before;
	CUmodule module;
	struct chain c;
	CUfunction f = load_patched(&module);

	chain_open(&c, NULL);
	c.step = f;
	/* One without constants: whoever asks for something else is no reason. */
	before = atomic_load(&tally_slot(device)->guarded);
	tally_module_asked(tally_module_find(module));
	chain_step(&c, 1, 10, false);
	OK(cuCtxSynchronize());
	assert_int_equal(atomic_load(&tally_slot(device)->guarded), before + 1);
	tally_module_find(module)->machine_code->constants = TALLY_YES;
	tally_module_asked(tally_module_find(module));
	before = atomic_load(&tally_slot(device)->guarded);
	chain_step(&c, 2, 10, false);
	OK(cuCtxSynchronize());
	assert_int_equal(atomic_load(&tally_slot(device)->guarded), before);
	assert_int_equal(tally_kernel_barred(tally_kernel_find(f)), TALLY_WHY_SHARED);
	chain_check(&c);
	OK(cuModuleUnload(module));
}

/* --- when --- */

/* A cubin of nothing but a header and, maybe, a variable. */
static struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	Elf64_Sym symbol;
	char strings[16], names[16];
} cubin;

static void make_cubin(bool variable)
{
	memset(&cubin, 0, sizeof cubin);
	memcpy(cubin.header.e_ident, "\177ELF\2\1\1", 7);
	cubin.header.e_machine = 190;
	cubin.header.e_ehsize = sizeof cubin.header;
	cubin.header.e_shentsize = sizeof *cubin.sections;
	cubin.header.e_shoff = offsetof(__typeof__(cubin), sections);
	cubin.header.e_shnum = 4;
	cubin.header.e_shstrndx = 3;
	cubin.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					 .sh_offset = offsetof(__typeof__(cubin), symbol),
					 .sh_size = variable ? sizeof cubin.symbol : 0,
					 .sh_link = 2};
	cubin.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(__typeof__(cubin), strings),
					 .sh_size = sizeof cubin.strings};
	cubin.sections[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(__typeof__(cubin), names),
					 .sh_size = sizeof cubin.names,
					 .sh_name = 1};
	strcpy(cubin.strings + 1, "counter");
	strcpy(cubin.names + 1, ".nv.global");
	/* In section 3, whose name says that variables are in it. */
	cubin.symbol = (Elf64_Sym){
		.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 3, .st_size = sizeof(int)};
}

/* The compiler of the test: gives back what it got, or fails. */
static void make_compiler(bool fails)
{
	char path[PATH_MAX];
	FILE *script;

	snprintf(path, sizeof path, "%s.lower%d", getenv("TALLY_SOCKET"), fails);
	script = fopen(path, "w");
	assert_non_null(script);
	fprintf(script, "#!/bin/sh\n%s\n",
		fails ? "echo 'x: error: it is not to be had' >&2; exit 1" : "cat \"$1\"");
	fclose(script);
	chmod(path, 0700);
	setenv("TALLY_LOWER", path, 1);
}

/* Launches of blocks of `work` us; why the kernel cannot be stopped in the end, NONE: nobody asked.
 */
static enum tally_reason barred_after(unsigned work, unsigned launches)
{
	CUmodule module = load_machine_code(&cubin, sizeof cubin);
	struct tally_module *m = tally_module_find(module);
	enum tally_reason reason;
	struct chain c;
	CUfunction f;

	OK(cuModuleGetFunction(&f, module, "step"));
	chain_open(&c, NULL);
	c.step = f;
	for (unsigned i = 0; i < launches; i++) {
		chain_step(&c, i, work, false);
		OK(cuCtxSynchronize());
		if (atomic_load(&m->form) == TALLY_MODULE_COMPILING)
			tally_compile_wait(m);
	}
	chain_check(&c);
	assert_false(tally_kernel_stoppable(tally_kernel_find(f)));
	reason = atomic_load(&m->form) == TALLY_MODULE_MACHINE_CODE
			 ? TALLY_WHY_NONE
			 : tally_kernel_barred(tally_kernel_find(f));
	OK(cuModuleUnload(module));
	return reason;
}

/* Nothing is patched for kernels that are short as they are; what cannot be done is a reason, and
 * the program goes on. */
static void asked_when_it_is_worth_it(void **state)
{
	tally_process.config.level = TALLY_RUN_AUTO;
	tally_process.config.bound_ns = UINT64_C(60000000000);
	make_cubin(false);
	make_compiler(false);
	assert_int_equal(barred_after(0, 40), TALLY_WHY_NONE);
	tally_process.config.bound_ns = 1000;
	assert_int_equal(barred_after(500, 40), TALLY_WHY_SELF_TEST);
	trial_passes = true;
	/* The CPU device has no use for it; as it loads when something is needed, it says so late.
	 */
	assert_int_equal(barred_after(500, 40), TALLY_WHY_NOT_PATCHED);
	make_cubin(true);
	assert_int_equal(barred_after(500, 40), TALLY_WHY_SHARED);
	make_compiler(true);
	assert_int_equal(barred_after(500, 40), TALLY_WHY_NOT_PATCHED);
	/* Asked to, it is not waited for until something is timed. */
	tally_process.config.level = TALLY_RUN_GUARD;
	tally_process.config.compile = TALLY_COMPILE_WAIT;
	assert_int_equal(barred_after(0, 1), TALLY_WHY_NOT_PATCHED);
	tally_process.config.compile = TALLY_COMPILE_AUTO;
	tally_process.config.bound_ns = 0;
}

/* --- whose --- */

static enum tally_reason whose(const void *image, const void *caller)
{
	struct tally_loading l = {.image = image, .size = 4, .caller = caller};
	enum tally_reason barred = TALLY_WHY_NO_CODE;

	return tally_opaque_allowed(&l, &barred) ? TALLY_WHY_NONE : barred;
}

/* Something inside a library of that name. */
static const void *inside(const char *library)
{
	char path[PATH_MAX], command[3 * PATH_MAX];
	const void *found;

	snprintf(path, sizeof path, "%s.%s", getenv("TALLY_SOCKET"), library);
	*strrchr(path, '/') = '\0';
	snprintf(command, sizeof command, "mkdir -p '%s/l' && cp '%s' '%s/l/%s'", path,
		 TALLY_BUILD_DIR "/tests/interpose/patched_kernels.so", path, library);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "%s/l/%s", path, library);
	found = dlsym(dlopen(command, RTLD_NOW | RTLD_LOCAL), "tally_cpu_module");
	assert_non_null(found);
	return found;
}

static void whose_machine_code(void **state)
{
	const char *(*target)(void) = tally_process.cpu_target;
	const void *closed = inside("libcublasLt.so.13"), *open = inside("libtorch_cuda.so"),
		   *nccl = inside("libnccl.so.2");
	int *heap = malloc(sizeof *heap);

	assert_int_equal(whose(open, open), TALLY_WHY_NO_CODE); /* never on the CPU device */
	tally_process.cpu_target = NULL;
	tally_process.config.opaque = TALLY_OPAQUE_OPEN;
	assert_int_equal(whose(open, closed), TALLY_WHY_NONE);
	assert_int_equal(whose(closed, open), TALLY_WHY_CLOSED);
	assert_int_equal(whose(&cubin, open), TALLY_WHY_NONE); /* in the program itself */
	/* In memory of the program's own it is whoever calls the driver with it. */
	assert_int_equal(whose(heap, closed), TALLY_WHY_CLOSED);
	assert_int_equal(whose(heap, open), TALLY_WHY_NONE);
	assert_int_equal(whose(heap, heap), TALLY_WHY_CLOSED);
	tally_process.config.opaque = TALLY_OPAQUE_ALL;
	assert_int_equal(whose(closed, closed), TALLY_WHY_NONE);
	assert_int_equal(whose(heap, heap), TALLY_WHY_NONE);
	assert_int_equal(whose(nccl, open), TALLY_WHY_COLLECTIVE);
	tally_process.config.opaque = TALLY_OPAQUE_OFF;
	assert_int_equal(whose(open, open), TALLY_WHY_OPAQUE_OFF);
	tally_process.config.opaque = TALLY_OPAQUE_OPEN;
	tally_process.cpu_target = target;
	free(heap);
	assert_true(tally_opaque_collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
	assert_false(tally_opaque_collective("my_ncclDevKernel"));
}

/* The CPU device does not take machine code; the program is told what it would be without Tally. */
static void refused_by_the_device(void **state)
{
	CUmodule module;
	CUfunction f;

	make_cubin(false);
	if (cuModuleLoadData(&module, &cubin))
		return;
	assert_int_equal(atomic_load(&tally_module_find(module)->form), TALLY_MODULE_WHOLE);
	assert_int_equal(atomic_load(&tally_module_find(module)->barred), TALLY_WHY_NO_CODE);
	assert_int_not_equal(cuModuleGetFunction(&f, module, "step"), CUDA_SUCCESS);
	OK(cuModuleUnload(module));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_and_started_again),
		cmocka_unit_test(attributes),
		cmocka_unit_test(constants_are_asked_for),
		cmocka_unit_test(asked_when_it_is_worth_it),
		cmocka_unit_test(whose_machine_code),
		cmocka_unit_test(refused_by_the_device),
	};

	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
