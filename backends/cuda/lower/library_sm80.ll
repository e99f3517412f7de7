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
