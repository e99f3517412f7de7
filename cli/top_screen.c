/* SPDX-License-Identifier: Apache-2.0 */
/* tally top: one frame of text from what the model knows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/kernel_name.h"
#include "cli/status.h"
#include "cli/top.h"

#define BOLD	"\x1b[1m"
#define REVERSE "\x1b[7m"
#define GREEN	"\x1b[32m"
#define YELLOW	"\x1b[33m"
#define PLAIN	"\x1b[0m"

#define BATCH_COLUMNS 160

/* What one frame is being made of. */
struct frame {
	const struct top_screen *screen;
	const struct top_model *model;
	struct tally_buffer *out;
	unsigned columns, line; /* lines so far */
	bool keys;		/* the line of keys is being drawn */
};

/* The last line of a screen is the keys'. */
static bool room(const struct frame *f, unsigned lines)
{
	return !f->screen->rows || f->line + lines < f->screen->rows + f->keys;
}

/* One line: `text` cut or filled to the width, in an attribute ("" for none). */
static void line(struct frame *f, const char *attribute, const char *text)
{
	bool special = f->screen->attributes && *attribute;
	size_t length = strlen(text);

	if (!room(f, 1))
		return;
	if (f->line++)
		tally_buffer_print(f->out, f->screen->attributes ? "\x1b[K\r\n" : "\n");
	if (special)
		tally_buffer_print(f->out, "%s", attribute);
	if (f->screen->attributes)
		tally_text_cut(f->out, text, f->columns, f->screen->utf8);
	while (!f->screen->attributes && length && text[length - 1] == ' ')
		length--;
	if (!f->screen->attributes) {
		size_t begin = f->out->size;

		tally_buffer_append(f->out, text, length);
		if (f->out->size > begin)
			tally_text_plain(f->out->data + begin, "");
	}
	if (special)
		tally_buffer_print(f->out, PLAIN);
}

/* At most five characters: 999us, 9.9ms, 12s. */
static void duration(char text[16], uint64_t ns)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = {{1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {60e9, "min"}, {3600e9, "h"}};
	unsigned i = 0;

	if (!ns) {
		strcpy(text, "-");
		return;
	}
	while (i < 4 && (double)ns >= (i < 2 ? 999.5 : i == 2 ? 600 : 60) * units[i].unit)
		i++;
	double value = (double)ns / units[i].unit;
	snprintf(text, 16, value < 9.95 && i > 0 ? "%.1f%s" : "%.0f%s", value, units[i].name);
}

/* At most six characters. */
static void number(char text[16], double value)
{
	if (value > 0 && value < 9.95 && value != (double)(int)value)
		snprintf(text, 16, "%.1f", value);
	else if (value < 999999.5)
		snprintf(text, 16, "%.0f", value);
	else if (value < 9.9995e9)
		snprintf(text, 16, "%.0fM", value / 1e6);
	else
		snprintf(text, 16, "%.0fG", value / 1e9);
}

static void dimensions(char *text, size_t size, const uint32_t d[3])
{
	if (d[2] != 1)
		snprintf(text, size, "%ux%ux%u", d[0], d[1], d[2]);
	else if (d[1] != 1)
		snprintf(text, size, "%ux%u", d[0], d[1]);
	else
		snprintf(text, size, "%u", d[0]);
}

/* How the programs meet on their devices: all ways that there are. */
static void sharing(const struct top_model *m, struct tally_buffer *text)
{
	const char *before = "  ";

	for (unsigned i = 0; i < m->program_count; i++) {
		const char *way = tally_status_sharing(&m->board->slots[m->programs[i].slot]);
		bool told = !strcmp(way, "unknown");

		for (unsigned k = 0; k < i && !told; k++)
			told = !strcmp(way,
				       tally_status_sharing(&m->board->slots[m->programs[k].slot]));
		if (told)
			continue;
		tally_buffer_print(text, "%s%s", before, way);
		before = "+";
	}
}

static void title(struct frame *f)
{
	const struct tally_board *board = f->model->board;
	struct tally_buffer text = {0};
	time_t now = time(NULL);
	unsigned held = 0;
	char up[16], when[16];
	struct tm tm;

	strftime(when, sizeof when, "%H:%M:%S", localtime_r(&now, &tm));
	tally_buffer_print(&text, "tally top  %s", when);
	if (!board) {
		tally_buffer_print(&text, "  no tallyd runs (%s): no program shares a device",
				   f->model->socket);
	} else {
		for (unsigned i = 0; i < f->model->program_count; i++)
			held += f->model->programs[i].holder >= 0;
		duration(up, f->model->now_ns - board->started_ns);
		tally_buffer_print(&text, "  tallyd %d up %s  %u program%s, %u held",
				   board->daemon_pid, up, f->model->program_count,
				   f->model->program_count == 1 ? "" : "s", held);
		sharing(f->model, &text);
	}
	if (f->model->totals)
		tally_buffer_print(&text, "  [totals]");
	if (f->screen->paused)
		tally_buffer_print(&text, "  [paused]");
	line(f, BOLD, text.data ? text.data : "");
	tally_buffer_free(&text);
}

/* ------------------------------------------------------------------------------------ programs */

/* The widths of what takes what is left. */
struct program_widths {
	unsigned name, state;
};

static struct program_widths program_widths(unsigned columns)
{
	const unsigned fixed = 57; /* all others and the blanks between */
	unsigned left = columns > fixed + 23 ? columns - fixed : 23;
	struct program_widths w = {.state = 13, .name = left - 13};

	if (w.name > 20) {
		w.state += w.name - 20 > 22 ? 22 : w.name - 20;
		w.name = left - w.state > 32 ? 32 : left - w.state;
	}
	return w;
}

static void program_header(struct frame *f)
{
	struct program_widths w = program_widths(f->columns);
	const char *unit = f->model->totals ? "" : "/s";
	char launches[16], stops[16], resumes[16], text[512];

	snprintf(launches, sizeof launches, "LNCH%s", unit);
	snprintf(stops, sizeof stops, "STOP%s", f->model->totals ? "S" : "/s");
	snprintf(resumes, sizeof resumes, "RES%s", f->model->totals ? "UM" : "/s");
	snprintf(text, sizeof text, " %7s %-*s %4s %-*s %4s %4s %6s %6s %5s %5s %5s", "PID", w.name,
		 "PROGRAM", "PRIO", w.state, "STATE", "GPU%", "HELD", launches, stops, resumes,
		 "P50", "P99");
	line(f, REVERSE, text);
}

static void state(const struct frame *f, const struct top_program *p, unsigned columns,
		  struct tally_buffer *out)
{
	struct tally_buffer text = {0};
	char since[16];

	duration(since, p->since_ns);
	if (p->holder >= 0) {
		const struct tally_slot *holder = &f->model->board->slots[p->holder];

		if (columns >= 30)
			tally_buffer_print(&text, "held %s by %s", since, holder->name);
		else
			tally_buffer_print(&text, "%s %d", holder->pid > 99999 ? "by" : "held by",
					   holder->pid);
	} else {
		tally_buffer_print(&text, "%s%s%s", p->state, p->since_ns ? " " : "",
				   p->since_ns ? since : "");
	}
	tally_text_cut(out, text.data ? text.data : "", columns, f->screen->utf8);
	tally_buffer_free(&text);
}

static void program(struct frame *f, const struct top_program *p, bool selected)
{
	struct program_widths w = program_widths(f->columns);
	struct tally_buffer text = {0};
	char cells[5][16];
	const char *attribute = "";

	tally_buffer_print(&text, "%c%7d ", selected ? '>' : ' ', p->pid);
	tally_text_fit(&text, p->name, w.name, f->screen->utf8);
	tally_buffer_print(&text, " %4d ", p->priority);
	state(f, p, w.state, &text);
	number(cells[0], p->launches);
	number(cells[1], p->stops);
	number(cells[2], p->resumes);
	duration(cells[3], p->stop_p50_ns);
	duration(cells[4], p->stop_p99_ns);
	tally_buffer_print(&text, " %4.0f %4.0f %6s %6s %5s %5s %5s", p->gpu * 100, p->held * 100,
			   cells[0], cells[1], cells[2], cells[3], cells[4]);
	if (selected)
		attribute = BOLD;
	else if (f->screen->colours && p->holder >= 0)
		attribute = YELLOW;
	else if (f->screen->colours && *p->state == 'r')
		attribute = GREEN;
	line(f, attribute, text.data ? text.data : "");
	tally_buffer_free(&text);
}

/* At most `most` of them, the selected one among them; the rest as a number. */
static void programs(struct frame *f, unsigned most)
{
	const struct top_model *m = f->model;
	unsigned selected = top_model_selected(m), first = 0, shown = m->program_count;
	char text[64];

	program_header(f);
	if (most && shown > most) {
		shown = most > 1 ? most - 1 : 1;
		first = selected < shown ? 0 : selected - shown + 1;
	}
	for (unsigned i = first; i < first + shown; i++)
		program(f, &m->programs[i], i == selected && f->screen->rows);
	if (shown < m->program_count) {
		snprintf(text, sizeof text, "         ... %u more", m->program_count - shown);
		line(f, "", text);
	}
	if (!m->program_count)
		line(f, "", " no program uses a device now");
}

/* ------------------------------------------------------------------------------------- kernels */

struct kernel_widths {
	unsigned name, grid, why;
};

static struct kernel_widths kernel_widths(unsigned columns)
{
	const unsigned fixed = 42;
	unsigned left = columns > fixed + 38 ? columns - fixed : 38;
	struct kernel_widths w = {.grid = 8, .why = 12};

	if (left > 70)
		w.why = left - 58 > 62 ? 62 : left - 58;
	if (left > 60)
		w.grid = 13;
	w.name = left - w.grid - w.why;
	return w;
}

static void kernel_header(struct frame *f)
{
	struct kernel_widths w = kernel_widths(f->columns);
	char text[512];

	snprintf(text, sizeof text, " %-*s %*s %7s %6s %5s %5s %-11s %-*s", w.name, "KERNEL",
		 w.grid, "GRID", "BLOCK", f->model->totals ? "COUNT" : "CNT/s", "TIME%", "MEAN",
		 "RUNS AS", w.why, "WHY");
	line(f, REVERSE, text);
}

static void kernel(struct frame *f, const struct top_kernel *k)
{
	struct kernel_widths w = kernel_widths(f->columns);
	struct tally_buffer text = {0};
	char grid[40], block[40], count[16], mean[16], as[32];

	dimensions(grid, sizeof grid, k->key.grid);
	dimensions(block, sizeof block, k->key.block);
	number(count, k->count);
	duration(mean, k->mean_ns);
	tally_runs_as(as, sizeof as, &k->choice);
	tally_buffer_print(&text, " ");
	tally_text_fit(&text, k->name, w.name, f->screen->utf8);
	tally_buffer_print(&text, " ");
	tally_buffer_print(&text, "%*s %7s %6s ", w.grid, grid, block, count);
	if (k->mean_ns)
		tally_buffer_print(&text, "%5.1f", k->share * 100);
	else
		tally_buffer_print(&text, "%5s", "-");
	tally_buffer_print(&text, " %5s %-11.11s ", mean, as);
	tally_text_cut(&text,
		       w.why < 20 ? tally_reason_word(k->choice.reason)
				  : tally_reason_text(k->choice.reason),
		       w.why, f->screen->utf8);
	line(f, "", text.data ? text.data : "");
	tally_buffer_free(&text);
}

static void kernels(struct frame *f)
{
	const struct top_model *m = f->model;
	unsigned i = 0, left;
	char text[64];

	if (!m->program_count || !room(f, 3))
		return;
	kernel_header(f);
	if (!m->kernel_count)
		line(f, "",
		     m->reported ? " no kernel of it was measured: it is never stopped inside, or "
				   "launched none yet"
				 : " the program gives no account of its kernels");
	for (; i < m->kernel_count; i++) {
		left = m->kernel_count - i;
		/* The last line may have to say how many more there are. */
		if (!room(f, left > 1 ? 2 : 1))
			break;
		kernel(f, &m->kernels[i]);
	}
	if (i < m->kernel_count) {
		snprintf(text, sizeof text, " ... %u more", m->kernel_count - i);
		line(f, "", text);
	}
}

/* A sentence, in two lines when it takes two. Frees it. */
static void sentence(struct frame *f, struct tally_buffer *text)
{
	char *rest = text->data ? text->data : "";

	if (f->screen->attributes && tally_text_columns(rest) > f->columns) {
		char *cut = rest + f->columns;

		while (cut > rest && *cut != ' ')
			cut--;
		if (cut > rest) {
			*cut = '\0';
			line(f, "", rest);
			rest = cut + 1;
		}
	}
	line(f, "", rest);
	tally_buffer_free(text);
}

static void why(struct frame *f)
{
	const struct tally_status_view view = {.board = f->model->board,
					       .now_ns = f->model->now_ns};
	struct tally_buffer text = {0};

	if (!f->model->program_count)
		return;
	unsigned index = f->model->programs[top_model_selected(f->model)].slot;
	const struct tally_slot *slot = &f->model->board->slots[index];

	tally_status_why(&view, index, &text);
	line(f, "", "");
	sentence(f, &text);
	if (atomic_load(&slot->slo_budget)) {
		tally_status_slo(slot, &text);
		sentence(f, &text);
	}
}

static const char *const help_lines[] = {
	"",
	" up/down, k/j   select a program; its kernels stand below",
	" page up/down   the first, the last program",
	" s              sort by priority, time on the device, launches, stops, name",
	" t              totals since the program's start, or rates of the last interval",
	" p, space       pause, go on",
	" q, Ctrl-C      leave",
	"",
	" GPU%  time with work on the device and not held   HELD  time in which it had to give way",
	" LNCH  launches   STOP, RES  launches stopped between two blocks, started again",
	" P50, P99       from the request to stop until nothing of the program ran",
	" CNT, MEAN      launches of a kernel in one configuration, time of one on the device",
	" TIME%          both together, of the interval: over 100 where launches run side by side",
	" RUNS AS        original (waits before the launch), guarded, sliced, persistent, opaque",
};

static void keys(struct frame *f)
{
	char text[160];

	while (room(f, 1))
		line(f, "", "");
	f->keys = true;
	snprintf(text, sizeof text, " q leave  j/k select  s sort: %s  t %s  p %s  ? help",
		 top_sort_names[f->model->sort], f->model->totals ? "rates" : "totals",
		 f->screen->paused ? "go on" : "pause");
	line(f, REVERSE, text);
}

void top_screen_draw(const struct top_screen *screen, const struct top_model *model,
		     struct tally_buffer *out)
{
	struct frame f = {.screen = screen,
			  .model = model,
			  .out = out,
			  .columns = screen->rows ? screen->columns : BATCH_COLUMNS};

	title(&f);
	if (model->board) {
		programs(&f, screen->rows ? (screen->rows > 12 ? (screen->rows - 8) / 2 : 2) : 0);
		if (screen->help) {
			for (unsigned i = 0; i < sizeof help_lines / sizeof *help_lines; i++)
				line(&f, "", help_lines[i]);
		} else {
			why(&f);
			kernels(&f);
		}
	}
	if (screen->rows)
		keys(&f);
	else
		tally_buffer_print(out, "\n");
	if (screen->attributes)
		tally_buffer_print(out, "\x1b[K");
}
