/* SPDX-License-Identifier: Apache-2.0 */
/* `tally status --json`: one object; the fields are documented in tally(1). */
#include <inttypes.h>
#include <stddef.h>

#include "cli/status.h"

/* The counters of a slot, by the names they have in the output. */
static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{"launches", offsetof(struct tally_slot, launches)},
	{"guarded", offsetof(struct tally_slot, guarded)},
	{"stops", offsetof(struct tally_slot, stops)},
	{"resumes", offsetof(struct tally_slot, resumes)},
	{"fences", offsetof(struct tally_slot, fences)},
	{"bursts", offsetof(struct tally_slot, bursts)},
	{"stopped_ns", offsetof(struct tally_slot, stopped_ns)},
	{"stop_latency_last_ns", offsetof(struct tally_slot, stop_ns_last)},
	{"stop_latency_max_ns", offsetof(struct tally_slot, stop_ns_max)},
	{"grace_ns", offsetof(struct tally_slot, grace_ns)},
};

static void string(struct tally_buffer *out, const char *name, const char *value)
{
	tally_buffer_print(out, "\"%s\": \"", name);
	tally_buffer_json(out, value);
	tally_buffer_print(out, "\"");
}

static void program(const struct tally_slot *slot, uint64_t now_ns, struct tally_buffer *out)
{
	char uuid[37];
	uint64_t since = atomic_load(&slot->active_since_ns);
	uint64_t active_ns = atomic_load(&slot->active_ns);

	tally_status_uuid(slot->device, uuid);
	string(out, "name", slot->name);
	tally_buffer_print(out, ", \"pid\": %d, \"priority\": %d, ", slot->pid, slot->priority);
	string(out, "device", uuid);
	tally_buffer_print(out, ", ");
	string(out, "device_name", slot->device_name);
	/* The burst that goes on counts up to now. */
	if (since && since < now_ns)
		active_ns += now_ns - since;
	tally_buffer_print(out, ", \"active_ns\": %" PRIu64, active_ns);
	for (unsigned i = 0; i < sizeof counters / sizeof *counters; i++) {
		const _Atomic uint64_t *value =
			(const void *)((const char *)slot + counters[i].offset);
		tally_buffer_print(out, ", \"%s\": %" PRIu64, counters[i].name, atomic_load(value));
	}
	tally_status_slo_json(slot, out);
}

static void running(const struct tally_status_view *view, unsigned index, struct tally_buffer *out)
{
	const struct tally_slot *slot = &view->board->slots[index];
	int holder = tally_policy_strict_holder(view->board, index, view->now_ns);
	const struct tally_report *report =
		tally_reports_of(view->reports, index, atomic_load(&slot->generation));
	struct tally_buffer why = {0};

	tally_buffer_print(out, "    {");
	program(slot, view->now_ns, out);
	tally_buffer_print(out, ", \"active\": %s, ",
			   atomic_load(&slot->active) ? "true" : "false");
	string(out, "state", tally_status_state(view->board, index, view->now_ns));
	if (holder >= 0)
		tally_buffer_print(out, ", \"held_by\": %d", view->board->slots[holder].pid);
	else
		tally_buffer_print(out, ", \"held_by\": null");
	if (view->why) {
		tally_status_why(view, index, &why);
		tally_buffer_print(out, ", ");
		string(out, "why", why.data ? why.data : "");
		tally_buffer_free(&why);
		if (report)
			tally_status_kernels_json(report, out);
	}
	tally_buffer_print(out, ", \"up_ns\": %" PRIu64 "}", view->now_ns - slot->joined_ns);
}

static void finished(const struct tally_slot *slot, uint64_t now_ns, struct tally_buffer *out)
{
	tally_buffer_print(out, "    {");
	program(slot, now_ns, out);
	tally_buffer_print(out, ", \"up_ns\": %" PRIu64 ", \"finished_ns_ago\": %" PRIu64 "}",
			   slot->finished_ns - slot->joined_ns, now_ns - slot->finished_ns);
}

void tally_status_json(const struct tally_status_view *view, struct tally_buffer *out)
{
	const struct tally_board *board = view->board;
	const char *separator = "\n";

	tally_buffer_print(out, "{\n  \"version\": \"%s\",\n  \"daemon\": {\"running\": %s, ",
			   TALLY_VERSION, board ? "true" : "false");
	string(out, "socket", view->socket);
	if (board)
		tally_buffer_print(
			out, ", \"pid\": %d, \"up_ns\": %" PRIu64 ", \"quantum_ns\": %" PRIu64,
			board->daemon_pid, view->now_ns - board->started_ns, board->quantum_ns);
	tally_buffer_print(out, "},\n  \"programs\": [");
	for (unsigned i = 0; board && i < TALLY_BOARD_SLOTS; i++) {
		if (!tally_slot_used(&board->slots[i]))
			continue;
		tally_buffer_print(out, "%s", separator);
		running(view, i, out);
		separator = ",\n";
	}
	tally_buffer_print(out, "%s],\n  \"finished\": [", *separator == ',' ? "\n  " : "");
	separator = "\n";
	uint64_t end = board ? atomic_load(&board->finished_count) : 0;
	uint64_t n = end > TALLY_BOARD_FINISHED ? end - TALLY_BOARD_FINISHED : 0;
	for (; n < end; n++) {
		tally_buffer_print(out, "%s", separator);
		finished(&board->finished[n % TALLY_BOARD_FINISHED], view->now_ns, out);
		separator = ",\n";
	}
	tally_buffer_print(out, "%s]\n}\n", *separator == ',' ? "\n  " : "");
}
