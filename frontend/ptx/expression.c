/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions of PTX (PTX ISA 4.6): 64-bit integers as in C, and reals. */
#include <string.h>

#include "frontend/ptx/parser.h"

#define PAIR(a, b) ((a) << 8 | (b))

static const struct binary {
	int punct, level;
} binaries[] = {
	{PAIR('|', '|'), 1},
	{PAIR('&', '&'), 2},
	{'|', 3},
	{'^', 4},
	{'&', 5},
	{PAIR('=', '='), 6},
	{PAIR('!', '='), 6},
	{'<', 7},
	{'>', 7},
	{PAIR('<', '='), 7},
	{PAIR('>', '='), 7},
	{PAIR('<', '<'), 8},
	{PAIR('>', '>'), 8},
	{'+', 9},
	{'-', 9},
	{'*', 10},
	{'/', 10},
	{'%', 10},
};

static int level_of_operator(int punct)
{
	for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
		if (binaries[i].punct == punct)
			return binaries[i].level;
	return 0;
}

static int level_of(const struct ptx_parser *p)
{
	return p->lexer.token.kind == PTX_PUNCT ? level_of_operator(p->lexer.token.punct) : 0;
}

static double as_real(const struct ptx_constant *c)
{
	return c->is_real ? c->real : c->is_unsigned ? (double)c->bits : (double)(int64_t)c->bits;
}

static struct ptx_constant real_number(double value)
{
	struct ptx_constant c = {.is_real = true, .real = value};

	memcpy(&c.bits, &value, sizeof value);
	return c;
}

static bool compare_reals(int op, double x, double y)
{
	switch (op) {
	case '<':
		return x < y;
	case '>':
		return x > y;
	case PAIR('<', '='):
		return x <= y;
	case PAIR('>', '='):
		return x >= y;
	case PAIR('=', '='):
		return x == y;
	default:
		return x != y;
	}
}

static bool apply_real(struct ptx_parser *p, int op, struct ptx_constant *a,
		       const struct ptx_constant *b)
{
	double x = as_real(a), y = as_real(b);

	switch (op) {
	case '+':
		*a = real_number(x + y);
		return true;
	case '-':
		*a = real_number(x - y);
		return true;
	case '*':
		*a = real_number(x * y);
		return true;
	case '/':
		*a = real_number(x / y);
		return true;
	case '<':
	case '>':
	case PAIR('<', '='):
	case PAIR('>', '='):
	case PAIR('=', '='):
	case PAIR('!', '='):
		*a = (struct ptx_constant){.bits = compare_reals(op, x, y)};
		return true;
	}
	return ptx_syntax(&p->lexer, "this operator does not apply to real constants");
}

static bool divide(struct ptx_parser *p, int op, struct ptx_constant *a, uint64_t y, bool u)
{
	uint64_t x = a->bits;

	if (!y)
		return ptx_syntax(&p->lexer, "division by zero in a constant expression");
	a->is_unsigned = u || op == '%'; /* a remainder is one of unsigned numbers */
	if (op == '%')
		a->bits = x % y;
	else if (u)
		a->bits = x / y;
	else if ((int64_t)y == -1) /* INT64_MIN / -1 overflows in C */
		a->bits = 0 - x;
	else
		a->bits = (uint64_t)((int64_t)x / (int64_t)y);
	return true;
}

static uint64_t shift_right(uint64_t x, uint64_t by, bool is_unsigned)
{
	if (is_unsigned)
		return by > 63 ? 0 : x >> by;
	return (uint64_t)((int64_t)x >> (by > 63 ? 63 : by));
}

/* PTX ISA 4.5.5: shifts have the type of what they shift, comparisons and && || are signed, other
 * results are unsigned where an operand is. */
static bool apply(struct ptx_parser *p, int op, struct ptx_constant *a,
		  const struct ptx_constant *b)
{
	uint64_t x = a->bits, y = b->bits;
	bool u = a->is_unsigned || b->is_unsigned;
	bool less = u ? x < y : (int64_t)x < (int64_t)y;
	int level = level_of_operator(op);

	if (a->is_real || b->is_real)
		return apply_real(p, op, a, b);
	if (op == '/' || op == '%')
		return divide(p, op, a, y, u);
	a->is_unsigned = level >= 9 || (level >= 3 && level <= 5) ? u
			 : level == 8				  ? a->is_unsigned
								  : false;
	switch (op) {
	case '+':
		a->bits = x + y;
		break;
	case '-':
		a->bits = x - y;
		break;
	case '*':
		a->bits = x * y;
		break;
	case '&':
		a->bits = x & y;
		break;
	case '|':
		a->bits = x | y;
		break;
	case '^':
		a->bits = x ^ y;
		break;
	case '<':
		a->bits = less;
		break;
	case '>':
		a->bits = !less && x != y;
		break;
	case PAIR('<', '='):
		a->bits = less || x == y;
		break;
	case PAIR('>', '='):
		a->bits = !less;
		break;
	case PAIR('=', '='):
		a->bits = x == y;
		break;
	case PAIR('!', '='):
		a->bits = x != y;
		break;
	case PAIR('&', '&'):
		a->bits = x && y;
		break;
	case PAIR('|', '|'):
		a->bits = x || y;
		break;
	case PAIR('<', '<'):
		a->bits = y > 63 ? 0 : x << y;
		break;
	case PAIR('>', '>'):
		a->bits = shift_right(x, y, a->is_unsigned);
		break;
	}
	return true;
}

bool ptx_is_warp_size(const struct ptx_parser *p)
{
	static const char name[] = "WARP_SZ";
	const struct ptx_token *t = &p->lexer.token;

	return t->kind == PTX_NAME && t->length == strlen(name) &&
	       !memcmp(t->text, name, t->length);
}

static bool expression(struct ptx_parser *p, struct ptx_constant *value, int level);

/* (.s64)-1 and (.u64)-1, behind the parenthesis. */
static bool cast(struct ptx_parser *p, struct ptx_constant *value)
{
	bool is_unsigned = ptx_is_dot(p, "u64");

	ptx_next(&p->lexer);
	if (!ptx_expect(p, ')') || !expression(p, value, 11))
		return false;
	if (value->is_real)
		return ptx_syntax(&p->lexer, "a real constant cannot be cast to an integer");
	value->is_unsigned = is_unsigned;
	return true;
}

static bool unary(struct ptx_parser *p, struct ptx_constant *value)
{
	const struct ptx_token *t = &p->lexer.token;

	if (t->kind == PTX_INT) {
		*value = (struct ptx_constant){.bits = t->value, .is_unsigned = t->is_unsigned};
		ptx_next(&p->lexer);
		return true;
	}
	if (t->kind == PTX_FLOAT) {
		*value = (struct ptx_constant){
			.is_real = true, .real = t->real, .bits = t->value, .single = t->single};
		ptx_next(&p->lexer);
		return true;
	}
	if (ptx_is_warp_size(p)) {
		*value = (struct ptx_constant){.bits = 32};
		ptx_next(&p->lexer);
		return true;
	}
	if (t->kind != PTX_PUNCT || !strchr("+-~!(", t->punct) || t->punct > 0xff)
		return ptx_unexpected(p, "a constant");
	int op = t->punct;
	ptx_next(&p->lexer);
	if (op == '(' && (ptx_is_dot(p, "s64") || ptx_is_dot(p, "u64")))
		return cast(p, value);
	if (op == '(')
		return expression(p, value, 0) && ptx_expect(p, ')');
	if (!expression(p, value, 11))
		return false;
	if (op == '-' && value->is_real) {
		value->real = -value->real;
		value->bits ^= value->single ? (uint64_t)1 << 31 : (uint64_t)1 << 63;
	} else if (value->is_real) {
		return op == '+' || ptx_syntax(&p->lexer, "'%c' before a real constant", op);
	} else if (op == '-') {
		value->bits = 0 - value->bits;
	} else if (op == '~') {
		*value = (struct ptx_constant){.bits = ~value->bits, .is_unsigned = true};
	} else if (op == '!') {
		*value = (struct ptx_constant){.bits = !value->bits};
	}
	return true;
}

/* Precedence climbing; the ternary operator stands at level 0. */
static bool expression(struct ptx_parser *p, struct ptx_constant *value, int level)
{
	if (p->nesting >= PTX_MAX_DEPTH)
		return ptx_syntax(&p->lexer, "expression is nested too deeply");
	p->nesting++;
	bool ok = unary(p, value);
	for (int next; ok && (next = level_of(p)) && next > level;) {
		struct ptx_constant right;
		int op = p->lexer.token.punct;
		ptx_next(&p->lexer);
		ok = expression(p, &right, next) && apply(p, op, value, &right);
	}
	if (ok && level == 0 && ptx_accept(p, '?')) {
		struct ptx_constant yes = {0}, no = {0};
		ok = expression(p, &yes, 0) && ptx_expect(p, ':') && expression(p, &no, 0);
		*value = value->bits ? yes : no;
	}
	p->nesting--;
	return ok;
}

bool ptx_constant(struct ptx_parser *p, struct ptx_constant *value)
{
	*value = (struct ptx_constant){0};
	return expression(p, value, 0);
}

bool ptx_unsigned_constant(struct ptx_parser *p, uint64_t *value, uint64_t limit, const char *what)
{
	struct ptx_constant c;

	if (!ptx_constant(p, &c))
		return false;
	if (c.is_real || c.bits > limit)
		return ptx_syntax(&p->lexer, "%s is not an integer from 0 to %llu", what,
				  (unsigned long long)limit);
	*value = c.bits;
	return true;
}
