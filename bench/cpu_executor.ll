; SPDX-License-Identifier: Apache-2.0
; Kernels of bench_cpu_executor, in neutral IR.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

declare i32 @tally.thread.id.x()
declare i32 @tally.thread.id.y()
declare i32 @tally.block.id.x()
declare i32 @tally.block.id.y()
declare i32 @tally.block.size.x()
declare void @tally.barrier(i32, i32)

; `count` barriers with one store of each thread between any two.
define void @barriers(ptr %out, i32 %count) #0 {
entry:
  %t = call i32 @tally.thread.id.x()
  %tw = zext i32 %t to i64
  %to = getelementptr i32, ptr %out, i64 %tw
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %to, align 4
  call void @tally.barrier(i32 0, i32 0)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; c = a + b
define void @vadd(ptr %a, ptr %b, ptr %c, i32 %n) #0 {
  %b.id = call i32 @tally.block.id.x()
  %size = call i32 @tally.block.size.x()
  %t = call i32 @tally.thread.id.x()
  %base = mul i32 %b.id, %size
  %i = add i32 %base, %t
  %in = icmp slt i32 %i, %n
  br i1 %in, label %do, label %out
do:
  %w = sext i32 %i to i64
  %pa = getelementptr float, ptr %a, i64 %w
  %pb = getelementptr float, ptr %b, i64 %w
  %pc = getelementptr float, ptr %c, i64 %w
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %s = fadd float %x, %y
  store float %s, ptr %pc, align 4
  br label %out
out:
  ret void
}

; A polynomial of each element, sixteen steps.
define void @stencil(ptr %a, ptr %b, ptr %c, i32 %n) #0 {
entry:
  %b.id = call i32 @tally.block.id.x()
  %size = call i32 @tally.block.size.x()
  %t = call i32 @tally.thread.id.x()
  %base = mul i32 %b.id, %size
  %i = add i32 %base, %t
  %w = sext i32 %i to i64
  %pa = getelementptr float, ptr %a, i64 %w
  %pc = getelementptr float, ptr %c, i64 %w
  %x = load float, ptr %pa, align 4
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %acc = phi float [ 0.5, %entry ], [ %acc.next, %loop ]
  %m = fmul float %acc, %x
  %acc.next = fadd float %m, 0.25
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, 16
  br i1 %more, label %loop, label %done
done:
  store float %acc.next, ptr %pc, align 4
  ret void
}

; c = a * b in tiles of 16 x 16.
@as = internal addrspace(3) global [16 x [16 x float]] undef, align 4
@bs = internal addrspace(3) global [16 x [16 x float]] undef, align 4
define void @matmul(ptr %a, ptr %b, ptr %c, i32 %n) #0 {
entry:
  %tx = call i32 @tally.thread.id.x()
  %ty = call i32 @tally.thread.id.y()
  %bx = call i32 @tally.block.id.x()
  %by = call i32 @tally.block.id.y()
  %by16 = shl i32 %by, 4
  %bx16 = shl i32 %bx, 4
  %row = add i32 %by16, %ty
  %col = add i32 %bx16, %tx
  %rn = mul i32 %row, %n
  %txw = zext i32 %tx to i64
  %tyw = zext i32 %ty to i64
  %sa = getelementptr [16 x [16 x float]], ptr addrspace(3) @as, i64 0, i64 %tyw, i64 %txw
  %sb = getelementptr [16 x [16 x float]], ptr addrspace(3) @bs, i64 0, i64 %tyw, i64 %txw
  br label %tile
tile:
  %k = phi i32 [ 0, %entry ], [ %k.next, %after ]
  %sum = phi float [ 0.0, %entry ], [ %acc.next, %after ]
  %kt = add i32 %k, %tx
  %ia = add i32 %rn, %kt
  %iaw = sext i32 %ia to i64
  %pa = getelementptr float, ptr %a, i64 %iaw
  %va = load float, ptr %pa, align 4
  store float %va, ptr addrspace(3) %sa, align 4
  %kr = add i32 %k, %ty
  %krn = mul i32 %kr, %n
  %ib = add i32 %krn, %col
  %ibw = sext i32 %ib to i64
  %pb = getelementptr float, ptr %b, i64 %ibw
  %vb = load float, ptr %pb, align 4
  store float %vb, ptr addrspace(3) %sb, align 4
  call void @tally.barrier(i32 0, i32 0)
  br label %inner
inner:
  %j = phi i64 [ 0, %tile ], [ %j.next, %inner ]
  %acc = phi float [ %sum, %tile ], [ %acc.next, %inner ]
  %qa = getelementptr [16 x [16 x float]], ptr addrspace(3) @as, i64 0, i64 %tyw, i64 %j
  %xa = load float, ptr addrspace(3) %qa, align 4
  %qb = getelementptr [16 x [16 x float]], ptr addrspace(3) @bs, i64 0, i64 %j, i64 %txw
  %xb = load float, ptr addrspace(3) %qb, align 4
  %m = fmul float %xa, %xb
  %acc.next = fadd float %acc, %m
  %j.next = add i64 %j, 1
  %more.j = icmp ult i64 %j.next, 16
  br i1 %more.j, label %inner, label %after
after:
  call void @tally.barrier(i32 0, i32 0)
  %k.next = add i32 %k, 16
  %more = icmp slt i32 %k.next, %n
  br i1 %more, label %tile, label %done
done:
  %ic = add i32 %rn, %col
  %icw = sext i32 %ic to i64
  %pc = getelementptr float, ptr %c, i64 %icw
  store float %acc.next, ptr %pc, align 4
  ret void
}

; The sum of the block's `n` values, halves added to halves; `times` over.
@sums = internal addrspace(3) global [1024 x float] undef, align 4
define void @reduce(ptr %a, ptr %out, i32 %times) #0 {
entry:
  %t = call i32 @tally.thread.id.x()
  %size = call i32 @tally.block.size.x()
  %b.id = call i32 @tally.block.id.x()
  %base = mul i32 %b.id, %size
  %i = add i32 %base, %t
  %iw = zext i32 %i to i64
  %tw = zext i32 %t to i64
  %pa = getelementptr float, ptr %a, i64 %iw
  %mine = getelementptr [1024 x float], ptr addrspace(3) @sums, i64 0, i64 %tw
  br label %again
again:
  %k = phi i32 [ 0, %entry ], [ %k.next, %after ]
  %v = load float, ptr %pa, align 4
  store float %v, ptr addrspace(3) %mine, align 4
  call void @tally.barrier(i32 0, i32 0)
  br label %half
half:
  %s2 = phi i32 [ %size, %again ], [ %s, %joined ]
  %s = lshr i32 %s2, 1
  %some = icmp ne i32 %s, 0
  br i1 %some, label %step, label %after
step:
  %low = icmp ult i32 %t, %s
  br i1 %low, label %add, label %joined
add:
  %o = add i32 %t, %s
  %ow = zext i32 %o to i64
  %other = getelementptr [1024 x float], ptr addrspace(3) @sums, i64 0, i64 %ow
  %x = load float, ptr addrspace(3) %mine, align 4
  %y = load float, ptr addrspace(3) %other, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr addrspace(3) %mine, align 4
  br label %joined
joined:
  call void @tally.barrier(i32 0, i32 0)
  br label %half
after:
  %k.next = add i32 %k, 1
  %more = icmp slt i32 %k.next, %times
  br i1 %more, label %again, label %done
done:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %out.of
write:
  %bw = zext i32 %b.id to i64
  %po = getelementptr float, ptr %out, i64 %bw
  %total = load float, ptr addrspace(3) %mine, align 4
  store float %total, ptr %po, align 4
  br label %out.of
out.of:
  ret void
}

; Running sums of the block's values, by steps of 1, 2, 4, ...
define void @scan(ptr %a, ptr %out) #0 {
entry:
  %t = call i32 @tally.thread.id.x()
  %size = call i32 @tally.block.size.x()
  %b.id = call i32 @tally.block.id.x()
  %base = mul i32 %b.id, %size
  %i = add i32 %base, %t
  %iw = zext i32 %i to i64
  %tw = zext i32 %t to i64
  %pa = getelementptr float, ptr %a, i64 %iw
  %po = getelementptr float, ptr %out, i64 %iw
  %mine = getelementptr [1024 x float], ptr addrspace(3) @sums, i64 0, i64 %tw
  %v = load float, ptr %pa, align 4
  store float %v, ptr addrspace(3) %mine, align 4
  br label %step
step:
  %s = phi i32 [ 1, %entry ], [ %s.next, %joined ]
  call void @tally.barrier(i32 0, i32 0)
  %high = icmp uge i32 %t, %s
  br i1 %high, label %read, label %got
read:
  %o = sub i32 %t, %s
  %ow = zext i32 %o to i64
  %other = getelementptr [1024 x float], ptr addrspace(3) @sums, i64 0, i64 %ow
  %y = load float, ptr addrspace(3) %other, align 4
  br label %got
got:
  %add = phi float [ -0.0, %step ], [ %y, %read ]
  call void @tally.barrier(i32 0, i32 0)
  br i1 %high, label %write, label %joined
write:
  %x = load float, ptr addrspace(3) %mine, align 4
  %sum = fadd float %x, %add
  store float %sum, ptr addrspace(3) %mine, align 4
  br label %joined
joined:
  %s.next = shl i32 %s, 1
  %more = icmp ult i32 %s.next, %size
  br i1 %more, label %step, label %done
done:
  %total = load float, ptr addrspace(3) %mine, align 4
  store float %total, ptr %po, align 4
  ret void
}

attributes #0 = { "tally.kernel" "tally.warp"="32" }
