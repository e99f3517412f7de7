/* SPDX-License-Identifier: Apache-2.0 */
/* Special registers (PTX ISA chapter 10). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

/* Registers that an operation of the contract answers; `shift` takes the upper half. */
static const struct {
	const char *name, *operation;
	unsigned shift;
	bool is_64;
} registers[] = {
	{"%tid.x", "tally.thread.id.x", 0, false},
	{"%tid.y", "tally.thread.id.y", 0, false},
	{"%tid.z", "tally.thread.id.z", 0, false},
	{"%ntid.x", "tally.block.size.x", 0, false},
	{"%ntid.y", "tally.block.size.y", 0, false},
	{"%ntid.z", "tally.block.size.z", 0, false},
	{"%ctaid.x", "tally.block.id.x", 0, false},
	{"%ctaid.y", "tally.block.id.y", 0, false},
	{"%ctaid.z", "tally.block.id.z", 0, false},
	{"%nctaid.x", "tally.grid.size.x", 0, false},
	{"%nctaid.y", "tally.grid.size.y", 0, false},
	{"%nctaid.z", "tally.grid.size.z", 0, false},
	{"%laneid", "tally.lane.id", 0, false},
	{"%warpid", "tally.warp.id", 0, false},
	{"%nwarpid", "tally.warp.count", 0, false},
	{"%smid", "tally.sm.id", 0, false},
	{"%nsmid", "tally.sm.count", 0, false},
	{"%gridid", "tally.grid.id", 0, true},
	{"%envreg2", "tally.grid.workspace", 0, true},
	{"%envreg1", "tally.grid.workspace", 32, true},
	{"%lanemask_eq", "tally.lanemask.eq", 0, false},
	{"%lanemask_le", "tally.lanemask.le", 0, false},
	{"%lanemask_lt", "tally.lanemask.lt", 0, false},
	{"%lanemask_ge", "tally.lanemask.ge", 0, false},
	{"%lanemask_gt", "tally.lanemask.gt", 0, false},
	{"%clock", "tally.clock32", 0, false},
	{"%clock_hi", "tally.clock", 32, true},
	{"%clock64", "tally.clock", 0, true},
	{"%globaltimer", "tally.global.timer", 0, true},
	{"%globaltimer_lo", "tally.global.timer", 0, true},
	{"%globaltimer_hi", "tally.global.timer", 32, true},
	{"%total_smem_size", "tally.shared.total.size", 0, false},
	{"%aggr_smem_size", "tally.shared.total.size", 0, false},
	{"%dynamic_smem_size", "tally.shared.dynamic.size", 0, false},
};

static const struct {
	const char *name;
	unsigned value;
} constants[] = {
	{"%tid.w", 0},
	{"%ntid.w", 1},
	{"%ctaid.w", 0},
	{"%nctaid.w", 1},
};

/* Registers that only this vendor has: read by inline assembly, and the kernel is locked. */
static const struct {
	const char *prefix;
	unsigned bits;
} vendor[] = {
	{"%clusterid.", 32},
	{"%nclusterid.", 32},
	{"%cluster_ctaid.", 32},
	{"%cluster_nctaid.", 32},
	{"%cluster_ctarank", 32},
	{"%cluster_nctarank", 32},
	{"%is_explicit_cluster", 1},
	{"%current_graph_exec", 64},
	{"%reserved_smem_offset", 32},
	{"%envreg", 32},
	{"%pm", 32},
};

static LLVMValueRef vendor_register(struct ptx_lift *l, const struct ptx_statement *s,
				    const char *name, unsigned bits)
{
	char text[128];
	LLVMTypeRef result = bits == 64 ? l->i64 : bits == 1 ? l->i1 : l->i32;
	LLVMTypeRef type = LLVMFunctionType(result, NULL, 0, 0);
	int n;
	LLVMValueRef code, v;

	if (bits == 1)
		n = snprintf(text, sizeof text, "mov.pred $0, %s;", name);
	else
		n = snprintf(text, sizeof text, "mov.b%u $0, %s;", bits, name);
	code = LLVMGetInlineAsm(type, text, (size_t)n,
				bits == 64  ? "=l"
				: bits == 1 ? "=b"
					    : "=r",
				2, 1, 0, LLVMInlineAsmDialectATT, 0);
	v = LLVMBuildCall2(l->builder, type, code, NULL, 0, "");
	ptx_lock(l, s, name);
	return v;
}

bool ptx_special(struct ptx_lift *l, const struct ptx_statement *s, const char *name,
		 LLVMValueRef *value)
{
	for (size_t i = 0; i < sizeof registers / sizeof *registers; i++) {
		if (strcmp(registers[i].name, name))
			continue;
		*value = ptx_operation(l, registers[i].operation, 0, NULL, NULL, NULL, NULL);
		if (registers[i].shift)
			*value = LLVMBuildLShr(l->builder, *value,
					       LLVMConstInt(l->i64, registers[i].shift, 0), "");
		return true;
	}
	for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
		if (!strcmp(constants[i].name, name)) {
			*value = LLVMConstInt(l->i32, constants[i].value, 0);
			return true;
		}
	for (size_t i = 0; i < sizeof vendor / sizeof *vendor; i++)
		if (!strncmp(vendor[i].prefix, name, strlen(vendor[i].prefix)) &&
		    strlen(name) < 64) {
			*value = vendor_register(l, s, name,
						 strstr(name, "_64") ? 64 : vendor[i].bits);
			return true;
		}
	return false;
}
