/* SPDX-License-Identifier: Apache-2.0 */
/* Whose machine code is made stoppable, and when: see opaque.h. */
#include "backends/cuda/interpose/opaque.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

/* --- whose it is --- */

struct place {
	uintptr_t address;
	char path[PATH_MAX];
};

/* dl_iterate_phdr's callback: is the address in this object? */
static int is_in(struct dl_phdr_info *info, size_t size, void *data)
{
	struct place *place = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || place->address < start ||
		    place->address - start >= segment->p_memsz)
			continue;
		snprintf(place->path, sizeof place->path, "%s",
			 info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
		return 1;
	}
	return 0;
}

/* The file that is mapped there; false: none. */
static bool file_at(const void *address, struct place *place)
{
	place->address = (uintptr_t)address;
	place->path[0] = '\0';
	return dl_iterate_phdr(is_in, place);
}

/* Beginnings of names of files: libraries that NVIDIA gives away without their source. */
static const char *const closed[] = {
	"libcublas",	 "libcuda.so",	"libcudart",	 "libcudnn",	  "libcudss",
	"libcufft",	 "libcurand",	"libcusolver",	 "libcusparse",	  "libcutensor",
	"libnpp",	 "libnvcomp",	"libnvidia-",	 "libnvinfer",	  "libnvJitLink",
	"libnvjpeg",	 "libnvrtc",	"libnvToolsExt", "libnvimgcodec", "libcufftMp",
	"libcusolverMp", "libcublasMp", "libcuquantum",	 "libcustatevec",
};
/* Kernels that wait for those of other devices. */
static const char *const collective[] = {"libnccl", "libnvshmem"};
static const char *const collective_kernels[] = {"ncclDevKernel", "ncclKernel", "nvshmem"};

static bool begins(const char *text, const char *const with[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, with[i], strlen(with[i])))
			return true;
	return false;
}
#define BEGINS(text, list) begins(text, list, sizeof(list) / sizeof *(list))

static const char *name_of(const struct place *place)
{
	const char *slash = strrchr(place->path, '/');

	return slash ? slash + 1 : place->path;
}

bool tally_opaque_collective(const char *kernel)
{
	return BEGINS(kernel, collective_kernels);
}

bool tally_opaque_allowed(const struct tally_loading *l, enum tally_reason *barred)
{
	static _Atomic bool said;
	struct place place;
	bool known;

	if (tally_process.cpu_target) {
		/* It is refused there in any case; only who asked for it is told. */
		if (tally_process.config.opaque == TALLY_OPAQUE_ALL)
			tally_warn_once(&said,
					"TALLY_OPAQUE=all: there is no machine code of NVIDIA's "
					"on the CPU device to make stoppable");
		*barred = TALLY_WHY_NO_CODE;
		return false;
	}
	if (tally_process.config.opaque == TALLY_OPAQUE_OFF) {
		*barred = TALLY_WHY_OPAQUE_OFF;
		return false;
	}
	known = file_at(l->image, &place) || file_at(l->caller, &place);
	if (known && BEGINS(name_of(&place), collective)) {
		*barred = TALLY_WHY_COLLECTIVE;
		return false;
	}
	if (tally_process.config.opaque == TALLY_OPAQUE_OPEN &&
	    (!known || BEGINS(name_of(&place), closed))) {
		*barred = TALLY_WHY_CLOSED;
		return false;
	}
	return true;
}

/* --- when --- */

struct tally_machine_code *tally_opaque_remember(const struct tally_loading *l)
{
	struct tally_machine_code *code = calloc(1, sizeof *code);
	struct place place;

	if (!code)
		return NULL;
	code->image = l->image;
	code->size = l->size;
	memcpy(code->target, l->target, sizeof code->target);
	/* What the program has in memory of its own it may free as soon as the driver has it. */
	if (!file_at(l->image, &place) &&
	    !tally_image_machine_code(l->image, l->size, tally_target_arch(l->target), &code->copy,
				      &code->size)) {
		free(code);
		return NULL;
	}
	if (code->copy)
		code->image = code->copy;
	return code;
}

void tally_opaque_forget(struct tally_machine_code *code)
{
	if (!code)
		return;
	if (code->patched)
		munmap(code->patched, code->patched_size);
	free(code->copy);
	free(code);
}

void tally_opaque_ask(struct tally_module *m)
{
	int unasked = TALLY_MODULE_MACHINE_CODE;

	if (atomic_compare_exchange_strong(&m->form, &unasked, TALLY_MODULE_COMPILING))
		tally_compile_patch(m);
	if (tally_process.config.compile == TALLY_COMPILE_WAIT)
		tally_compile_wait(m);
}
