/* SPDX-License-Identifier: Apache-2.0 */
/* The list of PTX forms (forms.txt): patterns expanded to single statements. */
#ifndef TALLY_TESTS_PTX_FORMS_EXPAND_H
#define TALLY_TESTS_PTX_FORMS_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* One statement to try, and what became of it. */
struct form {
	char *text;	  /* "add.s32 %r0, %r1, %r2;" */
	unsigned line;	  /* of the list */
	bool legal;	  /* the vendor's assembler takes it */
	bool lifted;	  /* we do */
	bool locked;	  /* as assembly of the vendor's */
	bool lowered;	  /* and wrote it again */
	bool assembled;	  /* and the assembler takes that */
	bool compiled;	  /* not locked: for the CPU too */
	char why[200];	  /* we do not */
	char section[16]; /* of the ISA */
};

struct forms {
	struct form *form;
	size_t count;
};

/* Reads the list and expands every pattern. False with a message on stderr. Free with forms_free.
 */
bool forms_read(struct forms *forms, const char *path);
void forms_free(struct forms *forms);

/* A kernel `k<number>` that loads the registers of `text`, executes it and stores them. One line.
 */
void forms_print_kernel(struct tally_buffer *out, size_t number, const char *text);

/* The file's head: version, target, shared memory. Three lines. */
void forms_print_head(struct tally_buffer *out, const char *arch);

#endif
