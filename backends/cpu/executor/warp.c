/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that the lanes of a warp meet in (PTX ISA 9.7.9.6 shfl.sync, 9.7.13.9 vote.sync,
 * 9.7.13.10 match.sync, 9.7.13.12 redux.sync, elect.sync). One is done when all living lanes of its
 * mask are in the same operation with the same mask. Lanes of the mask that have exited are left
 * out, as the hardware does.
 */
#include "backends/cpu/executor/internal.h"

#define EACH_LANE(lane, set)                                                                       \
	for (uint32_t lane##_rest = (set), lane = 0;                                               \
	     lane##_rest && (lane = (uint32_t)__builtin_ctz(lane##_rest), true);                   \
	     lane##_rest &= lane##_rest - 1)

typedef void resolve_function(struct tally_cpu_thread *threads, uint32_t set);

static void give_all(struct tally_cpu_thread *threads, uint32_t set, uint64_t result)
{
	EACH_LANE(lane, set)
	threads[lane].result = result;
}

static uint64_t pair(uint32_t value, bool predicate)
{
	return (uint64_t)predicate << 32 | value;
}

static void resolve_sync(struct tally_cpu_thread *threads, uint32_t set)
{
	(void)threads;
	(void)set;
}

static uint32_t ballot(const struct tally_cpu_thread *threads, uint32_t set)
{
	uint32_t votes = 0;

	EACH_LANE(lane, set)
	votes |= ((uint32_t)threads[lane].value & 1) << lane;
	return votes;
}

static void resolve_ballot(struct tally_cpu_thread *threads, uint32_t set)
{
	give_all(threads, set, ballot(threads, set));
}

static void resolve_all(struct tally_cpu_thread *threads, uint32_t set)
{
	give_all(threads, set, ballot(threads, set) == set);
}

static void resolve_any(struct tally_cpu_thread *threads, uint32_t set)
{
	give_all(threads, set, ballot(threads, set) != 0);
}

static void resolve_uni(struct tally_cpu_thread *threads, uint32_t set)
{
	uint32_t votes = ballot(threads, set);

	give_all(threads, set, votes == 0 || votes == set);
}

/* PTX ISA 9.7.9.6: the lane that `lane` reads from, and whether it lies in its segment. */
static uint32_t shuffle_source(uint32_t kind, uint32_t lane, uint32_t b, uint32_t c, bool *inside)
{
	uint32_t segment = c >> 8 & 31, clamp = c & 31, first = lane & segment;
	int32_t last = (int32_t)(first | (clamp & ~segment & 31)), source = (int32_t)lane;

	b &= 31;
	switch (kind) {
	case TALLY_CPU_SHUFFLE_UP:
		source -= (int32_t)b;
		*inside = source >= last;
		break;
	case TALLY_CPU_SHUFFLE_DOWN:
		source += (int32_t)b;
		*inside = source <= last;
		break;
	case TALLY_CPU_SHUFFLE_XOR:
		source = (int32_t)(lane ^ b);
		*inside = source <= last;
		break;
	default:
		source = (int32_t)(first | (b & ~segment & 31));
		*inside = source <= last;
	}
	return *inside ? (uint32_t)source : lane;
}

static void resolve_shuffle(struct tally_cpu_thread *threads, uint32_t set)
{
	EACH_LANE(lane, set)
	{
		struct tally_cpu_thread *thread = &threads[lane];
		bool inside;
		uint32_t source = shuffle_source(thread->operation & 0xff, lane, thread->b,
						 thread->c, &inside);

		/* The value of a lane that takes no part is undefined by PTX: its own here. */
		if (!(set >> source & 1))
			source = lane;
		thread->result = pair((uint32_t)threads[source].value, inside);
	}
}

static void resolve_match_any(struct tally_cpu_thread *threads, uint32_t set)
{
	uint32_t left = set;

	while (left) {
		uint64_t value = threads[__builtin_ctz(left)].value;
		uint32_t equal = 0;

		EACH_LANE(lane, left)
		equal |= (uint32_t)(threads[lane].value == value) << lane;
		give_all(threads, equal, equal);
		left &= ~equal;
	}
}

static void resolve_match_all(struct tally_cpu_thread *threads, uint32_t set)
{
	uint64_t value = threads[__builtin_ctz(set)].value;
	bool same = true;

	EACH_LANE(lane, set)
	same &= threads[lane].value == value;
	give_all(threads, set, same ? pair(set, true) : 0);
}

#define REDUCE(name, type, expression)                                                             \
	static void resolve_##name(struct tally_cpu_thread *threads, uint32_t set)                 \
	{                                                                                          \
		type a = (type)(uint32_t)threads[__builtin_ctz(set)].value;                        \
                                                                                                   \
		EACH_LANE(lane, set & (set - 1))                                                   \
		{                                                                                  \
			type b = (type)(uint32_t)threads[lane].value;                              \
                                                                                                   \
			a = (expression);                                                          \
		}                                                                                  \
		give_all(threads, set, (uint32_t)a);                                               \
	}
REDUCE(add, uint32_t, a + b)
REDUCE(min, int32_t, a < b ? a : b)
REDUCE(max, int32_t, a > b ? a : b)
REDUCE(umin, uint32_t, a < b ? a : b)
REDUCE(umax, uint32_t, a > b ? a : b)
REDUCE(and, uint32_t, a &b)
REDUCE(or, uint32_t, a | b)
REDUCE(xor, uint32_t, a ^ b)

static void resolve_elect(struct tally_cpu_thread *threads, uint32_t set)
{
	uint32_t leader = (uint32_t)__builtin_ctz(set);

	EACH_LANE(lane, set)
	threads[lane].result = pair(leader, lane == leader);
}

static const struct {
	const char *name;
	resolve_function *resolve;
} operations[TALLY_CPU_OPERATION_COUNT] = {
	[TALLY_CPU_EXIT] = {"its end", NULL},
	[TALLY_CPU_YIELD] = {"a pause", NULL},
	[TALLY_CPU_BARRIER] = {"barrier", NULL},
	[TALLY_CPU_BARRIER_POPC] = {"barrier.popc", NULL},
	[TALLY_CPU_BARRIER_AND] = {"barrier.and", NULL},
	[TALLY_CPU_BARRIER_OR] = {"barrier.or", NULL},
	[TALLY_CPU_BARRIER_ARRIVE] = {"barrier.arrive", NULL},
	[TALLY_CPU_ACTIVE_MASK] = {"active.mask", NULL},
	[TALLY_CPU_WARP_SYNC] = {"warp.sync", resolve_sync},
	[TALLY_CPU_VOTE_ALL] = {"vote.all", resolve_all},
	[TALLY_CPU_VOTE_ANY] = {"vote.any", resolve_any},
	[TALLY_CPU_VOTE_UNI] = {"vote.uni", resolve_uni},
	[TALLY_CPU_VOTE_BALLOT] = {"vote.ballot", resolve_ballot},
	[TALLY_CPU_SHUFFLE_UP] = {"shuffle.up", resolve_shuffle},
	[TALLY_CPU_SHUFFLE_DOWN] = {"shuffle.down", resolve_shuffle},
	[TALLY_CPU_SHUFFLE_XOR] = {"shuffle.xor", resolve_shuffle},
	[TALLY_CPU_SHUFFLE_IDX] = {"shuffle.idx", resolve_shuffle},
	[TALLY_CPU_MATCH_ANY] = {"match.any", resolve_match_any},
	[TALLY_CPU_MATCH_ALL] = {"match.all", resolve_match_all},
	[TALLY_CPU_REDUCE_ADD] = {"reduce.add", resolve_add},
	[TALLY_CPU_REDUCE_MIN] = {"reduce.min", resolve_min},
	[TALLY_CPU_REDUCE_MAX] = {"reduce.max", resolve_max},
	[TALLY_CPU_REDUCE_UMIN] = {"reduce.umin", resolve_umin},
	[TALLY_CPU_REDUCE_UMAX] = {"reduce.umax", resolve_umax},
	[TALLY_CPU_REDUCE_AND] = {"reduce.and", resolve_and},
	[TALLY_CPU_REDUCE_OR] = {"reduce.or", resolve_or},
	[TALLY_CPU_REDUCE_XOR] = {"reduce.xor", resolve_xor},
	[TALLY_CPU_ELECT] = {"elect", resolve_elect},
	[TALLY_CPU_MATRIX] = {"a matrix operation", tally_cpu_resolve_matrix},
};

const char *tally_cpu_operation_name(uint32_t operation)
{
	operation &= 0xff;
	return operation && operation < TALLY_CPU_OPERATION_COUNT ? operations[operation].name
								  : "nothing";
}

/* Whether all of `members` are in the operation, with the mask, of `thread`. */
static bool all_there(const struct tally_cpu_warp *warp, const struct tally_cpu_thread *threads,
		      uint32_t members, const struct tally_cpu_thread *thread)
{
	if ((members & warp->meeting) != members)
		return false;
	EACH_LANE(lane, members)
	if (threads[lane].operation != thread->operation || threads[lane].mask != thread->mask)
		return false;
	return true;
}

/*
 * Lanes that ask who is active are answered last, when no other lane of the warp can move: all that
 * ask at the same place in the code are together then, as they would be on a GPU that lets its
 * lanes reconverge.
 */
static uint32_t answer_active(const struct tally_cpu_warp *warp, struct tally_cpu_thread *threads)
{
	const struct tally_cpu_thread *first = NULL;
	uint32_t set = 0;

	EACH_LANE(lane, warp->meeting)
	{
		const struct tally_cpu_thread *thread = &threads[lane];

		if (thread->operation != TALLY_CPU_ACTIVE_MASK)
			continue;
		if (!first)
			first = thread;
		if (thread->value == first->value)
			set |= 1u << lane;
	}
	give_all(threads, set, set);
	return set;
}

bool tally_cpu_resolve_warp(struct tally_cpu_worker *worker, struct tally_cpu_warp *warp,
			    struct tally_cpu_thread *threads)
{
	uint32_t left = warp->meeting, freed = 0;

	while (left) {
		uint32_t lane = (uint32_t)__builtin_ctz(left), kind;
		const struct tally_cpu_thread *thread = &threads[lane];
		uint32_t members = thread->mask & warp->live;

		left &= left - 1;
		kind = thread->operation & 0xff;
		if (kind < TALLY_CPU_WARP_SYNC || kind >= TALLY_CPU_OPERATION_COUNT)
			continue;
		if (!(members >> lane & 1))
			tally_cpu_fail(worker, TALLY_CPU_ILLEGAL,
				       "lane %u is not in its own mask 0x%x in %s", lane,
				       thread->mask, tally_cpu_operation_name(kind));
		if (!all_there(warp, threads, members, thread))
			continue;
		operations[kind].resolve(threads, members);
		freed |= members;
		left &= ~members;
	}
	if (!freed)
		freed = answer_active(warp, threads);
	warp->meeting &= ~freed;
	warp->run |= freed;
	return freed != 0;
}
