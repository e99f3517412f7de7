/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping until a word changes (futex(2)), and waking who sleeps on it. */
#ifndef TALLY_BASE_FUTEX_H
#define TALLY_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Who may sleep on the word: threads of this process, or every process that maps it. Both sides of
 * a word have to say the same. */
enum tally_futex { TALLY_FUTEX_SHARED = 0, TALLY_FUTEX_PRIVATE = FUTEX_PRIVATE_FLAG };

/* Sleeps while `*word` is `value`, at most `timeout_ns` nanoseconds (< 0: for ever). May return
 * early for no reason: the caller looks at the word again. Any thread; async-signal-safe. */
static inline void tally_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns,
				    enum tally_futex who)
{
	struct timespec timeout = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};

	syscall(SYS_futex, word, FUTEX_WAIT | (int)who, value, timeout_ns < 0 ? NULL : &timeout,
		NULL, 0);
}

/* Wakes up to `count` sleepers; INT_MAX wakes all. Any thread; async-signal-safe. */
static inline void tally_futex_wake(_Atomic uint32_t *word, int count, enum tally_futex who)
{
	syscall(SYS_futex, word, FUTEX_WAKE | (int)who, count, NULL, NULL, 0);
}

#endif
