/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a PTX file: what stands at its module level and which names each of it uses. */
#ifndef TALLY_FRONTEND_PTX_SCAN_H
#define TALLY_FRONTEND_PTX_SCAN_H

#include "frontend/frontend.h"
#include "frontend/ptx/walk.h"

struct ptx_item {
	enum ptx_item_kind kind;
	struct tally_ptx_segment segment;
	struct ptx_name name;	   /* of functions and variables (the first of several) */
	size_t first_use, end_use; /* in `uses` */
	size_t next;		   /* another item of the same name; SIZE_MAX: none */
	size_t stamp;		   /* free for walks */
};

/* A name that an item has in it, which is a module-level one or not. */
struct ptx_use {
	struct ptx_name name;
	size_t item; /* SIZE_MAX: none of the module's */
	bool called; /* as the target of a call */
};

struct ptx_contents {
	struct ptx_item *items;
	size_t count;
	struct ptx_use *uses;
	size_t use_count;
	size_t *table, table_size; /* names: 1 + index into items, by hash */
	size_t entries, functions;
	bool has_local_state;		 /* a .global inside of a function */
	struct ptx_name version, target; /* the words behind .version and .target */
	bool plain_target;		 /* nothing else behind .target */
	const char *body;		 /* what follows the header */
};

/* Reads the contents of `text`. False for text that is no PTX or when memory runs out: the parser
 * says more. Free it either way. */
bool ptx_scan(struct ptx_contents *contents, const char *text, size_t size);
void ptx_contents_free(struct ptx_contents *contents);

/* Whether a function's address is taken, or a use could be one. */
bool ptx_takes_addresses(const struct ptx_contents *contents);

#endif
