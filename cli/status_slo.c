/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's latency budget comes to, and how its work meets that of others. */
#include <inttypes.h>

#include "cli/status.h"
#include "sched/policy_slo.h"

/* By enum tally_slo_reason: a word for programs, a sentence's end for people. */
static const struct {
	const char *word, *sentence;
} reasons[TALLY_SLO_REASONS] = {
	[TALLY_SLO_NONE] = {"none", "no burst has ended yet"},
	[TALLY_SLO_LEARNING] = {"learning", "too few of its bursts have been measured alone"},
	[TALLY_SLO_INSIDE] = {"inside", "its slowdown is inside the budget"},
	[TALLY_SLO_TAIL_SPENT] = {"tail spent",
				  "1 % of its bursts have taken longer than the budget"},
	[TALLY_SLO_MEAN_SPENT] = {"mean spent",
				  "its bursts have taken longer than the budget in the mean"},
	[TALLY_SLO_BACKING_OFF] = {"backing off", "the last trial was over the budget at once"},
	[TALLY_SLO_UNMEASURED] = {"unmeasured",
				  "it hardly ever waits for its work, so its bursts are not "
				  "measured"},
};

const char *tally_status_sharing(const struct tally_slot *slot)
{
	static const char *const words[] = {
		[TALLY_SHARING_UNKNOWN] = "unknown",
		[TALLY_SHARING_SLICES] = "time-slicing",
		[TALLY_SHARING_SERVER] = "mps",
		[TALLY_SHARING_CPU] = "cpu-device",
	};
	uint32_t sharing = atomic_load(&slot->sharing);

	return words[sharing < sizeof words / sizeof *words ? sharing : TALLY_SHARING_UNKNOWN];
}

static unsigned reason_of(const struct tally_slot *slot)
{
	uint32_t reason = atomic_load(&slot->slo_reason);

	return reason < TALLY_SLO_REASONS ? reason : TALLY_SLO_NONE;
}

static double ratio(uint32_t thousandths)
{
	return thousandths / 1000.0;
}

void tally_status_slo(const struct tally_slot *slot, struct tally_buffer *out)
{
	unsigned reason = reason_of(slot);
	uint64_t active = atomic_load(&slot->active_ns), open = atomic_load(&slot->overlap_ns);

	tally_buffer_print(out, "%s (pid %d): budget %.3g, ", slot->name, slot->pid,
			   ratio(atomic_load(&slot->slo_budget)));
	if (atomic_load(&slot->slo_mean))
		tally_buffer_print(out, "slowdown mean %.2f p99 %.2f over %" PRIu64 " bursts; ",
				   ratio(atomic_load(&slot->slo_mean)),
				   ratio(atomic_load(&slot->slo_p99)),
				   atomic_load(&slot->slo_judged));
	tally_buffer_print(out, "lower priorities %s beside it (%.0f %% of its active time): %s",
			   reason == TALLY_SLO_INSIDE ? "may run" : "may not run",
			   active ? 100.0 * (double)(open < active ? open : active) / (double)active
				  : 0.0,
			   reasons[reason].sentence);
}

void tally_status_slo_json(const struct tally_slot *slot, struct tally_buffer *out)
{
	unsigned reason = reason_of(slot);

	tally_buffer_print(out, ", \"sharing\": \"%s\", \"stopped_by_signal\": %s, \"slo\": ",
			   tally_status_sharing(slot),
			   atomic_load(&slot->lapsed) ? "true" : "false");
	if (!atomic_load(&slot->slo_budget)) {
		tally_buffer_print(out, "null");
		return;
	}
	tally_buffer_print(out,
			   "{\"budget\": %.3f, \"slowdown_mean\": %.3f, \"slowdown_p99\": %.3f, "
			   "\"judged\": %" PRIu64 ", \"overlap_ns\": %" PRIu64
			   ", \"open\": %s, \"reason\": \"%s\"}",
			   ratio(atomic_load(&slot->slo_budget)),
			   ratio(atomic_load(&slot->slo_mean)), ratio(atomic_load(&slot->slo_p99)),
			   atomic_load(&slot->slo_judged), atomic_load(&slot->overlap_ns),
			   reason == TALLY_SLO_INSIDE ? "true" : "false", reasons[reason].word);
}
