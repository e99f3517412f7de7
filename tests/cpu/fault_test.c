/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that are no normal ones: traps, assertions, wild pointers, divisions; and that an
 * application's own signal handlers stay its own. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

/* Each with a barrier in front and without: both ways of running. */
static const char text[] =
	"@message = internal addrspace(1) constant [6 x i8] c\"x > 0\\00\"\n"
	"@file = internal addrspace(1) constant [5 x i8] c\"a.cu\\00\"\n"
	"@function = internal addrspace(1) constant [2 x i8] c\"f\\00\"\n"
	"define void @trap(ptr %p) \"tally.kernel\" {\n"
	"  call void @tally.trap()\n"
	"  unreachable\n"
	"}\n"
	"define void @assertion(ptr %p) \"tally.kernel\" {\n"
	"  call void @tally.barrier(i32 0, i32 0)\n"
	"  %t = call i32 @tally.thread.id.x()\n"
	"  %bad = icmp eq i32 %t, 3\n"
	"  br i1 %bad, label %fail, label %fine\n"
	"fail:\n"
	"  call void @tally.assert.fail(ptr addrspacecast (ptr addrspace(1) @message to ptr), "
	"ptr addrspacecast (ptr addrspace(1) @file to ptr), i32 12, "
	"ptr addrspacecast (ptr addrspace(1) @function to ptr))\n"
	"  unreachable\n"
	"fine:\n"
	"  ret void\n"
	"}\n"
	"define void @wild(ptr %p) \"tally.kernel\" {\n"
	"  %q = inttoptr i64 4096 to ptr\n"
	"  store volatile i32 1, ptr %q, align 4\n"
	"  ret void\n"
	"}\n"
	"define void @wild_later(ptr %p) \"tally.kernel\" {\n"
	"  call void @tally.barrier(i32 0, i32 0)\n"
	"  %q = inttoptr i64 4096 to ptr\n"
	"  store volatile i32 1, ptr %q, align 4\n"
	"  ret void\n"
	"}\n"
	"define internal i32 @deep(i32 %n) {\n"
	"  %room = alloca [1000 x i32], align 4\n"
	"  store volatile i32 %n, ptr %room, align 4\n"
	"  %m = add i32 %n, 1\n"
	"  %r = call i32 @deep(i32 %m)\n"
	"  %v = load volatile i32, ptr %room, align 4\n"
	"  %s = add i32 %r, %v\n"
	"  ret i32 %s\n"
	"}\n"
	"define void @endless(ptr %p) \"tally.kernel\" {\n"
	"  %r = call i32 @deep(i32 0)\n"
	"  store i32 %r, ptr %p, align 4\n"
	"  ret void\n"
	"}\n"
	"define void @division(ptr %p, i32 %a, i32 %b) \"tally.kernel\" {\n"
	"  %q = udiv i32 %a, %b\n"
	"  store i32 %q, ptr %p, align 4\n"
	"  %r = urem i32 %a, %b\n"
	"  %p1 = getelementptr i32, ptr %p, i64 1\n"
	"  store i32 %r, ptr %p1, align 4\n"
	"  %s = sdiv i32 %a, %b\n"
	"  %p2 = getelementptr i32, ptr %p, i64 2\n"
	"  store i32 %s, ptr %p2, align 4\n"
	"  %m = srem i32 %a, %b\n"
	"  %p3 = getelementptr i32, ptr %p, i64 3\n"
	"  store i32 %m, ptr %p3, align 4\n"
	"  ret void\n"
	"}\n"
	"define void @fine(ptr %p) \"tally.kernel\" {\n"
	"  store i32 42, ptr %p, align 4\n"
	"  ret void\n"
	"}\n";

static struct tally_cpu_image image;

static enum tally_cpu_fault run(const char *kernel, const void *params, char *message)
{
	return cpu_test_run(&image,
			    &(struct cpu_test_launch){.kernel = kernel,
						      .grid = {1, 1, 1},
						      .block = {kernel[0] == 'd' ? 1 : 40, 1, 1},
						      .params = params},
			    message);
}

/* After each fault the next kernel runs as if nothing had been. */
static void faults_end_the_launch(void **state)
{
	static const struct {
		const char *kernel;
		enum tally_cpu_fault fault;
		const char *words;
	} cases[] = {
		{"trap", TALLY_CPU_TRAP, "trap"},
		{"assertion", TALLY_CPU_ASSERT, "a.cu:12"},
		{"wild", TALLY_CPU_ILLEGAL, "0x0000000000001000"},
		{"wild_later", TALLY_CPU_ILLEGAL, "0x0000000000001000"},
		{"endless", TALLY_CPU_ILLEGAL, "0x"},
	};
	uint32_t cell = 0, *params = &cell;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char message[256];

		assert_int_equal(run(cases[i].kernel, &params, message), cases[i].fault);
		assert_non_null(strstr(message, cases[i].words));
		cell = 0;
		assert_int_equal(run("fine", &params, message), TALLY_CPU_OK);
		assert_int_equal(cell, 42);
		assert_string_equal(message, "");
	}
}

static void divisions_do_not_trap(void **state)
{
	static const struct {
		uint32_t a, b, expected[4];
	} cases[] = {
		{17, 5, {3, 2, 3, 2}},
		{17, 0, {0xffffffff, 17, 0xffffffff, 17}},
		{0x80000000, 0xffffffff, {0, 0x80000000, 0x80000000, 0}},
		{(uint32_t)-17, 5, {858993455, 4, (uint32_t)-3, (uint32_t)-2}},
		{7, 0xffffffff, {0, 7, (uint32_t)-7, 0}},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t out[4];
		struct {
			uint32_t *out, a, b;
		} params = {out, cases[i].a, cases[i].b};

		assert_int_equal(run("division", &params, NULL), TALLY_CPU_OK);
		assert_memory_equal(out, cases[i].expected, sizeof out);
	}
}

static sigjmp_buf own_escape;

static void own_handler(int signal)
{
	siglongjmp(own_escape, 1);
}

/* In a child: a handler that was there first still gets the application's own faults, and a process
 * without one still dies of them. */
static int child_status(bool own, const char *kernel)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		uint32_t cell = 0, *params = &cell;
		struct sigaction action = {.sa_handler = own ? own_handler : SIG_DFL};

		sigaction(SIGSEGV, &action, NULL);
		if (run(kernel, &params, NULL) != TALLY_CPU_ILLEGAL)
			_exit(90);
		if (sigsetjmp(own_escape, 1))
			_exit(7);
		*(volatile int *)(uintptr_t)8192 = 1;
		_exit(91);
	}
	waitpid(child, &status, 0);
	return status;
}

static void applications_keep_their_handlers(void **state)
{
	int status = child_status(true, "wild");

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	status = child_status(false, "wild_later");
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void refused(const char *kernels, const char *words)
{
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	assert_false(cpu_test_lower(kernels, "none", 0, &out, &error));
	assert_non_null(strstr(error.message, words));
	tally_buffer_free(&out);
}

static void functions_that_cannot_be_suspended(void **state)
{
	refused("define internal void @f(i32 %n) {\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  %z = icmp eq i32 %n, 0\n"
		"  br i1 %z, label %out, label %more\n"
		"more:\n"
		"  %m = sub i32 %n, 1\n"
		"  call void @f(i32 %m)\n"
		"  br label %out\n"
		"out:\n"
		"  ret void\n"
		"}\n"
		"define void @k(i32 %n) \"tally.kernel\" {\n"
		"  call void @f(i32 %n)\n"
		"  ret void\n"
		"}\n",
		"device function 'f' is recursive and reaches a barrier");
}

static void warps_of_64_lanes(void **state)
{
	refused("define internal i32 @f() {\n"
		"  %l = call i32 @tally.lane.id()\n"
		"  ret i32 %l\n"
		"}\n"
		"define void @k(ptr %out) \"tally.kernel\" \"tally.warp\"=\"64\" {\n"
		"  %l = call i32 @f()\n"
		"  store i32 %l, ptr %out, align 4\n"
		"  ret void\n"
		"}\n",
		"kernel 'k' uses tally.lane.id with warps of 64 lanes");
}

static int load(void **state)
{
	image = cpu_test_image(text, "none");
	return 0;
}

static int unload(void **state)
{
	tally_cpu_image_close(&image);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: they need a process in which no kernel has run. */
		cmocka_unit_test(applications_keep_their_handlers),
		cmocka_unit_test(faults_end_the_launch),
		cmocka_unit_test(divisions_do_not_trap),
		cmocka_unit_test(functions_that_cannot_be_suspended),
		cmocka_unit_test(warps_of_64_lanes),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
