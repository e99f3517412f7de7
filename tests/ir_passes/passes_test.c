/* SPDX-License-Identifier: Apache-2.0 */
/* Each transform on small modules: what it makes, what that computes, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/passes.h"
#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

#define KERNELS                                                                                    \
	"attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" }\n"                             \
	"declare i32 @tally.block.id.x()\ndeclare i32 @tally.block.id.y()\n"                       \
	"declare i32 @tally.block.id.z()\ndeclare i32 @tally.grid.size.x()\n"                      \
	"declare i32 @tally.grid.size.y()\ndeclare i32 @tally.grid.size.z()\n"

/* Parses, runs one pass or all of them; the module must keep the contract whenever that worked. */
struct run {
	LLVMContextRef context;
	LLVMModuleRef module;
	struct tally_error error;
	bool ok;
};

static struct run run_passes(const char *text, struct tally_pass_options options)
{
	struct run run = {.context = ir_jit_context()};

	run.module = ir_test_parse(run.context, text);
	options.verify = true;
	run.ok = tally_contract_verify(run.module, &run.error) &&
		 tally_passes_run(run.module, &options, &run.error);
	return run;
}

static void finish(struct run *run)
{
	LLVMDisposeModule(run->module);
	LLVMContextDispose(run->context);
}

#define assert_ok(run)                                                                             \
	do {                                                                                       \
		if (!(run).ok)                                                                     \
			fail_msg("%s", (run).error.message);                                       \
	} while (0)

static void assert_fails(const char *text, struct tally_pass_options options, const char *message)
{
	struct run run = run_passes(text, options);

	if (run.ok)
		fail_msg("passed, expected: %s", message);
	if (!strstr(run.error.message, message))
		fail_msg("message is '%s', expected '%s'", run.error.message, message);
	finish(&run);
}

static const char two_kernels[] = IR_LAYOUT
	"@used = addrspace(1) global i32 1, align 4\n"
	"@unused = addrspace(1) global i32 2, align 4\n"
	"@table = internal addrspace(4) constant [1 x ptr] [ptr @through_table], align 8\n"
	"define void @a() #0 {\n"
	"  %f = load ptr, ptr addrspace(4) @table, align 8\n  call void %f()\n"
	"  call void @helper()\n  ret void\n}\n"
	"define void @b() #0 { call void @other()\n ret void }\n"
	"define internal void @helper() {\n store i32 3, ptr addrspace(1) @used, align 4\n ret "
	"void }\n"
	"define internal void @through_table() { ret void }\n"
	"define internal void @other() {\n store i32 3, ptr addrspace(1) @unused, align 4\n ret "
	"void }\n" KERNELS;

static void select_keeps_what_a_kernel_reaches(void **state)
{
	struct run run = run_passes(two_kernels, (struct tally_pass_options){.kernel = "a"});

	assert_ok(run);
	assert_non_null(LLVMGetNamedFunction(run.module, "a"));
	assert_non_null(LLVMGetNamedFunction(run.module, "helper"));
	assert_non_null(LLVMGetNamedFunction(run.module, "through_table"));
	assert_non_null(LLVMGetNamedGlobal(run.module, "used"));
	assert_null(LLVMGetNamedFunction(run.module, "b"));
	assert_null(LLVMGetNamedFunction(run.module, "other"));
	assert_null(LLVMGetNamedGlobal(run.module, "unused"));
	finish(&run);
	assert_fails(two_kernels, (struct tally_pass_options){.kernel = "c"},
		     "no kernel 'c' (there are: a, b)");
}

static const char reader[] = IR_LAYOUT
	"define void @k(ptr addrspace(1) %p) #0 { call void @f(ptr addrspace(1) %p)\n ret void }\n"
	"define internal void @f(ptr addrspace(1) %p) {\n"
	"  %x = call i32 @g()\n  store i32 %x, ptr addrspace(1) %p, align 4\n"
	"  call void @plain()\n  ret void\n}\n"
	"define internal i32 @g() {\n  %x = call i32 @tally.block.id.x()\n  ret i32 %x\n}\n"
	"define internal void @plain() { ret void }\n" KERNELS;

static void inline_takes_readers_only(void **state)
{
	struct run run = run_passes(
		reader, (struct tally_pass_options){.transforms = TALLY_GUARD, .required = true});

	assert_ok(run);
	assert_false(ir_test_contains(run.module, "@g()"));
	assert_false(ir_test_contains(run.module, "@f("));
	assert_true(ir_test_function_contains(run.module, "k.body", "call void @plain()"));
	assert_true(ir_test_function_contains(run.module, "k", "@tally.block.id.x"));
	assert_false(ir_test_function_contains(run.module, "k.body", "@tally.block.id.x"));
	finish(&run);
}

static const char recursive[] = IR_LAYOUT
	"define void @k(i32 %n) #0 {\n  %r = call i32 @f(i32 %n)\n  ret void\n}\n"
	"define void @fine(i32 %n) #0 {\n  %r = call i32 @harmless(i32 %n)\n  ret void\n}\n"
	"define internal i32 @f(i32 %n) {\n"
	"  %x = call i32 @tally.grid.size.y()\n  %c = icmp ult i32 %n, %x\n"
	"  br i1 %c, label %a, label %b\n"
	"a:\n  %m = add i32 %n, 1\n  %r = call i32 @f(i32 %m)\n  ret i32 %r\n"
	"b:\n  ret i32 %n\n}\n"
	"define internal i32 @harmless(i32 %n) {\n"
	"  %c = icmp eq i32 %n, 0\n  br i1 %c, label %a, label %b\n"
	"a:\n  ret i32 0\n"
	"b:\n  %m = sub i32 %n, 1\n  %r = call i32 @harmless(i32 %m)\n  ret i32 %r\n}\n" KERNELS;

static void recursive_reader_is_refused_by_name(void **state)
{
	struct run run;
	const char *reason;

	assert_fails(
		recursive, (struct tally_pass_options){.transforms = TALLY_SLICE, .required = true},
		"kernel 'k' cannot be transformed: device function 'f' reads a block id or the "
		"grid's size and calls itself");
	run = run_passes(recursive, (struct tally_pass_options){.transforms = TALLY_SLICE});
	assert_ok(run);
	reason = tally_attribute(LLVMGetNamedFunction(run.module, "k"), TALLY_ATTR_REFUSE);
	assert_non_null(strstr(reason, "'f'"));
	assert_null(LLVMGetNamedFunction(run.module, "k$slice"));
	assert_non_null(LLVMGetNamedFunction(run.module, "fine$slice"));
	finish(&run);
}

static void address_taken_reader_is_refused_by_name(void **state)
{
	assert_fails(IR_LAYOUT "define void @k(ptr addrspace(1) %p) #0 {\n"
			       "  store ptr @f, ptr addrspace(1) %p, align 8\n  ret void\n}\n"
			       "define internal i32 @f() {\n  %x = call i32 @tally.block.id.z()\n"
			       "  ret i32 %x\n}\n" KERNELS,
		     (struct tally_pass_options){.transforms = TALLY_GUARD, .required = true},
		     "'f' reads a block id or the grid's size and is called through a pointer");
}

static void whole_grid_kernels_are_refused(void **state)
{
	struct tally_pass_options required = {.transforms = TALLY_GUARD, .required = true};

	assert_fails(IR_LAYOUT
		     "define void @k() #0 { ret void }\nattributes #0 = { \"tally.kernel\" "
		     "\"tally.warp\"=\"32\" \"tally.refuse\"=\"it spins on higher blocks\" }\n",
		     required, "kernel 'k' cannot be transformed: it spins on higher blocks");
	assert_fails(IR_LAYOUT
		     "define void @k() #0 {\n  call void @sync()\n  ret void\n}\n"
		     "define internal void @sync() #1 {\n"
		     "  %x = call i32 asm \"mov.u32 $0, %envreg2;\", \"=r\"()\n  ret void\n}\n"
		     "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
		     "\"tally.vendor\"=\"nvidia\" \"tally.locked\"=\"mov\" }\n"
		     "attributes #1 = { \"tally.vendor\"=\"nvidia\" \"tally.locked\"=\"mov\" }\n",
		     required, "it synchronises its whole grid");
	assert_fails(IR_LAYOUT
		     "define void @k() #0 { ret void }\nattributes #0 = { \"tally.kernel\" "
		     "\"tally.warp\"=\"32\" \"tally.cluster\"=\"2,1,1\" }\n",
		     required, "clusters");
}

static const char byval_kernel[] = IR_LAYOUT
	"%pair = type { i64, [3 x i32] }\n"
	"define void @k(ptr byval(%pair) align 16 %s, ptr addrspace(1) %out) #0 {\n"
	"  %v = load i64, ptr %s, align 16\n  store i64 %v, ptr addrspace(1) %out, align 8\n"
	"  ret void\n}\n" KERNELS;

static void body_keeps_parameters(void **state)
{
	struct run run =
		run_passes(byval_kernel, (struct tally_pass_options){.transforms = TALLY_SLICE});
	LLVMValueRef kernel, variant, body;

	assert_ok(run);
	kernel = LLVMGetNamedFunction(run.module, "k");
	variant = LLVMGetNamedFunction(run.module, "k$slice");
	body = LLVMGetNamedFunction(run.module, "k.body");
	assert_true(tally_is_kernel(kernel) && tally_is_kernel(variant));
	assert_false(tally_is_kernel(body));
	assert_true(tally_has_attribute(body, "alwaysinline"));
	assert_int_equal(LLVMGetLinkage(body), LLVMInternalLinkage);
	assert_null(tally_param_byval(body, 0));
	assert_int_equal(tally_param_alignment(run.module, kernel, 0), 16);
	assert_int_equal(tally_param_size(run.module, variant, 0), 24);
	assert_int_equal(LLVMCountParams(variant), 3);
	assert_int_equal(tally_param_size(run.module, variant, 2), sizeof(struct tally_launch));
	assert_int_equal(tally_param_alignment(run.module, variant, 2), 8);
	assert_string_equal(tally_attribute(variant, TALLY_ATTR_OF), "k");
	assert_string_equal(tally_attribute(variant, TALLY_ATTR_VARIANT), "slice");
	assert_string_equal(tally_attribute(variant, TALLY_ATTR_WARP), "32");
	finish(&run);
}

static void debug_lines_survive(void **state)
{
	static const char text[] = IR_LAYOUT
		"define void @k(ptr addrspace(1) %p) #0 !dbg !4 {\n"
		"  store i32 1, ptr addrspace(1) %p, align 4, !dbg !7\n  ret void, !dbg !7\n}\n"
		"!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2, !3}\n"
		"!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, "
		"isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)\n"
		"!1 = !DIFile(filename: \"k.cu\", directory: \"/\")\n"
		"!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n!3 = !{i32 7, !\"Dwarf Version\", "
		"i32 "
		"2}\n"
		"!4 = distinct !DISubprogram(name: \"k\", scope: !1, file: !1, line: 7, type: !5, "
		"scopeLine: 7, spFlags: DISPFlagDefinition, unit: !0)\n"
		"!5 = !DISubroutineType(types: !6)\n!6 = !{}\n"
		"!7 = !DILocation(line: 8, column: 3, scope: !4)\n" KERNELS;
	struct run run = run_passes(
		text, (struct tally_pass_options){.transforms = TALLY_SLICE | TALLY_GUARD});

	assert_ok(run);
	assert_true(ir_test_function_contains(run.module, "k.body", "!dbg"));
	assert_true(ir_test_function_contains(run.module, "k$slice_guard",
					      "@\"k$slice_guard\"(ptr addrspace(1) %p"));
	assert_true(ir_test_contains(run.module, "linkageName: \"k$slice_guard\""));
	finish(&run);
}

/* A kernel that writes down, for each block that runs it, its coordinates and the grid's size. */
static const char recorder[] =
	IR_LAYOUT "define void @k(ptr %log) #0 {\n"
		  "  %bx = call i32 @tally.block.id.x()\n  %by = call i32 @tally.block.id.y()\n"
		  "  %bz = call i32 @tally.block.id.z()\n  %gx = call i32 @tally.grid.size.x()\n"
		  "  %gy = call i32 @tally.grid.size.y()\n  %gz = call i32 @tally.grid.size.z()\n"
		  "  %c = load i32, ptr %log, align 4\n  %n = add i32 %c, 1\n  store i32 %n, ptr "
		  "%log, align 4\n"
		  "  %i = mul i32 %c, 6\n  %j = add i32 %i, 1\n  %j64 = zext i32 %j to i64\n"
		  "  %p = getelementptr i32, ptr %log, i64 %j64\n"
		  "  store i32 %bx, ptr %p, align 4\n"
		  "  %p1 = getelementptr i32, ptr %p, i64 1\n  store i32 %by, ptr %p1, align 4\n"
		  "  %p2 = getelementptr i32, ptr %p, i64 2\n  store i32 %bz, ptr %p2, align 4\n"
		  "  %p3 = getelementptr i32, ptr %p, i64 3\n  store i32 %gx, ptr %p3, align 4\n"
		  "  %p4 = getelementptr i32, ptr %p, i64 4\n  store i32 %gy, ptr %p4, align 4\n"
		  "  %p5 = getelementptr i32, ptr %p, i64 5\n  store i32 %gz, ptr %p5, align 4\n"
		  "  ret void\n}\n" KERNELS;

/* Stands for the machine: the launch's own block ids and grid size; the guard as a call of ours. */
static const char machine[] =
	"@block = global [3 x i32] zeroinitializer\n@grid = global [3 x i32] zeroinitializer\n"
	"@ask = global ptr null\n"
	"define i32 @tally.block.id.x() {\n %v = load i32, ptr @block\n ret i32 %v }\n"
	"define i32 @tally.block.id.y() {\n %v = load i32, ptr getelementptr (i32, ptr @block, i64 "
	"1)\n "
	"ret i32 %v }\n"
	"define i32 @tally.block.id.z() {\n %v = load i32, ptr getelementptr (i32, ptr @block, i64 "
	"2)\n "
	"ret i32 %v }\n"
	"define i32 @tally.grid.size.x() {\n %v = load i32, ptr @grid\n ret i32 %v }\n"
	"define i32 @tally.grid.size.y() {\n %v = load i32, ptr getelementptr (i32, ptr @grid, i64 "
	"1)\n "
	"ret i32 %v }\n"
	"define i32 @tally.grid.size.z() {\n %v = load i32, ptr getelementptr (i32, ptr @grid, i64 "
	"2)\n "
	"ret i32 %v }\n"
	"define i1 @tally.guard.enter(ptr %c, i32 %u) {\n %f = load ptr, ptr @ask\n"
	" %v = call zeroext i1 %f(ptr %c, i32 %u)\n ret i1 %v }\n";

static bool ask_guard(uint64_t control, uint32_t block)
{
	return tally_guard_enter(control, block);
}

struct machine {
	struct ir_jit *jit;
	uint32_t *block, *grid;
	void *entry;
};

static struct machine start_machine(unsigned transforms, const char *entry)
{
	struct run run = run_passes(
		recorder, (struct tally_pass_options){.transforms = transforms, .required = true});
	struct machine m;

	assert_ok(run);
	m.jit = ir_jit_create(run.context, run.module, machine);
	m.entry = ir_jit_lookup(m.jit, entry);
	m.block = ir_jit_lookup(m.jit, "block");
	m.grid = ir_jit_lookup(m.jit, "grid");
	*(void **)ir_jit_lookup(m.jit, "ask") = (void *)ask_guard;
	return m;
}

typedef void plain_entry(uint32_t *log);
typedef void variant_entry(uint32_t *log, struct tally_launch launch);

/* Checks entry `index` of a log against linear block id `u` of `grid`. */
static void assert_logged(const uint32_t *log, uint32_t index, uint32_t u, const uint32_t grid[3])
{
	const uint32_t *e = log + 1 + 6 * index;

	assert_int_equal((e[2] * grid[1] + e[1]) * grid[0] + e[0], u);
	assert_true(e[0] < grid[0] && e[1] < grid[1] && e[2] < grid[2]);
	assert_memory_equal(e + 3, grid, 12);
}

static const uint32_t grids[][3] = {{1, 1, 1}, {17, 1, 1}, {5, 3, 1},
				    {1, 4, 2}, {3, 4, 5},  {1, 1, 6}};
static uint32_t log_words[1 + 6 * 64];

static void slices_run_the_original_blocks(void **state)
{
	struct machine m = start_machine(TALLY_SLICE, "k$slice");

	for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
		uint32_t total = grids[g][0] * grids[g][1] * grids[g][2];

		for (uint32_t cut = 0; cut <= total; cut++) {
			log_words[0] = 0;
			for (int half = 0; half < 2; half++) {
				struct tally_launch launch = {.lo = half ? cut : 0,
							      .hi = half ? total : cut};

				memcpy(launch.grid, grids[g], 12);
				for (uint32_t b = 0; b < launch.hi - launch.lo; b++) {
					m.block[0] = b;
					((variant_entry *)m.entry)(log_words, launch);
				}
			}
			assert_int_equal(log_words[0], total);
			for (uint32_t u = 0; u < total; u++)
				assert_logged(log_words, u, u, grids[g]);
		}
	}
	ir_jit_destroy(m.jit);
}

/* Runs all blocks of one guarded launch; the gate closes when `stop` blocks have been asked. */
static void run_guarded(struct machine *m, bool sliced, const uint32_t grid[3],
			struct tally_launch launch, uint32_t *gate, uint32_t stop)
{
	uint32_t first = sliced ? launch.lo : 0, total = grid[0] * grid[1] * grid[2];

	for (uint32_t u = first; u < (sliced ? launch.hi : total); u++) {
		*gate = u - first >= stop;
		m->block[0] = sliced ? u - first : u % grid[0];
		m->block[1] = sliced ? 0 : u / grid[0] % grid[1];
		m->block[2] = sliced ? 0 : u / grid[0] / grid[1];
		((variant_entry *)m->entry)(log_words, launch);
	}
}

static void check_guard(unsigned transforms, const char *entry)
{
	bool sliced = transforms & TALLY_SLICE;
	struct machine m = start_machine(transforms, entry);

	for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
		uint32_t total = grids[g][0] * grids[g][1] * grids[g][2], gate, broken;

		for (uint32_t stop = 0; stop <= total; stop++) {
			uint64_t mailbox = 0;
			struct tally_control control = {.gate = (uintptr_t)&gate,
							.broken = (uintptr_t)&broken,
							.mailbox = (uintptr_t)&mailbox,
							.sequence = 9,
							.hi = total};
			struct tally_launch launch = {.control = (uintptr_t)&control, .hi = total};

			memcpy(launch.grid, grids[g], 12);
			memcpy(m.grid, grids[g], 12);
			gate = broken = log_words[0] = 0;
			run_guarded(&m, sliced, grids[g], launch, &gate, stop);
			assert_int_equal(log_words[0], stop);
			if (stop < total)
				assert_int_equal(mailbox, TALLY_MAILBOX(9, stop));
			else
				assert_int_equal(mailbox, 0);
			/* Resume from where it stopped: each block has run once, in order. */
			launch.lo = stop;
			control.word = stop;
			broken = gate = 0;
			run_guarded(&m, sliced, grids[g], launch, &gate, total + 1);
			assert_int_equal(log_words[0], total);
			for (uint32_t u = 0; u < total; u++)
				assert_logged(log_words, u, u, grids[g]);
		}
		/* Without a control block the range alone decides. */
		log_words[0] = 0;
		run_guarded(&m, sliced, grids[g],
			    (struct tally_launch){.lo = total / 2,
						  .hi = total,
						  .grid = {grids[g][0], grids[g][1], grids[g][2]}},
			    &gate, 0);
		assert_int_equal(log_words[0], total - total / 2);
	}
	ir_jit_destroy(m.jit);
}

static void guards_stop_and_resume(void **state)
{
	check_guard(TALLY_GUARD, "k$guard");
}

static void guarded_slices_stop_and_resume(void **state)
{
	check_guard(TALLY_SLICE | TALLY_GUARD, "k$slice_guard");
}

static void plain_wrapper_is_the_original(void **state)
{
	struct machine m = start_machine(TALLY_GUARD, "k");
	const uint32_t grid[3] = {3, 4, 5};

	memcpy(m.grid, grid, 12);
	m.block[0] = 2;
	m.block[1] = 1;
	m.block[2] = 4;
	log_words[0] = 0;
	((plain_entry *)m.entry)(log_words);
	assert_int_equal(log_words[0], 1);
	assert_logged(log_words, 0, (4 * 4 + 1) * 3 + 2, grid);
	ir_jit_destroy(m.jit);
}

static void transforms_parse(void **state)
{
	struct tally_error error = {0};
	unsigned set;

	assert_true(tally_transforms_parse("slice,guard", &set, &error));
	assert_int_equal(set, TALLY_SLICE | TALLY_GUARD);
	assert_true(tally_transforms_parse("guard", &set, &error));
	assert_int_equal(set, TALLY_GUARD);
	assert_true(tally_transforms_parse("none", &set, &error) && set == 0);
	assert_true(tally_transforms_parse("", &set, &error) && set == 0);
	assert_false(tally_transforms_parse("slices", &set, &error));
	assert_non_null(strstr(error.message, "unknown transform 'slices'"));
	error = (struct tally_error){0};
	assert_false(tally_transforms_parse("slice,", &set, &error));
}

static void unknown_pass_to_print_is_refused(void **state)
{
	assert_fails(reader, (struct tally_pass_options){.print_after = "bodies"},
		     "no pass 'bodies' (there are: select, refuse, inline, body, variant)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select_keeps_what_a_kernel_reaches),
		cmocka_unit_test(inline_takes_readers_only),
		cmocka_unit_test(recursive_reader_is_refused_by_name),
		cmocka_unit_test(address_taken_reader_is_refused_by_name),
		cmocka_unit_test(whole_grid_kernels_are_refused),
		cmocka_unit_test(body_keeps_parameters),
		cmocka_unit_test(debug_lines_survive),
		cmocka_unit_test(slices_run_the_original_blocks),
		cmocka_unit_test(guards_stop_and_resume),
		cmocka_unit_test(guarded_slices_stop_and_resume),
		cmocka_unit_test(plain_wrapper_is_the_original),
		cmocka_unit_test(transforms_parse),
		cmocka_unit_test(unknown_pass_to_print_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
