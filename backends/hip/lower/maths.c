/* SPDX-License-Identifier: Apache-2.0 */
/* tally.math.* on AMD GPUs, and what printf needs: functions of the ROCm device libraries. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/hip/lower/hip_lower.h"
#include "backends/library.h"
#include "ir_passes/ir.h"

TALLY_EMBEDDED(tally_hip_maths_ll);
TALLY_EMBEDDED(tally_hip_bessel_ll);

/* Names that differ; all others are __ocml_NAME_T. */
static const struct {
	const char *neutral, *ocml;
} names[] = {
	{"powi", "pown"},     {"cyl_bessel_i0", "i0"}, {"cyl_bessel_i1", "i1"},
	{"norm3d", "len3"},   {"norm4d", "len4"},      {"rnorm3d", "rlen3"},
	{"rnorm4d", "rlen4"}, {"normcdf", "ncdf"},     {"normcdfinv", "ncdfinv"},
};

static void ocml_name(const char *operation, char *name, size_t size)
{
	char base[64];
	const char *dot = strchr(operation + strlen(TALLY_MATHS), '.'), *own = base;

	snprintf(base, sizeof base, "%.*s", (int)(dot - operation - (long)strlen(TALLY_MATHS)),
		 operation + strlen(TALLY_MATHS));
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (!strcmp(names[k].neutral, base))
			own = names[k].ocml;
	snprintf(name, size, "__ocml_%s_%s", own, dot + 1);
}

/* The libraries, by how their functions' names begin. */
static const struct library {
	const char *prefix, *file;
} libraries[] = {{"__ocml_", "ocml.bc"}, {"__ockl_", "ockl.bc"}};

/* A function of the library's that the module uses and that has no body. */
static LLVMValueRef find_open(LLVMModuleRef module, const struct library *library)
{
	TALLY_EACH_FUNCTION (module, function)
		if (LLVMIsDeclaration(function) && LLVMGetFirstUse(function) &&
		    !strncmp(tally_name(function), library->prefix, strlen(library->prefix)))
			return function;
	return NULL;
}

static bool find_file(const char *folder, const char *file, char *path, size_t size)
{
	static const char *const folders[] = {
		"/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
		"/opt/rocm/amdgcn/bitcode",
		"/usr/lib/amdgcn/bitcode",
	};

	if (folder) {
		snprintf(path, size, "%s/%s", folder, file);
		return true; /* the reader says when it is not there */
	}
	for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
		if (snprintf(path, size, "%s/%s", folders[k], file) < (int)size &&
		    access(path, R_OK) == 0)
			return true;
	return false;
}

/* The constants by which ocml chooses its way: exact, with denormals, for this machine. */
static void define_controls(LLVMModuleRef module, const struct tally_hip_target *target,
			    const struct tally_hip_shape *shape)
{
	const struct {
		const char *name;
		unsigned bits, value;
	} controls[] = {
		{"__oclc_unsafe_math_opt", 8, 0},
		{"__oclc_correctly_rounded_sqrt32", 8, 1},
		{"__oclc_daz_opt", 8, 0},
		{"__oclc_finite_only_opt", 8, 0},
		{"__oclc_wavefrontsize64", 8, shape->wave == 64},
		{"__oclc_ISA_version", 32, target->isa},
		{"__oclc_ABI_version", 32, 500},
	};
	LLVMContextRef context = LLVMGetModuleContext(module);

	for (size_t k = 0; k < sizeof controls / sizeof *controls; k++) {
		LLVMValueRef global = LLVMGetNamedGlobal(module, controls[k].name);
		LLVMTypeRef type = LLVMIntTypeInContext(context, controls[k].bits);

		if (!global || LLVMGetInitializer(global))
			continue;
		LLVMSetInitializer(global, LLVMConstInt(type, controls[k].value, 0));
		LLVMSetLinkage(global, LLVMInternalLinkage);
		LLVMSetGlobalConstant(global, 1);
	}
}

static bool link_file(LLVMModuleRef module, const struct library *library, const char *folder,
		      struct tally_error *error)
{
	LLVMValueRef open = find_open(module, library);
	char path[PATH_MAX];

	if (!open)
		return true;
	if (!find_file(folder, library->file, path, sizeof path))
		return tally_fail(error,
				  "%s needs %s, which is not in /usr/lib/x86_64-linux-gnu/"
				  "amdgcn/bitcode or /opt/rocm: install package rocm-device-libs "
				  "or name its folder with --rocm-device-libs",
				  tally_name(open), library->file);
	if (!tally_lower_link_bitcode(module, path, error))
		return false;
	open = find_open(module, library);
	return !open || tally_fail(error, "%s has no function %s", path, tally_name(open));
}

bool tally_hip_libraries(LLVMModuleRef module, const struct tally_hip_target *target,
			 const struct tally_hip_shape *shape, const char *folder,
			 struct tally_error *error)
{
	static const struct tally_library own[] = {
		TALLY_LIBRARY(tally_hip_maths_ll, "hip/maths.ll"),
		TALLY_LIBRARY(tally_hip_bessel_ll, "hip/bessel.ll"),
	};

	for (size_t k = 0; k < sizeof own / sizeof *own; k++)
		if (!tally_lower_link_library(module, &own[k], error))
			return false;
	tally_lower_rename_maths(module, ocml_name);
	for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++)
		if (!link_file(module, &libraries[k], folder, error))
			return false;
	define_controls(module, target, shape);
	return true;
}
