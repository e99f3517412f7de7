/* SPDX-License-Identifier: Apache-2.0 */
/* Changing and waiting for the board: see board.h. */
#include "sched/board.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/number.h"

bool tally_priority_parse(const char *text, int *priority)
{
	bool negative = *text == '-';
	unsigned long size;

	if (!strcmp(text, "high"))
		*priority = TALLY_PRIORITY_HIGH;
	else if (!strcmp(text, "best-effort"))
		*priority = TALLY_PRIORITY_BEST_EFFORT;
	else if (tally_parse_whole(text + negative, 0, TALLY_PRIORITY_MOST, &size))
		*priority = negative ? -(int)size : (int)size;
	else
		return false;
	return true;
}

void tally_board_changed(struct tally_board *board)
{
	/* Both are sequentially consistent, and so is the sleeper's order (count, then compare the
	 * epoch in the kernel): either we see the sleeper or it sees the new epoch. */
	atomic_fetch_add(&board->epoch, 1);
	if (atomic_load(&board->sleepers))
		tally_futex_wake(&board->epoch, INT_MAX, TALLY_FUTEX_SHARED);
}

void tally_board_wait(struct tally_board *board, struct tally_slot *self, uint32_t seen,
		      int64_t timeout_ns)
{
	/* This order, because we may be killed at any point: the board's count may then be too high
	 * (a needless wake per change) but never too low (a wake that is lost). */
	atomic_fetch_add(&board->sleepers, 1);
	if (self)
		atomic_fetch_add(&self->sleeping, 1);
	if (atomic_load(&board->epoch) == seen)
		tally_futex_wait(&board->epoch, seen, timeout_ns, TALLY_FUTEX_SHARED);
	if (self)
		atomic_fetch_sub(&self->sleeping, 1);
	atomic_fetch_sub(&board->sleepers, 1);
}

struct tally_board *tally_board_map(int fd, uint64_t size, bool writable, struct tally_error *error)
{
	int protection = PROT_READ | (writable ? PROT_WRITE : 0);
	struct tally_board *board = MAP_FAILED;

	if (fd < 0 || size != sizeof *board || lseek(fd, 0, SEEK_END) != (off_t)sizeof *board) {
		tally_fail(error, "tallyd handed out no board of this version");
	} else {
		board = mmap(NULL, sizeof *board, protection, MAP_SHARED, fd, 0);
		if (board == MAP_FAILED)
			tally_fail(error, "cannot map the board: %s", strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	if (board == MAP_FAILED)
		return NULL;
	if (board->magic != TALLY_BOARD_MAGIC || board->version != TALLY_BOARD_VERSION) {
		munmap(board, sizeof *board);
		tally_fail(error, "tallyd handed out a board of another version");
		return NULL;
	}
	return board;
}
