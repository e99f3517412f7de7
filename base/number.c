/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that people type: in options and in environment variables. */
#include "base/number.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool tally_parse_number(const char *text, double least, double most, double *value)
{
	double digits = 0, scale = 1;
	unsigned power = 0;
	const char *c = text;

	if (!text || !is_digit(*text))
		return false;
	for (; is_digit(*c); c++)
		digits = digits * 10 + (*c - '0');
	if (*c == '.')
		for (c++; is_digit(*c); c++, scale *= 10)
			digits = digits * 10 + (*c - '0');
	if (*c == 'e' && is_digit(c[1]))
		for (c++; is_digit(*c) && power < 100; c++)
			power = power * 10 + (unsigned)(*c - '0');
	/* One division of whole numbers: 0.05 is what the compiler makes of it. */
	for (digits /= scale; power; power--)
		digits *= 10;
	if (*c || !(digits >= least && digits <= most))
		return false;
	*value = digits;
	return true;
}

bool tally_parse_whole(const char *text, unsigned long least, unsigned long most,
		       unsigned long *value)
{
	double number;

	if (!tally_parse_number(text, (double)least, (double)most, &number) ||
	    number != (double)(unsigned long)number)
		return false;
	*value = (unsigned long)number;
	return true;
}
