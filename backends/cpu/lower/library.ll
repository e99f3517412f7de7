; SPDX-License-Identifier: Apache-2.0
; The neutral operations on the CPU device. Four primitives are not defined here; the lowering puts
; them in place (backends/cpu/lower/context.c, coroutine.c):
;   tally.cpu.thread   the record of the running thread, struct tally_cpu_thread
;   tally.cpu.block    its block, struct tally_cpu_block
;   tally.cpu.linear   its index in the block, x fastest
;   tally.cpu.suspend  stops the thread until the executor has resolved the operation in its record
;   tally.cpu.site     a number that differs from place to place in the code
; as it does tally.thread.id.*. Offsets and operation numbers are those of backends/cpu/kernel_abi.h,
; whose static assertions hold them fast.

declare ptr @tally.cpu.thread()
declare ptr @tally.cpu.block()
declare i32 @tally.cpu.linear()
declare i32 @tally.cpu.site()
; Not to be duplicated on the ways that threads take: who meets at one barrier stays together.
declare void @tally.cpu.suspend() convergent nounwind

define i32 @tally.cpu.field(i64 %offset) {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 %offset
  %value = load i32, ptr %address, align 4, !invariant.load !0
  ret i32 %value
}

define ptr @tally.cpu.service(i64 %offset) {
  %block = call ptr @tally.cpu.block()
  %services = load ptr, ptr %block, align 8, !invariant.load !0
  %address = getelementptr inbounds i8, ptr %services, i64 %offset
  %service = load ptr, ptr %address, align 8, !invariant.load !0
  ret ptr %service
}

; Who a thread is.

define i32 @tally.block.id.x() {
  %v = call i32 @tally.cpu.field(i64 56)
  ret i32 %v
}

define i32 @tally.block.id.y() {
  %v = call i32 @tally.cpu.field(i64 60)
  ret i32 %v
}

define i32 @tally.block.id.z() {
  %v = call i32 @tally.cpu.field(i64 64)
  ret i32 %v
}

define i32 @tally.grid.size.x() {
  %v = call i32 @tally.cpu.field(i64 68)
  ret i32 %v
}

define i32 @tally.grid.size.y() {
  %v = call i32 @tally.cpu.field(i64 72)
  ret i32 %v
}

define i32 @tally.grid.size.z() {
  %v = call i32 @tally.cpu.field(i64 76)
  ret i32 %v
}

define i32 @tally.block.size.x() {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 80
  %v = load i32, ptr %address, align 4, !invariant.load !0, !range !1
  ret i32 %v
}

define i32 @tally.block.size.y() {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 84
  %v = load i32, ptr %address, align 4, !invariant.load !0, !range !1
  ret i32 %v
}

define i32 @tally.block.size.z() {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 88
  %v = load i32, ptr %address, align 4, !invariant.load !0, !range !1
  ret i32 %v
}

define i32 @tally.sm.id() {
  %v = call i32 @tally.cpu.field(i64 96)
  ret i32 %v
}

define i32 @tally.sm.count() {
  %v = call i32 @tally.cpu.field(i64 100)
  ret i32 %v
}

define i32 @tally.shared.total.size() {
  %v = call i32 @tally.cpu.field(i64 40)
  ret i32 %v
}

define i32 @tally.shared.dynamic.size() {
  %v = call i32 @tally.cpu.field(i64 44)
  ret i32 %v
}

define i64 @tally.grid.id() {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 48
  %v = load i64, ptr %address, align 8, !invariant.load !0
  ret i64 %v
}

define i64 @tally.grid.workspace() {
  %block = call ptr @tally.cpu.block()
  %address = getelementptr inbounds i8, ptr %block, i64 120
  %v = load i64, ptr %address, align 8, !invariant.load !0
  ret i64 %v
}

define i32 @tally.lane.id() {
  %linear = call i32 @tally.cpu.linear()
  %v = and i32 %linear, 31
  ret i32 %v
}

define i32 @tally.warp.id() {
  %linear = call i32 @tally.cpu.linear()
  %v = lshr i32 %linear, 5
  ret i32 %v
}

define i32 @tally.warp.count() {
  %threads = call i32 @tally.cpu.field(i64 92)
  %up = add i32 %threads, 31
  %v = lshr i32 %up, 5
  ret i32 %v
}

define i32 @tally.warp.size() {
  ret i32 32
}

; Synchronisation: writes the record, suspends, reads the result. `head` is operation (low half)
; and mask or count (high half), stored as one word.

define void @tally.cpu.wait(i32 %operation, i32 %mask) {
  %thread = call ptr @tally.cpu.thread()
  %low = zext i32 %operation to i64
  %wide = zext i32 %mask to i64
  %high = shl i64 %wide, 32
  %head = or i64 %high, %low
  %head.at = getelementptr inbounds i8, ptr %thread, i64 32
  store i64 %head, ptr %head.at, align 8
  call void @tally.cpu.suspend()
  ret void
}

define void @tally.cpu.value(i64 %value) {
  %thread = call ptr @tally.cpu.thread()
  %at = getelementptr inbounds i8, ptr %thread, i64 40
  store i64 %value, ptr %at, align 8
  ret void
}

define i64 @tally.cpu.result() {
  %thread = call ptr @tally.cpu.thread()
  %at = getelementptr inbounds i8, ptr %thread, i64 56
  %v = load i64, ptr %at, align 8
  ret i64 %v
}

define { i32, i1 } @tally.cpu.pair() {
  %word = call i64 @tally.cpu.result()
  %low = trunc i64 %word to i32
  %shifted = lshr i64 %word, 32
  %flag = trunc i64 %shifted to i1
  %a = insertvalue { i32, i1 } poison, i32 %low, 0
  %b = insertvalue { i32, i1 } %a, i1 %flag, 1
  ret { i32, i1 } %b
}

define void @tally.cpu.barrier(i32 %kind, i32 %id, i32 %count) {
  %shifted = shl i32 %id, 8
  %operation = or i32 %shifted, %kind
  call void @tally.cpu.wait(i32 %operation, i32 %count)
  ret void
}

define void @tally.barrier(i32 %id, i32 %count) {
  call void @tally.cpu.barrier(i32 3, i32 %id, i32 %count)
  ret void
}

define i32 @tally.barrier.popc(i32 %id, i32 %count, i1 %p) {
  %wide = zext i1 %p to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.barrier(i32 4, i32 %id, i32 %count)
  %word = call i64 @tally.cpu.result()
  %v = trunc i64 %word to i32
  ret i32 %v
}

define i1 @tally.barrier.and(i32 %id, i32 %count, i1 %p) {
  %wide = zext i1 %p to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.barrier(i32 5, i32 %id, i32 %count)
  %word = call i64 @tally.cpu.result()
  %v = trunc i64 %word to i1
  ret i1 %v
}

define i1 @tally.barrier.or(i32 %id, i32 %count, i1 %p) {
  %wide = zext i1 %p to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.barrier(i32 6, i32 %id, i32 %count)
  %word = call i64 @tally.cpu.result()
  %v = trunc i64 %word to i1
  ret i1 %v
}

define void @tally.barrier.arrive(i32 %id, i32 %count) {
  call void @tally.cpu.barrier(i32 7, i32 %id, i32 %count)
  ret void
}

define i32 @tally.active.mask() {
  %site = call i32 @tally.cpu.site()
  %wide = zext i32 %site to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 8, i32 0)
  %word = call i64 @tally.cpu.result()
  %v = trunc i64 %word to i32
  ret i32 %v
}

define void @tally.warp.sync(i32 %mask) {
  call void @tally.cpu.wait(i32 9, i32 %mask)
  ret void
}

define i1 @tally.vote.all(i32 %mask, i1 %v) {
  %wide = zext i1 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 10, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i1
  ret i1 %result
}

define i1 @tally.vote.any(i32 %mask, i1 %v) {
  %wide = zext i1 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 11, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i1
  ret i1 %result
}

define i1 @tally.vote.uni(i32 %mask, i1 %v) {
  %wide = zext i1 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 12, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i1
  ret i1 %result
}

define i32 @tally.vote.ballot(i32 %mask, i1 %v) {
  %wide = zext i1 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 13, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define { i32, i1 } @tally.shuffle.up(i32 %mask, i32 %v, i32 %b, i32 %c) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.operands(i32 %b, i32 %c)
  call void @tally.cpu.wait(i32 14, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define { i32, i1 } @tally.shuffle.down(i32 %mask, i32 %v, i32 %b, i32 %c) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.operands(i32 %b, i32 %c)
  call void @tally.cpu.wait(i32 15, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define { i32, i1 } @tally.shuffle.xor(i32 %mask, i32 %v, i32 %b, i32 %c) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.operands(i32 %b, i32 %c)
  call void @tally.cpu.wait(i32 16, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %b, i32 %c) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.operands(i32 %b, i32 %c)
  call void @tally.cpu.wait(i32 17, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define void @tally.cpu.operands(i32 %b, i32 %c) {
  %thread = call ptr @tally.cpu.thread()
  %b.at = getelementptr inbounds i8, ptr %thread, i64 48
  store i32 %b, ptr %b.at, align 8
  %c.at = getelementptr inbounds i8, ptr %thread, i64 52
  store i32 %c, ptr %c.at, align 4
  ret void
}

define i32 @tally.match.any.i32(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 18, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.match.any.i64(i32 %mask, i64 %v) {
  call void @tally.cpu.value(i64 %v)
  call void @tally.cpu.wait(i32 18, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define { i32, i1 } @tally.match.all.i32(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 19, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define { i32, i1 } @tally.match.all.i64(i32 %mask, i64 %v) {
  call void @tally.cpu.value(i64 %v)
  call void @tally.cpu.wait(i32 19, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

define i32 @tally.reduce.add(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 20, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.min(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 21, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.max(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 22, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.umin(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 23, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.umax(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 24, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.and(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 25, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.or(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 26, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define i32 @tally.reduce.xor(i32 %mask, i32 %v) {
  %wide = zext i32 %v to i64
  call void @tally.cpu.value(i64 %wide)
  call void @tally.cpu.wait(i32 27, i32 %mask)
  %word = call i64 @tally.cpu.result()
  %result = trunc i64 %word to i32
  ret i32 %result
}

define { i32, i1 } @tally.elect(i32 %mask) {
  call void @tally.cpu.wait(i32 28, i32 %mask)
  %result = call { i32, i1 } @tally.cpu.pair()
  ret { i32, i1 } %result
}

; A pause lets the other threads of the block run: a thread that polls for one of them gets its
; answer.

define void @tally.nanosleep(i32 %nanoseconds) {
  call void @tally.cpu.wait(i32 2, i32 0)
  ret void
}

; The executor has decided before the block's threads start (tally_cpu_run_block).

define i1 @tally.guard.enter(ptr %control, i32 %block) {
  ret i1 true
}

; Memory. Constants lie in one section, whose ends the linker names.

@__start_tally_constant = extern_weak hidden global i8
@__stop_tally_constant = extern_weak hidden global i8

define i1 @tally.is.shared(ptr %p) {
  %block = call ptr @tally.cpu.block()
  %at = getelementptr inbounds i8, ptr %block, i64 8
  %base = load ptr, ptr %at, align 8, !invariant.load !0
  %bytes = call i32 @tally.cpu.field(i64 40)
  %size = zext i32 %bytes to i64
  %from = ptrtoint ptr %base to i64
  %address = ptrtoint ptr %p to i64
  %offset = sub i64 %address, %from
  %v = icmp ult i64 %offset, %size
  ret i1 %v
}

define i1 @tally.is.local(ptr %p) {
  %block = call ptr @tally.cpu.block()
  %f = call ptr @tally.cpu.service(i64 56)
  %v = call zeroext i1 %f(ptr %block, ptr %p) "tally.service"
  ret i1 %v
}

define i1 @tally.is.constant(ptr %p) {
  %address = ptrtoint ptr %p to i64
  %from = ptrtoint ptr @__start_tally_constant to i64
  %to = ptrtoint ptr @__stop_tally_constant to i64
  %above = icmp uge i64 %address, %from
  %below = icmp ult i64 %address, %to
  %v = and i1 %above, %below
  ret i1 %v
}

define i1 @tally.is.global(ptr %p) {
  %shared = call i1 @tally.is.shared(ptr %p)
  %local = call i1 @tally.is.local(ptr %p)
  %constant = call i1 @tally.is.constant(ptr %p)
  %a = or i1 %shared, %local
  %b = or i1 %a, %constant
  %v = xor i1 %b, true
  ret i1 %v
}

define ptr @tally.malloc(i64 %bytes) {
  %f = call ptr @tally.cpu.service(i64 32)
  %v = call ptr %f(i64 %bytes) "tally.service"
  ret ptr %v
}

define void @tally.free(ptr %p) {
  %f = call ptr @tally.cpu.service(i64 40)
  call void %f(ptr %p) "tally.service"
  ret void
}

; Other.

declare i64 @llvm.readcyclecounter()

define i64 @tally.clock() {
  %v = call i64 @llvm.readcyclecounter()
  ret i64 %v
}

define i32 @tally.clock32() {
  %wide = call i64 @llvm.readcyclecounter()
  %v = trunc i64 %wide to i32
  ret i32 %v
}

define i64 @tally.global.timer() {
  %f = call ptr @tally.cpu.service(i64 48)
  %v = call i64 %f() "tally.service"
  ret i64 %v
}

define void @tally.trap() noreturn {
  %block = call ptr @tally.cpu.block()
  %f = call ptr @tally.cpu.service(i64 8)
  call void %f(ptr %block, i32 1) noreturn "tally.service"
  unreachable
}

; There is no debugger to stop for.
define void @tally.breakpoint() {
  ret void
}

define void @tally.assert.fail(ptr %message, ptr %file, i32 %line, ptr %function) noreturn {
  %block = call ptr @tally.cpu.block()
  %x = call i32 @tally.thread.id.x()
  %y = call i32 @tally.thread.id.y()
  %z = call i32 @tally.thread.id.z()
  %f = call ptr @tally.cpu.service(i64 16)
  call void %f(ptr %block, ptr %message, ptr %file, i32 %line, ptr %function, i32 %x, i32 %y, i32 %z) noreturn "tally.service"
  unreachable
}

declare i32 @tally.thread.id.x()
declare i32 @tally.thread.id.y()
declare i32 @tally.thread.id.z()

define i32 @tally.printf(ptr %format, ptr %arguments) {
  %f = call ptr @tally.cpu.service(i64 24)
  %v = call i32 %f(ptr %format, ptr %arguments) "tally.service"
  ret i32 %v
}

; Maths that is a line of IR.

define float @tally.math.rsqrt.f32(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %v = fdiv float 1.0, %root
  ret float %v
}

define double @tally.math.rsqrt.f64(double %x) {
  %root = call double @llvm.sqrt.f64(double %x)
  %v = fdiv double 1.0, %root
  ret double %v
}

define float @tally.math.fdivide.f32(float %a, float %b) {
  %v = fdiv float %a, %b
  ret float %v
}

define double @tally.math.fdivide.f64(double %a, double %b) {
  %v = fdiv double %a, %b
  ret double %v
}

declare float @llvm.sqrt.f32(float)
declare double @llvm.sqrt.f64(double)
; Repeated squaring, as CUDA defines powi.

define float @tally.math.powi.f32(float %x, i32 %n) {
entry:
  %negative = icmp slt i32 %n, 0
  %minus = sub i32 0, %n
  %count = select i1 %negative, i32 %minus, i32 %n
  br label %loop

loop:
  %left = phi i32 [ %count, %entry ], [ %left.next, %loop ]
  %base = phi float [ %x, %entry ], [ %base.next, %loop ]
  %power = phi float [ 1.0, %entry ], [ %power.next, %loop ]
  %odd.bit = and i32 %left, 1
  %odd = icmp ne i32 %odd.bit, 0
  %product = fmul float %power, %base
  %power.next = select i1 %odd, float %product, float %power
  %base.next = fmul float %base, %base
  %left.next = lshr i32 %left, 1
  %more = icmp ne i32 %left.next, 0
  br i1 %more, label %loop, label %done

done:
  %inverse = fdiv float 1.0, %power.next
  %v = select i1 %negative, float %inverse, float %power.next
  ret float %v
}

define double @tally.math.powi.f64(double %x, i32 %n) {
entry:
  %negative = icmp slt i32 %n, 0
  %minus = sub i32 0, %n
  %count = select i1 %negative, i32 %minus, i32 %n
  br label %loop

loop:
  %left = phi i32 [ %count, %entry ], [ %left.next, %loop ]
  %base = phi double [ %x, %entry ], [ %base.next, %loop ]
  %power = phi double [ 1.0, %entry ], [ %power.next, %loop ]
  %odd.bit = and i32 %left, 1
  %odd = icmp ne i32 %odd.bit, 0
  %product = fmul double %power, %base
  %power.next = select i1 %odd, double %product, double %power
  %base.next = fmul double %base, %base
  %left.next = lshr i32 %left, 1
  %more = icmp ne i32 %left.next, 0
  br i1 %more, label %loop, label %done

done:
  %inverse = fdiv double 1.0, %power.next
  %v = select i1 %negative, double %inverse, double %power.next
  ret double %v
}

; Euclidean norms of arrays; extended precision neither overflows nor loses the last place.

define x86_fp80 @tally.cpu.norm.f32(i32 %n, ptr %p) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %done

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi x86_fp80 [ 0xK00000000000000000000, %entry ], [ %sum.next, %loop ]
  %wide = zext i32 %i to i64
  %at = getelementptr float, ptr %p, i64 %wide
  %x = load float, ptr %at
  %e = fpext float %x to x86_fp80
  %square = fmul x86_fp80 %e, %e
  %sum.next = fadd x86_fp80 %sum, %square
  %i.next = add i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %done

done:
  %total = phi x86_fp80 [ 0xK00000000000000000000, %entry ], [ %sum.next, %loop ]
  %v = call x86_fp80 @llvm.sqrt.f80(x86_fp80 %total)
  ret x86_fp80 %v
}

define float @tally.math.norm.f32(i32 %n, ptr %p) {
  %norm = call x86_fp80 @tally.cpu.norm.f32(i32 %n, ptr %p)
  %v = fptrunc x86_fp80 %norm to float
  ret float %v
}

define float @tally.math.rnorm.f32(i32 %n, ptr %p) {
  %norm = call x86_fp80 @tally.cpu.norm.f32(i32 %n, ptr %p)
  %inverse = fdiv x86_fp80 0xK3FFF8000000000000000, %norm
  %v = fptrunc x86_fp80 %inverse to float
  ret float %v
}

define void @tally.math.sincospi.f32(float %x, ptr %s, ptr %c) {
  %sine = call float @tally.math.sinpi.f32(float %x)
  store float %sine, ptr %s
  %cosine = call float @tally.math.cospi.f32(float %x)
  store float %cosine, ptr %c
  ret void
}

declare float @tally.math.sinpi.f32(float)
declare float @tally.math.cospi.f32(float)

define x86_fp80 @tally.cpu.norm.f64(i32 %n, ptr %p) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %done

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi x86_fp80 [ 0xK00000000000000000000, %entry ], [ %sum.next, %loop ]
  %wide = zext i32 %i to i64
  %at = getelementptr double, ptr %p, i64 %wide
  %x = load double, ptr %at
  %e = fpext double %x to x86_fp80
  %square = fmul x86_fp80 %e, %e
  %sum.next = fadd x86_fp80 %sum, %square
  %i.next = add i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %done

done:
  %total = phi x86_fp80 [ 0xK00000000000000000000, %entry ], [ %sum.next, %loop ]
  %v = call x86_fp80 @llvm.sqrt.f80(x86_fp80 %total)
  ret x86_fp80 %v
}

define double @tally.math.norm.f64(i32 %n, ptr %p) {
  %norm = call x86_fp80 @tally.cpu.norm.f64(i32 %n, ptr %p)
  %v = fptrunc x86_fp80 %norm to double
  ret double %v
}

define double @tally.math.rnorm.f64(i32 %n, ptr %p) {
  %norm = call x86_fp80 @tally.cpu.norm.f64(i32 %n, ptr %p)
  %inverse = fdiv x86_fp80 0xK3FFF8000000000000000, %norm
  %v = fptrunc x86_fp80 %inverse to double
  ret double %v
}

define void @tally.math.sincospi.f64(double %x, ptr %s, ptr %c) {
  %sine = call double @tally.math.sinpi.f64(double %x)
  store double %sine, ptr %s
  %cosine = call double @tally.math.cospi.f64(double %x)
  store double %cosine, ptr %c
  ret void
}

declare double @tally.math.sinpi.f64(double)
declare double @tally.math.cospi.f64(double)

declare x86_fp80 @llvm.sqrt.f80(x86_fp80)

; Half and bfloat conversions that the hardware lacks, or does with flushing (numerics.c puts calls
; of them where the IR has fptrunc).

define bfloat @tally.cpu.bfloat(float %x) {
  %bits = bitcast float %x to i32
  %nan = fcmp uno float %x, %x
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %bits, %bias
  %cut = lshr i32 %rounded, 16
  %quiet = or i32 %upper, 64
  %both = select i1 %nan, i32 %quiet, i32 %cut
  %short = trunc i32 %both to i16
  %v = bitcast i16 %short to bfloat
  ret bfloat %v
}

; A float that rounds on to anything narrower as the double does: what is cut off makes it odd.
define float @tally.cpu.odd(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %magnitude = call double @llvm.fabs.f64(double %x)
  %grown = call double @llvm.fabs.f64(double %back)
  %up = fcmp ogt double %grown, %magnitude
  %exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %step = sext i1 %up to i32
  %down = add i32 %bits, %step
  %odd = or i32 %down, 1
  %chosen = select i1 %exact, i32 %bits, i32 %odd
  %v = bitcast i32 %chosen to float
  ret float %v
}

define half @tally.cpu.half.f64(double %x) {
  %odd = call float @tally.cpu.odd(double %x)
  %v = fptrunc float %odd to half
  ret half %v
}

define bfloat @tally.cpu.bfloat.f64(double %x) {
  %odd = call float @tally.cpu.odd(double %x)
  %v = call bfloat @tally.cpu.bfloat(float %odd)
  ret bfloat %v
}

declare double @llvm.fabs.f64(double)

; a * b + c for a product that is exact in double, rounded to odd: right for any narrower format.
define double @tally.cpu.fma(double %a, double %b, double %c) {
  %p = fmul double %a, %b
  %s = fadd double %p, %c
  %pp = fsub double %s, %c
  %cc = fsub double %s, %pp
  %dp = fsub double %p, %pp
  %dc = fsub double %c, %cc
  %rest = fadd double %dp, %dc
  %bits = bitcast double %s to i64
  %last = and i64 %bits, 1
  %even = icmp eq i64 %last, 0
  %inexact = fcmp one double %rest, 0.0
  %rest.bits = bitcast double %rest to i64
  %signs = xor i64 %bits, %rest.bits
  %toward = icmp slt i64 %signs, 0
  %step = select i1 %toward, i64 -1, i64 1
  %moved = add i64 %bits, %step
  %move = and i1 %even, %inexact
  %chosen = select i1 %move, i64 %moved, i64 %bits
  %v = bitcast i64 %chosen to double
  ret double %v
}

define bfloat @tally.cpu.atomic.bfloat(ptr %p, bfloat %x) {
entry:
  %first = load atomic i16, ptr %p monotonic, align 2
  br label %again

again:
  %old = phi i16 [ %first, %entry ], [ %seen, %again ]
  %value = bitcast i16 %old to bfloat
  %a = fpext bfloat %value to float
  %b = fpext bfloat %x to float
  %sum = fadd float %a, %b
  %short = call bfloat @tally.cpu.bfloat(float %sum)
  %new = bitcast bfloat %short to i16
  %pair = cmpxchg ptr %p, i16 %old, i16 %new seq_cst seq_cst, align 2
  %seen = extractvalue { i16, i1 } %pair, 0
  %done = extractvalue { i16, i1 } %pair, 1
  br i1 %done, label %out, label %again

out:
  ret bfloat %value
}

define <2 x bfloat> @tally.cpu.atomic.bfloat2(ptr %p, <2 x bfloat> %x) {
entry:
  %first = load atomic i32, ptr %p monotonic, align 4
  br label %again

again:
  %old = phi i32 [ %first, %entry ], [ %seen, %again ]
  %value = bitcast i32 %old to <2 x bfloat>
  %a = fpext <2 x bfloat> %value to <2 x float>
  %b = fpext <2 x bfloat> %x to <2 x float>
  %sum = fadd <2 x float> %a, %b
  %sum.0 = extractelement <2 x float> %sum, i32 0
  %sum.1 = extractelement <2 x float> %sum, i32 1
  %short.0 = call bfloat @tally.cpu.bfloat(float %sum.0)
  %short.1 = call bfloat @tally.cpu.bfloat(float %sum.1)
  %new.0 = insertelement <2 x bfloat> poison, bfloat %short.0, i32 0
  %new.1 = insertelement <2 x bfloat> %new.0, bfloat %short.1, i32 1
  %new = bitcast <2 x bfloat> %new.1 to i32
  %pair = cmpxchg ptr %p, i32 %old, i32 %new seq_cst seq_cst, align 4
  %seen = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %out, label %again

out:
  ret <2 x bfloat> %value
}

!0 = !{}
!1 = !{i32 1, i32 1025}
