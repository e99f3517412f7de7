/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An artificial program of high priority: waits until a program named NAME has joined the board,
 * joins as its rival on the same device, and is active and quiet in turn for random times until
 * that program has left. Then prints what the victim counted. Before, "looking": whoever comes from
 * then on is seen, however soon it is gone.
 *
 *   rival NAME ACTIVE_US QUIET_US SEED     (longest times; 0 0: never active; ACTIVE_US "ever":
 * until it is killed)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/client.h"

enum { PATIENCE_MS = 60000 };

static const struct tally_slot *find(const struct tally_board *board, const char *name)
{
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *slot = &board->slots[i];
		if (atomic_load(&slot->generation) % 2 && !strcmp(slot->name, name))
			return slot;
	}
	return NULL;
}

/* What a program of that name that left after the first `before` ones had counted. */
static const struct tally_slot *finished(const struct tally_board *board, const char *name,
					 uint64_t before)
{
	uint64_t end = atomic_load(&board->finished_count);

	for (uint64_t n = before; n < end; n++) {
		const struct tally_slot *slot = &board->finished[n % TALLY_BOARD_FINISHED];
		if (!strcmp(slot->name, name))
			return slot;
	}
	return NULL;
}

static void rest(unsigned most_us)
{
	if (most_us)
		usleep((unsigned)rand() % most_us);
}

/* Active and quiet in turn until the victim in `slot` has left. */
static void bother(struct tally_client *client, const struct tally_board *board,
		   const struct tally_slot *slot, char **argv)
{
	srand((unsigned)atoi(argv[4]));
	if (!strcmp(argv[2], "ever")) {
		tally_client_set_active(client, true);
		for (;;)
			pause();
	}
	while (find(board, argv[1]) == slot) {
		if (atoi(argv[2])) {
			tally_client_set_active(client, true);
			rest((unsigned)atoi(argv[2]));
			tally_client_set_active(client, false);
		}
		rest((unsigned)atoi(argv[3]) + 1);
	}
}

int main(int argc, char **argv)
{
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH, .name = "rival"};
	const struct tally_slot *slot = NULL, *last = NULL;
	const struct tally_board *board;
	struct tally_client *client;
	uint64_t before;

	if (argc != 5)
		return 2;
	board = tally_client_observe(NULL, NULL, &error);
	if (!board) {
		tally_error_print(&error, "rival");
		return 1;
	}
	before = atomic_load(&board->finished_count);
	puts("looking");
	fflush(stdout);
	for (int i = 0;
	     i < PATIENCE_MS && !(slot = find(board, argv[1])) && !finished(board, argv[1], before);
	     i++)
		usleep(1000);
	if (slot) {
		memcpy(options.device, slot->device, sizeof options.device);
		client = tally_client_connect(&options, &error);
		if (!client) {
			tally_error_print(&error, "rival");
			return 1;
		}
		bother(client, board, slot, argv);
		tally_client_disconnect(client);
	}
	for (int i = 0; i < PATIENCE_MS && !(last = finished(board, argv[1], before)); i++)
		usleep(1000);
	if (!last) {
		fprintf(stderr, "rival: error: no %s came and went\n", argv[1]);
		return 1;
	}
	printf("launches %lu guarded %lu stops %lu resumes %lu fences %lu worst_stop_us %lu\n",
	       last->launches, last->guarded, last->stops, last->resumes, last->fences,
	       last->stop_ns_max / 1000);
	return 0;
}
