/* SPDX-License-Identifier: Apache-2.0 */
/* tally top: from counters of the board and of a report to rates. */
#include "cli/top.h"

#include <stdlib.h>
#include <string.h>

#include "cli/kernel_name.h"
#include "cli/status.h"

const char *const top_sort_names[TOP_SORTS] = {
	[TOP_BY_PRIORITY] = "priority", [TOP_BY_GPU] = "time",	[TOP_BY_LAUNCHES] = "launches",
	[TOP_BY_STOPS] = "stops",	[TOP_BY_NAME] = "name",
};

/* `sum` and, when something goes on since `since_ns`, that too. */
static uint64_t up_to_now(const _Atomic uint64_t *sum, const _Atomic uint64_t *since_ns,
			  uint64_t now_ns)
{
	uint64_t since = atomic_load(since_ns);

	return atomic_load(sum) + (since && since < now_ns ? now_ns - since : 0);
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void rates(struct top_program *p, const struct tally_slot *slot, const struct top_past *past,
		  const struct top_past *now, bool totals)
{
	static const struct top_past none;
	const struct top_past *from = past->generation == now->generation && !totals ? past : &none;
	uint64_t begin = from == &none ? slot->joined_ns : from->at_ns;
	double seconds = now->at_ns > begin ? (double)(now->at_ns - begin) / 1e9 : 0;
	double active = (double)grown(now->active_ns, from->active_ns) / 1e9;
	double held = (double)grown(now->held_ns, from->held_ns) / 1e9;
	double per = totals ? 1 : seconds > 0 ? 1 / seconds : 0;

	p->launches = (double)grown(now->launches, from->launches) * per;
	p->stops = (double)grown(now->stops, from->stops) * per;
	p->resumes = (double)grown(now->resumes, from->resumes) * per;
	if (seconds <= 0)
		return;
	/* The gate is closed for the idle too, so "held" can be more than "active". */
	p->gpu = active > held ? (active - held) / seconds : 0;
	p->held = held / seconds;
	p->gpu = p->gpu > 1 ? 1 : p->gpu;
	p->held = p->held > 1 ? 1 : p->held;
}

static void look_at_program(struct top_model *m, unsigned index,
			    const struct tally_reports *reports)
{
	const struct tally_slot *slot = &m->board->slots[index];
	struct top_program *p = &m->programs[m->program_count];
	const struct tally_report *report;
	struct top_past now = {
		.generation = atomic_load(&slot->generation),
		.at_ns = m->now_ns,
		.active_ns = up_to_now(&slot->active_ns, &slot->active_since_ns, m->now_ns),
		.held_ns = up_to_now(&slot->stopped_ns, &slot->stopped_since_ns, m->now_ns),
		.launches = atomic_load(&slot->launches),
		.stops = atomic_load(&slot->stops),
		.resumes = atomic_load(&slot->resumes),
	};

	if (!(now.generation & 1))
		return;
	*p = (struct top_program){
		.slot = index,
		.generation = now.generation,
		.pid = slot->pid,
		.priority = slot->priority,
		.name = slot->name,
		.state = tally_status_state(m->board, index, m->now_ns),
		.holder = tally_policy_strict_holder(m->board, index, m->now_ns),
		.stopped = now.stops,
	};
	if (!atomic_load(&slot->active))
		p->holder = -1;
	uint64_t since =
		atomic_load(p->holder >= 0 ? &slot->stopped_since_ns : &slot->active_since_ns);
	if (p->holder >= 0 && !since)
		since = atomic_load(&m->board->slots[p->holder].active_since_ns);
	p->since_ns = since && since < m->now_ns ? m->now_ns - since : 0;
	rates(p, slot, &m->past[index], &now, m->totals);
	report = tally_reports_of(reports, index, now.generation);
	if (report) {
		p->stop_p50_ns = tally_report_stop_quantile(report, 0.50);
		p->stop_p99_ns = tally_report_stop_quantile(report, 0.99);
	}
	m->past[index] = now;
	m->program_count++;
}

static int by_number(double a, double b)
{
	return (a < b) - (a > b);
}

static enum top_sort sorting; /* qsort() has no place for it */

static int compare_programs(const void *left, const void *right)
{
	const struct top_program *a = left, *b = right;
	int order = 0;

	switch (sorting) {
	case TOP_BY_GPU:
		order = by_number(a->gpu, b->gpu);
		break;
	case TOP_BY_LAUNCHES:
		order = by_number(a->launches, b->launches);
		break;
	case TOP_BY_STOPS:
		order = by_number(a->stops, b->stops);
		break;
	case TOP_BY_NAME:
		order = strcmp(a->name, b->name);
		break;
	default:
		break;
	}
	if (!order)
		order = by_number(a->priority, b->priority);
	return order ? order : (a->slot > b->slot) - (a->slot < b->slot);
}

void top_model_sort(struct top_model *m)
{
	sorting = m->sort;
	qsort(m->programs, m->program_count, sizeof *m->programs, compare_programs);
}

unsigned top_model_selected(const struct top_model *m)
{
	for (unsigned i = 0; i < m->program_count; i++)
		if (m->programs[i].slot == m->selected &&
		    m->programs[i].generation == m->selected_generation)
			return i;
	return 0;
}

void top_model_select(struct top_model *m, unsigned index)
{
	if (index >= m->program_count)
		return;
	m->selected = m->programs[index].slot;
	m->selected_generation = m->programs[index].generation;
}

static void forget_kernels(struct top_model *m)
{
	for (unsigned i = 0; i < m->kernel_count; i++)
		free(m->kernels[i].name);
	m->kernel_count = 0;
}

void top_model_free(struct top_model *m)
{
	forget_kernels(m);
	free(m->kernels);
	m->kernels = NULL;
}

/* Of the level that the kernel runs at now, else of the one that was timed most. */
static const struct tally_stats *timed(const struct tally_row *row)
{
	const struct tally_stats *best = &row->level[row->choice.level];

	for (unsigned i = 0; !best->samples && i < TALLY_LEVELS; i++)
		if (row->level[i].samples)
			best = &row->level[i];
	return best;
}

static void add_kernel(struct top_model *m, const struct tally_row *row, uint64_t before,
		       double seconds)
{
	struct top_kernel *k = &m->kernels[m->kernel_count];
	uint64_t launches = grown(tally_row_launches(row), before);
	const struct tally_stats *level = timed(row);
	struct tally_buffer name = {0};

	tally_kernel_name(&name, row->name);
	*k = (struct top_kernel){
		.name = name.data,
		.key = row->key,
		.choice = row->choice,
		.count = (double)launches * (m->totals	   ? 1
					     : seconds > 0 ? 1 / seconds
							   : 0),
		.mean_ns = tally_stats_mean(level, tally_key_blocks(&row->key)),
		.stop_p99_ns = tally_quantile(&tally_coarse, level->stop, 0.99),
	};
	if (seconds > 0)
		k->share = (double)launches * (double)k->mean_ns / 1e9 / seconds;
	m->kernel_count += name.data != NULL;
}

static int compare_kernels(const void *left, const void *right)
{
	const struct top_kernel *a = left, *b = right;
	int order = by_number(a->share, b->share);

	if (!order)
		order = by_number(a->count, b->count);
	return order ? order : strcmp(a->name, b->name);
}

void top_model_look_at_kernels(struct top_model *m, const struct tally_reports *reports)
{
	const struct top_program *p = &m->programs[top_model_selected(m)];
	const struct tally_report *report = NULL;
	bool known;
	double seconds;

	forget_kernels(m);
	m->reported = false;
	if (m->program_count)
		report = tally_reports_of(reports, p->slot, p->generation);
	if (!report)
		return;
	known = m->kernels_slot == p->slot && m->kernels_generation == p->generation && !m->totals;
	if (!known)
		memset(m->launches_before, 0, sizeof m->launches_before);
	seconds = (double)grown(m->now_ns,
				known ? m->kernels_at_ns : m->board->slots[p->slot].joined_ns) /
		  1e9;
	unsigned rows = tally_report_rows(report);
	struct top_kernel *more = realloc(m->kernels, (rows + 1) * sizeof *more);
	if (more)
		m->kernels = more;
	else
		rows = 0;
	for (unsigned i = 0; i < rows; i++) {
		struct tally_row row;
		uint64_t before = m->launches_before[i];

		if (!tally_report_read(report, i, &row))
			continue;
		m->launches_before[i] = tally_row_launches(&row);
		if (m->launches_before[i])
			add_kernel(m, &row, before, seconds);
	}
	qsort(m->kernels, m->kernel_count, sizeof *m->kernels, compare_kernels);
	m->reported = true;
	m->kernels_slot = p->slot;
	m->kernels_generation = p->generation;
	m->kernels_at_ns = m->now_ns;
}

void top_model_look(struct top_model *m, const struct tally_reports *reports, uint64_t now_ns)
{
	if (m->board != reports->board)
		memset(m->past, 0, sizeof m->past);
	m->board = reports->board;
	m->now_ns = now_ns;
	m->program_count = 0;
	for (unsigned i = 0; m->board && i < TALLY_BOARD_SLOTS; i++)
		look_at_program(m, i, reports);
	top_model_sort(m);
}
