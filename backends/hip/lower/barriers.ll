; SPDX-License-Identifier: Apache-2.0
; Barriers of a part of the block, for warps that are waves of their own (barriers.c). A barrier is
; a word of shared memory: the warps that have arrived in its low half, the phases that are over in
; its high half. A warp counts as 32 threads and comes with all its lanes (PTX ISA 9.7.13.1, .aligned).
; All waves of a block are on the machine together, so one that looks again and again holds nobody up.

declare i32 @llvm.amdgcn.readfirstlane.i32(i32) convergent nounwind
declare void @llvm.amdgcn.s.sleep(i32)
declare i32 @llvm.ctpop.i32(i32)
declare void @tally.barrier(i32, i32) convergent
declare i32 @tally.barrier.popc(i32, i32, i1) convergent
declare i32 @tally.lane.id()
declare i32 @tally.amd.ballot(i1) convergent

; Of each of the 16 barriers: the word, and the sums of its reductions in even and in odd phases.
@tally.amd.parts = internal addrspace(3) global [16 x <4 x i32>] undef, align 16

define void @tally.amd.part.clear() convergent {
entry:
  br label %next
next:
  %k = phi i32 [ 0, %entry ], [ %k1, %next ]
  %at = getelementptr <4 x i32>, ptr addrspace(3) @tally.amd.parts, i32 %k
  store <4 x i32> zeroinitializer, ptr addrspace(3) %at, align 16
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 16
  br i1 %more, label %next, label %cleared
cleared:
  call void @tally.barrier(i32 0, i32 0)
  ret void
}

; One arrival of this warp with `sum` threads whose predicate holds; the phase that it is one of.
define i32 @tally.amd.part.enter(i32 %id, i32 %count, i32 %sum) convergent {
entry:
  %number = and i32 %id, 15
  %word = getelementptr <4 x i32>, ptr addrspace(3) @tally.amd.parts, i32 %number
  %rounded = add i32 %count, 31
  %warps = lshr i32 %rounded, 5
  %here = call i32 @tally.amd.ballot(i1 true)
  %leader = call i32 @llvm.cttz.i32(i32 %here, i1 true)
  %lane = call i32 @tally.lane.id()
  %mine = icmp eq i32 %lane, %leader
  fence syncscope("block") release
  br i1 %mine, label %look, label %known
look:
  %seen = load atomic i32, ptr addrspace(3) %word syncscope("block") monotonic, align 4
  %odd = lshr i32 %seen, 16
  %slot = and i32 %odd, 1
  %slot1 = add i32 %slot, 1
  %sums = getelementptr i32, ptr addrspace(3) %word, i32 %slot1
  %other = sub i32 2, %slot
  %later = getelementptr i32, ptr addrspace(3) %word, i32 %other
  %some = icmp ne i32 %sum, 0
  br i1 %some, label %add, label %arrive
add:
  %before = atomicrmw add ptr addrspace(3) %sums, i32 %sum syncscope("block") monotonic, align 4
  br label %arrive
arrive:
  %old = phi i32 [ %seen, %look ], [ %seen, %add ], [ %now, %again ]
  %low = and i32 %old, 65535
  %arrived = add i32 %low, 1
  %all = icmp uge i32 %arrived, %warps
  br i1 %all, label %last, label %more
last:
  ; Who read the other sum is here again: it can start anew.
  store atomic i32 0, ptr addrspace(3) %later syncscope("block") monotonic, align 4
  %high = and i32 %old, -65536
  %over = add i32 %high, 65536
  br label %swap
more:
  %one = add i32 %old, 1
  br label %swap
swap:
  %new = phi i32 [ %over, %last ], [ %one, %more ]
  %pair = cmpxchg ptr addrspace(3) %word, i32 %old, i32 %new syncscope("block") acq_rel monotonic, align 4
  %now = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %known, label %again
again:
  br label %arrive
known:
  %phase = phi i32 [ 0, %entry ], [ %old, %swap ]
  %told = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %phase)
  %r = lshr i32 %told, 16
  ret i32 %r
}

define void @tally.amd.part.wait(i32 %id, i32 %phase) convergent {
  %number = and i32 %id, 15
  %word = getelementptr <4 x i32>, ptr addrspace(3) @tally.amd.parts, i32 %number
  br label %look
look:
  %lanes = load atomic i32, ptr addrspace(3) %word syncscope("block") monotonic, align 4
  %seen = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %lanes)
  %now = lshr i32 %seen, 16
  %same = icmp eq i32 %now, %phase
  br i1 %same, label %sleep, label %over
sleep:
  call void @llvm.amdgcn.s.sleep(i32 1)
  br label %look
over:
  fence syncscope("block") acquire
  ret void
}

define void @tally.amd.part.barrier.arrive(i32 %id, i32 %count) convergent {
  %phase = call i32 @tally.amd.part.enter(i32 %id, i32 %count, i32 0)
  ret void
}

define void @tally.amd.part.barrier(i32 %id, i32 %count) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  call void @tally.barrier(i32 %id, i32 0)
  ret void
part:
  %phase = call i32 @tally.amd.part.enter(i32 %id, i32 %count, i32 0)
  call void @tally.amd.part.wait(i32 %id, i32 %phase)
  ret void
}

define i32 @tally.amd.part.barrier.popc(i32 %id, i32 %count, i1 %p) convergent {
  %all = icmp eq i32 %count, 0
  br i1 %all, label %whole, label %part
whole:
  %w = call i32 @tally.barrier.popc(i32 %id, i32 0, i1 %p)
  ret i32 %w
part:
  %lanes = call i32 @tally.amd.ballot(i1 %p)
  %mine = call i32 @llvm.ctpop.i32(i32 %lanes)
  %phase = call i32 @tally.amd.part.enter(i32 %id, i32 %count, i32 %mine)
  call void @tally.amd.part.wait(i32 %id, i32 %phase)
  %number = and i32 %id, 15
  %slot = and i32 %phase, 1
  %slot1 = add i32 %slot, 1
  %word = getelementptr <4 x i32>, ptr addrspace(3) @tally.amd.parts, i32 %number
  %sums = getelementptr i32, ptr addrspace(3) %word, i32 %slot1
  %sum = load atomic i32, ptr addrspace(3) %sums syncscope("block") monotonic, align 4
  ret i32 %sum
}

define i1 @tally.amd.part.barrier.or(i32 %id, i32 %count, i1 %p) convergent {
  %sum = call i32 @tally.amd.part.barrier.popc(i32 %id, i32 %count, i1 %p)
  %r = icmp ne i32 %sum, 0
  ret i1 %r
}

define i1 @tally.amd.part.barrier.and(i32 %id, i32 %count, i1 %p) convergent {
  %not = xor i1 %p, true
  %sum = call i32 @tally.amd.part.barrier.popc(i32 %id, i32 %count, i1 %not)
  %r = icmp eq i32 %sum, 0
  ret i1 %r
}

declare i32 @llvm.cttz.i32(i32, i1)
