; SPDX-License-Identifier: Apache-2.0
; The decisions between blocks (launch_abi.h), for machines: guards and workers.

declare i32 @tally.thread.id.x()
declare i32 @tally.thread.id.y()
declare i32 @tally.thread.id.z()
declare void @tally.barrier(i32, i32) convergent nounwind
declare i1 @tally.barrier.or(i32, i32, i1) convergent nounwind
declare i1 @tally.barrier.and(i32, i32, i1) convergent nounwind

; ---------------------------------------------------------------- guards

; After `old` was read while the stop bit was set: the one that set it, when blocks remain and no
; earlier launch of the stream was stopped, says so, broken first.
define void @tally.library.guard.post(ptr addrspace(1) %c, i64 %old, i32 %max) {
entry:
  %broken.at = getelementptr i8, ptr addrspace(1) %c, i64 16
  %broken.address = load i64, ptr addrspace(1) %broken.at, align 8, !invariant.load !0
  %broken.word = inttoptr i64 %broken.address to ptr addrspace(1)
  %hi.at = getelementptr i8, ptr addrspace(1) %c, i64 36
  %hi = load i32, ptr addrspace(1) %hi.at, align 4, !invariant.load !0
  %first = icmp ult i64 %old, 4294967296
  %remain = icmp ult i32 %max, %hi
  %mine = and i1 %first, %remain
  br i1 %mine, label %break, label %done
break:
  %earlier = atomicrmw xchg ptr addrspace(1) %broken.word, i32 1 syncscope("device") acq_rel, align 4
  %whole = icmp eq i32 %earlier, 0
  br i1 %whole, label %post, label %done
post:
  %mailbox.at = getelementptr i8, ptr addrspace(1) %c, i64 24
  %mailbox.address = load i64, ptr addrspace(1) %mailbox.at, align 8, !invariant.load !0
  %mailbox = inttoptr i64 %mailbox.address to ptr addrspace(1)
  %sequence.at = getelementptr i8, ptr addrspace(1) %c, i64 32
  %sequence = load i32, ptr addrspace(1) %sequence.at, align 8, !invariant.load !0
  %sequence64 = zext i32 %sequence to i64
  %upper = shl i64 %sequence64, 32
  %lower = zext i32 %max to i64
  %letter = or i64 %upper, %lower
  store atomic i64 %letter, ptr addrspace(1) %mailbox release, align 8
  br label %done
done:
  ret void
}

; Whether the gate is closed or an earlier launch of the stream was stopped.
define i1 @tally.library.guard.asked(ptr addrspace(1) %c) {
  %gate.at = getelementptr i8, ptr addrspace(1) %c, i64 8
  %broken.at = getelementptr i8, ptr addrspace(1) %c, i64 16
  %gate.address = load i64, ptr addrspace(1) %gate.at, align 8, !invariant.load !0
  %broken.address = load i64, ptr addrspace(1) %broken.at, align 8, !invariant.load !0
  %gate.word = inttoptr i64 %gate.address to ptr addrspace(1)
  %broken.word = inttoptr i64 %broken.address to ptr addrspace(1)
  %gate = load atomic i32, ptr addrspace(1) %gate.word monotonic, align 4
  %was.broken = load atomic i32, ptr addrspace(1) %broken.word monotonic, align 4
  %either = or i32 %gate, %was.broken
  %asked = icmp ne i32 %either, 0
  ret i1 %asked
}

; The decision of launch_abi.h (tally_guard_enter), asked by one thread of the block. Relaxed
; atomics are enough for the word: everything that follows from it follows from its own total order,
; and an earlier launch of the stream has ended before this one starts. Only the mailbox, read by
; the host, is a release at system scope, after `broken` was set.
define i1 @tally.library.guard.decide(ptr %control, i32 %block) {
entry:
  %address = ptrtoint ptr %control to i64
  %even = and i64 %address, -2
  %c = inttoptr i64 %even to ptr addrspace(1)
  %asked = call i1 @tally.library.guard.asked(ptr addrspace(1) %c)
  %next = add i32 %block, 1
  br i1 %asked, label %stop, label %enter
enter:
  %odd = trunc i64 %address to i1
  br i1 %odd, label %whole, label %claim
whole:
  %hi.at = getelementptr i8, ptr addrspace(1) %c, i64 36
  %hi = load i32, ptr addrspace(1) %hi.at, align 4, !invariant.load !0
  br label %claim
claim:
  %most = phi i32 [ %next, %enter ], [ %hi, %whole ]
  %most64 = zext i32 %most to i64
  %before = atomicrmw umax ptr addrspace(1) %c, i64 %most64 syncscope("device") monotonic, align 8
  %running = icmp ult i64 %before, 4294967296
  %max = trunc i64 %before to i32
  %promised = icmp uge i32 %max, %next
  %may = or i1 %running, %promised
  ret i1 %may
stop:
  %old = atomicrmw or ptr addrspace(1) %c, i64 4294967296 syncscope("device") monotonic, align 8
  %old.max = trunc i64 %old to i32
  call void @tally.library.guard.post(ptr addrspace(1) %c, i64 %old, i32 %old.max)
  %kept = icmp uge i32 %old.max, %next
  ret i1 %kept
}

; Thread 0 decides, a barrier reduction tells the others.
define i1 @tally.guard.enter(ptr %control, i32 %block) convergent {
entry:
  %x = call i32 @tally.thread.id.x()
  %y = call i32 @tally.thread.id.y()
  %z = call i32 @tally.thread.id.z()
  %xy = or i32 %x, %y
  %xyz = or i32 %xy, %z
  %first = icmp eq i32 %xyz, 0
  br i1 %first, label %decide, label %tell
decide:
  %decision = call i1 @tally.library.guard.decide(ptr %control, i32 %block)
  br label %tell
tell:
  %mine = phi i1 [ false, %entry ], [ %decision, %decide ]
  %all = call i1 @tally.barrier.or(i32 0, i32 0, i1 %mine) "tally.aligned"
  ret i1 %all
}

; ---------------------------------------------------------------- workers

; The next block of a worker (launch_abi.h: tally_persist_claim), asked by one thread.
define i32 @tally.library.persist.claim(ptr %control) {
entry:
  %c = addrspacecast ptr %control to ptr addrspace(1)
  %asked = call i1 @tally.library.guard.asked(ptr addrspace(1) %c)
  br i1 %asked, label %stop, label %take
take:
  %before = atomicrmw add ptr addrspace(1) %c, i64 1 syncscope("device") monotonic, align 8
  %running = icmp ult i64 %before, 4294967296
  %low = trunc i64 %before to i32
  %block = select i1 %running, i32 %low, i32 -1
  ret i32 %block
stop:
  %old = atomicrmw or ptr addrspace(1) %c, i64 4294967296 syncscope("device") monotonic, align 8
  %max = trunc i64 %old to i32
  call void @tally.library.guard.post(ptr addrspace(1) %c, i64 %old, i32 %max)
  ret i32 -1
}

; Two places in turn: while somebody still reads one, thread 0 may be writing the other already, and
; it comes to the first again only after everybody has met.
@tally.library.persist.place = internal addrspace(3) global [2 x i32] undef, align 4

define i32 @tally.persist.next(ptr %control, i32 %mine, i32 %round) convergent {
entry:
  %x = call i32 @tally.thread.id.x()
  %y = call i32 @tally.thread.id.y()
  %z = call i32 @tally.thread.id.z()
  %xy = or i32 %x, %y
  %xyz = or i32 %xy, %z
  %first = icmp eq i32 %xyz, 0
  %odd = and i32 %round, 1
  %place = getelementptr [2 x i32], ptr addrspace(3) @tally.library.persist.place, i32 0, i32 %odd
  br i1 %first, label %decide, label %meet
decide:
  %none = icmp eq ptr %control, null
  br i1 %none, label %tell, label %claim
claim:
  %claimed = call i32 @tally.library.persist.claim(ptr %control)
  br label %tell
tell:
  %block = phi i32 [ %mine, %decide ], [ %claimed, %claim ]
  store i32 %block, ptr addrspace(3) %place, align 4
  br label %meet
meet:
  call void @tally.barrier(i32 0, i32 0)
  %told = load i32, ptr addrspace(3) %place, align 4
  ret i32 %told
}

; A barrier of a body: where another block follows it is a question, and one that has not returned
; says no.
define void @tally.persist.meet(i1 %persistent) convergent {
entry:
  br i1 %persistent, label %ask, label %plain
ask:
  %all = call i1 @tally.barrier.and(i32 0, i32 0, i1 false)
  ret void
plain:
  call void @tally.barrier(i32 0, i32 0)
  ret void
}

; Those that have returned say yes until all do.
define void @tally.persist.finish() convergent {
entry:
  br label %again
again:
  %all = call i1 @tally.barrier.and(i32 0, i32 0, i1 true)
  br i1 %all, label %done, label %again
done:
  ret void
}

!0 = !{}
