/* SPDX-License-Identifier: Apache-2.0 */
/* Changing and waiting for the board: see board.h. */
#include "sched/board.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t tally_board_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Not FUTEX_PRIVATE: the word is shared between processes. */
static void futex(_Atomic uint32_t *word, int operation, uint32_t value,
		  const struct timespec *timeout)
{
	syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void tally_board_changed(struct tally_board *board)
{
	/* Both are sequentially consistent, and so is the sleeper's order (count, then compare the
	 * epoch in the kernel): either we see the sleeper or it sees the new epoch. */
	atomic_fetch_add(&board->epoch, 1);
	if (atomic_load(&board->sleepers))
		futex(&board->epoch, FUTEX_WAKE, INT_MAX, NULL);
}

void tally_board_wait(struct tally_board *board, struct tally_slot *self, uint32_t seen,
		      int64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};

	/* This order, because we may be killed at any point: the board's count may then be too high
	 * (a needless wake per change) but never too low (a wake that is lost). */
	atomic_fetch_add(&board->sleepers, 1);
	if (self)
		atomic_fetch_add(&self->sleeping, 1);
	if (atomic_load(&board->epoch) == seen)
		futex(&board->epoch, FUTEX_WAIT, seen, timeout_ns < 0 ? NULL : &timeout);
	if (self)
		atomic_fetch_sub(&self->sleeping, 1);
	atomic_fetch_sub(&board->sleepers, 1);
}
