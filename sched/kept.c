/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of descriptors: see kept.h. */
#include "sched/kept.h"

#include <unistd.h>

static void forget(struct tally_daemon_member *member)
{
	if (member->attachment.size)
		close(member->attachment.fd);
	*member = (struct tally_daemon_member){0};
}

void tally_kept_add(struct tally_kept *kept, const struct tally_daemon_member *member)
{
	if (!member->attachment.size)
		return;
	forget(&kept->member[kept->next]);
	kept->member[kept->next] = *member;
	kept->next = (kept->next + 1) % TALLY_KEPT;
}

const struct tally_attachment *tally_kept_find(const struct tally_kept *kept, uint64_t joined_ns)
{
	for (unsigned i = 0; i < TALLY_KEPT; i++)
		if (kept->member[i].attachment.size && kept->member[i].joined_ns == joined_ns)
			return &kept->member[i].attachment;
	return NULL;
}

void tally_kept_close(struct tally_kept *kept)
{
	for (unsigned i = 0; i < TALLY_KEPT; i++)
		forget(&kept->member[i]);
}
