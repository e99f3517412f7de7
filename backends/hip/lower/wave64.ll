; SPDX-License-Identifier: Apache-2.0
; A warp of 32 lanes is the lower or the upper half of a wave of 64.

declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)
declare i64 @llvm.amdgcn.ballot.i64(i1) convergent nounwind

define i32 @tally.warp.size() {
  ret i32 32
}

define i32 @tally.amd.wave.lane() {
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  ret i32 %lane
}

define i32 @tally.lane.id() {
  %lane = call i32 @tally.amd.wave.lane()
  %r = and i32 %lane, 31
  ret i32 %r
}

define i32 @tally.amd.base() {
  %lane = call i32 @tally.amd.wave.lane()
  %r = and i32 %lane, 32
  ret i32 %r
}

define i32 @tally.amd.ballot(i1 %p) convergent {
  %all = call i64 @llvm.amdgcn.ballot.i64(i1 %p)
  %base = call i32 @tally.amd.base()
  %base64 = zext i32 %base to i64
  %moved = lshr i64 %all, %base64
  %r = trunc i64 %moved to i32
  ret i32 %r
}
