/* SPDX-License-Identifier: Apache-2.0 */
/* Places on the board, as the daemon gives and takes them: see members.h. */
#include "sched/members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool tally_members_open(struct tally_members *members, uint64_t quantum_ns,
			struct tally_error *error)
{
	char path[64];
	int fd = memfd_create("tally-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	*members = (struct tally_members){.writable = fd, .readable = -1};
	/* Sealed, so that no member can shrink the board under the others (SIGBUS). */
	if (fd < 0 || ftruncate(fd, sizeof(struct tally_board)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	void *board =
		mmap(NULL, sizeof(struct tally_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		goto fail;
	members->board = board;
	members->board->version = TALLY_BOARD_VERSION;
	members->board->daemon_pid = getpid();
	members->board->started_ns = tally_board_now();
	members->board->quantum_ns = quantum_ns;
	members->board->magic = TALLY_BOARD_MAGIC;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	members->readable = open(path, O_RDONLY | O_CLOEXEC);
	if (members->readable < 0) /* no /proc: observers get what members get */
		members->readable = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (members->readable >= 0)
		return true;
fail:
	tally_fail(error, "cannot make the board: %s", strerror(errno));
	tally_members_close(members);
	return false;
}

void tally_members_close(struct tally_members *members)
{
	if (members->board)
		munmap(members->board, sizeof *members->board);
	if (members->writable >= 0)
		close(members->writable);
	if (members->readable >= 0)
		close(members->readable);
	*members = (struct tally_members){.writable = -1, .readable = -1};
}

/* Everything but the generation back to zero, word by word: readers look at any time. */
static void clear(struct tally_slot *slot)
{
	uint32_t generation = atomic_load(&slot->generation);

	atomic_store(&slot->active, 0);
	atomic_store(&slot->turn, 0);
	atomic_store(&slot->overlap, TALLY_OVERLAP_CLOSED);
	memset((char *)slot + sizeof slot->generation, 0, sizeof *slot - sizeof slot->generation);
	atomic_store(&slot->generation, generation);
}

static void update_end(struct tally_board *board)
{
	uint32_t end = TALLY_BOARD_SLOTS;

	while (end && !tally_slot_used(&board->slots[end - 1]))
		end--;
	atomic_store(&board->slots_end, end);
}

int tally_members_join(struct tally_members *members, const struct tally_wire *join, int pid)
{
	struct tally_board *board = members->board;
	unsigned i = 0;

	while (i < TALLY_BOARD_SLOTS && tally_slot_used(&board->slots[i]))
		i++;
	if (i == TALLY_BOARD_SLOTS)
		return -1;
	struct tally_slot *slot = &board->slots[i];
	clear(slot);
	slot->priority = join->priority;
	slot->pid = pid;
	slot->joined_ns = tally_board_now();
	memcpy(slot->device, join->device, sizeof slot->device);
	memcpy(slot->name, join->name, sizeof slot->name);
	memcpy(slot->device_name, join->device_name, sizeof slot->device_name);
	atomic_fetch_add(&slot->generation, 1);
	update_end(board);
	tally_board_changed(board);
	return (int)i;
}

static void remember(struct tally_board *board, struct tally_slot *slot, uint64_t now_ns)
{
	uint64_t n = atomic_load(&board->finished_count);
	struct tally_slot *record = &board->finished[n % TALLY_BOARD_FINISHED];
	uint64_t since = atomic_load(&slot->active_since_ns);

	memcpy(record, slot, sizeof *record);
	record->finished_ns = now_ns;
	/* The dead may have left in the middle of a burst. */
	if (atomic_load(&slot->active) && since && since < now_ns)
		atomic_fetch_add(&record->active_ns, now_ns - since);
	atomic_store(&record->active, 0);
	atomic_store(&record->overlap, TALLY_OVERLAP_CLOSED);
	atomic_store(&record->active_since_ns, 0);
	atomic_store(&record->stopped_since_ns, 0);
	atomic_store(&board->finished_count, n + 1);
}

void tally_members_leave(struct tally_members *members, unsigned index)
{
	struct tally_board *board = members->board;
	struct tally_slot *slot = &board->slots[index];
	uint32_t asleep = atomic_load(&slot->sleeping), sleepers;

	remember(board, slot, tally_board_now());
	atomic_fetch_add(&slot->generation, 1);
	clear(slot);
	update_end(board);
	/* One who died asleep is still counted. Never below zero, whatever it wrote there: too few
	 * sleepers would be lost wakes for others. */
	sleepers = atomic_load(&board->sleepers);
	while (asleep && sleepers &&
	       !atomic_compare_exchange_weak(&board->sleepers, &sleepers,
					     sleepers - (asleep < sleepers ? asleep : sleepers)))
		;
	/* One killed in the middle of going to sleep may be counted for ever, and every change
	 * would pay for a wake: an empty board has no sleepers. */
	if (!atomic_load(&board->slots_end))
		atomic_store(&board->sleepers, 0);
	tally_board_changed(board);
}
