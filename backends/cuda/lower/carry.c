/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums and differences of many words (PTX ISA 9.7.2). Neutral IR has no flag for the carry: each
 * word is added with one bit more than it has, and that bit goes into the next. Here such
 * additions, one behind the other, become add.cc and addc again, one instruction a word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

/* One word: low = a + b + in, and what is carried; or a - b - in, and what is borrowed. */
struct word {
	LLVMValueRef sum, low, carry; /* of bits + 1; its bits; its highest bit or NULL */
	LLVMValueRef a, b, in;	      /* `in` of one bit, or NULL */
	bool subtract;
	unsigned bits;
};

enum { MAX_WORDS = 32 };

struct chain {
	LLVMContextRef context;
	LLVMBuilderRef builder;
	struct word words[MAX_WORDS];
	unsigned count;
	bool failed;
};

static bool is_op(LLVMValueRef v, LLVMOpcode opcode)
{
	return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == opcode;
}

static unsigned width_of(LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* What `v` has `bits` bits of, the others zero; or NULL. */
static LLVMValueRef narrow(LLVMValueRef v, unsigned bits)
{
	LLVMTypeRef type = LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(v)), bits);

	if (is_op(v, LLVMZExt) && width_of(LLVMGetOperand(v, 0)) == bits)
		return LLVMGetOperand(v, 0);
	if (bits > 1 && bits < 64 && LLVMIsAConstantInt(v) &&
	    LLVMConstIntGetZExtValue(v) >> bits == 0)
		return LLVMConstInt(type, LLVMConstIntGetZExtValue(v), 0);
	return NULL;
}

/* a OP b, or (a OP b) OP in, or a OP in. */
static bool has_operands(struct word *w, LLVMOpcode opcode)
{
	LLVMValueRef left = LLVMGetOperand(w->sum, 0), right = LLVMGetOperand(w->sum, 1);

	w->in = narrow(right, 1);
	if (w->in && is_op(left, opcode)) {
		w->a = narrow(LLVMGetOperand(left, 0), w->bits);
		w->b = narrow(LLVMGetOperand(left, 1), w->bits);
		return w->a && w->b;
	}
	w->a = narrow(left, w->bits);
	w->b = w->in ? LLVMConstNull(
			       LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(left)), w->bits))
		     : narrow(right, w->bits);
	return w->a && w->b;
}

static LLVMValueRef only_user(LLVMValueRef v)
{
	LLVMUseRef use = LLVMGetFirstUse(v);

	return use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
}

/* The low bits of the sum and the one above them; false where it is used in another way. */
static bool has_results(struct word *w)
{
	for (LLVMUseRef use = LLVMGetFirstUse(w->sum); use; use = LLVMGetNextUse(use)) {
		LLVMValueRef user = LLVMGetUser(use), bit = only_user(user);

		if (is_op(user, LLVMTrunc) && width_of(user) == w->bits && !w->low)
			w->low = user;
		else if (is_op(user, LLVMLShr) && !w->carry && bit && is_op(bit, LLVMTrunc) &&
			 width_of(bit) == 1 && LLVMIsAConstantInt(LLVMGetOperand(user, 1)) &&
			 LLVMConstIntGetZExtValue(LLVMGetOperand(user, 1)) == w->bits)
			w->carry = bit;
		else
			return false;
	}
	return w->low || w->carry;
}

static bool is_word(LLVMValueRef i, struct word *w)
{
	unsigned width = width_of(i);

	*w = (struct word){.sum = i, .bits = width - 1, .subtract = is_op(i, LLVMSub)};
	return (width == 33 || width == 65) && (w->subtract || is_op(i, LLVMAdd)) &&
	       has_operands(w, w->subtract ? LLVMSub : LLVMAdd) && has_results(w);
}

static bool is_result(const struct chain *c, LLVMValueRef v)
{
	for (unsigned k = 0; k < c->count; k++)
		if (c->words[k].low == v)
			return true;
	return false;
}

/* Whether anybody between the last word and `sum` already needs a word of the chain: all of them
 * are there only behind the last. */
static bool is_needed_before(const struct chain *c, LLVMValueRef sum)
{
	for (LLVMValueRef i = c->words[c->count - 1].sum; i != sum; i = LLVMGetNextInstruction(i))
		for (int k = 0; k < LLVMGetNumOperands(i); k++)
			if (is_result(c, LLVMGetOperand(i, (unsigned)k)))
				return true;
	return false;
}

static bool continues(const struct chain *c, const struct word *w)
{
	const struct word *last = c->count ? &c->words[c->count - 1] : NULL;

	return last && c->count < MAX_WORDS && w->in && w->in == last->carry &&
	       w->bits == last->bits && w->subtract == last->subtract && only_user(w->in) &&
	       LLVMGetInstructionParent(w->sum) == LLVMGetInstructionParent(last->sum) &&
	       !is_needed_before(c, w->sum);
}

/* $0 … the words, one more for what is carried out; behind them a and b of each, what is carried
 * in. */
static void write_text(const struct chain *c, bool out, struct tally_buffer *text,
		       struct tally_buffer *constraints)
{
	const struct word *first = c->words;
	const char *op = first->subtract ? "sub" : "add";
	unsigned n = c->count + out, bits = first->bits;

	tally_buffer_print(text, "{ .reg .u%u %%cc; ", bits);
	if (first->in)
		tally_buffer_print(text, "%s.cc.u%u %%cc, %s$%u%s; ", op, bits,
				   first->subtract ? "0, " : "", n + 2 * c->count,
				   first->subtract ? "" : ", -1");
	for (unsigned k = 0; k < c->count; k++)
		tally_buffer_print(text, "%s%s%s.u%u $%u, $%u, $%u; ", op,
				   k || first->in ? "c" : "", k + 1 < n ? ".cc" : "", bits, k,
				   n + 2 * k, n + 2 * k + 1);
	if (out)
		tally_buffer_print(text, "%sc.u%u $%u, 0, 0; ", op, bits, c->count);
	tally_buffer_print(text, "}");
	/* Words are written before all are read. */
	for (unsigned k = 0; k < n + 2 * c->count + !!first->in; k++)
		tally_buffer_print(constraints, "%s%s%c", k ? "," : "", k < n ? "=&" : "",
				   bits == 64 ? 'l' : 'r');
}

static LLVMValueRef build_call(struct chain *c, bool out, struct tally_buffer *text,
			       struct tally_buffer *constraints)
{
	LLVMTypeRef types[2 * MAX_WORDS + 1], results[MAX_WORDS + 1], result, type;
	LLVMValueRef inputs[2 * MAX_WORDS + 1], code;
	LLVMTypeRef word = LLVMIntTypeInContext(c->context, c->words[0].bits);
	unsigned count = 0, n = c->count + out;

	for (unsigned k = 0; k < c->count; k++) {
		inputs[count++] = c->words[k].a;
		inputs[count++] = c->words[k].b;
	}
	if (c->words[0].in)
		inputs[count++] = LLVMBuildZExt(c->builder, c->words[0].in, word, "");
	for (unsigned k = 0; k < count; k++)
		types[k] = word;
	for (unsigned k = 0; k < n; k++)
		results[k] = word;
	result = n == 1 ? word : LLVMStructTypeInContext(c->context, results, n, 0);
	type = LLVMFunctionType(result, types, count, 0);
	code = LLVMGetInlineAsm(type, text->data, text->size, constraints->data, constraints->size,
				0, 0, LLVMInlineAsmDialectATT, 0);
	return LLVMBuildCall2(c->builder, type, code, inputs, count, "");
}

static void replace(struct chain *c, LLVMValueRef call, bool out)
{
	unsigned n = c->count + out;

	for (unsigned k = 0; k < n; k++) {
		LLVMValueRef old = k < c->count ? c->words[k].low : c->words[k - 1].carry, v;

		if (!old)
			continue;
		v = n == 1 ? call : LLVMBuildExtractValue(c->builder, call, k, "");
		if (k == c->count)
			v = LLVMBuildTrunc(c->builder, v, LLVMTypeOf(old), "");
		LLVMReplaceAllUsesWith(old, v);
	}
}

/* What is there so far becomes instructions, unless it is one addition without a carry. */
static void finish(struct chain *c)
{
	const struct word *last = c->count ? &c->words[c->count - 1] : NULL;
	struct tally_buffer text = {0}, constraints = {0};
	bool out = last && last->carry && LLVMGetFirstUse(last->carry);

	if (last && (c->count > 1 || c->words[0].in || out)) {
		write_text(c, out, &text, &constraints);
		c->failed |= text.failed || constraints.failed;
		LLVMPositionBuilderBefore(c->builder, last->sum);
		if (!c->failed)
			replace(c, build_call(c, out, &text, &constraints), out);
	}
	tally_buffer_free(&text);
	tally_buffer_free(&constraints);
	c->count = 0;
}

static void visit_block(struct chain *c, LLVMBasicBlockRef block)
{
	struct word word;

	for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
		if (!is_word(i, &word))
			continue;
		if (!continues(c, &word)) {
			finish(c); /* what it carries is another value then */
			is_word(i, &word);
		}
		c->words[c->count++] = word;
	}
	finish(c);
}

bool tally_cuda_carries(LLVMModuleRef module, struct tally_error *error)
{
	struct chain c = {.context = LLVMGetModuleContext(module)};

	c.builder = LLVMCreateBuilderInContext(c.context);
	TALLY_EACH_FUNCTION (module, function)
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
		     b = LLVMGetNextBasicBlock(b))
			visit_block(&c, b);
	LLVMDisposeBuilder(c.builder);
	return !c.failed || tally_fail(error, "out of memory");
}
