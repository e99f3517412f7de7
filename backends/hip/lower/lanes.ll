; SPDX-License-Identifier: Apache-2.0
; Lane operations for warps of 32 lanes, which are a wave or half of one. The lanes of a mask are
; together when they meet here (these machines run a wave in step); a lane outside this half, or one
; that is not there, is never read.

declare i32 @llvm.amdgcn.ds.bpermute(i32, i32) convergent nounwind
declare void @llvm.amdgcn.wave.barrier() convergent nounwind
declare i32 @tally.lane.id()
; The lanes of this warp that are here with p set; where the warp's lane 0 stands in the wave.
declare i32 @tally.amd.ballot(i1) convergent nounwind
declare i32 @tally.amd.base()

define void @tally.warp.sync(i32 %mask) convergent {
  fence syncscope("wavefront") release
  call void @llvm.amdgcn.wave.barrier()
  fence syncscope("wavefront") acquire
  ret void
}

define i32 @tally.active.mask() convergent {
  %r = call i32 @tally.amd.ballot(i1 true)
  ret i32 %r
}

define i32 @tally.vote.ballot(i32 %mask, i1 %p) convergent {
  %lanes = call i32 @tally.amd.ballot(i1 %p)
  %r = and i32 %lanes, %mask
  ret i32 %r
}

define i1 @tally.vote.any(i32 %mask, i1 %p) convergent {
  %lanes = call i32 @tally.vote.ballot(i32 %mask, i1 %p)
  %r = icmp ne i32 %lanes, 0
  ret i1 %r
}

define i1 @tally.vote.all(i32 %mask, i1 %p) convergent {
  %not = xor i1 %p, true
  %lanes = call i32 @tally.vote.ballot(i32 %mask, i1 %not)
  %r = icmp eq i32 %lanes, 0
  ret i1 %r
}

define i1 @tally.vote.uni(i32 %mask, i1 %p) convergent {
  %all = call i1 @tally.vote.all(i32 %mask, i1 %p)
  %any = call i1 @tally.vote.any(i32 %mask, i1 %p)
  %none = xor i1 %any, true
  %r = or i1 %all, %none
  ret i1 %r
}

; The value of lane %source of this warp.
define i32 @tally.amd.read(i32 %v, i32 %source) convergent {
  %base = call i32 @tally.amd.base()
  %lane = add i32 %base, %source
  %address = shl i32 %lane, 2
  %r = call i32 @llvm.amdgcn.ds.bpermute(i32 %address, i32 %v)
  ret i32 %r
}

; Clamped shuffles as in the PTX ISA (shfl.sync): %j the lane to read, %in whether it is in range.
define { i32, i1 } @tally.amd.shuffle(i32 %v, i32 %j, i1 %in) convergent {
  %lane = call i32 @tally.lane.id()
  %source = select i1 %in, i32 %j, i32 %lane
  %value = call i32 @tally.amd.read(i32 %v, i32 %source)
  %r0 = insertvalue { i32, i1 } poison, i32 %value, 0
  %r1 = insertvalue { i32, i1 } %r0, i1 %in, 1
  ret { i32, i1 } %r1
}

; The lowest lane of this lane's segment, and the bound that operand c gives.
define i32 @tally.amd.segment(i32 %c) {
  %lane = call i32 @tally.lane.id()
  %field = lshr i32 %c, 8
  %mask = and i32 %field, 31
  %r = and i32 %lane, %mask
  ret i32 %r
}

define i32 @tally.amd.bound(i32 %c) {
  %first = call i32 @tally.amd.segment(i32 %c)
  %field = lshr i32 %c, 8
  %mask = and i32 %field, 31
  %not = xor i32 %mask, -1
  %clamp = and i32 %c, 31
  %inside = and i32 %clamp, %not
  %r = or i32 %first, %inside
  ret i32 %r
}

define { i32, i1 } @tally.shuffle.up(i32 %members, i32 %v, i32 %b, i32 %c) convergent {
  %lane = call i32 @tally.lane.id()
  %by = and i32 %b, 31
  %j = sub i32 %lane, %by
  %bound = call i32 @tally.amd.bound(i32 %c)
  %in = icmp sge i32 %j, %bound
  %r = call { i32, i1 } @tally.amd.shuffle(i32 %v, i32 %j, i1 %in)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.down(i32 %members, i32 %v, i32 %b, i32 %c) convergent {
  %lane = call i32 @tally.lane.id()
  %by = and i32 %b, 31
  %j = add i32 %lane, %by
  %bound = call i32 @tally.amd.bound(i32 %c)
  %in = icmp sle i32 %j, %bound
  %r = call { i32, i1 } @tally.amd.shuffle(i32 %v, i32 %j, i1 %in)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.xor(i32 %members, i32 %v, i32 %b, i32 %c) convergent {
  %lane = call i32 @tally.lane.id()
  %by = and i32 %b, 31
  %j = xor i32 %lane, %by
  %bound = call i32 @tally.amd.bound(i32 %c)
  %in = icmp sle i32 %j, %bound
  %r = call { i32, i1 } @tally.amd.shuffle(i32 %v, i32 %j, i1 %in)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.shuffle.idx(i32 %members, i32 %v, i32 %b, i32 %c) convergent {
  %by = and i32 %b, 31
  %first = call i32 @tally.amd.segment(i32 %c)
  %field = lshr i32 %c, 8
  %mask = and i32 %field, 31
  %not = xor i32 %mask, -1
  %inside = and i32 %by, %not
  %j = or i32 %first, %inside
  %bound = call i32 @tally.amd.bound(i32 %c)
  %in = icmp sle i32 %j, %bound
  %r = call { i32, i1 } @tally.amd.shuffle(i32 %v, i32 %j, i1 %in)
  ret { i32, i1 } %r
}
