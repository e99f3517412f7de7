/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on a device, as the scheduler sees one: joins, sets counters, gives a report of a few
 * kernels, waits for its end.
 * usage: tally_test_client PRIORITY NAME active|idle [LAUNCHES [KERNEL...]]
 * LAUNCHES count for the program; each KERNEL (a symbol) has launched ten times that, in slices of
 * 128 blocks, 1 ms each, with 100 stops of 20 us. On stdin:
 *   + N                        adds N launches to both
 *   wait, end-of-trace         answers when somebody records, when nobody does any more
 *   ping                       answers when all before it is done
 *   EVENT STREAM KERNEL VALUE [TIMES]
 *                              records it (KERNEL 0: none); "active", "idle" tell the board, too
 * $TEST_DEVICE: the device's UUID.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "profiler/report.h"
#include "sched/client.h"

static struct tally_report *report;
static struct tally_report_row *rows[16];
static int row_count;

static void add_kernel(const char *symbol, unsigned long launches)
{
	const unsigned grid[3] = {64, 2, 1}, block[3] = {256, 1, 1};
	struct tally_row_key key =
		tally_report_key(NULL, tally_hash_64(symbol, strlen(symbol)), grid, block, 0);
	struct tally_report_row *row = tally_report_row(report, &key, symbol);

	tally_report_choose(row, &(struct tally_choice){TALLY_LEVEL_SLICE, TALLY_WHY_FASTEST, 128});
	for (unsigned long i = 0; i < 10 * launches; i++)
		tally_report_launch(row, TALLY_LEVEL_SLICE);
	for (int i = 0; i < 10; i++)
		tally_report_sample(row, TALLY_LEVEL_SLICE, 1000000, 128);
	for (int i = 0; i < 100; i++)
		tally_report_stop(report, row, TALLY_LEVEL_SLICE, 20000, 0);
	rows[row_count++] = row;
}

static void record(struct tally_client *client, const char *line)
{
	unsigned long value, times = 1;
	unsigned stream, row;
	char word[16];

	if (sscanf(line, "%15s %u %u %lu %lu", word, &stream, &row, &value, &times) < 4)
		return;
	for (int kind = 0; kind < TALLY_TRACE_KINDS; kind++)
		for (unsigned long i = 0; i < times && !strcmp(word, tally_event_word(kind)); i++)
			tally_report_trace(report, kind, stream, row ? rows[row - 1] : NULL, value);
	if (!strcmp(word, "active") || !strcmp(word, "idle"))
		tally_client_set_active(client, *word == 'a');
}

static void answer(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* 8-4-4-4-12 hex digits, as `tally status --json` has them. */
static void read_uuid(const char *text, uint8_t uuid[16])
{
	for (int i = 0; i < 16 && *text; i++, text += 2) {
		text += *text == '-';
		sscanf(text, "%2hhx", &uuid[i]);
	}
}

int main(int argc, char **argv)
{
	struct tally_error error = {0};
	unsigned long launches = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	char line[64];
	int fd = -1;

	if (argc < 4 || argc > 5 + 16)
		return 2;
	struct tally_client_options options = {.priority = atoi(argv[1]),
					       .name = argv[2],
					       .device = "\x12\x34",
					       .device_name = "test device"};
	if (getenv("TEST_DEVICE"))
		read_uuid(getenv("TEST_DEVICE"), options.device);
	if (argc > 5) {
		report = tally_report_create(
			&(struct tally_report_identity){.name = argv[2],
							.priority = options.priority,
							.device_name = options.device_name,
							.driver = "42",
							.transform = "7"},
			&fd);
		options.attachment = (struct tally_attachment){
			.fd = fd, .kind = TALLY_REPORT_KIND, .size = sizeof *report};
		for (int i = 5; i < argc; i++)
			add_kernel(argv[i], launches);
	}
	struct tally_client *client = tally_client_connect(&options, &error);
	if (!client) {
		tally_error_print(&error, argv[0]);
		return 1;
	}
	if (report)
		tally_report_trace_until(report, tally_client_trace_until(client));
	tally_client_set_active(client, !strcmp(argv[3], "active"));
	struct tally_slot *slot = tally_client_slot(client);
	atomic_store(&slot->launches, launches);
	atomic_store(&slot->stop_ns_last, 12000);
	atomic_store(&slot->stop_ns_max, 34000);
	answer("joined");
	/* Until the other end of stdin closes. */
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "+ %lu", &launches) == 1) {
			atomic_fetch_add(&slot->launches, launches);
			for (int i = 0; i < row_count; i++)
				for (unsigned long n = 0; n < launches; n++)
					tally_report_launch(rows[i], TALLY_LEVEL_SLICE);
		} else if (!strcmp(line, "wait\n")) {
			while (!tally_report_tracing(report))
				usleep(1000);
			answer("traced");
		} else if (!strcmp(line, "ping\n")) {
			answer("pong");
		} else if (!strcmp(line, "end-of-trace\n")) {
			/* It ends with the first event after its time. */
			while (tally_report_tracing(report)) {
				tally_report_trace(report, TALLY_TRACE_COPY, 1, NULL, 0);
				usleep(10000);
			}
			answer("untraced");
		} else {
			record(client, line);
		}
	}
	tally_client_disconnect(client);
	tally_report_destroy(report);
	return 0;
}
