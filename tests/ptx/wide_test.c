/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic accesses of 128 bits (PTX ISA 9.7.9.8, 9.7.9.12, 9.7.13.5), and mbarrier objects
 * (9.7.13.15): on devices only. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "run.h"

#define PAIRS                                                                                      \
	".reg .b128 %x, %y, %z; .reg .b64 %low; mov.b128 %x, {%d0, %d1}; mov.b128 %y, {%d2, "      \
	"%d3}; "                                                                                   \
	"st.shared.b128 [pool], %x; "
#define LOW  " mov.b128 {%d8, %low}, %z;"
#define HIGH " mov.b128 {%low, %d8}, %z;"

static void exchange(void **state)
{
	static const struct ptx_case cases[] = {
		{PAIRS "atom.shared.exch.b128 %z, [pool], %y;" LOW, 'd', {1, 2, 3, 4}, 1},
		{PAIRS "atom.shared.exch.b128 %z, [pool], %y;" HIGH, 'd', {1, 2, 3, 4}, 2},
		{PAIRS "atom.acq_rel.gpu.shared.exch.b128 %z, [pool], %y; ld.shared.b128 %z, "
		       "[pool];" HIGH,
		 'd',
		 {1, 2, 3, 4},
		 4},
	};
	PTX_RUN(cases);
}

/* The whole of it has to be equal. */
static void compare_and_swap(void **state)
{
	static const struct ptx_case cases[] = {
		{PAIRS "atom.shared.cas.b128 %z, [pool], %x, %y;" HIGH, 'd', {1, 2, 3, 4}, 2},
		{PAIRS "atom.shared.cas.b128 %z, [pool], %x, %y; ld.shared.b128 %z, [pool];" LOW,
		 'd',
		 {1, 2, 3, 4},
		 3},
		{PAIRS
		 "mov.b128 %x, {%d0, %d3}; atom.acquire.cta.shared.cas.b128 %z, [pool], %x, %y; "
		 "ld.shared.b128 %z, [pool];" LOW,
		 'd',
		 {1, 2, 3, 4},
		 1},
		{PAIRS
		 "mov.b128 %x, {%d3, %d1}; atom.release.sys.shared.cas.b128 %z, [pool], %x, %y; "
		 "ld.shared.b128 %z, [pool];" HIGH,
		 'd',
		 {1, 2, 3, 4},
		 2},
	};
	PTX_RUN(cases);
}

static void ordered(void **state)
{
	static const struct ptx_case cases[] = {
		{PAIRS "st.relaxed.gpu.shared.b128 [pool], %y; ld.relaxed.sys.shared.b128 %z, "
		       "[pool];" LOW,
		 'd',
		 {1, 2, 3, 4},
		 3},
		{PAIRS "st.release.cta.shared.b128 [pool+16], %y; ld.acquire.gpu.shared.b128 %z, "
		       "[pool+16];" HIGH,
		 'd',
		 {1, 2, 3, 4},
		 4},
	};
	PTX_RUN(cases);
}

#define OBJECT                                                                                     \
	".shared .align 8 .b64 object; .reg .b64 %old; "                                           \
	"mbarrier.init.shared.b64 [object], %r0; "

/* arrive_drop with bytes to come, and in a phase that it does not complete. */
static void dropping(void **state)
{
	static const struct ptx_case cases[] = {
		{OBJECT "mbarrier.arrive_drop.expect_tx.shared.b64 %old, [object], 16; "
			"mbarrier.test_wait.parity.shared.b64 %p8, [object], 0;",
		 'p',
		 {1},
		 0},
		{OBJECT
		 "mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 _, [object], %r1; "
		 "mbarrier.complete_tx.shared.b64 [object], %r1; "
		 "mbarrier.test_wait.parity.shared.b64 %p8, [object], 0;",
		 'p',
		 {1, 16},
		 1},
		/* one of two leaves: the next phase needs one alone */
		{OBJECT "mbarrier.arrive_drop.noComplete.shared.b64 _, [object], 1; "
			"mbarrier.arrive.shared.b64 %old, [object]; "
			"mbarrier.arrive.shared.b64 %old, [object]; "
			"mbarrier.test_wait.parity.shared.b64 %p8, [object], 1;",
		 'p',
		 {2},
		 1},
		{OBJECT "mbarrier.arrive_drop.noComplete.shared.b64 %old, [object], 2; "
			"mbarrier.pending_count.b64 %r8, %old;",
		 'r',
		 {5},
		 5},
	};
	PTX_RUN(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchange),
		cmocka_unit_test(compare_and_swap),
		cmocka_unit_test(ordered),
		cmocka_unit_test(dropping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
