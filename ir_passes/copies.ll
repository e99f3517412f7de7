; SPDX-License-Identifier: Apache-2.0
; Portable bodies of asynchronous copies (made at once: nothing is left to wait for) and of cache
; policies (hints: any number will do).

declare i64 @tally.mbarrier.arrive(ptr addrspace(3), i32) convergent
declare void @llvm.memset.p3.i64(ptr addrspace(3), i8, i64, i1)

; The first %given bytes, at most %size of them, then zeros.
define void @tally.library.copy.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given, i32 %size) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %store ]
  %more = icmp ult i32 %i, %size
  br i1 %more, label %test, label %done
test:
  %whole = icmp ult i32 %i, %given
  br i1 %whole, label %load, label %store
load:
  %source = getelementptr i8, ptr addrspace(1) %from, i32 %i
  %byte = load i8, ptr addrspace(1) %source, align 1
  br label %store
store:
  %v = phi i8 [ 0, %test ], [ %byte, %load ]
  %target = getelementptr i8, ptr addrspace(3) %to, i32 %i
  store i8 %v, ptr addrspace(3) %target, align 1
  %next = add i32 %i, 1
  br label %loop
done:
  ret void
}

define void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  %v = load i32, ptr addrspace(1) %from, align 4
  store i32 %v, ptr addrspace(3) %to, align 4
  ret void
}

define void @tally.library.copy.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  %whole = icmp uge i32 %given, 4
  br i1 %whole, label %all, label %some
all:
  call void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
some:
  call void @tally.library.copy.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given, i32 4)
  ret void
}

define void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  %v = load i64, ptr addrspace(1) %from, align 8
  store i64 %v, ptr addrspace(3) %to, align 8
  ret void
}

define void @tally.library.copy.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  %whole = icmp uge i32 %given, 8
  br i1 %whole, label %all, label %some
all:
  call void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
some:
  call void @tally.library.copy.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given, i32 8)
  ret void
}

define void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  %v = load <4 x i32>, ptr addrspace(1) %from, align 16
  store <4 x i32> %v, ptr addrspace(3) %to, align 16
  ret void
}

define void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  %whole = icmp uge i32 %given, 16
  br i1 %whole, label %all, label %some
all:
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
some:
  call void @tally.library.copy.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given, i32 16)
  ret void
}

define void @tally.copy.async.ca.4(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.4.64(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.4.64.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.4.128(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.4.128.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.4.256(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.4(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.4.256.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.4.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.8(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.8.64(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.8.64.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.8.128(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.8.128.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.8.256(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.8(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.8.256.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.8.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.16(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.16.64(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.16.64.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.16.128(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.16.128.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.ca.16.256(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.ca.16.256.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.cg.16(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.cg.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.cg.16.64(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.cg.16.64.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.cg.16.128(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.cg.16.128.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.async.cg.16.256(ptr addrspace(3) %to, ptr addrspace(1) %from) {
  call void @tally.library.copy.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}

define void @tally.copy.async.cg.16.256.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given) {
  call void @tally.library.copy.16.part(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 %given)
  ret void
}

define void @tally.copy.commit() {
  ret void
}

define void @tally.copy.wait(i32 %groups) {
  ret void
}

define void @tally.copy.wait.all() {
  ret void
}

; The arrival that the copies would trigger takes away the one that it has added itself.
define void @tally.copy.arrive(ptr addrspace(3) %b) {
  ret void
}

define void @tally.copy.arrive.own(ptr addrspace(3) %b) {
  %r = call i64 @tally.mbarrier.arrive(ptr addrspace(3) %b, i32 1)
  ret void
}

define i64 @tally.cache.policy.fractional.evict_last(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_last(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_last.evict_first(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_last.evict_first(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_last.evict_unchanged(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_last.evict_unchanged(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_normal(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_normal(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_normal.evict_first(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_normal.evict_first(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_normal.evict_unchanged(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_normal.evict_unchanged(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_first(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_first(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_first.evict_first(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_first.evict_first(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_first.evict_unchanged(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_first.evict_unchanged(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_unchanged(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_unchanged(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_unchanged.evict_first(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_unchanged.evict_first(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.fractional.evict_unchanged.evict_unchanged(float %share) {
  ret i64 0
}

define i64 @tally.cache.policy.range.evict_unchanged.evict_unchanged(ptr %p, i32 %primary, i32 %total) {
  ret i64 0
}

define i64 @tally.cache.policy.cvt(i64 %property) {
  ret i64 0
}
