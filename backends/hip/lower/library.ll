; SPDX-License-Identifier: Apache-2.0
; The contract's operations on AMD GPUs. What depends on the wave's width is in wave32.ll and
; wave64.ll (warps of 32 lanes) and warp64.ll (warps of 64), lane operations in lanes.ll.
; The hidden arguments are those of code object version 5.

declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
declare void @llvm.amdgcn.s.barrier() convergent nounwind
declare void @llvm.amdgcn.wave.barrier() convergent nounwind
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.readsteadycounter()
declare i64 @llvm.amdgcn.dispatch.id()
declare i32 @llvm.amdgcn.groupstaticsize()
declare void @llvm.amdgcn.s.sleep(i32)
declare i1 @llvm.amdgcn.is.shared(ptr)
declare i1 @llvm.amdgcn.is.private(ptr)
declare void @llvm.trap()
declare void @llvm.debugtrap()
declare float @llvm.amdgcn.fract.f32(float)
declare float @llvm.amdgcn.sin.f32(float)
declare float @llvm.amdgcn.cos.f32(float)

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.z()

define i32 @tally.thread.id.x() {
  %r = call i32 @llvm.amdgcn.workitem.id.x()
  ret i32 %r
}

define i32 @tally.block.id.x() {
  %r = call i32 @llvm.amdgcn.workgroup.id.x()
  ret i32 %r
}

define i32 @tally.grid.size.x() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 0
  %r = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0
  ret i32 %r
}

define i32 @tally.block.size.x() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 12
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0
  %r = zext i16 %size to i32
  ret i32 %r
}

define i32 @tally.thread.id.y() {
  %r = call i32 @llvm.amdgcn.workitem.id.y()
  ret i32 %r
}

define i32 @tally.block.id.y() {
  %r = call i32 @llvm.amdgcn.workgroup.id.y()
  ret i32 %r
}

define i32 @tally.grid.size.y() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 4
  %r = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0
  ret i32 %r
}

define i32 @tally.block.size.y() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 14
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0
  %r = zext i16 %size to i32
  ret i32 %r
}

define i32 @tally.thread.id.z() {
  %r = call i32 @llvm.amdgcn.workitem.id.z()
  ret i32 %r
}

define i32 @tally.block.id.z() {
  %r = call i32 @llvm.amdgcn.workgroup.id.z()
  ret i32 %r
}

define i32 @tally.grid.size.z() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 8
  %r = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0
  ret i32 %r
}

define i32 @tally.block.size.z() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 16
  %size = load i16, ptr addrspace(4) %at, align 2, !invariant.load !0
  %r = zext i16 %size to i32
  ret i32 %r
}

define i64 @tally.grid.id() {
  %r = call i64 @llvm.amdgcn.dispatch.id()
  ret i64 %r
}

define i32 @tally.shared.dynamic.size() {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %hidden, i64 120
  %r = load i32, ptr addrspace(4) %at, align 4, !invariant.load !0
  ret i32 %r
}

define i32 @tally.shared.total.size() {
  %static = call i32 @llvm.amdgcn.groupstaticsize()
  %dynamic = call i32 @tally.shared.dynamic.size()
  %r = add i32 %static, %dynamic
  ret i32 %r
}

; ---------------------------------------------------------------- barriers

; The hardware's barrier is for all threads of a block that have not ended, as `count` 0 asks. It has
; no number: threads that wait at different numbers with count 0 wait for ever on any machine, so
; one number serves for all. Barriers for a part of the block: barriers.c.
define void @tally.barrier(i32 %id, i32 %count) convergent {
  fence syncscope("block") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("block") acquire
  ret void
}

; Reductions count in shared memory. The last barrier keeps the next one from clearing the sum before
; every thread has read it.
@tally.amd.sum = internal addrspace(3) global i32 undef, align 4

define i32 @tally.barrier.popc(i32 %id, i32 %count, i1 %p) convergent {
entry:
  store atomic i32 0, ptr addrspace(3) @tally.amd.sum syncscope("block") monotonic, align 4
  call void @tally.barrier(i32 %id, i32 %count)
  br i1 %p, label %add, label %wait
add:
  %old = atomicrmw add ptr addrspace(3) @tally.amd.sum, i32 1 syncscope("block") monotonic, align 4
  br label %wait
wait:
  call void @tally.barrier(i32 %id, i32 %count)
  %sum = load atomic i32, ptr addrspace(3) @tally.amd.sum syncscope("block") monotonic, align 4
  call void @tally.barrier(i32 %id, i32 %count)
  ret i32 %sum
}

define i1 @tally.barrier.or(i32 %id, i32 %count, i1 %p) convergent {
  %sum = call i32 @tally.barrier.popc(i32 %id, i32 %count, i1 %p)
  %r = icmp ne i32 %sum, 0
  ret i1 %r
}

define i1 @tally.barrier.and(i32 %id, i32 %count, i1 %p) convergent {
  %not = xor i1 %p, true
  %sum = call i32 @tally.barrier.popc(i32 %id, i32 %count, i1 %not)
  %r = icmp eq i32 %sum, 0
  ret i1 %r
}

; ---------------------------------------------------------------- memory and the rest

define i1 @tally.is.shared(ptr %p) {
  %r = call i1 @llvm.amdgcn.is.shared(ptr %p)
  ret i1 %r
}

define i1 @tally.is.local(ptr %p) {
  %r = call i1 @llvm.amdgcn.is.private(ptr %p)
  ret i1 %r
}

define i1 @tally.is.global(ptr %p) {
  %shared = call i1 @llvm.amdgcn.is.shared(ptr %p)
  %private = call i1 @llvm.amdgcn.is.private(ptr %p)
  %either = or i1 %shared, %private
  %r = xor i1 %either, true
  ret i1 %r
}

define i64 @tally.clock() {
  %r = call i64 @llvm.readcyclecounter()
  ret i64 %r
}

define i32 @tally.clock32() {
  %r = call i64 @llvm.readcyclecounter()
  %low = trunc i64 %r to i32
  ret i32 %low
}

; The steady counter runs at 100 MHz.
define i64 @tally.global.timer() {
  %ticks = call i64 @llvm.readsteadycounter()
  %ns = mul i64 %ticks, 10
  ret i64 %ns
}

; Any time from 0 to twice the one asked for will do: 64 clocks.
define void @tally.nanosleep(i32 %ns) {
  call void @llvm.amdgcn.s.sleep(i32 1)
  ret void
}

define void @tally.trap() noreturn {
  call void @llvm.trap()
  unreachable
}

; The message has no way to the host: the trap alone tells that an assertion failed.
define void @tally.assert.fail(ptr %message, ptr %file, i32 %line, ptr %function) noreturn {
  call void @llvm.trap()
  unreachable
}

define void @tally.breakpoint() {
  call void @llvm.debugtrap()
  ret void
}

; The hardware takes turns, not radians.
define float @tally.amd.turns(float %x) {
  %turns = fmul float %x, 0x3FC45F3060000000
  %fraction = call float @llvm.amdgcn.fract.f32(float %turns)
  ret float %fraction
}

define float @tally.approx.sin.f32(float %x) {
  %turns = call float @tally.amd.turns(float %x)
  %r = call float @llvm.amdgcn.sin.f32(float %turns)
  ret float %r
}

define float @tally.approx.cos.f32(float %x) {
  %turns = call float @tally.amd.turns(float %x)
  %r = call float @llvm.amdgcn.cos.f32(float %turns)
  ret float %r
}

!0 = !{}
