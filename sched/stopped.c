/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of stopped processes: see stopped.h. */
#include "sched/stopped.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether the process, as /proc sees it (proc(5): the field behind the name), is stopped. */
static bool process_stopped(int pid)
{
	char path[32], text[512];
	ssize_t length = -1;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	/* The name may hold anything, parentheses too. */
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

/* Whether the claim in `slot` is one to ask about. Programs with short bursts never are. */
static bool old_claim(const struct tally_slot *slot, uint64_t now_ns)
{
	uint64_t since = atomic_load(&slot->active_since_ns);

	if (slot->pid <= 0)
		return false;
	if (atomic_load(&slot->lapsed) || atomic_load(&slot->overlap) == TALLY_OVERLAP_HELD)
		return true;
	return atomic_load(&slot->active) && since && since + TALLY_STOPPED_LOOK_NS <= now_ns;
}

uint64_t tally_stopped_look(struct tally_stopped *stopped, struct tally_board *board,
			    uint64_t now_ns)
{
	bool any = false, changed = false;

	if (now_ns < stopped->next_ns)
		return stopped->next_ns;
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		struct tally_slot *slot = &board->slots[i];
		uint32_t generation = atomic_load(&slot->generation);
		bool again = stopped->seen[i] && stopped->generation[i] == generation;

		stopped->generation[i] = generation;
		stopped->seen[i] = false;
		if (!tally_slot_used(slot) || !old_claim(slot, now_ns))
			continue;
		any = true;
		stopped->seen[i] = process_stopped(slot->pid);
		uint32_t lapsed =
			stopped->seen[i] &&
			(again || atomic_load_explicit(&slot->lapsed, memory_order_relaxed));
		changed |= atomic_exchange(&slot->lapsed, lapsed) != lapsed;
	}
	if (changed)
		tally_board_changed(board);
	/* Asked again at once by whoever looks in between: nothing is due before. */
	stopped->next_ns = any ? now_ns + TALLY_STOPPED_LOOK_NS : 0;
	return any ? stopped->next_ns : UINT64_MAX;
}
