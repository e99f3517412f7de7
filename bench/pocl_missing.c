/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for bench/pocl.c where there was no OpenCL to build it with. */
#include <stdio.h>

#include "bench/report.h"

int main(void)
{
	bench_begin("pocl", "this device's time over PoCL's, same kernels and processors");
	puts("  skipped: built without OpenCL (Debian: apt-get install pocl-opencl-icd "
	     "ocl-icd-opencl-dev, then ./dev build)");
	return 0;
}
