/* SPDX-License-Identifier: Apache-2.0 */
/* A program with NVIDIA's runtime linked in. */
#include "check.h"

int main(void)
{
	int count;

	OK(cudaGetDeviceCount(&count));
	puts("ok");
	return 0;
}
