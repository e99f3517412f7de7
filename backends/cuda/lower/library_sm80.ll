; SPDX-License-Identifier: Apache-2.0
; What sm_80 and newer do in one instruction; older machines take the portable loops.

declare i32 @llvm.nvvm.redux.sync.add(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.min(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.max(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.umin(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.umax(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.and(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.or(i32, i32) convergent nounwind
declare i32 @llvm.nvvm.redux.sync.xor(i32, i32) convergent nounwind

define i32 @tally.reduce.add(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.min(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.min(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.max(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.max(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.umin(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.umin(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.umax(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.umax(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.and(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.and(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.or(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.or(i32 %v, i32 %mask)
  ret i32 %r
}

define i32 @tally.reduce.xor(i32 %mask, i32 %v) convergent {
  %r = call i32 @llvm.nvvm.redux.sync.xor(i32 %v, i32 %mask)
  ret i32 %r
}

; mbarrier objects are the hardware's own from here on. Several arrivals at once, and transactions,
; came with sm_90: here all arrivals but the last are made first, which cannot complete the phase.

define void @tally.mbarrier.init(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "mbarrier.init.shared.b64 [$0], $1;", "r,r,~{memory}"(i32 %address, i32 %count)
  ret void
}

define void @tally.mbarrier.inval(ptr addrspace(3) %b) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "mbarrier.inval.shared.b64 [$0];", "r,~{memory}"(i32 %address)
  ret void
}

define i64 @tally.mbarrier.arrive(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %many = icmp ugt i32 %count, 1
  br i1 %many, label %some, label %last
some:
  %rest = sub i32 %count, 1
  %before = call i64 asm sideeffect "mbarrier.arrive.noComplete.shared.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %rest)
  br label %last
last:
  %r = call i64 asm sideeffect "mbarrier.arrive.shared.b64 $0, [$1];", "=l,r,~{memory}"(i32 %address)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.some(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %r = call i64 asm sideeffect "mbarrier.arrive.noComplete.shared.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %count)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.drop(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %many = icmp ugt i32 %count, 1
  br i1 %many, label %some, label %last
some:
  %rest = sub i32 %count, 1
  %before = call i64 asm sideeffect "mbarrier.arrive_drop.noComplete.shared.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %rest)
  br label %last
last:
  %r = call i64 asm sideeffect "mbarrier.arrive_drop.shared.b64 $0, [$1];", "=l,r,~{memory}"(i32 %address)
  ret i64 %r
}

declare i64 @tally.nvidia.refused.transactions.of.an.mbarrier(ptr addrspace(3), i32)

define i64 @tally.mbarrier.arrive.expect(ptr addrspace(3) %b, i32 %tx) {
  %r = call i64 @tally.nvidia.refused.transactions.of.an.mbarrier(ptr addrspace(3) %b, i32 %tx)
  ret i64 %r
}

define void @tally.mbarrier.expect(ptr addrspace(3) %b, i32 %tx) {
  %r = call i64 @tally.nvidia.refused.transactions.of.an.mbarrier(ptr addrspace(3) %b, i32 %tx)
  ret void
}

define void @tally.mbarrier.complete(ptr addrspace(3) %b, i32 %tx) {
  %r = call i64 @tally.nvidia.refused.transactions.of.an.mbarrier(ptr addrspace(3) %b, i32 %tx)
  ret void
}

define i1 @tally.mbarrier.test(ptr addrspace(3) %b, i64 %state) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %word = call i32 asm sideeffect "{ .reg .pred %done; mbarrier.test_wait.shared.b64 %done, [$1], $2; selp.u32 $0, 1, 0, %done; }", "=r,r,l,~{memory}"(i32 %address, i64 %state)
  %r = icmp ne i32 %word, 0
  ret i1 %r
}

define i1 @tally.mbarrier.test.parity(ptr addrspace(3) %b, i32 %parity) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %word = call i32 asm sideeffect "{ .reg .pred %done; mbarrier.test_wait.parity.shared.b64 %done, [$1], $2; selp.u32 $0, 1, 0, %done; }", "=r,r,r,~{memory}"(i32 %address, i32 %parity)
  %r = icmp ne i32 %word, 0
  ret i1 %r
}

define i1 @tally.mbarrier.try(ptr addrspace(3) %b, i64 %state) convergent {
  %r = call i1 @tally.mbarrier.test(ptr addrspace(3) %b, i64 %state)
  ret i1 %r
}

define i1 @tally.mbarrier.try.parity(ptr addrspace(3) %b, i32 %parity) convergent {
  %r = call i1 @tally.mbarrier.test.parity(ptr addrspace(3) %b, i32 %parity)
  ret i1 %r
}

define i32 @tally.mbarrier.pending.count(i64 %state) {
  %r = call i32 asm "mbarrier.pending_count.b64 $0, $1;", "=r,l"(i64 %state)
  ret i32 %r
}

; Copies that other work may overtake: their groups, and the arrival when they are complete.

define void @tally.copy.commit() {
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  ret void
}

define void @tally.copy.wait(i32 %groups) alwaysinline {
  call void asm sideeffect "cp.async.wait_group $0;", "n,~{memory}"(i32 %groups)
  ret void
}

define void @tally.copy.wait.all() {
  call void asm sideeffect "cp.async.wait_all;", "~{memory}"()
  ret void
}

define void @tally.copy.arrive(ptr addrspace(3) %b) {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "cp.async.mbarrier.arrive.shared.b64 [$0];", "r,~{memory}"(i32 %address)
  ret void
}

define void @tally.copy.arrive.own(ptr addrspace(3) %b) {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r,~{memory}"(i32 %address)
  ret void
}
