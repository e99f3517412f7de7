; SPDX-License-Identifier: Apache-2.0
; A kernel without a body of its own: its variants are what stands round bodies that stay as text
; (lower_keep.c). Names begin with %tally_ where a body may see them.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

define void @tally_frame() "tally.kernel" "tally.warp"="32" "tally.vendor"="nvidia" "tally.locked"="text" {
  %bx = call i32 @tally.block.id.x()
  %by = call i32 @tally.block.id.y()
  %bz = call i32 @tally.block.id.z()
  %gx = call i32 @tally.grid.size.x()
  %gy = call i32 @tally.grid.size.y()
  %gz = call i32 @tally.grid.size.z()
  call void asm sideeffect ".reg .b32 %tally_block_x, %tally_block_y, %tally_block_z, %tally_grid_x, %tally_grid_y, %tally_grid_z; mov.b32 %tally_block_x, $0; mov.b32 %tally_block_y, $1; mov.b32 %tally_block_z, $2; mov.b32 %tally_grid_x, $3; mov.b32 %tally_grid_y, $4; mov.b32 %tally_grid_z, $5; tally_body;", "r,r,r,r,r,r"(i32 %bx, i32 %by, i32 %bz, i32 %gx, i32 %gy, i32 %gz) convergent
  ret void
}

declare i32 @tally.block.id.x()
declare i32 @tally.block.id.y()
declare i32 @tally.block.id.z()
declare i32 @tally.grid.size.x()
declare i32 @tally.grid.size.y()
declare i32 @tally.grid.size.z()
