/* SPDX-License-Identifier: Apache-2.0 */
/* The variants' own arithmetic, run on the host: which blocks of a grid run, with which
 * coordinates, and whom the guard is asked about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/launch_abi.h"
#include "ir_passes/passes.h"
#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

enum { X = 3, Y = 2, Z = 4, BLOCKS = X * Y * Z };

/* Counts at (z * 2 + y) * 3 + x: the grid's shape is the kernel's own, so coordinates show. */
static const char kernel[] =
	IR_LAYOUT "define void @k(ptr addrspace(1) %p) #0 {\n"
		  "  %x = call i32 @tally.block.id.x()\n  %y = call i32 @tally.block.id.y()\n"
		  "  %z = call i32 @tally.block.id.z()\n  %gx = call i32 @tally.grid.size.x()\n"
		  "  %gy = call i32 @tally.grid.size.y()\n"
		  "  %a = mul i32 %z, %gy\n  %b = add i32 %a, %y\n  %c = mul i32 %b, %gx\n"
		  "  %u = add i32 %c, %x\n  %i = zext i32 %u to i64\n"
		  "  %q = getelementptr i32, ptr addrspace(1) %p, i64 %i\n"
		  "  %n = load i32, ptr addrspace(1) %q, align 4\n  %m = add i32 %n, 1\n"
		  "  store i32 %m, ptr addrspace(1) %q, align 4\n  ret void\n}\n"
		  "declare i32 @tally.block.id.x()\ndeclare i32 @tally.block.id.y()\n"
		  "declare i32 @tally.block.id.z()\ndeclare i32 @tally.grid.size.x()\n"
		  "declare i32 @tally.grid.size.y()\n"
		  "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" }\n";

/* The machine: where a block is stands in a table; the guard lets odd blocks run. */
#define PART(name, table, k)                                                                       \
	"define i32 @tally." name "() {\n"                                                         \
	"  %v = load i32, ptr getelementptr (i32, ptr @" table ", i64 " k ")\n  ret i32 %v }\n"
static const char machine[] =
	"@id = global [3 x i32] zeroinitializer\n@grid = global [3 x i32] zeroinitializer\n"
	"@asked = global i32 0\n" PART("block.id.x", "id", "0") PART("block.id.y", "id", "1")
		PART("block.id.z", "id", "2") PART("grid.size.x", "grid", "0")
			PART("grid.size.y", "grid", "1")
				PART("grid.size.z", "grid",
				     "2") "define i1 @tally.guard.enter(ptr %c, i32 %u) {\n"
					  "  %n = load i32, ptr @asked\n  %m = add i32 %n, 1\n  "
					  "store i32 %m, ptr @asked\n"
					  "  %r = trunc i32 %u to i1\n  ret i1 %r }\n"
					  "define i32 @tally.persist.next(ptr %c, i32 %u, i32 %r) "
					  "{\n  ret i32 %u }\n";

typedef void entry(uint32_t *counts, struct tally_launch launch);

static struct ir_jit *compile(unsigned transforms)
{
	LLVMContextRef context = ir_jit_context();
	LLVMModuleRef module = ir_test_parse(context, kernel);
	struct tally_pass_options options = {.transforms = transforms, .verify = true};
	struct tally_error error = {0};

	if (!tally_passes_run(module, &options, &error))
		fail_msg("%s", error.message);
	return ir_jit_create(context, module, machine);
}

/* Runs [lo, hi) in every way that a device may: a slice by itself, a guard over the whole grid. */
static void run_range(struct ir_jit *jit, const char *name, unsigned transforms, uint32_t lo,
		      uint32_t hi, uint64_t control)
{
	entry *run = (entry *)ir_jit_lookup(jit, name);
	uint32_t *id = ir_jit_lookup(jit, "id"), *grid = ir_jit_lookup(jit, "grid"),
		 *asked = ir_jit_lookup(jit, "asked"), counts[BLOCKS + 2] = {0};
	struct tally_launch launch = {control, lo, hi, {X, Y, Z}, 0};
	bool sliced = transforms & TALLY_SLICE;
	/* A guarded slice may be started with more blocks than it has: they end at once. */
	uint32_t blocks = !sliced ? BLOCKS : hi - lo + (transforms & TALLY_GUARD ? 1 : 0);

	*asked = 0;
	grid[0] = sliced ? blocks : X;
	grid[1] = sliced ? 1 : Y;
	grid[2] = sliced ? 1 : Z;
	for (uint32_t b = 0; b < blocks; b++) {
		id[0] = b % grid[0];
		id[1] = b / grid[0] % grid[1];
		id[2] = b / grid[0] / grid[1];
		run(counts, launch);
	}
	for (uint32_t u = 0; u < BLOCKS + 2; u++)
		assert_int_equal(counts[u], u >= lo && u < hi && (!control || u % 2));
	assert_int_equal(*asked, control ? hi - lo : 0);
}

static void ranges_run_exactly(void **state)
{
	static const struct {
		unsigned transforms;
		const char *name;
	} variants[] = {
		{TALLY_SLICE, "k$slice"},
		{TALLY_GUARD, "k$guard"},
		{TALLY_SLICE | TALLY_GUARD, "k$slice_guard"},
	};

	for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
		struct ir_jit *jit = compile(variants[v].transforms);

		for (uint32_t lo = 0; lo <= BLOCKS; lo++)
			for (uint32_t hi = lo; hi <= BLOCKS; hi++) {
				run_range(jit, variants[v].name, variants[v].transforms, lo, hi, 0);
				if (variants[v].transforms & TALLY_GUARD)
					run_range(jit, variants[v].name, variants[v].transforms, lo,
						  hi, 8);
			}
		ir_jit_destroy(jit);
	}
}

/* Workers without a counter: however many there are, they share the range out. */
static void workers_share_a_range(void **state)
{
	struct ir_jit *jit = compile(TALLY_PERSIST);
	entry *run = (entry *)ir_jit_lookup(jit, "k$persist");
	uint32_t *id = ir_jit_lookup(jit, "id"), *grid = ir_jit_lookup(jit, "grid");

	for (uint32_t lo = 0; lo <= BLOCKS; lo++)
		for (uint32_t hi = lo; hi <= BLOCKS; hi++)
			for (uint32_t workers = 1; workers < 6; workers++) {
				struct tally_launch launch = {0, lo, hi, {X, Y, Z}, 0};
				uint32_t counts[BLOCKS + 2] = {0};

				grid[0] = workers;
				grid[1] = grid[2] = 1;
				for (id[0] = 0; id[0] < workers; id[0]++)
					run(counts, launch);
				for (uint32_t u = 0; u < BLOCKS + 2; u++)
					assert_int_equal(counts[u], u >= lo && u < hi);
			}
	ir_jit_destroy(jit);
}

/* Every sign in inline asm that blocks belong together, with the reason that is given for it. */
static void asm_shows_whole_grids(void **state)
{
	static const struct {
		const char *text, *reason;
	} signs[] = {
		{"mov.u32 r, %%envreg2;", "synchronises its whole grid"},
		{"griddepcontrol.wait;", "orders itself with the next launch"},
		{"barrier.cluster.arrive;", "work together in clusters"},
		{"call cudaLaunchDeviceV2;", "launches kernels itself"},
		{"call cudaGetParameterBufferV2;", "launches kernels itself"},
		{"call __cudaCDP2LaunchDeviceV2;", "launches kernels itself"},
		{"call cudaCGSynchronize;", "synchronises its whole grid"},
		{"bar.sync 0;", NULL},
	};

	for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
		struct tally_pass_options options = {.transforms = TALLY_GUARD, .required = true};
		LLVMContextRef context = LLVMContextCreate();
		struct tally_error error = {0};
		LLVMModuleRef module;
		char text[512];

		snprintf(text, sizeof text,
			 IR_LAYOUT "define void @k() #0 {\n"
				   "  call void asm sideeffect \"%s\", \"\"()\n  ret void\n}\n"
				   "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
				   "\"tally.vendor\"=\"nvidia\" \"tally.locked\"=\"it\" }\n",
			 signs[k].text);
		module = ir_test_parse(context, text);
		assert_int_equal(tally_passes_run(module, &options, &error), !signs[k].reason);
		if (signs[k].reason)
			assert_non_null(strstr(error.message, signs[k].reason));
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_run_exactly),
		cmocka_unit_test(workers_share_a_range),
		cmocka_unit_test(asm_shows_whole_grids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
