; SPDX-License-Identifier: Apache-2.0
; Portable bodies of the contract's operations: what a backend's own library leaves open is taken
; from here. Decisions between blocks are in guard.ll, integers in integer.ll, arithmetic with a rounding direction in rounding.ll.

; ---------------------------------------------------------------- threads, lanes

declare i32 @tally.thread.id.x()
declare i32 @tally.thread.id.y()
declare i32 @tally.thread.id.z()
declare i32 @tally.block.size.x()
declare i32 @tally.block.size.y()
declare i32 @tally.block.size.z()
declare i32 @tally.lane.id()
declare i32 @tally.warp.size()
declare void @tally.warp.sync(i32) convergent nounwind
declare { i32, i1 } @tally.shuffle.idx(i32, i32, i32, i32) convergent nounwind
declare void @tally.nanosleep(i32)

define i32 @tally.library.linear.thread() {
  %x = call i32 @tally.thread.id.x()
  %y = call i32 @tally.thread.id.y()
  %z = call i32 @tally.thread.id.z()
  %sx = call i32 @tally.block.size.x()
  %sy = call i32 @tally.block.size.y()
  %zy = mul i32 %z, %sy
  %row = add i32 %zy, %y
  %rows = mul i32 %row, %sx
  %linear = add i32 %rows, %x
  ret i32 %linear
}

define i32 @tally.warp.id() {
  %linear = call i32 @tally.library.linear.thread()
  %size = call i32 @tally.warp.size()
  %warp = udiv i32 %linear, %size
  ret i32 %warp
}

define i32 @tally.warp.count() {
  %sx = call i32 @tally.block.size.x()
  %sy = call i32 @tally.block.size.y()
  %sz = call i32 @tally.block.size.z()
  %xy = mul i32 %sx, %sy
  %threads = mul i32 %xy, %sz
  %size = call i32 @tally.warp.size()
  %less = sub i32 %size, 1
  %more = add i32 %threads, %less
  %count = udiv i32 %more, %size
  ret i32 %count
}

define i32 @tally.lanemask.eq() {
  %lane = call i32 @tally.lane.id()
  %bit = shl i32 1, %lane
  ret i32 %bit
}

define i32 @tally.lanemask.lt() {
  %bit = call i32 @tally.lanemask.eq()
  %mask = sub i32 %bit, 1
  ret i32 %mask
}

define i32 @tally.lanemask.le() {
  %bit = call i32 @tally.lanemask.eq()
  %below = sub i32 %bit, 1
  %mask = or i32 %below, %bit
  ret i32 %mask
}

define i32 @tally.lanemask.ge() {
  %bit = call i32 @tally.lanemask.eq()
  %mask = sub i32 0, %bit
  ret i32 %mask
}

define i32 @tally.lanemask.gt() {
  %below = call i32 @tally.lanemask.le()
  %mask = xor i32 %below, -1
  ret i32 %mask
}

; The leader is the lowest lane of the mask.
define { i32, i1 } @tally.elect(i32 %mask) convergent {
  call void @tally.warp.sync(i32 %mask)
  %leader = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %lane = call i32 @tally.lane.id()
  %me = icmp eq i32 %lane, %leader
  %r0 = insertvalue { i32, i1 } poison, i32 %leader, 0
  %r1 = insertvalue { i32, i1 } %r0, i1 %me, 1
  ret { i32, i1 } %r1
}

declare i32 @llvm.cttz.i32(i32, i1)

; One round for each lane of the mask: every member reads that lane's value and folds it in.
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)

define i32 @tally.reduce.add(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ 0, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = add i32 %sum, %theirs
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.min(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ 2147483647, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = call i32 @llvm.smin.i32(i32 %sum, i32 %theirs)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.max(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ -2147483648, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = call i32 @llvm.smax.i32(i32 %sum, i32 %theirs)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.umin(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ -1, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = call i32 @llvm.umin.i32(i32 %sum, i32 %theirs)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.umax(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ 0, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = call i32 @llvm.umax.i32(i32 %sum, i32 %theirs)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.and(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ -1, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = and i32 %sum, %theirs
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.or(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ 0, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = or i32 %sum, %theirs
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

define i32 @tally.reduce.xor(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %sum = phi i32 [ 0, %entry ], [ %fold, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %fold = xor i32 %sum, %theirs
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %loop
done:
  ret i32 %sum
}

; Lanes of the mask whose value equals this one's: every member's is looked at in turn.
define i32 @tally.match.any.i32(i32 %mask, i32 %v) convergent {
entry:
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %same = phi i32 [ 0, %entry ], [ %more, %next ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %done, label %next
next:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %pair = call { i32, i1 } @tally.shuffle.idx(i32 %mask, i32 %v, i32 %lane, i32 31)
  %theirs = extractvalue { i32, i1 } %pair, 0
  %equal = icmp eq i32 %theirs, %v
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %bit = xor i32 %left, %rest
  %add = select i1 %equal, i32 %bit, i32 0
  %more = or i32 %same, %add
  br label %loop
done:
  ret i32 %same
}

define i32 @tally.match.any.i64(i32 %mask, i64 %v) convergent {
  %low = trunc i64 %v to i32
  %up = lshr i64 %v, 32
  %high = trunc i64 %up to i32
  %same.low = call i32 @tally.match.any.i32(i32 %mask, i32 %low)
  %same.high = call i32 @tally.match.any.i32(i32 %mask, i32 %high)
  %same = and i32 %same.low, %same.high
  ret i32 %same
}

define { i32, i1 } @tally.library.match.all(i32 %mask, i32 %same) {
  %all = icmp eq i32 %same, %mask
  %r = select i1 %all, i32 %mask, i32 0
  %r0 = insertvalue { i32, i1 } poison, i32 %r, 0
  %r1 = insertvalue { i32, i1 } %r0, i1 %all, 1
  ret { i32, i1 } %r1
}

define { i32, i1 } @tally.match.all.i32(i32 %mask, i32 %v) convergent {
  %same = call i32 @tally.match.any.i32(i32 %mask, i32 %v)
  %r = call { i32, i1 } @tally.library.match.all(i32 %mask, i32 %same)
  ret { i32, i1 } %r
}

define { i32, i1 } @tally.match.all.i64(i32 %mask, i64 %v) convergent {
  %same = call i32 @tally.match.any.i64(i32 %mask, i64 %v)
  %r = call { i32, i1 } @tally.library.match.all(i32 %mask, i32 %same)
  ret { i32, i1 } %r
}

; ---------------------------------------------------------------- approximations, done exactly

declare float @llvm.sqrt.f32(float)
declare double @llvm.sqrt.f64(double)
declare float @llvm.exp2.f32(float)
declare float @llvm.log2.f32(float)
declare float @llvm.sin.f32(float)
declare float @llvm.cos.f32(float)
declare float @llvm.tanh.f32(float)

define float @tally.approx.rcp.f32(float %x) {
  %r = fdiv float 1.0, %x
  ret float %r
}

declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)

; Divisors above 2^126 give a zero of the quotient's sign, and NaN for an infinite dividend (PTX ISA 9.7.3.8).
define float @tally.approx.div.f32(float %a, float %b) {
  %q = fdiv float %a, %b
  %size = call float @llvm.fabs.f32(float %b)
  %above = fcmp ogt float %size, 0x47D0000000000000
  %finite = fcmp one float %size, 0x7FF0000000000000
  %large = and i1 %above, %finite
  %zero = call float @llvm.copysign.f32(float 0.0, float %b)
  %none = fmul float %a, %zero
  %r = select i1 %large, float %none, float %q
  ret float %r
}

define float @tally.approx.div.full.f32(float %a, float %b) {
  %r = fdiv float %a, %b
  ret float %r
}

define float @tally.approx.sqrt.f32(float %x) {
  %r = call float @llvm.sqrt.f32(float %x)
  ret float %r
}

define float @tally.approx.rsqrt.f32(float %x) {
  %s = call float @llvm.sqrt.f32(float %x)
  %r = fdiv float 1.0, %s
  ret float %r
}

define float @tally.approx.ex2.f32(float %x) {
  %r = call float @llvm.exp2.f32(float %x)
  ret float %r
}

define float @tally.approx.lg2.f32(float %x) {
  %r = call float @llvm.log2.f32(float %x)
  ret float %r
}

define float @tally.approx.sin.f32(float %x) {
  %r = call float @llvm.sin.f32(float %x)
  ret float %r
}

define float @tally.approx.cos.f32(float %x) {
  %r = call float @llvm.cos.f32(float %x)
  ret float %r
}

define float @tally.approx.tanh.f32(float %x) {
  %r = call float @llvm.tanh.f32(float %x)
  ret float %r
}

; A denormal becomes a zero of its sign.
define double @tally.library.ftz.f64(double %x) {
  %bits = bitcast double %x to i64
  %exponent = and i64 %bits, 9218868437227405312
  %tiny = icmp eq i64 %exponent, 0
  %sign = and i64 %bits, -9223372036854775808
  %r = select i1 %tiny, i64 %sign, i64 %bits
  %f = bitcast i64 %r to double
  ret double %f
}

; The upper word of a double alone, the lower one 0: what the .approx.ftz.f64 forms read and write (PTX ISA 9.7.3.14).
define double @tally.library.upper.f64(double %x) {
  %bits = bitcast double %x to i64
  %upper = and i64 %bits, -4294967296
  %f = bitcast i64 %upper to double
  ret double %f
}

; Their result: without denormals, and with one NaN, 0x7fffffff00000000.
define double @tally.library.approx.f64(double %x) {
  %some = call double @tally.library.ftz.f64(double %x)
  %upper = call double @tally.library.upper.f64(double %some)
  %nan = fcmp uno double %x, 0.0
  %r = select i1 %nan, double 0x7FFFFFFF00000000, double %upper
  ret double %r
}

define double @tally.approx.rcp.ftz.f64(double %x) {
  %upper = call double @tally.library.upper.f64(double %x)
  %in = call double @tally.library.ftz.f64(double %upper)
  %q = fdiv double 1.0, %in
  %r = call double @tally.library.approx.f64(double %q)
  ret double %r
}

define double @tally.approx.rsqrt.ftz.f64(double %x) {
  %upper = call double @tally.library.upper.f64(double %x)
  %in = call double @tally.library.ftz.f64(double %upper)
  %s = call double @llvm.sqrt.f64(double %in)
  %q = fdiv double 1.0, %s
  %r = call double @tally.library.approx.f64(double %q)
  ret double %r
}

define float @tally.ftz.f32(float %x) {
  %bits = bitcast float %x to i32
  %exponent = and i32 %bits, 2139095040
  %tiny = icmp eq i32 %exponent, 0
  %sign = and i32 %bits, -2147483648
  %r = select i1 %tiny, i32 %sign, i32 %bits
  %f = bitcast i32 %r to float
  ret float %f
}

; ---------------------------------------------------------------- maths that LLVM has

define float @tally.math.fabs.f32(float %a) {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}

declare double @llvm.fabs.f64(double)
define double @tally.math.fabs.f64(double %a) {
  %r = call double @llvm.fabs.f64(double %a)
  ret double %r
}

declare float @llvm.floor.f32(float)
define float @tally.math.floor.f32(float %a) {
  %r = call float @llvm.floor.f32(float %a)
  ret float %r
}

declare double @llvm.floor.f64(double)
define double @tally.math.floor.f64(double %a) {
  %r = call double @llvm.floor.f64(double %a)
  ret double %r
}

declare float @llvm.ceil.f32(float)
define float @tally.math.ceil.f32(float %a) {
  %r = call float @llvm.ceil.f32(float %a)
  ret float %r
}

declare double @llvm.ceil.f64(double)
define double @tally.math.ceil.f64(double %a) {
  %r = call double @llvm.ceil.f64(double %a)
  ret double %r
}

declare float @llvm.trunc.f32(float)
define float @tally.math.trunc.f32(float %a) {
  %r = call float @llvm.trunc.f32(float %a)
  ret float %r
}

declare double @llvm.trunc.f64(double)
define double @tally.math.trunc.f64(double %a) {
  %r = call double @llvm.trunc.f64(double %a)
  ret double %r
}

declare float @llvm.rint.f32(float)
define float @tally.math.rint.f32(float %a) {
  %r = call float @llvm.rint.f32(float %a)
  ret float %r
}

declare double @llvm.rint.f64(double)
define double @tally.math.rint.f64(double %a) {
  %r = call double @llvm.rint.f64(double %a)
  ret double %r
}

declare float @llvm.nearbyint.f32(float)
define float @tally.math.nearbyint.f32(float %a) {
  %r = call float @llvm.nearbyint.f32(float %a)
  ret float %r
}

declare double @llvm.nearbyint.f64(double)
define double @tally.math.nearbyint.f64(double %a) {
  %r = call double @llvm.nearbyint.f64(double %a)
  ret double %r
}

declare float @llvm.round.f32(float)
define float @tally.math.round.f32(float %a) {
  %r = call float @llvm.round.f32(float %a)
  ret float %r
}

declare double @llvm.round.f64(double)
define double @tally.math.round.f64(double %a) {
  %r = call double @llvm.round.f64(double %a)
  ret double %r
}

define float @tally.math.sqrt.f32(float %a) {
  %r = call float @llvm.sqrt.f32(float %a)
  ret float %r
}

define double @tally.math.sqrt.f64(double %a) {
  %r = call double @llvm.sqrt.f64(double %a)
  ret double %r
}

define float @tally.math.copysign.f32(float %a, float %b) {
  %r = call float @llvm.copysign.f32(float %a, float %b)
  ret float %r
}

declare double @llvm.copysign.f64(double, double)
define double @tally.math.copysign.f64(double %a, double %b) {
  %r = call double @llvm.copysign.f64(double %a, double %b)
  ret double %r
}

declare float @llvm.minnum.f32(float, float)
define float @tally.math.fmin.f32(float %a, float %b) {
  %r = call float @llvm.minnum.f32(float %a, float %b)
  ret float %r
}

declare double @llvm.minnum.f64(double, double)
define double @tally.math.fmin.f64(double %a, double %b) {
  %r = call double @llvm.minnum.f64(double %a, double %b)
  ret double %r
}

declare float @llvm.maxnum.f32(float, float)
define float @tally.math.fmax.f32(float %a, float %b) {
  %r = call float @llvm.maxnum.f32(float %a, float %b)
  ret float %r
}

declare double @llvm.maxnum.f64(double, double)
define double @tally.math.fmax.f64(double %a, double %b) {
  %r = call double @llvm.maxnum.f64(double %a, double %b)
  ret double %r
}

declare float @llvm.fma.f32(float, float, float)
define float @tally.math.fma.f32(float %a, float %b, float %c) {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}

declare double @llvm.fma.f64(double, double, double)
define double @tally.math.fma.f64(double %a, double %b, double %c) {
  %r = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %r
}

define float @tally.math.fdivide.f32(float %a, float %b) {
  %r = fdiv float %a, %b
  ret float %r
}

declare float @tally.math.scalbn.f32(float, i32)
define float @tally.math.scalbln.f32(float %x, i64 %n) {
  %low = call i64 @llvm.smax.i64(i64 %n, i64 -100000)
  %in = call i64 @llvm.smin.i64(i64 %low, i64 100000)
  %n32 = trunc i64 %in to i32
  %r = call float @tally.math.scalbn.f32(float %x, i32 %n32)
  ret float %r
}

declare float @tally.math.sinpi.f32(float)
declare float @tally.math.cospi.f32(float)
define float @tally.math.tanpi.f32(float %x) {
  %s = call float @tally.math.sinpi.f32(float %x)
  %c = call float @tally.math.cospi.f32(float %x)
  %r = fdiv float %s, %c
  ret float %r
}

define double @tally.math.fdivide.f64(double %a, double %b) {
  %r = fdiv double %a, %b
  ret double %r
}

declare double @tally.math.scalbn.f64(double, i32)
define double @tally.math.scalbln.f64(double %x, i64 %n) {
  %low = call i64 @llvm.smax.i64(i64 %n, i64 -100000)
  %in = call i64 @llvm.smin.i64(i64 %low, i64 100000)
  %n32 = trunc i64 %in to i32
  %r = call double @tally.math.scalbn.f64(double %x, i32 %n32)
  ret double %r
}

declare double @tally.math.sinpi.f64(double)
declare double @tally.math.cospi.f64(double)
define double @tally.math.tanpi.f64(double %x) {
  %s = call double @tally.math.sinpi.f64(double %x)
  %c = call double @tally.math.cospi.f64(double %x)
  %r = fdiv double %s, %c
  ret double %r
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

!0 = !{}

; ---------------------------------------------------------------- mbarrier
; The 64-bit word in shared memory (PTX ISA 9.7.13.15 leaves its bits open): pending arrivals in bits
; 0 to 19, those of the next phase in 20 to 39, transactions still to come in 40 to 61 (two's
; complement), the phase's parity in 63. A phase is complete when no arrival and no transaction is
; outstanding.

define i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 %arrive, i32 %drop, i32 %tx) {
entry:
  %first = load atomic i64, ptr addrspace(3) %b syncscope("block") monotonic, align 8
  %arrive.wide = zext i32 %arrive to i64
  %drop.wide = zext i32 %drop to i64
  %drop.up = shl i64 %drop.wide, 20
  %gone = add i64 %arrive.wide, %drop.up
  %tx.wide = sext i32 %tx to i64
  %tx.up = shl i64 %tx.wide, 40
  br label %try
try:
  %old = phi i64 [ %first, %entry ], [ %seen, %try ]
  %counts = and i64 %old, 1099511627775
  %left = sub i64 %counts, %gone
  %tx.old = and i64 %old, 4611684918915760128
  %tx.sum = add i64 %tx.old, %tx.up
  %tx.new = and i64 %tx.sum, 4611684918915760128
  %phase = and i64 %old, -9223372036854775808
  %pending = and i64 %left, 1048575
  %open = or i64 %pending, %tx.new
  %complete = icmp eq i64 %open, 0
  %flipped = xor i64 %phase, -9223372036854775808
  %expected = lshr i64 %left, 20
  %next = or i64 %left, %expected
  %next.word = or i64 %flipped, %next
  %same.word.a = or i64 %phase, %left
  %same.word = or i64 %same.word.a, %tx.new
  %new = select i1 %complete, i64 %next.word, i64 %same.word
  %pair = cmpxchg ptr addrspace(3) %b, i64 %old, i64 %new syncscope("block") acq_rel monotonic, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %done, label %try
done:
  ret i64 %old
}

define void @tally.mbarrier.init(ptr addrspace(3) %b, i32 %count) {
  %wide = zext i32 %count to i64
  %up = shl i64 %wide, 20
  %word = or i64 %up, %wide
  store atomic i64 %word, ptr addrspace(3) %b syncscope("block") monotonic, align 8
  ret void
}

define void @tally.mbarrier.inval(ptr addrspace(3) %b) {
  ret void
}

define i64 @tally.mbarrier.arrive(ptr addrspace(3) %b, i32 %count) {
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 %count, i32 0, i32 0)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.some(ptr addrspace(3) %b, i32 %count) {
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 %count, i32 0, i32 0)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.drop(ptr addrspace(3) %b, i32 %count) {
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 %count, i32 %count, i32 0)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.expect(ptr addrspace(3) %b, i32 %tx) {
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 1, i32 0, i32 %tx)
  ret i64 %r
}

define void @tally.mbarrier.expect(ptr addrspace(3) %b, i32 %tx) {
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 0, i32 0, i32 %tx)
  ret void
}

define void @tally.mbarrier.complete(ptr addrspace(3) %b, i32 %tx) {
  %less = sub i32 0, %tx
  %r = call i64 @tally.library.mbarrier.update(ptr addrspace(3) %b, i32 0, i32 0, i32 %less)
  ret void
}

; Who waits gives way to who has to come: on the CPU device nobody else would run.
define i1 @tally.mbarrier.test.parity(ptr addrspace(3) %b, i32 %parity) {
  %word = load atomic i64, ptr addrspace(3) %b syncscope("block") acquire, align 8
  %shifted = lshr i64 %word, 63
  %now = trunc i64 %shifted to i1
  %asked = trunc i32 %parity to i1
  %done = xor i1 %now, %asked
  br i1 %done, label %out, label %wait
wait:
  call void @tally.nanosleep(i32 32)
  br label %out
out:
  ret i1 %done
}

define i1 @tally.mbarrier.test(ptr addrspace(3) %b, i64 %state) {
  %high = lshr i64 %state, 63
  %parity = trunc i64 %high to i32
  %r = call i1 @tally.mbarrier.test.parity(ptr addrspace(3) %b, i32 %parity)
  ret i1 %r
}

define i1 @tally.mbarrier.try(ptr addrspace(3) %b, i64 %state) {
  %r = call i1 @tally.mbarrier.test(ptr addrspace(3) %b, i64 %state)
  ret i1 %r
}

define i1 @tally.mbarrier.try.parity(ptr addrspace(3) %b, i32 %parity) {
  %r = call i1 @tally.mbarrier.test.parity(ptr addrspace(3) %b, i32 %parity)
  ret i1 %r
}

define i32 @tally.mbarrier.pending.count(i64 %state) {
  %low = trunc i64 %state to i32
  %r = and i32 %low, 1048575
  ret i32 %r
}

