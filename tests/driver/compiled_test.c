/* SPDX-License-Identifier: Apache-2.0 */
/* From PTX text to results: driver, code cache, tally-lower and executor together. */
#include "driver_tests.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tally-compiled-XXXXXX";

static const char source[] = ".version 8.0\n"
			     ".target sm_80\n"
			     ".address_size 64\n"
			     ".visible .global .align 4 .u32 launches = 5;\n"
			     ".visible .entry scale(.param .u64 p, .param .u32 n, .param .f32 a)\n"
			     "{\n"
			     "	.reg .pred %p<2>;\n"
			     "	.reg .f32 %f<4>;\n"
			     "	.reg .b32 %r<8>;\n"
			     "	.reg .b64 %d<5>;\n"
			     "	ld.param.u64 %d1, [p];\n"
			     "	ld.param.u32 %r1, [n];\n"
			     "	ld.param.f32 %f1, [a];\n"
			     "	mov.u32 %r2, %ctaid.x;\n"
			     "	mov.u32 %r3, %ntid.x;\n"
			     "	mov.u32 %r4, %tid.x;\n"
			     "	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
			     "	setp.ge.u32 %p1, %r5, %r1;\n"
			     "	@%p1 bra DONE;\n"
			     "	cvta.to.global.u64 %d2, %d1;\n"
			     "	mul.wide.u32 %d3, %r5, 4;\n"
			     "	add.s64 %d4, %d2, %d3;\n"
			     "	ld.global.f32 %f2, [%d4];\n"
			     "	mul.f32 %f3, %f2, %f1;\n"
			     "	st.global.f32 [%d4], %f3;\n"
			     "	mov.u32 %r6, 1;\n"
			     "	atom.global.add.u32 %r7, [launches], %r6;\n"
			     "DONE:\n"
			     "	ret;\n"
			     "}\n";

static void ptx_text_runs(void **state)
{
	enum { N = 1000 };
	CUmodule loaded;
	CUfunction scale;
	CUdeviceptr counter;
	size_t bytes;
	uint32_t count, n = N;
	float *values = zeroed(N * 4), a = 3;
	void *params[] = {&values, &n, &a};
	size_t offset, size;

	for (int i = 0; i < N; i++)
		values[i] = (float)i;
	OK(cuModuleLoadData(&loaded, source));
	OK(cuModuleGetFunction(&scale, loaded, "scale"));
	OK(cuFuncGetParamInfo(scale, 2, &offset, &size));
	assert_true(offset == 12 && size == 4);
	OK(cuLaunchKernel(scale, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	OK(cuModuleGetGlobal(&counter, &bytes, loaded, "launches"));
	OK(cuMemcpyDtoH(&count, counter, 4));
	assert_int_equal(count, 5 + N);
	for (int i = 0; i < N; i++)
		assert_true(values[i] == 3.0f * (float)i);
	OK(cuModuleUnload(loaded));
	OK(cuMemFree((CUdeviceptr)values));
}

static void wrong_ptx_is_told_with_its_line(void **state)
{
	static const char wrong[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
				    ".visible .entry k()\n{\n\tfrobnicate.u32 %r1;\n\tret;\n}\n";
	CUmodule loaded;
	char log[500] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof log};

	assert_int_equal(cuModuleLoadDataEx(&loaded, wrong, 2, options, values),
			 CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, ":6:"));
	assert_non_null(strstr(log, "frobnicate"));
}

/* What a failing disk or a crash of the machine left of the compiled kernels: whatever it is, the
 * program gets its kernels, and so does the next one. */
static void damaged_files_of_the_cache_are_made_again(void **state)
{
	char pattern[64], before[4096], after[4096];
	glob_t files;
	struct stat info;

	snprintf(pattern, sizeof pattern, "%s/*.so", folder);
	for (int part = 0; part < 8; part++) {
		assert_int_equal(glob(pattern, 0, NULL, &files), 0);
		assert_int_equal(files.gl_pathc, 1);
		int fd = open(files.gl_pathv[0], O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &info), 0);
		off_t at = info.st_size / 8 * part;
		ssize_t n = pread(fd, before, sizeof before, at);
		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++)
			after[i] = (char)(before[i] ^ 0x5a);
		assert_int_equal(pwrite(fd, after, (size_t)n, at), n);
		close(fd);
		ptx_text_runs(state);
		fd = open(files.gl_pathv[0], O_RDONLY);
		assert_int_equal(pread(fd, after, sizeof after, at), n);
		assert_memory_equal(after, before, n);
		close(fd);
		globfree(&files);
	}
}

static int remove_folder(void **state)
{
	char command[64];

	stop_driver(state);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptx_text_runs),
		cmocka_unit_test(damaged_files_of_the_cache_are_made_again),
		cmocka_unit_test(wrong_ptx_is_told_with_its_line),
	};

	if (!mkdtemp(folder))
		return 1;
	setenv("TALLY_CACHE_DIR", folder, 1);
	return cmocka_run_group_tests(tests, start_driver, remove_folder);
}
