/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the mapping tables: every row is declared, called, lifted; what comes out is neutral. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <llvm-c/Analysis.h>
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/mapping.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"

static const char nvidia[] = "target triple = \"nvptx64-nvidia-cuda\"\n";
static const char amd[] = "target triple = \"amdgcn-amd-amdhsa\"\n"
			  "target datalayout = \"e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:"
			  "32:32-p6:32:32-p7:160:256:256:32-p8:128:128-p9:192:256:256:32-i64:64-"
			  "v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:"
			  "1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\"\n";

/* The wavefront's width hangs on the chip. */
static bool is_wave32(const struct bitcode_table *table)
{
	return !strcmp(table->name, "wave32");
}

static bool is_amd(const struct bitcode_table *table)
{
	return !strcmp(table->name, "amdgcn") || !strcmp(table->name, "ocml");
}

/*
 * A kernel that loads arguments, calls the row's function and stores the result. Integers are
 * constants: some operands have to be.
 */
static void print_caller(struct tally_buffer *out, const struct bitcode_mapping *row,
			 const char *chip)
{
	const char *code = row->signature, *arguments;
	bool for_amd = !strncmp(chip, "gfx", 3);
	struct tally_buffer result = {0};

	tally_buffer_print(out, "%s", for_amd ? amd : nvidia);
	bitcode_type_print(&result, &code);
	arguments = code;
	tally_buffer_print(out, "declare %s @%s(", result.data, row->name);
	for (int i = 0; *code; i++) {
		tally_buffer_print(out, i ? ", " : "");
		bitcode_type_print(out, &code);
	}
	tally_buffer_print(out, ")\ndefine %s void @k(ptr addrspace(1) %%p) #0 {\n",
			   for_amd ? "amdgpu_kernel" : "ptx_kernel");
	code = arguments;
	for (int i = 0; *code; i++) {
		if (strchr("bcsil", *code)) {
			code++;
			continue;
		}
		tally_buffer_print(out, "\t%%x%d = load ", i);
		bitcode_type_print(out, &code);
		tally_buffer_print(out, ", ptr addrspace(1) %%p, align 8\n");
	}
	tally_buffer_print(out, "\t%scall %s @%s(",
			   row->signature[0] == 'v' ? "" : "%r = ", result.data, row->name);
	code = arguments;
	for (int i = 0; *code; i++) {
		bool integer = strchr("bcsil", *code) != NULL;

		tally_buffer_print(out, i ? ", " : "");
		bitcode_type_print(out, &code);
		if (integer)
			tally_buffer_print(out, " 1");
		else
			tally_buffer_print(out, " %%x%d", i);
	}
	tally_buffer_print(out, ")\n");
	if (row->signature[0] != 'v')
		tally_buffer_print(out, "\tstore %s %%r, ptr addrspace(1) %%p, align 8\n",
				   result.data);
	tally_buffer_print(out, "\tret void\n}\n");
	tally_buffer_print(out, "attributes #0 = { \"target-cpu\"=\"%s\" }\n", chip);
	tally_buffer_free(&result);
}

static void check_row(const struct bitcode_table *table, const struct bitcode_mapping *row)
{
	const struct tally_lift_options options = {.file = "row"};
	LLVMContextRef context = LLVMContextCreate();
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	LLVMModuleRef module;
	char *message = NULL;

	if (!strncmp(row->name, "llvm.", 5) && !LLVMLookupIntrinsicID(row->name, strlen(row->name)))
		fail_msg("%s: LLVM has no intrinsic '%s'", table->name, row->name);
	print_caller(&text, row, is_wave32(table) ? "gfx1030" : is_amd(table) ? "gfx90a" : "sm_80");
	module = tally_bitcode_lift(context, text.data, text.size, true, &options, &error);
	if (!module)
		fail_msg("%s: %s: %u:%u %s\n%s", table->name, row->name, error.line, error.column,
			 error.message, text.data);
	if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
		fail_msg("%s: %s: %s", table->name, row->name, message);
	LLVMDisposeMessage(message);
	if (!tally_contract_verify(module, &error))
		fail_msg("%s: %s: %s", table->name, row->name, error.message);
	if (LLVMGetNamedFunction(module, row->name))
		fail_msg("%s: %s is still there", table->name, row->name);
	if (tally_attribute(LLVMGetNamedFunction(module, "k"), TALLY_ATTR_VENDOR))
		fail_msg("%s: %s locks its kernel", table->name, row->name);
	tally_buffer_free(&text);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

static void every_row_lifts(void **state)
{
	size_t rows = 0;

	for (size_t t = 0; bitcode_table_at(t); t++) {
		const struct bitcode_table *table = bitcode_table_at(t);

		for (size_t i = 0; i < table->count; i++, rows++)
			check_row(table, &table->rows[i]);
	}
	printf("%zu rows\n", rows);
}

static void names_are_unique(void **state)
{
	for (size_t t = 0; bitcode_table_at(t); t++) {
		const struct bitcode_table *table = bitcode_table_at(t);

		for (size_t i = 0; i < table->count; i++)
			if (bitcode_mapping_find(table->rows[i].name) != &table->rows[i])
				fail_msg("%s: two rows for '%s'", table->name, table->rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(every_row_lifts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
