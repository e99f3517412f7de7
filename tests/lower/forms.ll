; Parameters of every kind, private memory, variables, and operations over lanes and blocks.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

%big = type { i64, [5 x i32] }

@counter = addrspace(1) global i32 7, align 4
@table = addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 4
@tile = internal addrspace(3) global [64 x i32] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 16

define void @forms(i8 %c, half %h, ptr byval(%big) align 32 %b, i16 %s, double %d, ptr addrspace(1) %out) #0 {
entry:
  %slot = alloca [4 x i32], align 4
  %lane = call i32 @tally.lane.id()
  %index = and i32 %lane, 3
  %i = zext i32 %index to i64
  %at = getelementptr [4 x i32], ptr %slot, i64 0, i64 %i
  store i32 %lane, ptr %slot, align 4
  %private = load i32, ptr %at, align 4
  %ct = getelementptr [4 x i32], ptr addrspace(4) @table, i64 0, i64 %i
  %constant = load i32, ptr addrspace(4) %ct, align 4
  %field = getelementptr %big, ptr %b, i64 0, i32 1, i64 %i
  %byval = load i32, ptr %field, align 4
  %shared = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %i
  store i32 %byval, ptr addrspace(3) %shared, align 4
  call void @tally.barrier(i32 0, i32 0)
  %dyn = load i32, ptr addrspace(3) @dynamic, align 4
  %pair = call { i32, i1 } @tally.shuffle.down(i32 -1, i32 %private, i32 1, i32 31)
  %moved = extractvalue { i32, i1 } %pair, 0
  %odd = trunc i32 %moved to i1
  %votes = call i32 @tally.vote.ballot(i32 -1, i1 %odd)
  %many = call i32 @tally.barrier.popc(i32 0, i32 0, i1 %odd)
  %sum = call i32 @tally.reduce.add(i32 -1, i32 %votes)
  %same = call i32 @tally.match.any.i32(i32 -1, i32 %moved)
  %m1 = add i32 %sum, %same
  %m2 = add i32 %many, %dyn
  %m3 = add i32 %m1, %m2
  %m4 = add i32 %m3, %constant
  %c32 = zext i8 %c to i32
  %m5 = add i32 %m4, %c32
  %s32 = zext i16 %s to i32
  %m6 = add i32 %m5, %s32
  %old = atomicrmw add ptr addrspace(1) @counter, i32 %m6 syncscope("device") monotonic, align 4
  %hf = fpext half %h to double
  %dd = fadd double %hf, %d
  store double %dd, ptr addrspace(1) %out, align 8
  ret void
}

declare i32 @tally.lane.id()
declare void @tally.barrier(i32, i32)
declare i32 @tally.barrier.popc(i32, i32, i1)
declare { i32, i1 } @tally.shuffle.down(i32, i32, i32, i32)
declare i32 @tally.vote.ballot(i32, i1)
declare i32 @tally.reduce.add(i32, i32)
declare i32 @tally.match.any.i32(i32, i32)

attributes #0 = { "tally.kernel" "tally.warp"="32" "tally.reqntid"="64,2,1" }
