/* SPDX-License-Identifier: Apache-2.0 */
/* Moves, memory, atomics, calls, branches, barriers and warp operations of PTX, run for real. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "run.h"

static void moves(void **state)
{
	static const struct ptx_case cases[] = {
		{"mov.b32 %r8, {%h0, %h1};", 'r', {0x1234, 0x5678}, 0x56781234},
		{"mov.b64 %d8, {%r0, %r1};", 'd', {1, 2}, 0x200000001},
		{"mov.b64 %d8, {%h0, %h1, %h2, %h3};", 'd', {1, 2, 3, 4}, 0x0004000300020001},
		{"mov.b32 {%h7, %h8}, %r0;", 'h', {0x56781234}, 0x5678},
		{"mov.b64 {%r7, %r8}, %d0;", 'r', {0x200000001}, 2},
		{"mov.b64 {_, %r8}, %d0;", 'r', {0x200000001}, 2},
		{"mov.u32 %r8, %tid.x;", 'r', {0}, 5},
		{"mov.u16 %h8, %ntid.x;", 'h', {0}, 64},
		{"mov.u32 %r8, WARP_SZ;", 'r', {0}, 32},
		{"mov.u64 %d8, %clock64;", 'd', {0}, 0x1122334455667788},
		{"mov.u32 %r8, %clock_hi;", 'r', {0}, 0x11223344},
		{"mov.f32 %f8, 0f3F800000;", 'f', {0}, 0x3f800000},
		{"mov.f32 %f8, 0f7FC12345;", 'f', {0}, 0x7fc12345},
		{"mov.b32 %f8, %r0;", 'f', {7}, 7},
		{"mov.u32 %r8, (3 + 4) << 2 | 1;", 'r', {0}, 29},
		{"mov.u32 %r8, -1 > 0 ? 5 : 6;", 'r', {0}, 6},
	};
	PTX_RUN(cases);
}

static void memory(void **state)
{
	static const struct ptx_case cases[] = {
		{"ld.global.u8 %r8, [%d14];", 'r', {0xff}, 0xff},
		{"ld.global.s8 %r8, [%d14];", 'r', {0xff}, 0xffffffff},
		{"ld.global.s8 %h8, [%d14];", 'h', {0x80}, 0xff80},
		{"ld.global.s16 %r8, [%d14+2];", 'r', {0x80000000}, 0xffff8000},
		{"ld.u32 %r8, [%d14+4];", 'r', {0x1122334400000000}, 0x11223344},
		{"ld.global.nc.u32 %r8, [%d14+8];", 'r', {0, 9}, 9},
		{"ld.volatile.global.u64 %d8, [%d14];", 'd', {77}, 77},
		{"ld.relaxed.gpu.global.u32 %r8, [%d14];", 'r', {77}, 77},
		{"ld.acquire.sys.u64 %d8, [%d14];", 'd', {77}, 77},
		{"ld.global.L1::no_allocate.L2::128B.v2.u64 {%d7, %d8}, [%d14];", 'd', {1, 2}, 2},
		{"ld.global.v4.u32 {%r4, %r5, %r6, %r8}, [%d14];", 'r', {1, 0x200000000}, 2},
		{"ld.global.v4.u16 {%h4, %h5, %h8, _}, [%d14];", 'h', {0x0004000300020001}, 3},
		{"add.u64 %d9, %d14, 16; ld.global.u64 %d8, [%d9+-8];", 'd', {1, 22}, 22},
		{"st.global.u64 [%d14], %d1; ld.global.u64 %d8, [%d14];", 'd', {1, 22}, 22},
		{"st.global.u8 [%d14+1], %r1; ld.global.u64 %d8, [%d14];", 'd', {0, 0x1ff}, 0xff00},
		{"st.release.gpu.u32 [%d14], 5; ld.u64 %d8, [%d14];", 'd', {0}, 5},
		{"st.v2.u32 [%d14], {%r1, 3}; ld.u64 %d8, [%d14];", 'd', {0, 7}, 0x300000007},
		{"st.global.v2.f32 [%d14], {%f1, 1.0}; ld.u64 %d8, [%d14];",
		 'd',
		 {0, 7},
		 0x3f80000000000007},
		/* Sinks of 32 bytes: nothing is written there. */
		{"st.v8.b32 [%d14], {_, %r1, _, _, _, _, _, _}; ld.u64 %d8, [%d14];",
		 'd',
		 {0x1111111122222222, 7},
		 0x722222222},
		{"st.v4.b64 [%d14], {_, %d0, _, _}; ld.v4.b64 {_, %d8, _, _}, [%d14];",
		 'd',
		 {9, 7},
		 9},
		{"st.v4.b64 [%d14], {_, %d0, _, _}; ld.b64 %d8, [%d14+16];", 'd', {9, 7, 5}, 5},
		{"ld.global.u32 %r8, [word];", 'r', {0}, 41},
		{"mov.u64 %d9, word; ld.global.u32 %r8, [%d9];", 'r', {0}, 41},
		{"ld.global.u64 %d9, [pointer]; ld.u32 %r8, [%d9];", 'r', {0}, 41},
		{"ld.global.u8 %r8, [text+2];", 'r', {0}, '!'},
		{"ld.const.u32 %r8, [table+4];", 'r', {0}, 20},
		{"mov.u64 %d9, table; cvta.const.u64 %d9, %d9; ld.u32 %r8, [%d9+8];", 'r', {0}, 30},
		{"st.shared.u32 [pool+4], %r0; mov.u64 %d9, pool; ld.shared.u32 %r8, [%d9+4];",
		 'r',
		 {55},
		 55},
		{"mov.u32 %r9, pool; add.u32 %r9, %r9, 8; st.shared.u64 [%r9], %d0; "
		 "ld.shared.u64 %d8, [pool+8];",
		 'd',
		 {66},
		 66},
		{".local .align 8 .b8 depot[16]; mov.u64 %d9, depot; cvta.local.u64 %d10, %d9; "
		 "st.u32 [%d10+4], %r0; ld.local.u32 %r8, [%d9+4];",
		 'r',
		 {12},
		 12},
		{"cvta.to.global.u64 %d9, %d14; ld.global.u32 %r8, [%d9];", 'r', {3}, 3},
		{"prefetch.global.L2 [%d14]; prefetchu.L1 [%d14]; mov.u32 %r8, 1;", 'r', {0}, 1},
		{"createpolicy.fractional.L2::evict_last.b64 %d9, 1.0; "
		 "ld.global.L2::cache_hint.u32 %r8, [%d14], %d9;",
		 'r',
		 {6},
		 6},
		{"cp.async.ca.shared.global [pool], [%d14], 16; cp.async.commit_group; "
		 "cp.async.wait_group 0; ld.shared.u64 %d8, [pool+8];",
		 'd',
		 {1, 2},
		 2},
		{"cp.async.cg.shared.global [pool], [%d14], 16, %r2; cp.async.wait_all; "
		 "ld.shared.u64 %d8, [pool];",
		 'd',
		 {0x1122334455667788, 2, 3},
		 0x667788},
	};
	PTX_RUN(cases);
}

static void atomics(void **state)
{
	static const struct ptx_case cases[] = {
		{"atom.global.add.u32 %r8, [%d14], 5; ld.u32 %r9, [%d14]; sub.u32 %r8, %r9, %r8;",
		 'r',
		 {7},
		 5},
		{"atom.relaxed.gpu.global.add.u64 %d8, [%d14], %d1;", 'd', {7, 5}, 7},
		{"atom.add.acq_rel.cta.s32 %r8, [%d14], -1; ld.s32 %r8, [%d14];",
		 'r',
		 {0},
		 0xffffffff},
		{"atom.min.s32 %r8, [%d14], %r1; ld.s32 %r8, [%d14];",
		 'r',
		 {1, (uint64_t)-1},
		 0xffffffff},
		{"atom.min.u32 %r8, [%d14], %r1; ld.s32 %r8, [%d14];", 'r', {1, (uint64_t)-1}, 1},
		{"atom.max.s64 %d8, [%d14], %d1; ld.u64 %d8, [%d14];", 'd', {1, (uint64_t)-1}, 1},
		{"atom.inc.u32 %r8, [%d14], 3; ld.u32 %r8, [%d14];", 'r', {3}, 0},
		{"atom.inc.u32 %r8, [%d14], 3; ld.u32 %r8, [%d14];", 'r', {2}, 3},
		{"atom.dec.u32 %r8, [%d14], 3; ld.u32 %r8, [%d14];", 'r', {0}, 3},
		{"atom.dec.u32 %r8, [%d14], 3; ld.u32 %r8, [%d14];", 'r', {9}, 3},
		{"atom.and.b32 %r8, [%d14], 6; ld.u32 %r8, [%d14];", 'r', {3}, 2},
		{"atom.xor.b64 %d8, [%d14], %d1; ld.u64 %d8, [%d14];", 'd', {3, 1}, 2},
		{"atom.exch.b32 %r8, [%d14], 6;", 'r', {3}, 3},
		{"atom.cas.b32 %r8, [%d14], 3, 9; ld.u32 %r9, [%d14]; mad.lo.u32 %r8, %r9, 16, "
		 "%r8;",
		 'r',
		 {3},
		 0x93},
		{"atom.cas.b64 %d8, [%d14], 4, 9;", 'd', {3}, 3},
		{"atom.acquire.sys.cas.b16 %h8, [%d14], %h1, %h2; ld.u16 %h8, [%d14];",
		 'h',
		 {3, 3, 4},
		 4},
		{"atom.add.f32 %f8, [%d14], 1.0; ld.f32 %f8, [%d14];",
		 'f',
		 {0x3f800000},
		 0x40000000},
		{"atom.add.noftz.f16 %h8, [%d14], %h1; ld.u16 %h8, [%d14];",
		 'h',
		 {0x3c00, 0x3c00},
		 0x4000},
		{"atom.add.noftz.f16x2 %r8, [%d14], %r1; ld.u32 %r8, [%d14];",
		 'r',
		 {0x3c003c00, 0x40003c00},
		 0x42004000},
		{"red.global.add.u32 [%d14], 5; ld.u32 %r8, [%d14];", 'r', {7}, 12},
		{"red.or.b32 [%d14], 8; ld.u32 %r8, [%d14];", 'r', {7}, 15},
		{"red.global.add.v2.f32 [%d14], {%f1, %f1}; ld.u64 %d8, [%d14];",
		 'd',
		 {0, 0x3f800000},
		 0x3f8000003f800000},
		{"membar.gl; fence.acq_rel.gpu; fence.sc.sys; membar.cta; mov.u32 %r8, 1;",
		 'r',
		 {0},
		 1},
	};
	PTX_RUN(cases);
}

static void control(void **state)
{
	static const struct ptx_case cases[] = {
		{"L: add.u32 %r8, %r8, 2; setp.lt.u32 %p1, %r8, %r0; @%p1 bra L;", 'r', {7}, 8},
		{"@%p0 bra.uni X; mov.u32 %r8, 1; bra Y; X: mov.u32 %r8, 2; Y:",
		 'r',
		 {0, 0, 0, 1},
		 2},
		/* labels of a scope are its own; a branch may leave it */
		{"{ .reg .b32 %r0; mov.u32 %r0, 9; L: bra M; M: mov.u32 %r8, %r0; } { L: bra N; } "
		 "N:",
		 'r',
		 {3},
		 9},
		{"{ bra OUT; } mov.u32 %r8, 1; OUT: add.u32 %r8, %r8, 4;", 'r', {0}, 4},
		{"ts: .branchtargets A, B, C; brx.idx %r0, ts; A: mov.u32 %r8, 10; bra E; "
		 "B: mov.u32 %r8, 20; bra E; C: mov.u32 %r8, 30; E:",
		 'r',
		 {1},
		 20},
		{"{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r0; call.uni (q), twice, (p); "
		 "ld.param.b32 %r8, [q]; }",
		 'r',
		 {21},
		 42},
		{"{ .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16]; st.param.v2.b64 [p], "
		 "{%d0, %d1}; "
		 "call (q), swap, (p); ld.param.b64 %d8, [q]; ld.param.b64 %d9, [p+8]; "
		 "sub.u64 %d9, %d9, %d8; mad.lo.u64 %d8, %d9, 100, %d8; }",
		 'd',
		 {1, 2},
		 2},
		{"call (%r8), old, (%r0);", 'r', {4}, 7},
		{"{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r0; mov.u64 %d9, twice; "
		 "pr: .callprototype (.param .b32 _) _ (.param .b32 _); "
		 "call (q), %d9, (p), pr; ld.param.b32 %r8, [q]; }",
		 'r',
		 {21},
		 42},
		{"{ .param .b64 p; .param .b64 q; st.param.b64 [p], 64; call (q), malloc, (p); "
		 "ld.param.b64 %d9, [q]; st.u32 [%d9+8], %r0; ld.u32 %r8, [%d9+8]; "
		 "st.param.b64 [p], %d9; call free, (p); }",
		 'r',
		 {5},
		 5},
		{"st.global.u64 [%d15], %d0; exit; mov.u64 %d8, 0;", 'd', {9}, 9},
	};
	PTX_RUN(cases);
}

static void expect_log(const struct ptx_case *c, const char *log)
{
	ptx_log_clear();
	assert_int_equal(ptx_run(c, 1), 0);
	assert_string_equal(ptx_log, log);
}

static void barriers(void **state)
{
	expect_log(
		&(struct ptx_case){"bar.sync 0; barrier.sync.aligned 1, 64; barrier.sync %r0, %r1; "
				   "bar.arrive 2, 96; bar.warp.sync 0xff;",
				   'r',
				   {3, 32},
				   0},
		"barrier(0,0)barrier(1,64)barrier(3,32)arrive(2,96)warp(ff)");
	expect_log(&(struct ptx_case){"bar.red.popc.u32 %r8, 1, 64, !%p0;", 'r', {0, 0, 0, 1}, 7},
		   "popc(1,64,0)");
	expect_log(
		&(struct ptx_case){
			"barrier.red.aligned.and.pred %p8, 0, %p0;", 'p', {0, 0, 0, 1}, 1},
		"and(0,0,1)");
	expect_log(&(struct ptx_case){"@%p0 bar.sync 5;", 'r', {0}, 0}, "");
	expect_log(&(struct ptx_case){"nanosleep.u32 %r0;", 'r', {20}, 0}, "sleep(20)");
}

static void warps(void **state)
{
	expect_log(
		&(struct ptx_case){"shfl.sync.down.b32 %r8|%p1, %r0, 1, 0x1f, -1;", 'r', {7}, 107},
		"shuffle1(ffffffff,7,1,1f)");
	expect_log(
		&(struct ptx_case){
			"shfl.sync.bfly.b32 %f8, %f0, %r1, %r2, %r3;", 'f', {7, 2, 3, 4}, 107},
		"shuffle2(4,7,2,3)");
	expect_log(&(struct ptx_case){"shfl.sync.idx.b32 %r9|%p8, %r0, 1, 0x1f, 1;", 'p', {7}, 1},
		   "shuffle3(1,7,1,1f)");
	expect_log(&(struct ptx_case){"vote.sync.any.pred %p8, !%p0, 0xf;", 'p', {0}, 1},
		   "any(f,1)");
	expect_log(&(struct ptx_case){"vote.sync.ballot.b32 %r8, %p0, 0xf;", 'r', {0}, 0xa5},
		   "ballot(f,0)");
	expect_log(&(struct ptx_case){"match.any.sync.b64 %r8, %d0, -1;", 'r', {12}, 0x11},
		   "match(ffffffff,c)");
	expect_log(&(struct ptx_case){"match.all.sync.b32 %r9|%p8, %r0, 3;", 'p', {12}, 1},
		   "shuffle4(3,12,0,0)");
	expect_log(&(struct ptx_case){"redux.sync.min.u32 %r8, %r0, 3;", 'r', {12}, 12},
		   "umin(3,12)");
	expect_log(&(struct ptx_case){"redux.sync.add.s32 %r8, %r0, 3;", 'r', {12}, 13},
		   "add(3,12)");
	expect_log(&(struct ptx_case){"activemask.b32 %r8;", 'r', {0}, 0xff}, "");
	expect_log(&(struct ptx_case){"elect.sync %r9|%p8, 3;", 'p', {0}, 1}, "shuffle5(3,0,0,0)");
}

static void printing(void **state)
{
	expect_log(
		&(struct ptx_case){
			".local .align 8 .b8 depot[16]; mov.u64 %d9, depot; cvta.local.u64 %d10, "
			"%d9; "
			"st.local.u32 [%d9], %r0; st.local.f64 [%d9+8], 0d4004000000000000; "
			"mov.u64 %d11, text; cvta.global.u64 %d11, %d11; "
			"{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d11; "
			"st.param.b64 [b], %d10; call.uni (c), vprintf, (a, b); ld.param.b32 %r8, "
			"[c]; }",
			'r',
			{42},
			2},
		"printf(hi!,42,2.5)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves),    cmocka_unit_test(memory),	cmocka_unit_test(atomics),
		cmocka_unit_test(control),  cmocka_unit_test(barriers), cmocka_unit_test(warps),
		cmocka_unit_test(printing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
