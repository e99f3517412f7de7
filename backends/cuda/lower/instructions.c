/* SPDX-License-Identifier: Apache-2.0 */
/* Operations whose names hold modifiers of one PTX instruction: that instruction as their body. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

/* The part after `prefix`, or NULL. */
static const char *behind(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(name, prefix, length) ? NULL : name + length;
}

/* tally.copy.async.ca.16.128.part: cp.async.ca.shared.global.L2::128B [$0], [$1], 16, $2; */
static void copy(const char *words, char *text, size_t size)
{
	unsigned bytes = 0, prefetch = 0;
	bool global = words[1] == 'g', part = strstr(words, ".part") != NULL;
	char ahead[24] = "";

	sscanf(words + 2, ".%u.%u", &bytes, &prefetch);
	if (prefetch)
		snprintf(ahead, sizeof ahead, ".L2::%uB", prefetch);
	snprintf(text, size, "cp.async.%s.shared.global%s [$0], [$1], %u%s;", global ? "cg" : "ca",
		 ahead, bytes, part ? ", $2" : "");
}

/* tally.cache.policy.fractional.evict_last.evict_first: createpolicy.fractional.L2::… */
static void policy(const char *words, char *text, size_t size)
{
	size_t kind = strcspn(words, ".");
	const char *first = words[kind] ? words + kind + 1 : "";
	size_t length = strcspn(first, ".");
	const char *second = first[length] ? first + length + 1 : NULL;
	bool range = *words == 'r';

	if (*words == 'c')
		snprintf(text, size, "createpolicy.cvt.L2.b64 $0, $1;");
	else
		snprintf(text, size, "createpolicy.%.*s.L2::%.*s%s%s.b64 $0, %s;", (int)kind, words,
			 (int)length, first, second ? ".L2::" : "", second ? second : "",
			 range ? "[$1], $2, $3" : "$1");
}

static const struct {
	const char *prefix;
	void (*write)(const char *words, char *text, size_t size);
	bool effects;
	unsigned sm;
} families[] = {
	{"tally.copy.async.", copy, true, 80},
	{"tally.cache.policy.", policy, false, 80},
};

static bool make_body(LLVMValueRef function, const struct tally_cuda_target *target)
{
	char text[160];

	for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
		const char *words = behind(tally_name(function), families[k].prefix);

		if (!words || target->sm < families[k].sm)
			continue;
		families[k].write(words, text, sizeof text);
		return tally_cuda_assembly(function, text, strlen(text), families[k].effects);
	}
	return true;
}

bool tally_cuda_instructions(LLVMModuleRef module, const struct tally_cuda_target *target,
			     struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function)
		if (LLVMIsDeclaration(function) && !make_body(function, target))
			return tally_fail(error, "out of memory");
	return true;
}
