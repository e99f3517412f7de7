; SPDX-License-Identifier: Apache-2.0
; Portable bodies of conversions to and from narrow formats (PTX ISA 9.7.9.21): two numbers side by
; side, the first operand above the second. fp8: e4m3 (largest 448, NaN, no infinity) and e5m2; fp6:
; e2m3 and e3m2; fp4: e2m1. Nothing here needs denormal floats, so flushing them changes nothing.

declare float @llvm.maximum.f32(float, float)
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

; To nearest even; what exceeds the format is its largest number. %bias of the exponent, %m bits of
; mantissa, the codes of the largest number, of NaN, and of the sign alone.
define i32 @tally.library.narrow(float %x, i32 %bias, i32 %m, i32 %max, i32 %nan, i32 %sign) {
  %bits = bitcast float %x to i32
  %a = and i32 %bits, 2147483647
  %drop = sub i32 23, %m
  %from = sub i32 127, %bias
  %base = shl i32 %from, 23
  %moved = sub i32 %a, %base
  %below = sub i32 %drop, 1
  %unit = shl i32 1, %below
  %half = sub i32 %unit, 1
  %kept = lshr i32 %moved, %drop
  %odd = and i32 %kept, 1
  %up = add i32 %half, %odd
  %rounded = add i32 %moved, %up
  %normal = lshr i32 %rounded, %drop
  ; below the smallest normal number: adding a power of two rounds to its last place
  %e = sub i32 151, %bias
  %em = sub i32 %e, %m
  %magicbits = shl i32 %em, 23
  %magic = bitcast i32 %magicbits to float
  %size = bitcast i32 %a to float
  %sum = fadd float %size, %magic
  %sumbits = bitcast float %sum to i32
  %small = sub i32 %sumbits, %magicbits
  %first = sub i32 128, %bias
  %smallest = shl i32 %first, 23
  %is.small = icmp ult i32 %a, %smallest
  %code = select i1 %is.small, i32 %small, i32 %normal
  %clamped = call i32 @llvm.umin.i32(i32 %code, i32 %max)
  %negative = icmp slt i32 %bits, 0
  %s = select i1 %negative, i32 %sign, i32 0
  %number = or i32 %clamped, %s
  %is.nan = icmp ugt i32 %a, 2139095040
  %r = select i1 %is.nan, i32 %nan, i32 %number
  ret i32 %r
}

; Exactly. NaN is the code %nan of the size, or none when that is beyond the %mask.
define half @tally.library.widen(i32 %code, i32 %bias, i32 %m, i32 %mask, i32 %nan, i32 %sign) {
  %size = and i32 %code, %mask
  %e = lshr i32 %size, %m
  %one = shl i32 1, %m
  %low = sub i32 %one, 1
  %fraction = and i32 %size, %low
  %is.normal = icmp ne i32 %e, 0
  %lead = select i1 %is.normal, i32 %one, i32 0
  %significand = or i32 %fraction, %lead
  %exponent = call i32 @llvm.umax.i32(i32 %e, i32 1)
  %k = sub i32 127, %bias
  %km = sub i32 %k, %m
  %ke = add i32 %km, %exponent
  %scalebits = shl i32 %ke, 23
  %scale = bitcast i32 %scalebits to float
  %f = uitofp i32 %significand to float
  %v = fmul float %f, %scale
  %h = fptrunc float %v to half
  %bits = bitcast half %h to i16
  %negative = and i32 %code, %sign
  %is.negative = icmp ne i32 %negative, 0
  %s = select i1 %is.negative, i16 -32768, i16 0
  %signed = or i16 %bits, %s
  %is.nan = icmp uge i32 %size, %nan
  %b = select i1 %is.nan, i16 32767, i16 %signed
  %r = bitcast i16 %b to half
  ret half %r
}

define half @tally.library.relu.half(half %h) {
  %bits = bitcast half %h to i16
  %size = and i16 %bits, 32767
  %is.nan = icmp ugt i16 %size, 31744
  %negative = icmp slt i16 %bits, 0
  %positive = select i1 %negative, i16 0, i16 %bits
  %b = select i1 %is.nan, i16 32767, i16 %positive
  %r = bitcast i16 %b to half
  ret half %r
}

define i16 @tally.library.join(i32 %high, i32 %low, i32 %bits) {
  %shifted = shl i32 %high, %bits
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

; Clamped to the numbers that %low and %high bound; the low bits.
define i32 @tally.library.clamp(i32 %x, i32 %low, i32 %high, i32 %mask) {
  %above = call i32 @llvm.smax.i32(i32 %x, i32 %low)
  %within = call i32 @llvm.smin.i32(i32 %above, i32 %high)
  %r = and i32 %within, %mask
  ret i32 %r
}

define i16 @tally.narrow.rn.satfinite.e4m3x2.f32(float %a, float %b) {
  %high = call i32 @tally.library.narrow(float %a, i32 7, i32 3, i32 126, i32 127, i32 128)
  %low = call i32 @tally.library.narrow(float %b, i32 7, i32 3, i32 126, i32 127, i32 128)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e4m3x2.f32(float %a, float %b) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %y = call float @llvm.maximum.f32(float %b, float 0.0)
  %high = call i32 @tally.library.narrow(float %x, i32 7, i32 3, i32 126, i32 127, i32 128)
  %low = call i32 @tally.library.narrow(float %y, i32 7, i32 3, i32 126, i32 127, i32 128)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e5m2x2.f32(float %a, float %b) {
  %high = call i32 @tally.library.narrow(float %a, i32 15, i32 2, i32 123, i32 127, i32 128)
  %low = call i32 @tally.library.narrow(float %b, i32 15, i32 2, i32 123, i32 127, i32 128)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e5m2x2.f32(float %a, float %b) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %y = call float @llvm.maximum.f32(float %b, float 0.0)
  %high = call i32 @tally.library.narrow(float %x, i32 15, i32 2, i32 123, i32 127, i32 128)
  %low = call i32 @tally.library.narrow(float %y, i32 15, i32 2, i32 123, i32 127, i32 128)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e2m3x2.f32(float %a, float %b) {
  %high = call i32 @tally.library.narrow(float %a, i32 1, i32 3, i32 31, i32 31, i32 32)
  %low = call i32 @tally.library.narrow(float %b, i32 1, i32 3, i32 31, i32 31, i32 32)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e2m3x2.f32(float %a, float %b) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %y = call float @llvm.maximum.f32(float %b, float 0.0)
  %high = call i32 @tally.library.narrow(float %x, i32 1, i32 3, i32 31, i32 31, i32 32)
  %low = call i32 @tally.library.narrow(float %y, i32 1, i32 3, i32 31, i32 31, i32 32)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e3m2x2.f32(float %a, float %b) {
  %high = call i32 @tally.library.narrow(float %a, i32 3, i32 2, i32 31, i32 31, i32 32)
  %low = call i32 @tally.library.narrow(float %b, i32 3, i32 2, i32 31, i32 31, i32 32)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e3m2x2.f32(float %a, float %b) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %y = call float @llvm.maximum.f32(float %b, float 0.0)
  %high = call i32 @tally.library.narrow(float %x, i32 3, i32 2, i32 31, i32 31, i32 32)
  %low = call i32 @tally.library.narrow(float %y, i32 3, i32 2, i32 31, i32 31, i32 32)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 8)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e2m1x2.f32(float %a, float %b) {
  %high = call i32 @tally.library.narrow(float %a, i32 1, i32 1, i32 7, i32 7, i32 8)
  %low = call i32 @tally.library.narrow(float %b, i32 1, i32 1, i32 7, i32 7, i32 8)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 4)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e2m1x2.f32(float %a, float %b) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %y = call float @llvm.maximum.f32(float %b, float 0.0)
  %high = call i32 @tally.library.narrow(float %x, i32 1, i32 1, i32 7, i32 7, i32 8)
  %low = call i32 @tally.library.narrow(float %y, i32 1, i32 1, i32 7, i32 7, i32 8)
  %r = call i16 @tally.library.join(i32 %high, i32 %low, i32 4)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e4m3x2.f16x2(i32 %ab) {
  %v = bitcast i32 %ab to <2 x half>
  %h = extractelement <2 x half> %v, i32 1
  %l = extractelement <2 x half> %v, i32 0
  %a = fpext half %h to float
  %b = fpext half %l to float
  %r = call i16 @tally.narrow.rn.satfinite.e4m3x2.f32(float %a, float %b)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e4m3x2.f16x2(i32 %ab) {
  %v = bitcast i32 %ab to <2 x half>
  %h = extractelement <2 x half> %v, i32 1
  %l = extractelement <2 x half> %v, i32 0
  %a = fpext half %h to float
  %b = fpext half %l to float
  %r = call i16 @tally.narrow.rn.satfinite.relu.e4m3x2.f32(float %a, float %b)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.e5m2x2.f16x2(i32 %ab) {
  %v = bitcast i32 %ab to <2 x half>
  %h = extractelement <2 x half> %v, i32 1
  %l = extractelement <2 x half> %v, i32 0
  %a = fpext half %h to float
  %b = fpext half %l to float
  %r = call i16 @tally.narrow.rn.satfinite.e5m2x2.f32(float %a, float %b)
  ret i16 %r
}

define i16 @tally.narrow.rn.satfinite.relu.e5m2x2.f16x2(i32 %ab) {
  %v = bitcast i32 %ab to <2 x half>
  %h = extractelement <2 x half> %v, i32 1
  %l = extractelement <2 x half> %v, i32 0
  %a = fpext half %h to float
  %b = fpext half %l to float
  %r = call i16 @tally.narrow.rn.satfinite.relu.e5m2x2.f32(float %a, float %b)
  ret i16 %r
}

define i32 @tally.narrow.rn.f16x2.e4m3x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 7, i32 3, i32 127, i32 127, i32 128)
  %l = call half @tally.library.widen(i32 %low, i32 7, i32 3, i32 127, i32 127, i32 128)
  %v0 = insertelement <2 x half> poison, half %l, i32 0
  %v1 = insertelement <2 x half> %v0, half %h, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.f16x2.e4m3x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 7, i32 3, i32 127, i32 127, i32 128)
  %l = call half @tally.library.widen(i32 %low, i32 7, i32 3, i32 127, i32 127, i32 128)
  %hr = call half @tally.library.relu.half(half %h)
  %lr = call half @tally.library.relu.half(half %l)
  %v0 = insertelement <2 x half> poison, half %lr, i32 0
  %v1 = insertelement <2 x half> %v0, half %hr, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.f16x2.e5m2x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 15, i32 2, i32 127, i32 125, i32 128)
  %l = call half @tally.library.widen(i32 %low, i32 15, i32 2, i32 127, i32 125, i32 128)
  %v0 = insertelement <2 x half> poison, half %l, i32 0
  %v1 = insertelement <2 x half> %v0, half %h, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.f16x2.e5m2x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 15, i32 2, i32 127, i32 125, i32 128)
  %l = call half @tally.library.widen(i32 %low, i32 15, i32 2, i32 127, i32 125, i32 128)
  %hr = call half @tally.library.relu.half(half %h)
  %lr = call half @tally.library.relu.half(half %l)
  %v0 = insertelement <2 x half> poison, half %lr, i32 0
  %v1 = insertelement <2 x half> %v0, half %hr, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.f16x2.e2m3x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 1, i32 3, i32 31, i32 256, i32 32)
  %l = call half @tally.library.widen(i32 %low, i32 1, i32 3, i32 31, i32 256, i32 32)
  %v0 = insertelement <2 x half> poison, half %l, i32 0
  %v1 = insertelement <2 x half> %v0, half %h, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.f16x2.e2m3x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 1, i32 3, i32 31, i32 256, i32 32)
  %l = call half @tally.library.widen(i32 %low, i32 1, i32 3, i32 31, i32 256, i32 32)
  %hr = call half @tally.library.relu.half(half %h)
  %lr = call half @tally.library.relu.half(half %l)
  %v0 = insertelement <2 x half> poison, half %lr, i32 0
  %v1 = insertelement <2 x half> %v0, half %hr, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.f16x2.e3m2x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 3, i32 2, i32 31, i32 256, i32 32)
  %l = call half @tally.library.widen(i32 %low, i32 3, i32 2, i32 31, i32 256, i32 32)
  %v0 = insertelement <2 x half> poison, half %l, i32 0
  %v1 = insertelement <2 x half> %v0, half %h, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.f16x2.e3m2x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 8
  %h = call half @tally.library.widen(i32 %high, i32 3, i32 2, i32 31, i32 256, i32 32)
  %l = call half @tally.library.widen(i32 %low, i32 3, i32 2, i32 31, i32 256, i32 32)
  %hr = call half @tally.library.relu.half(half %h)
  %lr = call half @tally.library.relu.half(half %l)
  %v0 = insertelement <2 x half> poison, half %lr, i32 0
  %v1 = insertelement <2 x half> %v0, half %hr, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.f16x2.e2m1x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 4
  %h = call half @tally.library.widen(i32 %high, i32 1, i32 1, i32 7, i32 256, i32 8)
  %l = call half @tally.library.widen(i32 %low, i32 1, i32 1, i32 7, i32 256, i32 8)
  %v0 = insertelement <2 x half> poison, half %l, i32 0
  %v1 = insertelement <2 x half> %v0, half %h, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.f16x2.e2m1x2(i16 %ab) {
  %low = zext i16 %ab to i32
  %high = lshr i32 %low, 4
  %h = call half @tally.library.widen(i32 %high, i32 1, i32 1, i32 7, i32 256, i32 8)
  %l = call half @tally.library.widen(i32 %low, i32 1, i32 1, i32 7, i32 256, i32 8)
  %hr = call half @tally.library.relu.half(half %h)
  %lr = call half @tally.library.relu.half(half %l)
  %v0 = insertelement <2 x half> poison, half %lr, i32 0
  %v1 = insertelement <2 x half> %v0, half %hr, i32 1
  %r = bitcast <2 x half> %v1 to i32
  ret i32 %r
}

; A power of two: the exponent of a bfloat, but for 0 (2^-127, denormal) and 255 (NaN).
define i32 @tally.library.power(i32 %code) {
  %exponent = shl i32 %code, 7
  %is.zero = icmp eq i32 %code, 0
  %number = select i1 %is.zero, i32 64, i32 %exponent
  %is.nan = icmp eq i32 %code, 255
  %r = select i1 %is.nan, i32 32767, i32 %number
  ret i32 %r
}

define i32 @tally.narrow.rn.bf16x2.ue8m0x2(i16 %ab) {
  %both = zext i16 %ab to i32
  %high = lshr i32 %both, 8
  %low = and i32 %both, 255
  %h = call i32 @tally.library.power(i32 %high)
  %l = call i32 @tally.library.power(i32 %low)
  %shifted = shl i32 %h, 16
  %r = or i32 %shifted, %l
  ret i32 %r
}

; tf32 is a float with ten bits of mantissa. %up is added to the bits first, so that cutting rounds.
define i32 @tally.library.tf32(float %x, i32 %up, i1 %even, i1 %finite) {
  %bits = bitcast float %x to i32
  %a = and i32 %bits, 2147483647
  %kept = lshr i32 %bits, 13
  %odd = and i32 %kept, 1
  %more = select i1 %even, i32 %odd, i32 0
  %added = add i32 %bits, %up
  %sum = add i32 %added, %more
  %cut = and i32 %sum, -8192
  %infinite = icmp eq i32 %a, 2139095040
  %number = select i1 %infinite, i32 %bits, i32 %cut
  %size = and i32 %number, 2147483647
  %limit = call i32 @llvm.umin.i32(i32 %size, i32 2139086848)
  %s = and i32 %bits, -2147483648
  %limited = or i32 %limit, %s
  %in.range = select i1 %finite, i32 %limited, i32 %number
  %is.nan = icmp ugt i32 %a, 2139095040
  %r = select i1 %is.nan, i32 2147483647, i32 %in.range
  ret i32 %r
}

define i32 @tally.narrow.rn.tf32.f32(float %a) {
  %r = call i32 @tally.library.tf32(float %a, i32 4095, i1 true, i1 false)
  ret i32 %r
}

define i32 @tally.narrow.rn.relu.tf32.f32(float %a) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %r = call i32 @tally.library.tf32(float %x, i32 4095, i1 true, i1 false)
  ret i32 %r
}

define i32 @tally.narrow.rn.satfinite.tf32.f32(float %a) {
  %r = call i32 @tally.library.tf32(float %a, i32 4095, i1 true, i1 true)
  ret i32 %r
}

define i32 @tally.narrow.rn.satfinite.relu.tf32.f32(float %a) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %r = call i32 @tally.library.tf32(float %x, i32 4095, i1 true, i1 true)
  ret i32 %r
}

define i32 @tally.narrow.rz.tf32.f32(float %a) {
  %r = call i32 @tally.library.tf32(float %a, i32 0, i1 false, i1 false)
  ret i32 %r
}

define i32 @tally.narrow.rz.relu.tf32.f32(float %a) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %r = call i32 @tally.library.tf32(float %x, i32 0, i1 false, i1 false)
  ret i32 %r
}

define i32 @tally.narrow.rz.satfinite.tf32.f32(float %a) {
  %r = call i32 @tally.library.tf32(float %a, i32 0, i1 false, i1 true)
  ret i32 %r
}

define i32 @tally.narrow.rz.satfinite.relu.tf32.f32(float %a) {
  %x = call float @llvm.maximum.f32(float %a, float 0.0)
  %r = call i32 @tally.library.tf32(float %x, i32 0, i1 false, i1 true)
  ret i32 %r
}

define i32 @tally.narrow.rna.satfinite.tf32.f32(float %a) {
  %r = call i32 @tally.library.tf32(float %a, i32 4096, i1 false, i1 true)
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.u16.s32(i32 %a, i32 %b) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 0, i32 65535, i32 65535)
  %low = call i32 @tally.library.clamp(i32 %b, i32 0, i32 65535, i32 65535)
  %shifted = shl i32 %high, 16
  %both = or i32 %shifted, %low
  ret i32 %both
}

define i32 @tally.narrow.pack.sat.s16.s32(i32 %a, i32 %b) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 -32768, i32 32767, i32 65535)
  %low = call i32 @tally.library.clamp(i32 %b, i32 -32768, i32 32767, i32 65535)
  %shifted = shl i32 %high, 16
  %both = or i32 %shifted, %low
  ret i32 %both
}

define i32 @tally.narrow.pack.sat.u8.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 0, i32 255, i32 255)
  %low = call i32 @tally.library.clamp(i32 %b, i32 0, i32 255, i32 255)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 16
  %r = or i32 %above, %both
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.s8.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 -128, i32 127, i32 255)
  %low = call i32 @tally.library.clamp(i32 %b, i32 -128, i32 127, i32 255)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 16
  %r = or i32 %above, %both
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.u4.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 0, i32 15, i32 15)
  %low = call i32 @tally.library.clamp(i32 %b, i32 0, i32 15, i32 15)
  %shifted = shl i32 %high, 4
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 8
  %r = or i32 %above, %both
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.s4.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 -8, i32 7, i32 15)
  %low = call i32 @tally.library.clamp(i32 %b, i32 -8, i32 7, i32 15)
  %shifted = shl i32 %high, 4
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 8
  %r = or i32 %above, %both
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.u2.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 0, i32 3, i32 3)
  %low = call i32 @tally.library.clamp(i32 %b, i32 0, i32 3, i32 3)
  %shifted = shl i32 %high, 2
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 4
  %r = or i32 %above, %both
  ret i32 %r
}

define i32 @tally.narrow.pack.sat.s2.s32.b32(i32 %a, i32 %b, i32 %c) {
  %high = call i32 @tally.library.clamp(i32 %a, i32 -2, i32 1, i32 3)
  %low = call i32 @tally.library.clamp(i32 %b, i32 -2, i32 1, i32 3)
  %shifted = shl i32 %high, 2
  %both = or i32 %shifted, %low
  %above = shl i32 %c, 4
  %r = or i32 %above, %both
  ret i32 %r
}
