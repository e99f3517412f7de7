/* SPDX-License-Identifier: Apache-2.0 */
/* Files of NVIDIA's CUDA toolkit: see cuda_toolkit.h. */
#include "backends/cuda_toolkit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
static const char *const folders[] = {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda",
				      "/usr/lib/nvidia-cuda-toolkit"};

static bool try_folder(const char *folder, const char *const names[], char *path, size_t size)
{
	for (; *names; names++)
		if (snprintf(path, size, "%s/%s", folder, *names) < (int)size &&
		    access(path, R_OK) == 0)
			return true;
	return false;
}

/* The build tree's own toolkit: build/bin/tally-lower beside build/cuda. */
static bool try_beside_program(const char *const names[], char *path, size_t size)
{
	char program[PATH_MAX], folder[PATH_MAX + 16];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	char *slash;

	if (length <= 0)
		return false;
	program[length] = '\0';
	for (int up = 0; up < 2; up++) {
		slash = strrchr(program, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	snprintf(folder, sizeof folder, "%s/cuda", program);
	return try_folder(folder, names, path, size);
}

bool tally_cuda_toolkit_file(const char *const names[], char *path, size_t size)
{
	for (size_t k = 0; k < sizeof variables / sizeof *variables; k++) {
		const char *folder = getenv(variables[k]);

		if (folder && *folder && try_folder(folder, names, path, size))
			return true;
	}
	if (try_beside_program(names, path, size))
		return true;
	for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
		if (try_folder(folders[k], names, path, size))
			return true;
	return false;
}
