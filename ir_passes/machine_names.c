/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that LLVM keeps for single machines. A neutral module holds none of them
 * (docs/ir-contract.md): to say so the contract has to know how they begin. This is data, the one
 * place above the backends that spells them; nothing is decided by which of them it was.
 */
#include <string.h>

#include "ir_passes/ir.h"

/* How an intrinsic of one machine begins, after "llvm." (LLVM's list of target prefixes). */
static const char *const prefixes[] = {
	"nvvm.", "amdgcn.", "r600.", "x86.",  "aarch64.", "arm.", "ppc.",  "riscv.",
	"spv.",	 "dx.",	    "s390.", "wasm.", "hexagon.", "bpf.", "mips.", "loongarch.",
};

const char *const tally_machine_attributes[] = {
	"target-cpu",
	"target-features",
	"tune-cpu",
	"frame-pointer",
	"uniform-work-group-size",
	"no-trapping-math",
	"stack-protector-buffer-size",
	"min-legal-vector-width",
	"nvvm.annotations_transplanted",
	"amdgpu-flat-work-group-size",
	"amdgpu-unsafe-fp-atomics",
	"amdgpu-waves-per-eu",
	NULL,
};

/* What inline asm shows of a kernel. */
static const struct tally_asm_sign signs[] = {
	{"%envreg", TALLY_CLASS_COOPERATIVE, true},
	{"griddepcontrol", TALLY_CLASS_DEPENDENT, true},
	{"cluster", TALLY_CLASS_CLUSTER, true},
	{"cudaLaunchDevice", TALLY_CLASS_LAUNCHES, true},
	{"cudaGetParameterBuffer", TALLY_CLASS_LAUNCHES, true},
	{"__cudaCDP", TALLY_CLASS_LAUNCHES, true}, /* the same of toolkits since 12.0 */
	{"cudaCG", TALLY_CLASS_COOPERATIVE, true},
	{"setmaxnreg", TALLY_CLASS_SPECIALISED, false},
};

bool tally_is_machine_intrinsic(const char *name)
{
	if (strncmp(name, "llvm.", 5))
		return false;
	for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
		if (!strncmp(name + 5, prefixes[k], strlen(prefixes[k])))
			return true;
	return false;
}

const struct tally_asm_sign *tally_asm_sign(const char *text, size_t length)
{
	for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
		if (memmem(text, length, signs[k].text, strlen(signs[k].text)))
			return &signs[k];
	return NULL;
}
