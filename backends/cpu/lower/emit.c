/* SPDX-License-Identifier: Apache-2.0 */
/* The target machine, and the module as IR, assembly, object or shared object. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <llvm-c/Target.h>

#include "backends/cpu/lower/internal.h"
#include "backends/program.h"

/* Never used: these conversions flush denormals, or exist on few CPUs and would give other bits
 * there than elsewhere. */
#define WITHOUT ",-avx512bf16,-avxneconvert,-avx512fp16"

static void initialise(void)
{
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	LLVMInitializeX86AsmParser();
}

bool cpu_create_machine(struct cpu_lowering *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const char triple[] = "x86_64-unknown-linux-gnu";
	static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
						     LLVMCodeGenLevelDefault,
						     LLVMCodeGenLevelAggressive};
	bool host = !strcmp(l->options->target, "x86-64");
	char *cpu = host ? LLVMGetHostCPUName() : LLVMCreateMessage(l->options->target);
	char *host_features = host ? LLVMGetHostCPUFeatures() : LLVMCreateMessage(""), *message;
	char features[8192];
	LLVMTargetRef target;
	int level = l->options->optimise;

	pthread_once(&once, initialise);
	snprintf(features, sizeof features, "%s%s", host_features,
		 *host_features ? WITHOUT : &WITHOUT[1]);
	if (LLVMGetTargetFromTriple(triple, &target, &message)) {
		tally_fail(l->error, "LLVM has no x86-64 target: %s", message);
		LLVMDisposeMessage(message);
	} else {
		l->machine = LLVMCreateTargetMachine(target, triple, cpu, features,
						     levels[level < 0	? 0
							    : level > 3 ? 3
									: level],
						     LLVMRelocPIC, LLVMCodeModelDefault);
	}
	LLVMDisposeMessage(cpu);
	LLVMDisposeMessage(host_features);
	return l->machine || tally_fail(l->error, "cannot make a target machine for x86-64");
}

/* Where a library that this process has loaded lies: kernels are to use the same. */
static bool library_path(const char *name, char path[PATH_MAX], struct tally_error *error)
{
	void *handle = dlopen(name, RTLD_LAZY);
	struct link_map *map = NULL;
	bool ok = handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && map->l_name[0];

	if (ok)
		snprintf(path, PATH_MAX, "%s", map->l_name);
	if (handle)
		dlclose(handle);
	return ok || tally_fail(error, "cannot find %s", name);
}

/* LLVM's linker of the same version where it is, else the one in PATH. */
static const char *find_linker(void)
{
	static const char installed[] = TALLY_LLVM_BIN "/ld.lld";
	const char *chosen = getenv("TALLY_LLD");

	if (chosen && *chosen)
		return chosen;
	return access(installed, X_OK) ? "ld.lld" : installed;
}

/* No file on the way: whatever ends this process leaves nothing behind. */
static bool link_object(struct cpu_lowering *l, const struct tally_buffer *object,
			struct tally_buffer *out)
{
	char libm[PATH_MAX], libc[PATH_MAX];
	const char *const arguments[] = {
		find_linker(),	   "-shared",		"-o", "-",	     "--no-undefined",
		"--as-needed",	   "-Bsymbolic",	"-z", "noexecstack", "--strip-all",
		"--build-id=none", TALLY_PROGRAM_INPUT, libm, libc,	     NULL};

	return library_path("libm.so.6", libm, l->error) &&
	       library_path("libc.so.6", libc, l->error) &&
	       tally_program_run(arguments, object, out, NULL, l->error);
}

static bool emit_shared_object(struct cpu_lowering *l, struct tally_buffer *out)
{
	struct tally_buffer object = {0};
	bool ok = tally_lower_emit(l->module, l->machine, true, &object, l->error) &&
		  link_object(l, &object, out);

	tally_buffer_free(&object);
	return ok;
}

bool cpu_emit(struct cpu_lowering *l, struct tally_buffer *out)
{
	switch (l->options->emit) {
	case TALLY_EMIT_DEFAULT:
		return emit_shared_object(l, out);
	case TALLY_EMIT_ASM:
	case TALLY_EMIT_OBJ:
		return tally_lower_emit(l->module, l->machine, l->options->emit == TALLY_EMIT_OBJ,
					out, l->error);
	case TALLY_EMIT_IR:
		tally_lower_print(l->module, out);
		return !out->failed || tally_fail(l->error, "out of memory");
	default:
		return tally_fail(l->error, "the CPU device has no PTX: --emit asm, obj or ir");
	}
}
