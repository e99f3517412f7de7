; The smallest real kernel, neutral already.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

define void @vadd(ptr addrspace(1) %a, ptr addrspace(1) %b, i32 %n) #0 {
entry:
  %block = call i32 @tally.block.id.x()
  %size = call i32 @tally.block.size.x()
  %thread = call i32 @tally.thread.id.x()
  %first = mul i32 %block, %size
  %i = add i32 %first, %thread
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %add, label %done
add:
  %i64 = sext i32 %i to i64
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %i64
  %pb = getelementptr float, ptr addrspace(1) %b, i64 %i64
  %x = load float, ptr addrspace(1) %pa, align 4
  %y = load float, ptr addrspace(1) %pb, align 4
  %z = fadd float %x, %y
  store float %z, ptr addrspace(1) %pb, align 4
  br label %done
done:
  ret void
}

declare i32 @tally.block.id.x()
declare i32 @tally.block.size.x()
declare i32 @tally.thread.id.x()

attributes #0 = { "tally.kernel" "tally.warp"="32" "tally.maxntid"="256,1,1" "tally.minctapersm"="2" }
