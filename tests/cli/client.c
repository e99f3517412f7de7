/* SPDX-License-Identifier: Apache-2.0 */
/* A program on a device, as the scheduler sees one: joins, sets counters, waits for its end.
 * usage: tally_test_client PRIORITY NAME active|idle [LAUNCHES] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/client.h"

int main(int argc, char **argv)
{
	struct tally_error error = {0};

	if (argc < 4)
		return 2;
	struct tally_client_options options = {.priority = atoi(argv[1]),
					       .name = argv[2],
					       .device = "\x12\x34",
					       .device_name = "test device"};
	struct tally_client *client = tally_client_connect(&options, &error);
	if (!client) {
		tally_error_print(&error, argv[0]);
		return 1;
	}
	tally_client_set_active(client, !strcmp(argv[3], "active"));
	struct tally_slot *slot = tally_client_slot(client);
	if (argc > 4)
		atomic_store(&slot->launches, strtoull(argv[4], NULL, 10));
	atomic_store(&slot->stop_ns_last, 12000);
	atomic_store(&slot->stop_ns_max, 34000);
	puts("joined");
	fflush(stdout);
	/* Until the other end of stdin closes. */
	while (read(STDIN_FILENO, &(char){0}, 1) > 0)
		;
	tally_client_disconnect(client);
	return 0;
}
