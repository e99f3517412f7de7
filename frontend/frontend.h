/* SPDX-License-Identifier: Apache-2.0 */
/* From any kernel container to a module in neutral IR. */
#ifndef TALLY_FRONTEND_FRONTEND_H
#define TALLY_FRONTEND_FRONTEND_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum tally_image_kind {
	TALLY_IMAGE_UNKNOWN,
	TALLY_IMAGE_PTX,
	TALLY_IMAGE_BITCODE, /* LLVM bitcode, raw or wrapped */
	TALLY_IMAGE_IR,	     /* textual LLVM IR */
	TALLY_IMAGE_CUBIN,   /* NVIDIA machine code: listed, not lifted */
	TALLY_IMAGE_LTOIR,   /* NVIDIA's LTO-IR: listed, not lifted */
	TALLY_IMAGE_HSACO,   /* AMD machine code: listed, not lifted */
};

/* One thing found in a container. */
struct tally_image {
	enum tally_image_kind kind;
	char origin[256];    /* "app: .nv_fatbin entry 3": for --list and for errors */
	char arch[64];	     /* "sm_80", "gfx90a", "" unknown */
	char compression[8]; /* "", "lz4", "zstd" */
	unsigned module;     /* images with one number are one module for different chips */
	uint8_t *data;	     /* owned; decompressed; text is followed by a NUL */
	size_t size;
};

struct tally_images {
	struct tally_image *image;
	size_t count;
};

/* Frees the images' bytes and the list, which is then empty. */
void tally_images_free(struct tally_images *images);

/*
 * frontend/container/: everything liftable or not inside `data`: a bare PTX, bitcode or IR file is
 * one image; fatbins (raw, LZ4, ZSTD), clang offload bundles, HIP fat binaries, host ELF files that
 * carry any of these, several. `path` is for messages. False with an error for bytes that are none
 * of these or are damaged; never reads outside [data, data + size) and never allocates more than
 * the container's own declared sizes allow (bounded by 1 GiB).
 */
bool tally_container_read(const char *path, const void *data, size_t size,
			  struct tally_images *images, struct tally_error *error);

/* The image that stands for all of it when there is just one module that can be lifted; otherwise
 * NULL. `target` as below. */
const struct tally_image *tally_frontend_only(const struct tally_images *images,
					      const char *target);

/* A piece of a PTX file: whole directives of the module level. */
struct tally_ptx_segment {
	const char *from, *to, *line_start; /* line_start: of the line that `from` is in */
	unsigned line;
};

/* What is lifted together: some kernels, and the header, variables and functions that they need. */
struct tally_ptx_part {
	struct tally_ptx_segment *segments; /* in the file's order */
	size_t count, bytes;
};

/* A PTX file in parts. The text has to outlive it. */
struct tally_ptx_split {
	struct tally_ptx_part *parts;
	size_t count;
	struct tally_ptx_part variables; /* all of the module's variables and no kernel */
	bool has_variables;
	const char *version, *target; /* the words behind .version and .target */
	size_t version_length, target_length;
	bool plain_target; /* .target names a machine and nothing else */
	const char *body;  /* what follows the header */
};

struct tally_lift_options {
	const char *file;   /* name for messages and debug lines */
	const char *target; /* what it will be lowered to: chooses among several images */
	const char *kernel; /* the one that is wanted, or NULL: chooses among several modules */
	bool verify;	    /* check the IR that PTX became; builds for tests always do */
	const struct tally_ptx_part *part; /* PTX: only this much of it; NULL: all */
};

/* frontend/ptx/: PTX text (NUL-terminated, `size` without the NUL) to neutral IR. NULL with a
 * `file:line:col` error. The caller owns the module. */
LLVMModuleRef tally_ptx_lift(LLVMContextRef context, const char *text, size_t size,
			     const struct tally_lift_options *options, struct tally_error *error);

/*
 * frontend/ptx/split.c: cuts PTX into parts of kernels in their order, each with what it needs and,
 * together with that, of about `bytes` or one kernel; the same text gives the same parts. False for
 * text that has to be lifted as a whole: a function's address is taken (it must be one and the
 * same), a function has a .global of its own, there is no kernel, or it is damaged and the lifter
 * says where. Free it either way.
 */
bool tally_ptx_split(struct tally_ptx_split *split, const char *text, size_t size, size_t bytes);
void tally_ptx_split_free(struct tally_ptx_split *split);

/* frontend/bitcode/: clang's CUDA or HIP device bitcode or textual IR (`text` tells) to neutral IR.
 */
LLVMModuleRef tally_bitcode_lift(LLVMContextRef context, const void *data, size_t size, bool text,
				 const struct tally_lift_options *options,
				 struct tally_error *error);

/*
 * frontend/ptx/asm.c: replaces one inline-asm call whose string is PTX by neutral IR, through the
 * same instruction table as PTX text. `call` is erased when lifted. An instruction without neutral
 * meaning leaves the call and locks the enclosing function ("tally.vendor", "tally.locked"): still
 * true. False only for text that is no PTX.
 */
bool tally_ptx_lift_asm(LLVMModuleRef module, LLVMValueRef call,
			const struct tally_lift_options *options, struct tally_error *error);

/* Reads all of it: container, choice of the best image for options->target (PTX or bitcode; bitcode
 * first, then the newest PTX), lift, contract verified. A program made of several modules (one for
 * each source file) gives the one that has options->kernel or, without that, all of them linked.
 * NULL with an error that says what there is when nothing can be lifted. */
LLVMModuleRef tally_frontend_lift(LLVMContextRef context, const char *path, const void *data,
				  size_t size, const struct tally_lift_options *options,
				  struct tally_error *error);

/* The same for a container that was read already. */
LLVMModuleRef tally_frontend_lift_images(LLVMContextRef context, const char *path,
					 const struct tally_images *images,
					 const struct tally_lift_options *options,
					 struct tally_error *error);

/* One image lifted, its contract verified. NULL with an error. */
LLVMModuleRef tally_frontend_lift_image(LLVMContextRef context, const char *path,
					const struct tally_image *image,
					const struct tally_lift_options *options,
					struct tally_error *error);

#endif
