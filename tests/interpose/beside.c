/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An artificial best-effort program that always has work: waits until a program named NAME has
 * joined the board and looks, while that one is active, whether it may run beside it. Ends when it
 * was both held and let run so many times, or after a minute; prints how often it was.
 *
 *   beside NAME HELD RUN     (0: must never have happened within two seconds of the other)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/client.h"

#define SECOND 1000000000ull

static const struct tally_slot *find(const struct tally_board *board, const char *name)
{
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *slot = &board->slots[i];
		if (tally_slot_used(slot) && !strcmp(slot->name, name))
			return slot;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = TALLY_PRIORITY_BEST_EFFORT,
					       .name = "beside"};
	unsigned held = 0, run = 0, want_held, want_run;
	const struct tally_slot *other;
	struct tally_client *client;
	uint64_t start;

	if (argc != 4)
		return 2;
	want_held = (unsigned)atoi(argv[2]);
	want_run = (unsigned)atoi(argv[3]);
	const struct tally_board *board = tally_client_observe(NULL, NULL, &error);
	if (!board) {
		tally_error_print(&error, "beside");
		return 1;
	}
	start = tally_board_now();
	while (!(other = find(board, argv[1])) && tally_board_now() - start < 60 * SECOND)
		usleep(1000);
	if (!other)
		return 1;
	memcpy(options.device, other->device, sizeof options.device);
	client = tally_client_connect(&options, &error);
	if (!client) {
		tally_error_print(&error, "beside");
		return 1;
	}
	tally_client_set_active(client, true);
	start = tally_board_now();
	while (tally_board_now() - start < 60 * SECOND) {
		uint32_t epoch = tally_client_epoch(client);
		bool yields = tally_client_must_yield(client), active = atomic_load(&other->active);

		/* What was read belongs together only if nothing changed meanwhile. */
		if (active && epoch == tally_client_epoch(client)) {
			held += yields;
			run += !yields;
		}
		if (held >= want_held && run >= want_run &&
		    ((want_held && want_run) || tally_board_now() - start > 2 * SECOND))
			break;
		usleep(100);
	}
	tally_client_disconnect(client);
	printf("held %u run %u\n", held, run);
	return held >= want_held && run >= want_run && !(held && !want_held) && !(run && !want_run)
		       ? 0
		       : 1;
}
