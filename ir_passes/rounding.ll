; SPDX-License-Identifier: Apache-2.0
; Arithmetic and conversions with a rounding direction (tally.round.*, tally.cvt.*), exact for every
; operand: denormals, infinities and signed zeros included. Sums of products are formed exactly in
; wide integers and rounded once. Quotients and roots start from the nearest value, whose exact error
; says whether to step. float goes through double: rounding twice in one direction is rounding once.
;
; A mode is 0 towards zero (rz), 1 towards minus infinity (rm), 2 towards plus infinity (rp).

declare i64 @llvm.ctlz.i64(i64, i1)
declare i256 @llvm.ctlz.i256(i256, i1)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.abs.i64(i64, i1)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)

; Bits (without sign) of m * 2^e rounded in direction `mode` to a format of `precision` bits whose
; least exponent (that of a denormal's last bit) is `least` and whose infinity has the bits
; `infinity`. m is not zero, or the result is.
define i64 @tally.library.round(i1 %negative, i64 %m, i32 %e, i32 %mode, i32 %precision, i32 %least, i64 %infinity) {
  %zeros64 = call i64 @llvm.ctlz.i64(i64 %m, i1 false)
  %zeros = trunc i64 %zeros64 to i32
  %bits = sub i32 64, %zeros
  %top = add i32 %e, %bits
  %wanted = sub i32 %top, %precision
  %q = call i32 @llvm.smax.i32(i32 %wanted, i32 %least)
  %shift = sub i32 %q, %e
  ; right by `shift`, or left by its opposite
  %left = icmp sle i32 %shift, 0
  %opposite = sub i32 0, %shift
  %left.by = select i1 %left, i32 %opposite, i32 0
  %left.by64 = zext i32 %left.by to i64
  %left.safe = and i64 %left.by64, 63
  %moved.left = shl i64 %m, %left.safe
  %far = icmp sge i32 %shift, 64
  %right.by64 = zext i32 %shift to i64
  %right.safe = and i64 %right.by64, 63
  %moved.right = lshr i64 %m, %right.safe
  %back = shl i64 %moved.right, %right.safe
  %lost.right = icmp ne i64 %back, %m
  %kept.right = select i1 %far, i64 0, i64 %moved.right
  %some = icmp ne i64 %m, 0
  %lost.far = select i1 %far, i1 %some, i1 %lost.right
  %kept = select i1 %left, i64 %moved.left, i64 %kept.right
  %lost = select i1 %left, i1 false, i1 %lost.far
  ; away from zero: down for a negative value, up for a positive one
  %down = icmp eq i32 %mode, 1
  %up = icmp eq i32 %mode, 2
  %away = select i1 %negative, i1 %down, i1 %up
  %step = and i1 %away, %lost
  %step64 = zext i1 %step to i64
  %rounded = add i64 %kept, %step64
  ; exponent and mantissa in one sum, so that a carry moves into the exponent
  %fraction.bits = sub i32 %precision, 1
  %fraction64 = zext i32 %fraction.bits to i64
  %most = lshr i64 %infinity, %fraction64
  %above = sub i32 %q, %least
  %above64 = zext i32 %above to i64
  %field = call i64 @llvm.umin.i64(i64 %above64, i64 %most)
  %exponent = shl i64 %field, %fraction64
  %packed = add i64 %exponent, %rounded
  %over = icmp uge i64 %packed, %infinity
  %largest = sub i64 %infinity, 1
  %limit = select i1 %away, i64 %infinity, i64 %largest
  %result = select i1 %over, i64 %limit, i64 %packed
  %r = select i1 %some, i64 %result, i64 0
  ret i64 %r
}

; A finite double as sign, mantissa and exponent: m * 2^e.
define { i1, i64, i32 } @tally.library.parts(double %x) {
  %bits = bitcast double %x to i64
  %negative = icmp slt i64 %bits, 0
  %fraction = and i64 %bits, 4503599627370495
  %up = lshr i64 %bits, 52
  %field64 = and i64 %up, 2047
  %field = trunc i64 %field64 to i32
  %normal = icmp ne i32 %field, 0
  %hidden = select i1 %normal, i64 4503599627370496, i64 0
  %m = or i64 %fraction, %hidden
  %at.least = call i32 @llvm.smax.i32(i32 %field, i32 1)
  %e = sub i32 %at.least, 1075
  %r0 = insertvalue { i1, i64, i32 } poison, i1 %negative, 0
  %r1 = insertvalue { i1, i64, i32 } %r0, i64 %m, 1
  %r2 = insertvalue { i1, i64, i32 } %r1, i32 %e, 2
  ret { i1, i64, i32 } %r2
}

define i1 @tally.library.finite(double %x) {
  %bits = bitcast double %x to i64
  %exponent = and i64 %bits, 9218868437227405312
  %r = icmp ne i64 %exponent, 9218868437227405312
  ret i1 %r
}

; Bits of x in a narrower format.
define i64 @tally.library.narrow(double %x, i32 %mode, i32 %precision, i32 %least, i64 %infinity) {
  %parts = call { i1, i64, i32 } @tally.library.parts(double %x)
  %negative = extractvalue { i1, i64, i32 } %parts, 0
  %m = extractvalue { i1, i64, i32 } %parts, 1
  %e = extractvalue { i1, i64, i32 } %parts, 2
  %rounded = call i64 @tally.library.round(i1 %negative, i64 %m, i32 %e, i32 %mode, i32 %precision, i32 %least, i64 %infinity)
  %finite = call i1 @tally.library.finite(double %x)
  %nan = fcmp uno double %x, 0.0
  %quiet.at = sub i32 %precision, 2
  %quiet.at64 = zext i32 %quiet.at to i64
  %quiet = shl i64 1, %quiet.at64
  %quiet.bits = or i64 %infinity, %quiet
  %special = select i1 %nan, i64 %quiet.bits, i64 %infinity
  %magnitude = select i1 %finite, i64 %rounded, i64 %special
  ; the sign bit stands above the exponent's
  %fraction.bits = sub i32 %precision, 1
  %fraction64 = zext i32 %fraction.bits to i64
  %unit = shl i64 1, %fraction64
  %sign.bit = add i64 %infinity, %unit
  %sign = select i1 %negative, i64 %sign.bit, i64 0
  %r = or i64 %magnitude, %sign
  ret i64 %r
}

; Bits of an integer (magnitude and sign apart) in a format.
define i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 %mode, i32 %precision, i32 %least, i64 %infinity) {
  %magnitude = call i64 @tally.library.round(i1 %negative, i64 %m, i32 0, i32 %mode, i32 %precision, i32 %least, i64 %infinity)
  %fraction.bits = sub i32 %precision, 1
  %fraction64 = zext i32 %fraction.bits to i64
  %unit = shl i64 1, %fraction64
  %sign.bit = add i64 %infinity, %unit
  %sign = select i1 %negative, i64 %sign.bit, i64 0
  %r = or i64 %magnitude, %sign
  ret i64 %r
}

; a * b + c, finite, as an exact sum s * 2^e but for one thing: where one term lies below every bit
; that rounding could ask for, it counts as one unit of the sum's last place.
define { i256, i32, i1, i1 } @tally.library.sum(double %a, double %b, double %c) {
  %pa = call { i1, i64, i32 } @tally.library.parts(double %a)
  %pb = call { i1, i64, i32 } @tally.library.parts(double %b)
  %pc = call { i1, i64, i32 } @tally.library.parts(double %c)
  %na = extractvalue { i1, i64, i32 } %pa, 0
  %nb = extractvalue { i1, i64, i32 } %pb, 0
  %nc = extractvalue { i1, i64, i32 } %pc, 0
  %ma64 = extractvalue { i1, i64, i32 } %pa, 1
  %mb64 = extractvalue { i1, i64, i32 } %pb, 1
  %mc64 = extractvalue { i1, i64, i32 } %pc, 1
  %ea = extractvalue { i1, i64, i32 } %pa, 2
  %eb = extractvalue { i1, i64, i32 } %pb, 2
  %ec0 = extractvalue { i1, i64, i32 } %pc, 2
  %ma = zext i64 %ma64 to i128
  %mb = zext i64 %mb64 to i128
  %product = mul i128 %ma, %mb
  %p = zext i128 %product to i256
  %s = zext i64 %mc64 to i256
  %np = xor i1 %na, %nb
  %ep0 = add i32 %ea, %eb
  ; a zero has whatever exponent the other has
  %p.zero = icmp eq i128 %product, 0
  %c.zero = icmp eq i64 %mc64, 0
  %ep = select i1 %p.zero, i32 %ec0, i32 %ep0
  %ec = select i1 %c.zero, i32 %ep, i32 %ec0
  %d = sub i32 %ep, %ec
  %product.higher = icmp sge i32 %d, 0
  ; product higher: at most 140 places left; sum higher: at most 190
  %p.far = icmp sgt i32 %d, 140
  %p.by = call i32 @llvm.smin.i32(i32 %d, i32 140)
  %minus.d = sub i32 0, %d
  %c.far = icmp sgt i32 %minus.d, 190
  %c.by = call i32 @llvm.smin.i32(i32 %minus.d, i32 190)
  %p.by0 = select i1 %product.higher, i32 %p.by, i32 0
  %c.by0 = select i1 %product.higher, i32 0, i32 %c.by
  %p.by256 = zext i32 %p.by0 to i256
  %c.by256 = zext i32 %c.by0 to i256
  %p.moved = shl i256 %p, %p.by256
  %c.moved = shl i256 %s, %c.by256
  %p.placed = select i1 %c.far, i256 1, i256 %p.moved
  %c.placed = select i1 %p.far, i256 1, i256 %c.moved
  %e.high = sub i32 %ep, %p.by0
  %e.low = sub i32 %ec, %c.by0
  %e = select i1 %product.higher, i32 %e.high, i32 %e.low
  %p.negated = sub i256 0, %p.placed
  %c.negated = sub i256 0, %c.placed
  %p.signed = select i1 %np, i256 %p.negated, i256 %p.placed
  %c.signed = select i1 %nc, i256 %c.negated, i256 %c.placed
  %sum = add i256 %p.signed, %c.signed
  %r0 = insertvalue { i256, i32, i1, i1 } poison, i256 %sum, 0
  %r1 = insertvalue { i256, i32, i1, i1 } %r0, i32 %e, 1
  %r2 = insertvalue { i256, i32, i1, i1 } %r1, i1 %np, 2
  %r3 = insertvalue { i256, i32, i1, i1 } %r2, i1 %nc, 3
  ret { i256, i32, i1, i1 } %r3
}

; -1, 0 or 1: the sign of a * b + c, finite.
define i32 @tally.library.sign(double %a, double %b, double %c) {
  %parts = call { i256, i32, i1, i1 } @tally.library.sum(double %a, double %b, double %c)
  %sum = extractvalue { i256, i32, i1, i1 } %parts, 0
  %above = icmp sgt i256 %sum, 0
  %below = icmp slt i256 %sum, 0
  %plus = zext i1 %above to i32
  %minus = sext i1 %below to i32
  %r = or i32 %plus, %minus
  ret i32 %r
}

define double @tally.library.fma(double %a, double %b, double %c, i32 %mode) {
entry:
  %finite.a = call i1 @tally.library.finite(double %a)
  %finite.b = call i1 @tally.library.finite(double %b)
  %finite.c = call i1 @tally.library.finite(double %c)
  %finite.ab = and i1 %finite.a, %finite.b
  %finite = and i1 %finite.ab, %finite.c
  br i1 %finite, label %exact, label %special
special:
  %nearest = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %nearest
exact:
  %parts = call { i256, i32, i1, i1 } @tally.library.sum(double %a, double %b, double %c)
  %sum = extractvalue { i256, i32, i1, i1 } %parts, 0
  %e = extractvalue { i256, i32, i1, i1 } %parts, 1
  %np = extractvalue { i256, i32, i1, i1 } %parts, 2
  %nc = extractvalue { i256, i32, i1, i1 } %parts, 3
  %below = icmp slt i256 %sum, 0
  %opposite = sub i256 0, %sum
  %m = select i1 %below, i256 %opposite, i256 %sum
  ; the 62 highest bits, with all below gathered in the last
  %zeros256 = call i256 @llvm.ctlz.i256(i256 %m, i1 false)
  %zeros = trunc i256 %zeros256 to i32
  %extra = sub i32 194, %zeros
  %shift = call i32 @llvm.smax.i32(i32 %extra, i32 0)
  %shift256 = zext i32 %shift to i256
  %moved = lshr i256 %m, %shift256
  %back = shl i256 %moved, %shift256
  %lost = icmp ne i256 %back, %m
  %sticky = zext i1 %lost to i64
  %high = trunc i256 %moved to i64
  %m64 = or i64 %high, %sticky
  %e64 = add i32 %e, %shift
  %bits = call i64 @tally.library.round(i1 %below, i64 %m64, i32 %e64, i32 %mode, i32 53, i32 -1074, i64 9218868437227405312)
  ; an exact zero has the sign that both terms share; otherwise it is minus only towards minus
  %zero = icmp eq i256 %sum, 0
  %differ = xor i1 %np, %nc
  %down = icmp eq i32 %mode, 1
  %zero.negative = select i1 %differ, i1 %down, i1 %np
  %negative = select i1 %zero, i1 %zero.negative, i1 %below
  %sign = select i1 %negative, i64 -9223372036854775808, i64 0
  %all = or i64 %bits, %sign
  %r = bitcast i64 %all to double
  ret double %r
}

; The nearest value `r`, whose exact value lies `side` of it (1 above, -1 below), in direction `mode`.
define double @tally.library.step(double %r, i32 %side, i32 %mode) {
  %bits = bitcast double %r to i64
  %negative = icmp slt i64 %bits, 0
  %above = icmp sgt i32 %side, 0
  %below = icmp slt i32 %side, 0
  %rz = icmp eq i32 %mode, 0
  %rm = icmp eq i32 %mode, 1
  %rp = icmp eq i32 %mode, 2
  %rz.up = and i1 %rz, %negative
  %positive = xor i1 %negative, true
  %rz.down = and i1 %rz, %positive
  %may.up = or i1 %rp, %rz.up
  %may.down = or i1 %rm, %rz.down
  %up = and i1 %above, %may.up
  %down = and i1 %below, %may.down
  ; up is away from zero for positive values, down for negative ones
  %up.by = select i1 %negative, i64 -1, i64 1
  %down.by = select i1 %negative, i64 1, i64 -1
  %by.up = select i1 %up, i64 %up.by, i64 0
  %by.down = select i1 %down, i64 %down.by, i64 0
  %by = add i64 %by.up, %by.down
  %stepped = add i64 %bits, %by
  %f = bitcast i64 %stepped to double
  ret double %f
}

define double @tally.library.div(double %a, double %b, i32 %mode) {
entry:
  %r = fdiv double %a, %b
  %finite.a = call i1 @tally.library.finite(double %a)
  %finite.b = call i1 @tally.library.finite(double %b)
  %finite.ab = and i1 %finite.a, %finite.b
  %some = fcmp one double %b, 0.0
  %regular = and i1 %finite.ab, %some
  br i1 %regular, label %exact, label %special
special:
  ret double %r
exact:
  %finite.r = call i1 @tally.library.finite(double %r)
  %minus = fneg double %r
  %known = select i1 %finite.r, double %minus, double 0.0
  %rest = call i32 @tally.library.sign(double %known, double %b, double %a)
  %b.bits = bitcast double %b to i64
  %b.negative = icmp slt i64 %b.bits, 0
  %rest.minus = sub i32 0, %rest
  %side.r = select i1 %b.negative, i32 %rest.minus, i32 %rest
  ; an overflow lies on the finite side of its infinity
  %r.bits = bitcast double %r to i64
  %r.negative = icmp slt i64 %r.bits, 0
  %side.overflow = select i1 %r.negative, i32 1, i32 -1
  %side = select i1 %finite.r, i32 %side.r, i32 %side.overflow
  %stepped = call double @tally.library.step(double %r, i32 %side, i32 %mode)
  ret double %stepped
}

define double @tally.library.sqrt(double %x, i32 %mode) {
entry:
  %r = call double @llvm.sqrt.f64(double %x)
  %finite = call i1 @tally.library.finite(double %x)
  %positive = fcmp ogt double %x, 0.0
  %regular = and i1 %finite, %positive
  br i1 %regular, label %exact, label %special
special:
  ret double %r
exact:
  %minus = fneg double %r
  %side = call i32 @tally.library.sign(double %minus, double %r, double %x)
  %stepped = call double @tally.library.step(double %r, i32 %side, i32 %mode)
  ret double %stepped
}

; A product with nothing added: a zero of the product's own sign.
define double @tally.library.mul(double %a, double %b, i32 %mode) {
  %a.bits = bitcast double %a to i64
  %b.bits = bitcast double %b to i64
  %both = xor i64 %a.bits, %b.bits
  %sign = and i64 %both, -9223372036854775808
  %zero = bitcast i64 %sign to double
  %r = call double @tally.library.fma(double %a, double %b, double %zero, i32 %mode)
  ret double %r
}

; ---------------------------------------------------------------- rz

define double @tally.round.add.rz.f64(double %a, double %b) {
  %r = call double @tally.library.fma(double %a, double 1.0, double %b, i32 0)
  ret double %r
}

define double @tally.round.sub.rz.f64(double %a, double %b) {
  %minus = fneg double %b
  %r = call double @tally.library.fma(double %a, double 1.0, double %minus, i32 0)
  ret double %r
}

define double @tally.round.mul.rz.f64(double %a, double %b) {
  %r = call double @tally.library.mul(double %a, double %b, i32 0)
  ret double %r
}

define double @tally.round.div.rz.f64(double %a, double %b) {
  %r = call double @tally.library.div(double %a, double %b, i32 0)
  ret double %r
}

define double @tally.round.fma.rz.f64(double %a, double %b, double %c) {
  %r = call double @tally.library.fma(double %a, double %b, double %c, i32 0)
  ret double %r
}

define double @tally.round.sqrt.rz.f64(double %a) {
  %r = call double @tally.library.sqrt(double %a, i32 0)
  ret double %r
}

define double @tally.round.rcp.rz.f64(double %a) {
  %r = call double @tally.library.div(double 1.0, double %a, i32 0)
  ret double %r
}

define float @tally.round.add.rz.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.add.rz.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sub.rz.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.sub.rz.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.mul.rz.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.mul.rz.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.div.rz.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.div.rz.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.fma.rz.f32(float %a, float %b, float %c) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %c64 = fpext float %c to double
  %wide = call double @tally.round.fma.rz.f64(double %a64, double %b64, double %c64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sqrt.rz.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.sqrt.rz.f64(double %a64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.rcp.rz.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.rcp.rz.f64(double %a64)
  %r = call float @tally.cvt.rz.f32.f64(double %wide)
  ret float %r
}

define float @tally.cvt.rz.f32.f64(double %x) {
  %bits = call i64 @tally.library.narrow(double %x, i32 0, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define half @tally.cvt.rz.f16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 0, i32 11, i32 -24, i64 31744)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to half
  ret half %r
}

define bfloat @tally.cvt.rz.bf16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 0, i32 8, i32 -133, i64 32640)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to bfloat
  ret bfloat %r
}

define float @tally.cvt.rz.f32.i32(i32 %x) {
  %wide = sext i32 %x to i64
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rz.f32.u32(i32 %x) {
  %wide = zext i32 %x to i64
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rz.f32.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rz.f32.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define double @tally.cvt.rz.f64.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}

define double @tally.cvt.rz.f64.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 0, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}

; ---------------------------------------------------------------- rm

define double @tally.round.add.rm.f64(double %a, double %b) {
  %r = call double @tally.library.fma(double %a, double 1.0, double %b, i32 1)
  ret double %r
}

define double @tally.round.sub.rm.f64(double %a, double %b) {
  %minus = fneg double %b
  %r = call double @tally.library.fma(double %a, double 1.0, double %minus, i32 1)
  ret double %r
}

define double @tally.round.mul.rm.f64(double %a, double %b) {
  %r = call double @tally.library.mul(double %a, double %b, i32 1)
  ret double %r
}

define double @tally.round.div.rm.f64(double %a, double %b) {
  %r = call double @tally.library.div(double %a, double %b, i32 1)
  ret double %r
}

define double @tally.round.fma.rm.f64(double %a, double %b, double %c) {
  %r = call double @tally.library.fma(double %a, double %b, double %c, i32 1)
  ret double %r
}

define double @tally.round.sqrt.rm.f64(double %a) {
  %r = call double @tally.library.sqrt(double %a, i32 1)
  ret double %r
}

define double @tally.round.rcp.rm.f64(double %a) {
  %r = call double @tally.library.div(double 1.0, double %a, i32 1)
  ret double %r
}

define float @tally.round.add.rm.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.add.rm.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sub.rm.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.sub.rm.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.mul.rm.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.mul.rm.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.div.rm.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.div.rm.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.fma.rm.f32(float %a, float %b, float %c) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %c64 = fpext float %c to double
  %wide = call double @tally.round.fma.rm.f64(double %a64, double %b64, double %c64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sqrt.rm.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.sqrt.rm.f64(double %a64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.rcp.rm.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.rcp.rm.f64(double %a64)
  %r = call float @tally.cvt.rm.f32.f64(double %wide)
  ret float %r
}

define float @tally.cvt.rm.f32.f64(double %x) {
  %bits = call i64 @tally.library.narrow(double %x, i32 1, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define half @tally.cvt.rm.f16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 1, i32 11, i32 -24, i64 31744)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to half
  ret half %r
}

define bfloat @tally.cvt.rm.bf16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 1, i32 8, i32 -133, i64 32640)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to bfloat
  ret bfloat %r
}

define float @tally.cvt.rm.f32.i32(i32 %x) {
  %wide = sext i32 %x to i64
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rm.f32.u32(i32 %x) {
  %wide = zext i32 %x to i64
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rm.f32.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rm.f32.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define double @tally.cvt.rm.f64.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}

define double @tally.cvt.rm.f64.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 1, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}

; ---------------------------------------------------------------- rp

define double @tally.round.add.rp.f64(double %a, double %b) {
  %r = call double @tally.library.fma(double %a, double 1.0, double %b, i32 2)
  ret double %r
}

define double @tally.round.sub.rp.f64(double %a, double %b) {
  %minus = fneg double %b
  %r = call double @tally.library.fma(double %a, double 1.0, double %minus, i32 2)
  ret double %r
}

define double @tally.round.mul.rp.f64(double %a, double %b) {
  %r = call double @tally.library.mul(double %a, double %b, i32 2)
  ret double %r
}

define double @tally.round.div.rp.f64(double %a, double %b) {
  %r = call double @tally.library.div(double %a, double %b, i32 2)
  ret double %r
}

define double @tally.round.fma.rp.f64(double %a, double %b, double %c) {
  %r = call double @tally.library.fma(double %a, double %b, double %c, i32 2)
  ret double %r
}

define double @tally.round.sqrt.rp.f64(double %a) {
  %r = call double @tally.library.sqrt(double %a, i32 2)
  ret double %r
}

define double @tally.round.rcp.rp.f64(double %a) {
  %r = call double @tally.library.div(double 1.0, double %a, i32 2)
  ret double %r
}

define float @tally.round.add.rp.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.add.rp.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sub.rp.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.sub.rp.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.mul.rp.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.mul.rp.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.div.rp.f32(float %a, float %b) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %wide = call double @tally.round.div.rp.f64(double %a64, double %b64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.fma.rp.f32(float %a, float %b, float %c) {
  %a64 = fpext float %a to double
  %b64 = fpext float %b to double
  %c64 = fpext float %c to double
  %wide = call double @tally.round.fma.rp.f64(double %a64, double %b64, double %c64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.sqrt.rp.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.sqrt.rp.f64(double %a64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.round.rcp.rp.f32(float %a) {
  %a64 = fpext float %a to double
  %wide = call double @tally.round.rcp.rp.f64(double %a64)
  %r = call float @tally.cvt.rp.f32.f64(double %wide)
  ret float %r
}

define float @tally.cvt.rp.f32.f64(double %x) {
  %bits = call i64 @tally.library.narrow(double %x, i32 2, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define half @tally.cvt.rp.f16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 2, i32 11, i32 -24, i64 31744)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to half
  ret half %r
}

define bfloat @tally.cvt.rp.bf16.f32(float %x) {
  %wide = fpext float %x to double
  %bits = call i64 @tally.library.narrow(double %wide, i32 2, i32 8, i32 -133, i64 32640)
  %low = trunc i64 %bits to i16
  %r = bitcast i16 %low to bfloat
  ret bfloat %r
}

define float @tally.cvt.rp.f32.i32(i32 %x) {
  %wide = sext i32 %x to i64
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rp.f32.u32(i32 %x) {
  %wide = zext i32 %x to i64
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rp.f32.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define float @tally.cvt.rp.f32.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 24, i32 -149, i64 2139095040)
  %low = trunc i64 %bits to i32
  %r = bitcast i32 %low to float
  ret float %r
}

define double @tally.cvt.rp.f64.i64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp slt i64 %wide, 0
  %m = call i64 @llvm.abs.i64(i64 %wide, i1 false)
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}

define double @tally.cvt.rp.f64.u64(i64 %x) {
  %wide = add i64 %x, 0
  %negative = icmp ult i64 %wide, 0
  %m = add i64 %wide, 0
  %bits = call i64 @tally.library.from.integer(i1 %negative, i64 %m, i32 2, i32 53, i32 -1074, i64 9218868437227405312)
  %r = bitcast i64 %bits to double
  ret double %r
}
