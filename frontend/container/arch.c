/* SPDX-License-Identifier: Apache-2.0 */
/* The chip that machine code or PTX is for, from its header. */
#include <stdio.h>
#include <string.h>

#include "frontend/container/reader.h"

/* e_flags & 0xff of AMDGPU code objects (LLVM's AMDGPUUsage, EF_AMDGPU_MACH_*). */
static const char *const amd_machines[] = {
	[0x20] = "gfx600",	    [0x21] = "gfx601",		[0x22] = "gfx700",
	[0x23] = "gfx701",	    [0x24] = "gfx702",		[0x25] = "gfx703",
	[0x26] = "gfx704",	    [0x28] = "gfx801",		[0x29] = "gfx802",
	[0x2a] = "gfx803",	    [0x2b] = "gfx810",		[0x2c] = "gfx900",
	[0x2d] = "gfx902",	    [0x2e] = "gfx904",		[0x2f] = "gfx906",
	[0x30] = "gfx908",	    [0x31] = "gfx909",		[0x32] = "gfx90c",
	[0x33] = "gfx1010",	    [0x34] = "gfx1011",		[0x35] = "gfx1012",
	[0x36] = "gfx1030",	    [0x37] = "gfx1031",		[0x38] = "gfx1032",
	[0x39] = "gfx1033",	    [0x3a] = "gfx602",		[0x3b] = "gfx705",
	[0x3c] = "gfx805",	    [0x3d] = "gfx1035",		[0x3e] = "gfx1034",
	[0x3f] = "gfx90a",	    [0x41] = "gfx1100",		[0x42] = "gfx1013",
	[0x43] = "gfx1150",	    [0x44] = "gfx1103",		[0x45] = "gfx1036",
	[0x46] = "gfx1101",	    [0x47] = "gfx1102",		[0x48] = "gfx1200",
	[0x49] = "gfx1250",	    [0x4a] = "gfx1151",		[0x4c] = "gfx942",
	[0x4e] = "gfx1201",	    [0x4f] = "gfx950",		[0x51] = "gfx9-generic",
	[0x52] = "gfx10-1-generic", [0x53] = "gfx10-3-generic", [0x54] = "gfx11-generic",
	[0x55] = "gfx1152",	    [0x58] = "gfx1153",		[0x59] = "gfx12-generic",
	[0x5a] = "gfx1251",	    [0x5f] = "gfx9-4-generic",
};

void arch_of_elf(unsigned machine, unsigned abi_version, uint32_t flags, char arch[64])
{
	unsigned amd = flags & 0xff;

	arch[0] = '\0';
	if (machine == EM_AMDGPU) {
		if (amd < sizeof(amd_machines) / sizeof(*amd_machines) && amd_machines[amd])
			snprintf(arch, 64, "%s", amd_machines[amd]);
		return;
	}
	/* CUDA: since ABI version 8 the chip stands one byte higher. */
	snprintf(arch, 64, "sm_%u", abi_version >= 8 ? flags >> 8 & 0xff : flags & 0xff);
}

void arch_of_bundle_id(const char *id, char arch[64])
{
	const char *last = NULL;

	for (const char *p = id; (p = strstr(p, "--")); p++)
		last = p + 2;
	if (last && *last)
		snprintf(arch, 64, "%s", last);
}

void arch_of_ptx(const char *text, size_t size, char arch[64])
{
	const char *p = memmem(text, size, ".target", 7);
	size_t n = 0;

	arch[0] = '\0';
	if (!p)
		return;
	for (p += 7; *p == ' ' || *p == '\t'; p++)
		;
	while (n < 63 && p[n] && !strchr(" \t\r\n,/", p[n]))
		n++;
	memcpy(arch, p, n);
	arch[n] = '\0';
}
