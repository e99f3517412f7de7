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

/* tally.narrow.rn.satfinite.e2m1x2.f32: cvt.…; two numbers of 4 bits are a register of 8. */
static void narrow(const char *words, char *text, size_t size)
{
	size_t length = strlen(words);
	bool pack = !strncmp(words, "pack", 4), pair = !pack && !strcmp(words + length - 3, "f32");
	bool random = !strncmp(words, "rs.", 3), four = strstr(words, "x4.") != NULL;
	const char *operands = random ? (four ? "{$1, $2, $3, $4}, $5" : "$1, $2, $3")
			       : pack ? (strstr(words, ".b32") ? "$1, $2, $3" : "$1, $2")
			       : pair && !strstr(words, "tf32") ? "$1, $2"
								: "$1";

	if (length > 6 && !strcmp(words + length - 6, "e2m1x2"))
		snprintf(text, size, "{ .reg .b8 %%tn; cvt.u8.u16 %%tn, $1; cvt.%s $0, %%tn; }",
			 words);
	else if (strstr(words, "e2m1x2"))
		snprintf(text, size, "{ .reg .b8 %%tn; cvt.%s %%tn, $1, $2; cvt.u16.u8 $0, %%tn; }",
			 words);
	else
		snprintf(text, size, "cvt.%s $0, %s;", words, operands);
}

/* What sm_100a and sm_103a alone have. */
static bool is_first_blackwell(const struct tally_cuda_target *target)
{
	return !strcmp(target->name, "sm_100a") || !strcmp(target->name, "sm_103a");
}

/* tally.reduce.min.abs.NaN.f32: redux.sync.… */
static void reduce(const char *words, char *text, size_t size)
{
	snprintf(text, size, "redux.sync.%s $0, $2, $1;", words);
}

static bool has_reduce(const char *words, const struct tally_cuda_target *target)
{
	return strstr(words, ".f32") && is_first_blackwell(target);
}

/* Which machines have a conversion: 6- and 4-bit formats and powers of two those of one chip alone.
 */
static bool has_narrow(const char *words, const struct tally_cuda_target *target)
{
	static const struct {
		const char *word;
		unsigned sm;
		bool specific;
	} since[] = {
		{"e4m3", 89, false},
		{"e5m2", 89, false},
		{"e2m3", 100, true},
		{"e3m2", 100, true},
		{"e2m1", 100, true},
		{"ue8m0", 100, true},
		{"satfinite.tf32", 100, false},
		{"satfinite.relu.tf32", 100, false},
		{"tf32", 90, false},
		{"pack", 75, false},
	};
	const char *end = target->name + strlen(target->name) - 1;

	if (!strncmp(words, "rs.", 3))
		return is_first_blackwell(target);
	for (size_t k = 0; k < sizeof since / sizeof *since; k++)
		if (strstr(words, since[k].word))
			return target->sm >= since[k].sm &&
			       (!since[k].specific || *end == 'a' || *end == 'f');
	return false;
}

/* From it ptxas knows that one lane is left; of a comparison with a lane's number it makes loops
 * over the lanes round each bulk copy. */
static void elect(const char *words, char *text, size_t size)
{
	snprintf(text, size, "elect.sync%s $0|$1, $2;", words);
}

static const struct {
	const char *prefix;
	void (*write)(const char *words, char *text, size_t size);
	bool effects;
	unsigned sm, ptx; /* the oldest that have it */
	bool (*has)(const char *words, const struct tally_cuda_target *target); /* or NULL */
} families[] = {
	{"tally.copy.async.", copy, true, 80, 0, NULL},
	{"tally.cache.policy.", policy, false, 80, 0, NULL},
	{"tally.narrow.", narrow, false, 75, 0, has_narrow},
	{"tally.reduce.", reduce, false, 100, 0, has_reduce},
	{"tally.elect", elect, true, 90, TALLY_CUDA_ELECT_PTX, NULL},
};

static bool make_body(LLVMValueRef function, const struct tally_cuda_target *target, unsigned ptx)
{
	char text[160];

	for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
		const char *words = behind(tally_name(function), families[k].prefix);

		if (!words || target->sm < families[k].sm || ptx < families[k].ptx ||
		    (families[k].has && !families[k].has(words, target)))
			continue;
		families[k].write(words, text, sizeof text);
		return tally_cuda_assembly(function, text, strlen(text), families[k].effects);
	}
	return true;
}

bool tally_cuda_instructions(LLVMModuleRef module, const struct tally_cuda_target *target,
			     unsigned ptx, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function)
		if (LLVMIsDeclaration(function) && !make_body(function, target, ptx))
			return tally_fail(error, "out of memory");
	return true;
}
