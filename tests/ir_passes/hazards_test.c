/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel does that decides how its blocks may be run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/hazards.h"
#include "ir_passes/passes.h"
#include "tests/ir_passes/ir_test.h"

#define DECLARATIONS                                                                               \
	"declare i32 @tally.thread.id.x()\ndeclare i32 @tally.block.id.x()\n"                      \
	"declare i32 @tally.block.size.x()\ndeclare void @tally.barrier(i32, i32)\n"               \
	"declare i32 @tally.barrier.popc(i32, i32, i1)\n"                                          \
	"declare void @tally.barrier.arrive(i32, i32)\ndeclare void @tally.nanosleep(i32)\n"       \
	"declare i1 @tally.vote.any(i32, i1)\ndeclare void @tally.exit() noreturn\n"               \
	"attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" }\n"

#define KERNEL(body)                                                                               \
	IR_LAYOUT "define void @k(ptr addrspace(1) %p, i32 %n) #0 {\nentry:\n"                     \
		  "  %t = call i32 @tally.thread.id.x()\n  %b = call i32 @tally.block.id.x()\n"    \
		  "  %s = call i32 @tally.block.size.x()\n" body "}\n" DECLARATIONS

#define MEET "  call void @tally.barrier(i32 0, i32 0)\n"
#define VOTE "  %v = call i1 @tally.vote.any(i32 -1, i1 true)\n"

static const struct {
	const char *what, *text;
	enum tally_persistence how;
	const char *reason;
} cases[] = {
	{"nobody meets", KERNEL("  ret void\n"), TALLY_PERSIST_SIMPLE, NULL},
	{"all meet", KERNEL(MEET "  ret void\n"), TALLY_PERSIST_SIMPLE, NULL},
	{"a whole block returns early",
	 KERNEL("  %c = icmp uge i32 %b, %n\n  br i1 %c, label %out, label %go\ngo:\n" MEET VOTE
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_SIMPLE, NULL},
	{"threads return before a barrier",
	 KERNEL("  %c = icmp uge i32 %t, %n\n  br i1 %c, label %out, label %go\ngo:\n" MEET
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_MEET, NULL},
	{"threads return after the last barrier",
	 KERNEL(MEET "  %c = icmp uge i32 %t, %n\n  br i1 %c, label %out, label %go\ngo:\n"
		     "  store i32 1, ptr addrspace(1) %p, align 4\n  br label %out\nout:\n"
		     "  ret void\n"),
	 TALLY_PERSIST_SIMPLE, NULL},
	{"a loop that the block leaves together",
	 KERNEL("  br label %l\nl:\n  %i = phi i32 [0, %entry], [%j, %l]\n" MEET
		"  %j = add i32 %i, 1\n  %c = icmp ult i32 %j, %n\n"
		"  br i1 %c, label %l, label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_SIMPLE, NULL},
	{"a loop that threads leave one by one",
	 KERNEL("  br label %l\nl:\n  %i = phi i32 [0, %entry], [%j, %l]\n" MEET
		"  %j = add i32 %i, 1\n  %c = icmp ult i32 %j, %t\n"
		"  br i1 %c, label %l, label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_MEET, NULL},
	{"a way that memory decides",
	 KERNEL("  %m = load i32, ptr addrspace(1) %p, align 4\n  %c = icmp eq i32 %m, 0\n"
		"  br i1 %c, label %out, label %go\ngo:\n" MEET
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_MEET, NULL},
	{"a way that a barrier's count decides",
	 KERNEL("  %w = icmp ult i32 %t, 3\n"
		"  %m = call i32 @tally.barrier.popc(i32 0, i32 0, i1 %w)\n"
		"  %c = icmp eq i32 %m, %n\n"
		"  br i1 %c, label %out, label %go\ngo:\n" MEET
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_SIMPLE, NULL},
	{"threads end themselves",
	 KERNEL("  %c = icmp uge i32 %t, %n\n  br i1 %c, label %out, label %go\nout:\n"
		"  call void @tally.exit()\n  unreachable\ngo:\n" MEET "  ret void\n"),
	 TALLY_PERSIST_MEET, NULL},
	{"lanes vote without the others",
	 KERNEL("  %c = icmp uge i32 %t, %n\n  br i1 %c, label %out, label %go\ngo:\n" VOTE
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_NEVER, "lanes may end"},
	{"threads are counted without the others",
	 KERNEL("  %c = icmp uge i32 %t, %n\n  br i1 %c, label %out, label %go\ngo:\n"
		"  %m = call i32 @tally.barrier.popc(i32 0, i32 0, i1 true)\n"
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_NEVER, "a barrier that counts"},
	{"a part of the block meets",
	 KERNEL("  %c = icmp uge i32 %t, 64\n  br i1 %c, label %out, label %go\ngo:\n"
		"  call void @tally.barrier(i32 1, i32 64)\n"
		"  br label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_NEVER, "a barrier that counts"},
	{"threads arrive and go on",
	 KERNEL("  call void @tally.barrier.arrive(i32 1, i32 64)\n  ret void\n"),
	 TALLY_PERSIST_NEVER, "arrive at a barrier"},
	{"it waits for a flag",
	 KERNEL("  br label %l\nl:\n  %m = load volatile i32, ptr addrspace(1) %p, align 4\n"
		"  %c = icmp eq i32 %m, 0\n  br i1 %c, label %l, label %out\nout:\n  ret void\n"),
	 TALLY_PERSIST_NEVER, "waits for other blocks"},
};

static void how_blocks_can_follow_each_other(void **unused)
{
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		LLVMContextRef context = LLVMContextCreate();
		LLVMModuleRef module = ir_test_parse(context, cases[k].text);
		struct tally_pass_options options = {.transforms = TALLY_PERSIST, .verify = true};
		struct tally_error error = {0};
		LLVMValueRef kernel, worker;
		const char *why;

		if (!tally_passes_run(module, &options, &error))
			fail_msg("%s: %s", cases[k].what, error.message);
		kernel = LLVMGetNamedFunction(module, "k");
		worker = LLVMGetNamedFunction(module, "k$persist");
		why = tally_attribute(kernel, TALLY_ATTR_WHOLE);
		if (!worker != (cases[k].how == TALLY_PERSIST_NEVER))
			fail_msg("%s: %s", cases[k].what, worker ? "has workers" : why);
		if (cases[k].reason && !strstr(why, cases[k].reason))
			fail_msg("%s: '%s' was to be the reason, not '%s'", cases[k].what,
				 cases[k].reason, why);
		if (worker && ir_test_contains(module, "call void @tally.persist.finish") !=
				      (cases[k].how == TALLY_PERSIST_MEET))
			fail_msg("%s: %s", cases[k].what,
				 cases[k].how == TALLY_PERSIST_MEET ? "nobody waits for the rest"
								    : "waits for nothing");
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

#define LOOP(head, condition)                                                                      \
	KERNEL("  br label %l\nl:\n" head condition                                                \
	       "  br i1 %c, label %l, label %out\nout:\n  ret void\n")
#define LOOK "  %m = load atomic i32, ptr addrspace(1) %p syncscope(\"device\") acquire, align 4\n"
#define IS_ZERO "  %c = icmp eq i32 %m, 0\n"

static void who_waits_for_other_blocks(void **unused)
{
	static const struct {
		const char *what, *text;
		bool waits;
	} loops[] = {
		{"an acquiring load", LOOP(LOOK, IS_ZERO), true},
		{"with pauses", LOOP(LOOK "  call void @tally.nanosleep(i32 20)\n", IS_ZERO), true},
		{"with a vote",
		 LOOP(LOOK "  %z = icmp eq i32 %m, 0\n",
		      "  %c = call i1 @tally.vote.any(i32 -1, i1 %z)\n"),
		 true},
		{"an ordinary load",
		 LOOP("  %m = load i32, ptr addrspace(1) %p, align 4\n", IS_ZERO), false},
		{"compare and swap",
		 LOOP("  %o = load volatile i32, ptr addrspace(1) %p, align 4\n"
		      "  %q = cmpxchg ptr addrspace(1) %p, i32 %o, i32 1 monotonic monotonic, "
		      "align "
		      "4\n  %g = extractvalue {i32, i1} %q, 1\n",
		      "  %c = xor i1 %g, true\n"),
		 false},
		{"a lock",
		 LOOP("  %m = atomicrmw xchg ptr addrspace(1) %p, i32 1 acquire, align 4\n",
		      IS_ZERO),
		 false},
		{"shared memory",
		 LOOP("  %m = load volatile i32, ptr addrspace(3) null, align 4\n", IS_ZERO),
		 false},
		{"a count of its own",
		 LOOP("  %i = phi i32 [0, %entry], [%j, %l]\n  %j = add i32 %i, 1\n" LOOK,
		      "  %c = icmp ult i32 %j, %n\n"),
		 false},
	};

	for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
		LLVMContextRef context = LLVMContextCreate();
		LLVMModuleRef module = ir_test_parse(context, loops[k].text);
		bool waits;

		assert_true(tally_waits_for_blocks(LLVMGetNamedFunction(module, "k"), &waits));
		if (waits != loops[k].waits)
			fail_msg("%s: %s", loops[k].what, waits ? "waits" : "does not wait");
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_blocks_can_follow_each_other),
		cmocka_unit_test(who_waits_for_other_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
