/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal whole and raw for a while: its alternate screen, single keys, its size. Plain ECMA-48
 * sequences that every terminal since the VT220 knows. Whatever ends the program but SIGKILL, the
 * terminal is what it was before.
 */
#ifndef TALLY_CLI_TERMINAL_H
#define TALLY_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum tally_key {
	TALLY_KEY_NONE = 0x110000, /* the time is over */
	TALLY_KEY_RESIZED,	   /* or continued after a stop: draw all of it anew */
	TALLY_KEY_UP,
	TALLY_KEY_DOWN,
	TALLY_KEY_PAGE_UP,
	TALLY_KEY_PAGE_DOWN,
	TALLY_KEY_HOME,
	TALLY_KEY_END,
	TALLY_KEY_GONE, /* the terminal hung up */
	TALLY_KEY_OTHER,
};

/* Takes the terminal at standard input and output over; one at a time, from one thread. False with
 * an error, and nothing changed, when there is none or it cannot move its cursor (TERM=dumb). */
bool tally_terminal_open(struct tally_error *error);

/* Gives it back; nothing happens when it is not open. Also done at exit and by signals. */
void tally_terminal_close(void);

/* Its size now; 80x24 where it does not say. */
void tally_terminal_size(unsigned *columns, unsigned *rows);

/* Waits for a key until `until_ns` (tally_now()'s clock): an ASCII character or one of tally_key.
 */
int tally_terminal_key(uint64_t until_ns);

/* Writes all of it at once; false when the terminal is gone. */
bool tally_terminal_write(const struct tally_buffer *out);

/* Whether the user wants colours (NO_COLOR is not set). */
bool tally_terminal_colours(void);

/* Whether the locale's characters are UTF-8. Sets the locale for characters from the environment.
 */
bool tally_terminal_utf8(void);

#endif
