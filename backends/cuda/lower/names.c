/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that PTX has and LLVM's writer of PTX has not: those that begin with a percent sign (PTX
 * ISA 4.4). They go through it under a stand-in and are put back into the text.
 */
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

static const char stand_in[] = "tally_percent$";

/* What the writer calls its registers (a number follows), and the stack's. In a body such a name
 * would mean the register, and ptxas 13.0 falls over a kernel that has it. */
static const char *const classes[] = {"p", "rs", "r", "rd", "rq", "f", "fd"};
static const char *const stack[] = {"SP", "SPL"};

static bool is_register(const char *name)
{
	size_t letters = strcspn(name, "0123456789");

	for (size_t i = 0; i < sizeof stack / sizeof *stack; i++)
		if (!strcmp(name, stack[i]))
			return true;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (letters == strlen(classes[i]) && !strncmp(name, classes[i], letters) &&
		    name[letters] && !name[letters + strspn(name + letters, "0123456789")])
			return true;
	return false;
}

static bool rename(LLVMValueRef value, struct tally_error *error)
{
	struct tally_buffer other = {0};
	size_t size;
	const char *name = LLVMGetValueName2(value, &size);

	if (!size || *name != '%')
		return true;
	if (is_register(name + 1))
		return tally_fail(error, "'%s' is what a register is called: give it another name",
				  name);
	tally_buffer_print(&other, "%s%s", stand_in, name + 1);
	if (!other.failed)
		LLVMSetValueName2(value, other.data, other.size);
	else
		tally_fail(error, "out of memory");
	tally_buffer_free(&other);
	return !tally_failed(error);
}

bool tally_cuda_names(LLVMModuleRef module, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function)
		if (!rename(function, error))
			return false;
	TALLY_EACH_GLOBAL (module, global)
		if (!rename(global, error))
			return false;
	return true;
}

void tally_cuda_names_text(struct tally_buffer *out, size_t from)
{
	const size_t length = strlen(stand_in);
	char *to, *at, *found;

	if (out->failed || out->size == from)
		return;
	for (to = at = out->data + from; (found = strstr(at, stand_in)); at = found + length) {
		memmove(to, at, (size_t)(found - at));
		to += found - at;
		*to++ = '%';
	}
	memmove(to, at, (size_t)(out->data + out->size - at) + 1);
	out->size -= (size_t)(at - to);
}
