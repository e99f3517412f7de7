; SPDX-License-Identifier: Apache-2.0
; Operations in straight code that LLVM vectorises over threads, where a call would keep the whole
; loop from it.

; Directed rounding of float sums and products: the exact value is a sum of two doubles, %s and the
; %rest that was rounded away from it. Its nearest float is right, or one step off. An infinity of
; the operands gives a NaN for the difference, and no step.

; Whether the value lies below, above its nearest float %f.
define i1 @tally.cpu.below(double %s, double %rest, float %f) {
  %wide = fpext float %f to double
  %d = fsub double %s, %wide
  %less = fcmp olt double %d, 0.0
  %same = fcmp oeq double %d, 0.0
  %rest.less = fcmp olt double %rest, 0.0
  %tie = and i1 %same, %rest.less
  %r = or i1 %less, %tie
  ret i1 %r
}

define i1 @tally.cpu.above(double %s, double %rest, float %f) {
  %wide = fpext float %f to double
  %d = fsub double %s, %wide
  %more = fcmp ogt double %d, 0.0
  %same = fcmp oeq double %d, 0.0
  %rest.more = fcmp ogt double %rest, 0.0
  %tie = and i1 %same, %rest.more
  %r = or i1 %more, %tie
  ret i1 %r
}

; Towards zero: one step down in magnitude. A nearest zero is never too large.
define float @tally.cpu.to.rz(double %s, double %rest) {
  %f = fptrunc double %s to float
  %bits = bitcast float %f to i32
  %negative = icmp slt i32 %bits, 0
  %below = call i1 @tally.cpu.below(double %s, double %rest, float %f)
  %above = call i1 @tally.cpu.above(double %s, double %rest, float %f)
  %beyond = select i1 %negative, i1 %above, i1 %below
  %step = zext i1 %beyond to i32
  %moved = sub i32 %bits, %step
  %r = bitcast i32 %moved to float
  ret float %r
}

; Down: the magnitude of a negative value grows, also that of a negative zero.
define float @tally.cpu.to.rm(double %s, double %rest) {
  %f = fptrunc double %s to float
  %bits = bitcast float %f to i32
  %sign = ashr i32 %bits, 31
  %twice = shl i32 %sign, 1
  %less = sub i32 %bits, 1
  %next = sub i32 %less, %twice
  %below = call i1 @tally.cpu.below(double %s, double %rest, float %f)
  %moved = select i1 %below, i32 %next, i32 %bits
  %r = bitcast i32 %moved to float
  ret float %r
}

define float @tally.cpu.to.rp(double %s, double %rest) {
  %f = fptrunc double %s to float
  %bits = bitcast float %f to i32
  %sign = ashr i32 %bits, 31
  %twice = shl i32 %sign, 1
  %more = add i32 %bits, 1
  %next = add i32 %more, %twice
  %above = call i1 @tally.cpu.above(double %s, double %rest, float %f)
  %moved = select i1 %above, i32 %next, i32 %bits
  %r = bitcast i32 %moved to float
  ret float %r
}

; What %a + %b = %s has rounded away.
define double @tally.cpu.rest(double %a, double %b, double %s) {
  %b.there = fsub double %s, %a
  %a.there = fsub double %s, %b.there
  %a.rest = fsub double %a, %a.there
  %b.rest = fsub double %b, %b.there
  %r = fadd double %a.rest, %b.rest
  ret double %r
}

define float @tally.cpu.sum.rz(double %a, double %b) {
  %s = fadd double %a, %b
  %rest = call double @tally.cpu.rest(double %a, double %b, double %s)
  %f = call float @tally.cpu.to.rz(double %s, double %rest)
  ret float %f
}

define float @tally.cpu.sum.rm(double %a, double %b) {
  %s = fadd double %a, %b
  %rest = call double @tally.cpu.rest(double %a, double %b, double %s)
  %f = call float @tally.cpu.to.rm(double %s, double %rest)
  ; a sum that is zero has a minus, unless both are plus zero
  %a.bits = bitcast double %a to i64
  %b.bits = bitcast double %b to i64
  %any = or i64 %a.bits, %b.bits
  %plain = icmp eq i64 %any, 0
  %zero = fcmp oeq double %s, 0.0
  %its.zero = select i1 %plain, float 0.0, float -0.0
  %r = select i1 %zero, float %its.zero, float %f
  ret float %r
}

define float @tally.cpu.sum.rp(double %a, double %b) {
  %s = fadd double %a, %b
  %rest = call double @tally.cpu.rest(double %a, double %b, double %s)
  %f = call float @tally.cpu.to.rp(double %s, double %rest)
  ret float %f
}

; A product of floats is exact in double.

define float @tally.round.fma.rz.f32(float %a, float %b, float %c) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.sum.rz(double %p, double %z)
  ret float %r
}

define float @tally.round.add.rz.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call float @tally.cpu.sum.rz(double %x, double %y)
  ret float %r
}

define float @tally.round.sub.rz.f32(float %a, float %b) {
  %x = fpext float %a to double
  %minus = fneg float %b
  %y = fpext float %minus to double
  %r = call float @tally.cpu.sum.rz(double %x, double %y)
  ret float %r
}

define float @tally.round.mul.rz.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.to.rz(double %p, double 0.0)
  ret float %r
}

define float @tally.round.fma.rm.f32(float %a, float %b, float %c) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.sum.rm(double %p, double %z)
  ret float %r
}

define float @tally.round.add.rm.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call float @tally.cpu.sum.rm(double %x, double %y)
  ret float %r
}

define float @tally.round.sub.rm.f32(float %a, float %b) {
  %x = fpext float %a to double
  %minus = fneg float %b
  %y = fpext float %minus to double
  %r = call float @tally.cpu.sum.rm(double %x, double %y)
  ret float %r
}

define float @tally.round.mul.rm.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.to.rm(double %p, double 0.0)
  ret float %r
}

define float @tally.round.fma.rp.f32(float %a, float %b, float %c) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.sum.rp(double %p, double %z)
  ret float %r
}

define float @tally.round.add.rp.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call float @tally.cpu.sum.rp(double %x, double %y)
  ret float %r
}

define float @tally.round.sub.rp.f32(float %a, float %b) {
  %x = fpext float %a to double
  %minus = fneg float %b
  %y = fpext float %minus to double
  %r = call float @tally.cpu.sum.rp(double %x, double %y)
  ret float %r
}

define float @tally.round.mul.rp.f32(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %p = fmul double %x, %y
  %r = call float @tally.cpu.to.rp(double %p, double 0.0)
  ret float %r
}

; 2^x and its logarithm, in double and rounded once: the nearest float but for about one operand in a
; million. (Those of libm are as good, and calls.)

declare double @llvm.fma.f64(double, double, double)

; x = n + f, |f| <= 1/2; 2^f is a polynomial (Chebyshev's points, relative error 4e-14). Adding 1.5 * 2^52
; leaves n in the low bits; beyond 160 all is infinity or nothing.
define float @tally.approx.ex2.f32(float %x) {
  %wide = fpext float %x to double
  %high = fcmp ogt double %wide, 160.0
  %cut = select i1 %high, double 160.0, double %wide
  %low = fcmp olt double %cut, -160.0
  %v = select i1 %low, double -160.0, double %cut
  %k = fadd double %v, 0x4338000000000000
  %n = fsub double %k, 0x4338000000000000
  %f = fsub double %v, %n
  %p8 = call double @llvm.fma.f64(double 0x3E7B6571DE2F2351, double %f, double 0x3EB63EF969A64D3C)
  %p7 = call double @llvm.fma.f64(double %p8, double %f, double 0x3EEFFCB76789860F)
  %p6 = call double @llvm.fma.f64(double %p7, double %f, double 0x3F243088E257F341)
  %p5 = call double @llvm.fma.f64(double %p6, double %f, double 0x3F55D87FE908F88A)
  %p4 = call double @llvm.fma.f64(double %p5, double %f, double 0x3F83B2AB72B175EE)
  %p3 = call double @llvm.fma.f64(double %p4, double %f, double 0x3FAC6B08D7044119)
  %p2 = call double @llvm.fma.f64(double %p3, double %f, double 0x3FCEBFBDFF8149F2)
  %p1 = call double @llvm.fma.f64(double %p2, double %f, double 0x3FE62E42FEFA39F7)
  %p0 = call double @llvm.fma.f64(double %p1, double %f, double 0x3FF0000000000000)
  %k.bits = bitcast double %k to i64
  %biased = add i64 %k.bits, 1023
  %power = shl i64 %biased, 52
  %scale = bitcast i64 %power to double
  %y = fmul double %p0, %scale
  %r = fptrunc double %y to float
  ret float %r
}

; x = m * 2^n, m from sqrt(1/2) to sqrt(2); log2(m) = 2/ln(2) * atanh((m - 1) / (m + 1)) as a series (relative
; error 1e-15). A denormal float is an ordinary double.
define float @tally.approx.lg2.f32(float %x) {
  %wide = fpext float %x to double
  %bits = bitcast double %wide to i64
  ; so that the exponent's field changes at sqrt(1/2)
  %shifted = sub i64 %bits, 4604544271217802189
  %n = ashr i64 %shifted, 52
  %n.field = shl i64 %n, 52
  %m.bits = sub i64 %bits, %n.field
  %m = bitcast i64 %m.bits to double
  %above = fadd double %m, -1.0
  %sum = fadd double %m, 1.0
  %s = fdiv double %above, %sum
  %q = fmul double %s, %s
  %p8 = call double @llvm.fma.f64(double 0x3FC3703C1F4D0FFE, double %q, double 0x3FC5B9AC9B743F0D)
  %p7 = call double @llvm.fma.f64(double %p8, double %q, double 0x3FC89F3B1694CFFE)
  %p6 = call double @llvm.fma.f64(double %p7, double %q, double 0x3FCC68F568D31760)
  %p5 = call double @llvm.fma.f64(double %p6, double %q, double 0x3FD0C9A84994022D)
  %p4 = call double @llvm.fma.f64(double %p5, double %q, double 0x3FD484B13D7C02A9)
  %p3 = call double @llvm.fma.f64(double %p4, double %q, double 0x3FDA61762A7ADED9)
  %p2 = call double @llvm.fma.f64(double %p3, double %q, double 0x3FE2776C50EF9BFE)
  %p1 = call double @llvm.fma.f64(double %p2, double %q, double 0x3FEEC709DC3A03FD)
  %p0 = call double @llvm.fma.f64(double %p1, double %q, double 0x40071547652B82FE)
  %n.wide = sitofp i64 %n to double
  %y = call double @llvm.fma.f64(double %s, double %p0, double %n.wide)
  %f = fptrunc double %y to float
  %zero = fcmp oeq float %x, 0.0
  %a = select i1 %zero, float 0xFFF0000000000000, float %f
  %positive = fcmp oge float %x, 0.0
  %b = select i1 %positive, float %a, float 0x7FF8000000000000
  %infinite = fcmp oeq float %x, 0x7FF0000000000000
  %r = select i1 %infinite, float %x, float %b
  ret float %r
}
