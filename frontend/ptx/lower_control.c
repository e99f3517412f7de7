/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and ends of threads (PTX ISA 9.7.12). */
#include <string.h>

#include "frontend/ptx/lift.h"

LLVMBasicBlockRef ptx_label_block(struct ptx_lift *l, struct ptx_symbol *label)
{
	while (label->from)
		label = label->from;
	if (!label->block)
		label->block = ptx_new_block(l, label->name);
	return label->block;
}

/* A way back to a loop's header that wants to stay as it is says so (LLVM's passes heed it, and
 * NVPTX writes the pragma again). Its first operand is itself, as LLVM wants it. */
static void keep_rolled(struct ptx_lift *l, LLVMValueRef branch)
{
	static const char words[] = "llvm.loop.unroll.disable";
	LLVMMetadataRef self = LLVMTemporaryMDNode(l->context, NULL, 0), parts[2], loop;

	parts[0] = self;
	parts[1] = LLVMMDStringInContext2(l->context, words, strlen(words));
	parts[1] = LLVMMDNodeInContext2(l->context, &parts[1], 1);
	loop = LLVMMDNodeInContext2(l->context, parts, 2);
	LLVMMetadataReplaceAllUsesWith(self, loop);
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(l->context, "llvm.loop", 9),
			LLVMMetadataAsValue(l->context, loop));
}

static LLVMValueRef branch_or_go_on(struct ptx_lift *l, const struct ptx_statement *s,
				    LLVMBasicBlockRef target)
{
	LLVMValueRef p = ptx_value(l, s, s->guard, PTX_pred), branch;
	LLVMBasicBlockRef after = ptx_new_block(l, "after");

	branch = LLVMBuildCondBr(l->builder, p, target, after);
	LLVMPositionBuilderAtEnd(l->builder, after);
	ptx_keep_place(l);
	l->after = after;
	return branch;
}

/* A predicate on it is the branch's own. */
bool ptx_lower_branch(struct ptx_lift *l, const struct ptx_statement *s)
{
	struct ptx_symbol *label = s->operand[0]->symbol;
	LLVMValueRef branch;

	if (!label || label->kind != PTX_LABEL)
		return ptx_fail(l, s, "'%s' is no label", s->operand[0]->name);
	if (!s->guard && LLVMGetInsertBlock(l->builder) == l->after)
		ptx_drop_place(l); /* @p bra a; bra b */
	branch = s->guard ? branch_or_go_on(l, s, ptx_label_block(l, label))
			  : LLVMBuildBr(l->builder, ptx_label_block(l, label));
	while (label->from)
		label = label->from;
	if (label->lifted && (label->rolled || l->function->rolled || l->ptx->rolled))
		keep_rolled(l, branch);
	return true;
}

/* An index beyond the list is undefined in PTX: it goes to the last label here. */
bool ptx_lower_branch_index(struct ptx_lift *l, const struct ptx_statement *s)
{
	struct ptx_symbol *list = s->operand[1]->symbol;
	LLVMValueRef index = ptx_source(l, s, 0, PTX_u32), v;

	if (!list || list->kind != PTX_TARGETS)
		return ptx_fail(l, s, "'%s' is no .branchtargets", s->operand[1]->name);
	v = LLVMBuildSwitch(l->builder, index, ptx_label_block(l, list->target[list->targets - 1]),
			    list->targets);
	for (unsigned i = 0; i + 1 < list->targets; i++)
		LLVMAddCase(v, LLVMConstInt(l->i32, i, 0), ptx_label_block(l, list->target[i]));
	return !l->failed;
}

/* `exit` in a kernel is its return; elsewhere it ends the thread. */
bool ptx_lower_exit(struct ptx_lift *l, const struct ptx_statement *s)
{
	if (!strcmp(s->row->operation, "ret") || l->function->is_entry) {
		ptx_build_return(l);
		return !l->failed;
	}
	ptx_operation(l, "tally.exit", 0, NULL, NULL, NULL, NULL);
	LLVMBuildUnreachable(l->builder);
	return !l->failed;
}

bool ptx_lower_trap(struct ptx_lift *l, const struct ptx_statement *s)
{
	ptx_operation(l, "tally.trap", 0, NULL, NULL, NULL, NULL);
	LLVMBuildUnreachable(l->builder);
	return !l->failed && s != NULL;
}
