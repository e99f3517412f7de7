/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that people type: in options and in environment variables. */
#ifndef TALLY_BASE_NUMBER_H
#define TALLY_BASE_NUMBER_H

#include <stdbool.h>

/*
 * True, and the number in `value`, when `text` is nothing but a decimal number ("3", "31.6", "1e6")
 * from `least` (not negative) to `most`; false, and `value` untouched, otherwise (NULL too).
 * Whatever the locale: a program that Tally is loaded into may have set one that writes commas. Any
 * thread.
 */
bool tally_parse_number(const char *text, double least, double most, double *value);

/* The same for whole numbers. */
bool tally_parse_whole(const char *text, unsigned long least, unsigned long most,
		       unsigned long *value);

#endif
