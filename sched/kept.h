/* SPDX-License-Identifier: Apache-2.0 */
/* What the last members that ended had left with the daemon: readable until others take its place.
 */
#ifndef TALLY_SCHED_KEPT_H
#define TALLY_SCHED_KEPT_H

#include "sched/daemon.h"

#define TALLY_KEPT 8 /* each may hold some MB of memory */

struct tally_kept {
	struct tally_daemon_member member[TALLY_KEPT]; /* a ring; attachment.size 0: none */
	unsigned next;
};

/* Takes the member's descriptor over. */
void tally_kept_add(struct tally_kept *kept, const struct tally_daemon_member *member);
/* The attachment of who joined at `joined_ns`, or NULL. */
const struct tally_attachment *tally_kept_find(const struct tally_kept *kept, uint64_t joined_ns);
/* Closes all of them. */
void tally_kept_close(struct tally_kept *kept);

#endif
