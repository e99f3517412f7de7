/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The AMD library's barriers of a part of the block and its printf, run here: barriers.ll and
 * printf.ll compiled for this machine (amd_model.sh), with a thread for each warp, a warp of one
 * lane, and a recorder in place of HIP's host calls.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED(name) __asm__(name)

/* What is under test. */
void part_clear(void) NAMED("tally.amd.part.clear");
void part_barrier(int id, int count) NAMED("tally.amd.part.barrier");
void part_arrive(int id, int count) NAMED("tally.amd.part.barrier.arrive");
int part_popc(int id, int count, _Bool p) NAMED("tally.amd.part.barrier.popc");
_Bool part_and(int id, int count, _Bool p) NAMED("tally.amd.part.barrier.and");
_Bool part_or(int id, int count, _Bool p) NAMED("tally.amd.part.barrier.or");
int print(const char *format, const void *arguments) NAMED("tally.printf");

/* The machine: a warp has one lane. */
int first_lane(int v) NAMED("model.readfirstlane");
void sleep_a_bit(int n) NAMED("model.sleep");
int lane_id(void) NAMED("tally.lane.id");
int ballot(_Bool p) NAMED("tally.amd.ballot");
void block_barrier(int id, int count) NAMED("tally.barrier");
int block_popc(int id, int count, _Bool p) NAMED("tally.barrier.popc");

enum { WARPS = 8, ROUNDS = 400, THREADS = 32 * WARPS };

static pthread_barrier_t whole;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

int first_lane(int v)
{
	return v;
}

void sleep_a_bit(int n)
{
	(void)n;
	sched_yield();
}

int lane_id(void)
{
	return 0;
}

int ballot(_Bool p)
{
	return p;
}

void block_barrier(int id, int count)
{
	(void)id, (void)count;
	pthread_barrier_wait(&whole);
}

int block_popc(int id, int count, _Bool p)
{
	(void)id, (void)count, (void)p;
	abort(); /* no count is 0 here */
}

/* What a warp's bit is in a round. */
static int bit(int warp, int round)
{
	return (int)((unsigned)(warp * 31 + round) * 2654435761u >> 30 & 1);
}

static int slots[WARPS / 2], full[WARPS];

/* Half of the warps fill slots, the others empty them; nobody waits without need. */
static void pass_on(int warp, int round)
{
	if (warp < WARPS / 2) {
		part_barrier(2, THREADS); /* slots are free */
		slots[warp] = warp * 1000 + round;
		part_arrive(1, THREADS);
	} else {
		part_arrive(2, THREADS);
		part_barrier(1, THREADS); /* slots are full */
		CHECK(slots[WARPS - 1 - warp] == (WARPS - 1 - warp) * 1000 + round);
	}
}

/* Reductions of two groups, each with a barrier of its own, then of all with one of those. */
static void reduce(int warp, int round)
{
	int half = warp / (WARPS / 2), first = half * (WARPS / 2), sum = 0, all = 0;

	for (int w = 0; w < WARPS; w++)
		all += bit(w, round);
	for (int w = first; w < first + WARPS / 2; w++)
		sum += bit(w, round);
	CHECK(part_popc(5 + half, THREADS / 2, bit(warp, round)) == sum);
	CHECK(part_or(5 + half, THREADS / 2, bit(warp, round)) == (sum != 0));
	CHECK(part_and(5 + half, THREADS / 2, bit(warp, round)) == (sum == WARPS / 2));
	CHECK(part_popc(7, THREADS, bit(warp, round)) == all);
}

/* The same barrier with another count; a count that is no multiple of a warp. */
static void recount(int warp, int round)
{
	if (warp < 2) {
		full[warp] = round;
		part_barrier(9, 40);
		CHECK(full[1 - warp] == round);
	}
	part_barrier(10, THREADS);
	full[warp] = -round;
	part_barrier(9, THREADS);
	CHECK(full[(warp + 3) % WARPS] == -round);
	part_barrier(10, THREADS);
}

static void *run_warp(void *data)
{
	int warp = (int)(intptr_t)data;

	part_clear();
	for (int round = 0; round < ROUNDS; round++) {
		pass_on(warp, round);
		reduce(warp, round);
		recount(warp, round);
	}
	return NULL;
}

static void barriers(void)
{
	pthread_t threads[WARPS];

	pthread_barrier_init(&whole, NULL, WARPS);
	for (intptr_t w = 0; w < WARPS; w++)
		CHECK(!pthread_create(&threads[w], NULL, run_warp, (void *)w));
	for (int w = 0; w < WARPS; w++)
		pthread_join(threads[w], NULL);
}

/* ---- printf ---- */

static char record[1024];
static long answer;

long print_begin(long version) NAMED("__ockl_printf_begin");
long print_string(long stream, const char *text, long size, int last)
	NAMED("__ockl_printf_append_string_n");
long print_values(long stream, int n, long a, long b, long c, long d, long e, long f, long g,
		  int last) NAMED("__ockl_printf_append_args");

static void note(const char *format, long a, const char *text, int last)
{
	size_t used = strlen(record);

	snprintf(record + used, sizeof record - used, format, a, text);
	CHECK(!strstr(record, "end") || last);
}

long print_begin(long version)
{
	CHECK(version == 0);
	record[0] = '\0';
	return 100;
}

long print_string(long stream, const char *text, long size, int last)
{
	CHECK(stream >= 100 && !last && (text ? size == (long)strlen(text) + 1 : size == 0));
	note("[%ld:%s]", size, text ? text : "", 0);
	return stream + 1;
}

long print_values(long stream, int n, long a, long b, long c, long d, long e, long f, long g,
		  int last)
{
	CHECK(stream >= 100 && !(b | c | d | e | f | g) && n == !last);
	note(last ? "end" : "<%#lx>", a, "", last);
	return last ? answer : stream + 1;
}

static void printing(void)
{
	static const char format[] = "%d %5.*f|%s%%%c %lld %-08.3hhx %p %zu %s %e";
	struct {
		int32_t d, precision;
		double f;
		const char *s;
		int32_t c;
		int64_t lld;
		int32_t hhx;
		void *p;
		size_t zu;
		const char *none;
		double e;
	} arguments = {-2, 3, 1.5, "text", 'q', -5, 0x1ff, (void *)0x1234, 77, NULL, -2.0};

	answer = 12;
	CHECK(print(format, &arguments) == 11);
	CHECK(!strcmp(record,
		      "[44:%d %5.*f|%s%%%c %lld %-08.3hhx %p %zu %s %e]<0xfffffffe><0x3>"
		      "<0x3ff8000000000000>[5:text]<0x71><0xfffffffffffffffb><0x1ff><0x1234><0x4d>"
		      "[0:]<0xc000000000000000>end"));
	CHECK(print("plain", NULL) == 0 && !strcmp(record, "[6:plain]end"));
	CHECK(print("100%! sure %", &arguments) == 0 && !strcmp(record, "[13:100%! sure %]end"));
	CHECK(print("", NULL) == 0 && !strcmp(record, "[1:]end"));
	answer = -1;
	CHECK(print("%d", &arguments) == -2);
	CHECK(print(NULL, NULL) == -1);
}

int main(void)
{
	printing();
	barriers();
	puts("ok");
	return 0;
}
