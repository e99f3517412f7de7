/* SPDX-License-Identifier: Apache-2.0 */
/* A window over a stream of values, kept in order of size too: see slo_window.h. */
#include "sched/slo_window.h"

#include <string.h>

/* The first place whose value is not below `value`. */
static unsigned place(const struct tally_slo_window *w, float value)
{
	unsigned low = 0, high = w->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (w->order_of_size[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_out(struct tally_slo_window *w, float value)
{
	unsigned at = place(w, value);

	w->count--;
	w->sum -= (double)value;
	memmove(w->order_of_size + at, w->order_of_size + at + 1,
		(w->count - at) * sizeof *w->order_of_size);
}

void tally_slo_window_add(struct tally_slo_window *w, float value)
{
	if (w->count == TALLY_SLO_WINDOW)
		take_out(w, w->order_of_time[w->next]);
	unsigned at = place(w, value);
	memmove(w->order_of_size + at + 1, w->order_of_size + at,
		(w->count - at) * sizeof *w->order_of_size);
	w->order_of_size[at] = value;
	w->order_of_time[w->next] = value;
	w->next = (w->next + 1) % TALLY_SLO_WINDOW;
	w->sum += (double)value;
	w->count++;
}

double tally_slo_window_mean(const struct tally_slo_window *w)
{
	return w->count ? w->sum / w->count : 0;
}

double tally_slo_window_quantile(const struct tally_slo_window *w, unsigned thousandths)
{
	unsigned rank = (w->count * thousandths + 999) / 1000;

	return w->count ? (double)w->order_of_size[rank - 1] : 0;
}
