; SPDX-License-Identifier: Apache-2.0
; A warp of 64 lanes is a wave of 64. The contract's lane masks have 32 bits: operations that take one
; are refused (kernels.c).

declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)

define i32 @tally.warp.size() {
  ret i32 64
}

define i32 @tally.lane.id() {
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  ret i32 %lane
}
