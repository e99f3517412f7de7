; SPDX-License-Identifier: Apache-2.0
; The contract's operations on NVIDIA GPUs: LLVM's intrinsics, or the PTX instruction itself.
; Barriers are the unaligned forms: neutral IR does not say that a warp arrives as one, and where it
; does both forms cost the same.

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.read.ptx.sreg.warpid()
declare i32 @llvm.nvvm.read.ptx.sreg.nwarpid()
declare i32 @llvm.nvvm.read.ptx.sreg.smid()
declare i32 @llvm.nvvm.read.ptx.sreg.nsmid()
declare i32 @llvm.nvvm.read.ptx.sreg.clock()
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.eq()
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.le()
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.ge()
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.gt()
declare i64 @llvm.nvvm.read.ptx.sreg.clock64()
declare i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
declare void @llvm.nvvm.barrier.cta.sync.all(i32) convergent nounwind
declare void @llvm.nvvm.barrier.cta.sync.count(i32, i32) convergent nounwind
declare void @llvm.nvvm.barrier.cta.arrive.count(i32, i32) convergent nounwind
declare void @llvm.nvvm.bar.warp.sync(i32) convergent nounwind
declare i32 @llvm.nvvm.activemask() convergent nounwind
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) convergent nounwind
declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.match.any.sync.i64(i32, i64) convergent nounwind
declare { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32, i32) convergent nounwind
declare { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32, i64) convergent nounwind
declare i32 @llvm.nvvm.barrier.cta.red.popc.all(i32, i1) convergent nounwind
declare i32 @llvm.nvvm.barrier.cta.red.popc.count(i32, i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.and.all(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.and.count(i32, i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.or.all(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.or.count(i32, i32, i1) convergent nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32) convergent nounwind
declare void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1) convergent nounwind
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.count(i32, i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.and.aligned.count(i32, i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.barrier.cta.red.or.aligned.count(i32, i32, i1) convergent nounwind
declare i1 @llvm.nvvm.vote.all.sync(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) convergent nounwind
declare i1 @llvm.nvvm.vote.uni.sync(i32, i1) convergent nounwind
declare { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32) convergent nounwind
declare { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32) convergent nounwind
declare { i32, i1 } @llvm.nvvm.shfl.sync.bfly.i32p(i32, i32, i32, i32) convergent nounwind
declare { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32, i32, i32, i32) convergent nounwind
declare i1 @llvm.nvvm.isspacep.global(ptr)
declare i1 @llvm.nvvm.isspacep.shared(ptr)
declare i1 @llvm.nvvm.isspacep.const(ptr)
declare i1 @llvm.nvvm.isspacep.local(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @vprintf(ptr, ptr)
declare void @__assertfail(ptr, ptr, i32, ptr, i64)
declare void @llvm.nvvm.nanosleep(i32)
declare void @llvm.nvvm.exit()
declare void @llvm.trap()
declare void @llvm.debugtrap()
declare i32 @llvm.nvvm.prmt(i32, i32, i32)
declare i32 @llvm.nvvm.fns(i32, i32, i32)

define i32 @tally.thread.id.x() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %r
}

define i32 @tally.thread.id.y() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  ret i32 %r
}

define i32 @tally.thread.id.z() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  ret i32 %r
}

define i32 @tally.block.size.x() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  ret i32 %r
}

define i32 @tally.block.size.y() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  ret i32 %r
}

define i32 @tally.block.size.z() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  ret i32 %r
}

define i32 @tally.block.id.x() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  ret i32 %r
}

define i32 @tally.block.id.y() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  ret i32 %r
}

define i32 @tally.block.id.z() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  ret i32 %r
}

define i32 @tally.grid.size.x() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  ret i32 %r
}

define i32 @tally.grid.size.y() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  ret i32 %r
}

define i32 @tally.grid.size.z() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
  ret i32 %r
}

define i32 @tally.lane.id() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  ret i32 %r
}

define i32 @tally.warp.id() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.warpid()
  ret i32 %r
}

define i32 @tally.warp.count() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.nwarpid()
  ret i32 %r
}

define i32 @tally.sm.id() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.smid()
  ret i32 %r
}

define i32 @tally.sm.count() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.nsmid()
  ret i32 %r
}

define i32 @tally.clock32() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.clock()
  ret i32 %r
}

define i32 @tally.lanemask.eq() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.eq()
  ret i32 %r
}

define i32 @tally.lanemask.le() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.le()
  ret i32 %r
}

define i32 @tally.lanemask.lt() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  ret i32 %r
}

define i32 @tally.lanemask.ge() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.ge()
  ret i32 %r
}

define i32 @tally.lanemask.gt() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.gt()
  ret i32 %r
}

define i64 @tally.clock() {
  %r = call i64 @llvm.nvvm.read.ptx.sreg.clock64()
  ret i64 %r
}

define i64 @tally.global.timer() {
  %r = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  ret i64 %r
}

define i32 @tally.warp.size() {
  ret i32 32
}

define i64 @tally.grid.id() {
  %r = call i64 asm "mov.u64 $0, %gridid;", "=l"()
  ret i64 %r
}

; Where NVIDIA's driver tells a cooperative launch of its workspace.
define i64 @tally.grid.workspace() {
  %low = call i32 asm "mov.u32 $0, %envreg2;", "=r"()
  %high = call i32 asm "mov.u32 $0, %envreg1;", "=r"()
  %low.wide = zext i32 %low to i64
  %high.wide = zext i32 %high to i64
  %high.up = shl i64 %high.wide, 32
  %r = or i64 %high.up, %low.wide
  ret i64 %r
}

define i32 @tally.shared.total.size() {
  %r = call i32 asm "mov.u32 $0, %total_smem_size;", "=r"()
  ret i32 %r
}

define i32 @tally.shared.dynamic.size() {
  %r = call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()
  ret i32 %r
}

; ---------------------------------------------------------------- synchronisation

define void @tally.barrier(i32 %id, i32 %count) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  call void @llvm.nvvm.barrier.cta.sync.all(i32 %id)
  ret void
part:
  call void @llvm.nvvm.barrier.cta.sync.count(i32 %id, i32 %count)
  ret void
}

define void @tally.barrier.arrive(i32 %id, i32 %count) convergent {
  call void @llvm.nvvm.barrier.cta.arrive.count(i32 %id, i32 %count)
  ret void
}

define i32 @tally.barrier.popc(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i32 @llvm.nvvm.barrier.cta.red.popc.all(i32 %id, i1 %p)
  ret i32 %w
part:
  %c = call i32 @llvm.nvvm.barrier.cta.red.popc.count(i32 %id, i32 %count, i1 %p)
  ret i32 %c
}

define i1 @tally.barrier.and(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i1 @llvm.nvvm.barrier.cta.red.and.all(i32 %id, i1 %p)
  ret i1 %w
part:
  %c = call i1 @llvm.nvvm.barrier.cta.red.and.count(i32 %id, i32 %count, i1 %p)
  ret i1 %c
}

define i1 @tally.barrier.or(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i1 @llvm.nvvm.barrier.cta.red.or.all(i32 %id, i1 %p)
  ret i1 %w
part:
  %c = call i1 @llvm.nvvm.barrier.cta.red.or.count(i32 %id, i32 %count, i1 %p)
  ret i1 %c
}

; Where the lanes of a warp meet them together (aligned.c).
define void @tally.aligned.barrier(i32 %id, i32 %count) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 %id)
  ret void
part:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 %count)
  ret void
}

define void @tally.aligned.barrier.arrive(i32 %id, i32 %count) convergent {
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 %id, i32 %count)
  ret void
}

define i32 @tally.aligned.barrier.popc(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 %id, i1 %p)
  ret i32 %w
part:
  %c = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.count(i32 %id, i32 %count, i1 %p)
  ret i32 %c
}

define i1 @tally.aligned.barrier.and(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 %id, i1 %p)
  ret i1 %w
part:
  %c = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.count(i32 %id, i32 %count, i1 %p)
  ret i1 %c
}

define i1 @tally.aligned.barrier.or(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 %id, i1 %p)
  ret i1 %w
part:
  %c = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.count(i32 %id, i32 %count, i1 %p)
  ret i1 %c
}

define void @tally.warp.sync(i32 %mask) convergent {
  call void @llvm.nvvm.bar.warp.sync(i32 %mask)
  ret void
}

define i32 @tally.active.mask() convergent {
  %r = call i32 @llvm.nvvm.activemask()
  ret i32 %r
}

define i32 @tally.vote.ballot(i32 %mask, i1 %p) convergent {
  %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %p)
  ret i32 %r
}

define i1 @tally.vote.all(i32 %mask, i1 %p) convergent {
  %r = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %p)
  ret i1 %r
}

define i1 @tally.vote.any(i32 %mask, i1 %p) convergent {
  %r = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %p)
  ret i1 %r
}

define i1 @tally.vote.uni(i32 %mask, i1 %p) convergent {
  %r = call i1 @llvm.nvvm.vote.uni.sync(i32 %mask, i1 %p)
  ret i1 %r
}

define { i32, i1 } @tally.shuffle.up(i32 %mask, i32 %v, i32 %b, i32 %c) convergent {
  %r = call { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32 %mask, i32 %v, i32 %b, i32 %c)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.down(i32 %mask, i32 %v, i32 %b, i32 %c) convergent {
  %r = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 %mask, i32 %v, i32 %b, i32 %c)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.xor(i32 %mask, i32 %v, i32 %b, i32 %c) convergent {
  %r = call { i32, i1 } @llvm.nvvm.shfl.sync.bfly.i32p(i32 %mask, i32 %v, i32 %b, i32 %c)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %b, i32 %c) convergent {
  %r = call { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32 %mask, i32 %v, i32 %b, i32 %c)
  ret { i32, i1 } %r
}

define i32 @tally.match.any.i32(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.match.any.sync.i32(i32 %mask, i32 %v)
  ret i32 %r
}

define { i32, i1 } @tally.match.all.i32(i32 %mask, i32 %v) convergent {
  %r = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 %mask, i32 %v)
  ret { i32, i1 } %r
}

define i32 @tally.match.any.i64(i32 %mask, i64 %v) convergent {
  %r = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %v)
  ret i32 %r
}

define { i32, i1 } @tally.match.all.i64(i32 %mask, i64 %v) convergent {
  %r = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %mask, i64 %v)
  ret { i32, i1 } %r
}

; ---------------------------------------------------------------- memory and the rest

define i1 @tally.is.global(ptr %p) {
  %r = call i1 @llvm.nvvm.isspacep.global(ptr %p)
  ret i1 %r
}

define i1 @tally.is.shared(ptr %p) {
  %r = call i1 @llvm.nvvm.isspacep.shared(ptr %p)
  ret i1 %r
}

define i1 @tally.is.constant(ptr %p) {
  %r = call i1 @llvm.nvvm.isspacep.const(ptr %p)
  ret i1 %r
}

define i1 @tally.is.local(ptr %p) {
  %r = call i1 @llvm.nvvm.isspacep.local(ptr %p)
  ret i1 %r
}

define ptr @tally.malloc(i64 %bytes) {
  %p = call ptr @malloc(i64 %bytes)
  ret ptr %p
}

define void @tally.free(ptr %p) {
  call void @free(ptr %p)
  ret void
}

define i32 @tally.printf(ptr %format, ptr %arguments) {
  %r = call i32 @vprintf(ptr %format, ptr %arguments)
  ret i32 %r
}

define void @tally.assert.fail(ptr %message, ptr %file, i32 %line, ptr %function) noreturn {
  call void @__assertfail(ptr %message, ptr %file, i32 %line, ptr %function, i64 1)
  call void @llvm.nvvm.exit()
  unreachable
}

define void @tally.nanosleep(i32 %ns) {
  call void @llvm.nvvm.nanosleep(i32 %ns)
  ret void
}

define void @tally.trap() noreturn {
  call void @llvm.trap()
  unreachable
}

define void @tally.exit() noreturn {
  call void @llvm.nvvm.exit()
  unreachable
}

define void @tally.breakpoint() {
  call void @llvm.debugtrap()
  ret void
}

; ---------------------------------------------------------------- integers

define i32 @tally.prmt(i32 %a, i32 %b, i32 %s) {
  %r = call i32 @llvm.nvvm.prmt(i32 %a, i32 %b, i32 %s)
  ret i32 %r
}

define i32 @tally.fns(i32 %mask, i32 %base, i32 %offset) {
  %r = call i32 @llvm.nvvm.fns(i32 %mask, i32 %base, i32 %offset)
  ret i32 %r
}

define i32 @tally.bfe.u32(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "bfe.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i64 @tally.bfe.u64(i64 %a, i32 %b, i32 %c) {
  %r = call i64 asm "bfe.u64 $0, $1, $2, $3;", "=l,l,r,r"(i64 %a, i32 %b, i32 %c)
  ret i64 %r
}

define i32 @tally.sad.u32(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "sad.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.bfind.u32(i32 %a) {
  %r = call i32 asm "bfind.u32 $0, $1;", "=r,r"(i32 %a)
  ret i32 %r
}

define i32 @tally.bfind.u64(i64 %a) {
  %r = call i32 asm "bfind.u64 $0, $1;", "=r,l"(i64 %a)
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.u32(i32 %a) {
  %r = call i32 asm "bfind.shiftamt.u32 $0, $1;", "=r,r"(i32 %a)
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.u64(i64 %a) {
  %r = call i32 asm "bfind.shiftamt.u64 $0, $1;", "=r,l"(i64 %a)
  ret i32 %r
}

define i32 @tally.bfe.s32(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "bfe.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i64 @tally.bfe.s64(i64 %a, i32 %b, i32 %c) {
  %r = call i64 asm "bfe.s64 $0, $1, $2, $3;", "=l,l,r,r"(i64 %a, i32 %b, i32 %c)
  ret i64 %r
}

define i32 @tally.sad.s32(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "sad.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.bfind.s32(i32 %a) {
  %r = call i32 asm "bfind.s32 $0, $1;", "=r,r"(i32 %a)
  ret i32 %r
}

define i32 @tally.bfind.s64(i64 %a) {
  %r = call i32 asm "bfind.s64 $0, $1;", "=r,l"(i64 %a)
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.s32(i32 %a) {
  %r = call i32 asm "bfind.shiftamt.s32 $0, $1;", "=r,r"(i32 %a)
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.s64(i64 %a) {
  %r = call i32 asm "bfind.shiftamt.s64 $0, $1;", "=r,l"(i64 %a)
  ret i32 %r
}

define i32 @tally.bfi.b32(i32 %a, i32 %b, i32 %c, i32 %d) {
  %r = call i32 asm "bfi.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,r"(i32 %a, i32 %b, i32 %c, i32 %d)
  ret i32 %r
}

define i64 @tally.bfi.b64(i64 %a, i64 %b, i32 %c, i32 %d) {
  %r = call i64 asm "bfi.b64 $0, $1, $2, $3, $4;", "=l,l,l,r,r"(i64 %a, i64 %b, i32 %c, i32 %d)
  ret i64 %r
}

define i32 @tally.bmsk.clamp(i32 %a, i32 %b) {
  %r = call i32 asm "bmsk.clamp.b32 $0, $1, $2;", "=r,r,r"(i32 %a, i32 %b)
  ret i32 %r
}

define i32 @tally.bmsk.wrap(i32 %a, i32 %b) {
  %r = call i32 asm "bmsk.wrap.b32 $0, $1, $2;", "=r,r,r"(i32 %a, i32 %b)
  ret i32 %r
}

define i32 @tally.dp4a.uu(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.lo.uu(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.lo.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.hi.uu(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.hi.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp4a.us(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp4a.u32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.lo.us(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.lo.u32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.hi.us(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.hi.u32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp4a.su(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp4a.s32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.lo.su(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.lo.s32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.hi.su(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.hi.s32.u32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp4a.ss(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.lo.ss(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.lo.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}

define i32 @tally.dp2a.hi.ss(i32 %a, i32 %b, i32 %c) {
  %r = call i32 asm "dp2a.hi.s32.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %r
}
