; SPDX-License-Identifier: Apache-2.0
; A warp of 32 lanes is a wave of 32.

declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.ballot.i32(i1) convergent nounwind

define i32 @tally.warp.size() {
  ret i32 32
}

define i32 @tally.lane.id() {
  %r = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  ret i32 %r
}

define i32 @tally.amd.base() {
  ret i32 0
}

define i32 @tally.amd.ballot(i1 %p) convergent {
  %r = call i32 @llvm.amdgcn.ballot.i32(i1 %p)
  ret i32 %r
}
