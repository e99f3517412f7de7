; SPDX-License-Identifier: Apache-2.0
; Portable bodies of conversions with random bits (cvt.rs) and to powers of two (ue8m0), PTX ISA
; 9.7.9.21, and of reductions of floats by a warp (redux.sync, 9.7.13). Here only integers count, so
; that flushing denormal floats changes nothing.

declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @tally.reduce.umin(i32, i32)
declare i32 @tally.reduce.umax(i32, i32)

; The %n random bits %r stand right below the last place that is kept; what they carry into counts, the
; rest is cut. %bias of the exponent, %m bits of mantissa, the largest code, that of NaN, the sign's.
; Where the result has no leading one its last place is the format's smallest number.
define i32 @tally.library.random(float %x, i32 %r, i32 %n, i32 %bias, i32 %m, i32 %max, i32 %nan, i32 %sign) {
  %bits = bitcast float %x to i32
  %a = and i32 %bits, 2147483647
  %e = lshr i32 %a, 23
  %one = call i32 @llvm.umax.i32(i32 %e, i32 1)
  %has.one = icmp ne i32 %e, 0
  %lead = select i1 %has.one, i32 8388608, i32 0
  %fraction = and i32 %a, 8388607
  %significand = or i32 %lead, %fraction
  ; how far the number's exponent lies below the format's smallest
  %least = sub i32 128, %bias
  %is.small = icmp ult i32 %one, %least
  %gap = sub i32 %least, %one
  %below = select i1 %is.small, i32 %gap, i32 0
  %plain = sub i32 23, %m
  %far = add i32 %plain, %below
  %drop = call i32 @llvm.umin.i32(i32 %far, i32 60)
  %shift = sub i32 %drop, %n
  %wide = zext i32 %significand to i64
  %noise = zext i32 %r to i64
  %shift64 = zext i32 %shift to i64
  %placed = shl i64 %noise, %shift64
  %sum = add i64 %wide, %placed
  %drop64 = zext i32 %drop to i64
  %cut = lshr i64 %sum, %drop64
  %small = trunc i64 %cut to i32
  ; the leading one adds to the exponent, which is one less therefore
  %above = sub i32 %one, %least
  %exponent = select i1 %is.small, i32 0, i32 %above
  %base = shl i32 %exponent, %m
  %code = add i32 %base, %small
  %clamped = call i32 @llvm.umin.i32(i32 %code, i32 %max)
  %negative = icmp slt i32 %bits, 0
  %s = select i1 %negative, i32 %sign, i32 0
  %number = or i32 %clamped, %s
  %is.nan = icmp ugt i32 %a, 2139095040
  %result = select i1 %is.nan, i32 %nan, i32 %number
  ret i32 %result
}

; What is negative becomes 0; NaN stays.
define float @tally.library.relu.single(float %x) {
  %bits = bitcast float %x to i32
  %a = and i32 %bits, 2147483647
  %is.nan = icmp ugt i32 %a, 2139095040
  %negative = icmp slt i32 %bits, 0
  %positive = select i1 %negative, i32 0, i32 %bits
  %b = select i1 %is.nan, i32 %bits, i32 %positive
  %r = bitcast i32 %b to float
  ret float %r
}

define i32 @tally.narrow.rs.f16x2.f32(float %a, float %b, i32 %random) {
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 8191
  %of.b = and i32 %random, 8191
  %high = call i32 @tally.library.random(float %a, i32 %of.a, i32 13, i32 15, i32 10, i32 31744, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %b, i32 %of.b, i32 13, i32 15, i32 10, i32 31744, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.relu.f16x2.f32(float %a, float %b, i32 %random) {
  %x = call float @tally.library.relu.single(float %a)
  %y = call float @tally.library.relu.single(float %b)
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 8191
  %of.b = and i32 %random, 8191
  %high = call i32 @tally.library.random(float %x, i32 %of.a, i32 13, i32 15, i32 10, i32 31744, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %y, i32 %of.b, i32 13, i32 15, i32 10, i32 31744, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.satfinite.f16x2.f32(float %a, float %b, i32 %random) {
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 8191
  %of.b = and i32 %random, 8191
  %high = call i32 @tally.library.random(float %a, i32 %of.a, i32 13, i32 15, i32 10, i32 31743, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %b, i32 %of.b, i32 13, i32 15, i32 10, i32 31743, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.satfinite.relu.f16x2.f32(float %a, float %b, i32 %random) {
  %x = call float @tally.library.relu.single(float %a)
  %y = call float @tally.library.relu.single(float %b)
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 8191
  %of.b = and i32 %random, 8191
  %high = call i32 @tally.library.random(float %x, i32 %of.a, i32 13, i32 15, i32 10, i32 31743, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %y, i32 %of.b, i32 13, i32 15, i32 10, i32 31743, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.bf16x2.f32(float %a, float %b, i32 %random) {
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 65535
  %of.b = and i32 %random, 65535
  %high = call i32 @tally.library.random(float %a, i32 %of.a, i32 16, i32 127, i32 7, i32 32640, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %b, i32 %of.b, i32 16, i32 127, i32 7, i32 32640, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.relu.bf16x2.f32(float %a, float %b, i32 %random) {
  %x = call float @tally.library.relu.single(float %a)
  %y = call float @tally.library.relu.single(float %b)
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 65535
  %of.b = and i32 %random, 65535
  %high = call i32 @tally.library.random(float %x, i32 %of.a, i32 16, i32 127, i32 7, i32 32640, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %y, i32 %of.b, i32 16, i32 127, i32 7, i32 32640, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.satfinite.bf16x2.f32(float %a, float %b, i32 %random) {
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 65535
  %of.b = and i32 %random, 65535
  %high = call i32 @tally.library.random(float %a, i32 %of.a, i32 16, i32 127, i32 7, i32 32639, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %b, i32 %of.b, i32 16, i32 127, i32 7, i32 32639, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.satfinite.relu.bf16x2.f32(float %a, float %b, i32 %random) {
  %x = call float @tally.library.relu.single(float %a)
  %y = call float @tally.library.relu.single(float %b)
  %upper = lshr i32 %random, 16
  %of.a = and i32 %upper, 65535
  %of.b = and i32 %random, 65535
  %high = call i32 @tally.library.random(float %x, i32 %of.a, i32 16, i32 127, i32 7, i32 32639, i32 32767, i32 32768)
  %low = call i32 @tally.library.random(float %y, i32 %of.b, i32 16, i32 127, i32 7, i32 32639, i32 32767, i32 32768)
  %shifted = shl i32 %high, 16
  %result = or i32 %shifted, %low
  ret i32 %result
}

define i32 @tally.narrow.rs.satfinite.e4m3x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ac = call i32 @tally.library.random(float %a, i32 %of.ab, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %bc = call i32 @tally.library.random(float %b, i32 %of.ab, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %ec = call i32 @tally.library.random(float %e, i32 %of.ef, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fc = call i32 @tally.library.random(float %f, i32 %of.ef, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.relu.e4m3x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ar = call float @tally.library.relu.single(float %a)
  %ac = call i32 @tally.library.random(float %ar, i32 %of.ab, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %br = call float @tally.library.relu.single(float %b)
  %bc = call i32 @tally.library.random(float %br, i32 %of.ab, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %er = call float @tally.library.relu.single(float %e)
  %ec = call i32 @tally.library.random(float %er, i32 %of.ef, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fr = call float @tally.library.relu.single(float %f)
  %fc = call i32 @tally.library.random(float %fr, i32 %of.ef, i32 16, i32 7, i32 3, i32 126, i32 127, i32 128)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.e5m2x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ac = call i32 @tally.library.random(float %a, i32 %of.ab, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %bc = call i32 @tally.library.random(float %b, i32 %of.ab, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %ec = call i32 @tally.library.random(float %e, i32 %of.ef, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fc = call i32 @tally.library.random(float %f, i32 %of.ef, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.relu.e5m2x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ar = call float @tally.library.relu.single(float %a)
  %ac = call i32 @tally.library.random(float %ar, i32 %of.ab, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %br = call float @tally.library.relu.single(float %b)
  %bc = call i32 @tally.library.random(float %br, i32 %of.ab, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %er = call float @tally.library.relu.single(float %e)
  %ec = call i32 @tally.library.random(float %er, i32 %of.ef, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fr = call float @tally.library.relu.single(float %f)
  %fc = call i32 @tally.library.random(float %fr, i32 %of.ef, i32 16, i32 15, i32 2, i32 123, i32 127, i32 128)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.e2m3x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ac = call i32 @tally.library.random(float %a, i32 %of.ab, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %bc = call i32 @tally.library.random(float %b, i32 %of.ab, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %ec = call i32 @tally.library.random(float %e, i32 %of.ef, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fc = call i32 @tally.library.random(float %f, i32 %of.ef, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.relu.e2m3x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ar = call float @tally.library.relu.single(float %a)
  %ac = call i32 @tally.library.random(float %ar, i32 %of.ab, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %br = call float @tally.library.relu.single(float %b)
  %bc = call i32 @tally.library.random(float %br, i32 %of.ab, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %er = call float @tally.library.relu.single(float %e)
  %ec = call i32 @tally.library.random(float %er, i32 %of.ef, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fr = call float @tally.library.relu.single(float %f)
  %fc = call i32 @tally.library.random(float %fr, i32 %of.ef, i32 16, i32 1, i32 3, i32 31, i32 31, i32 32)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.e3m2x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ac = call i32 @tally.library.random(float %a, i32 %of.ab, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %bc = call i32 @tally.library.random(float %b, i32 %of.ab, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %ec = call i32 @tally.library.random(float %e, i32 %of.ef, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fc = call i32 @tally.library.random(float %f, i32 %of.ef, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i32 @tally.narrow.rs.satfinite.relu.e3m2x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %of.ab = lshr i32 %random, 16
  %of.ef = and i32 %random, 65535
  %ar = call float @tally.library.relu.single(float %a)
  %ac = call i32 @tally.library.random(float %ar, i32 %of.ab, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %br = call float @tally.library.relu.single(float %b)
  %bc = call i32 @tally.library.random(float %br, i32 %of.ab, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %bs = shl i32 %ac, 8
  %bj = or i32 %bs, %bc
  %er = call float @tally.library.relu.single(float %e)
  %ec = call i32 @tally.library.random(float %er, i32 %of.ef, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %es = shl i32 %bj, 8
  %ej = or i32 %es, %ec
  %fr = call float @tally.library.relu.single(float %f)
  %fc = call i32 @tally.library.random(float %fr, i32 %of.ef, i32 16, i32 3, i32 2, i32 31, i32 31, i32 32)
  %fs = shl i32 %ej, 8
  %fj = or i32 %fs, %fc
  ret i32 %fj
}

define i16 @tally.narrow.rs.satfinite.e2m1x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %upper = lshr i32 %random, 16
  %first = and i32 %upper, 65280
  %third = lshr i32 %random, 8
  %fourth = and i32 %third, 255
  %of.ab = or i32 %first, %fourth
  %second = and i32 %upper, 255
  %moved = shl i32 %second, 8
  %last = and i32 %random, 255
  %of.ef = or i32 %moved, %last
  %ac = call i32 @tally.library.random(float %a, i32 %of.ab, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %bc = call i32 @tally.library.random(float %b, i32 %of.ab, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %bs = shl i32 %ac, 4
  %bj = or i32 %bs, %bc
  %ec = call i32 @tally.library.random(float %e, i32 %of.ef, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %es = shl i32 %bj, 4
  %ej = or i32 %es, %ec
  %fc = call i32 @tally.library.random(float %f, i32 %of.ef, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %fs = shl i32 %ej, 4
  %fj = or i32 %fs, %fc
  %result = trunc i32 %fj to i16
  ret i16 %result
}

define i16 @tally.narrow.rs.satfinite.relu.e2m1x4.f32(float %a, float %b, float %e, float %f, i32 %random) {
  %upper = lshr i32 %random, 16
  %first = and i32 %upper, 65280
  %third = lshr i32 %random, 8
  %fourth = and i32 %third, 255
  %of.ab = or i32 %first, %fourth
  %second = and i32 %upper, 255
  %moved = shl i32 %second, 8
  %last = and i32 %random, 255
  %of.ef = or i32 %moved, %last
  %ar = call float @tally.library.relu.single(float %a)
  %ac = call i32 @tally.library.random(float %ar, i32 %of.ab, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %br = call float @tally.library.relu.single(float %b)
  %bc = call i32 @tally.library.random(float %br, i32 %of.ab, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %bs = shl i32 %ac, 4
  %bj = or i32 %bs, %bc
  %er = call float @tally.library.relu.single(float %e)
  %ec = call i32 @tally.library.random(float %er, i32 %of.ef, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %es = shl i32 %bj, 4
  %ej = or i32 %es, %ec
  %fr = call float @tally.library.relu.single(float %f)
  %fc = call i32 @tally.library.random(float %fr, i32 %of.ef, i32 16, i32 1, i32 1, i32 7, i32 7, i32 8)
  %fs = shl i32 %ej, 4
  %fj = or i32 %fs, %fc
  %result = trunc i32 %fj to i16
  ret i16 %result
}

; The exponent of a number's size; up where it is no power of two; 255 is NaN, and what is too large
; unless %finite.
define i32 @tally.library.exponent(i32 %bits, i1 %up, i1 %finite) {
  %a = and i32 %bits, 2147483647
  %e = lshr i32 %a, 23
  %fraction = and i32 %a, 8388607
  %between = icmp ne i32 %fraction, 0
  %over.least = icmp ugt i32 %a, 4194304
  %is.finite = icmp ult i32 %a, 2139095040
  %u0 = and i1 %between, %over.least
  %u1 = and i1 %u0, %is.finite
  %u2 = and i1 %u1, %up
  %one = zext i1 %u2 to i32
  %code = add i32 %e, %one
  %number = icmp ule i32 %a, 2139095040
  %limited = and i1 %number, %finite
  %limit = select i1 %limited, i32 254, i32 255
  %r = call i32 @llvm.umin.i32(i32 %code, i32 %limit)
  ret i32 %r
}

define i16 @tally.narrow.rz.ue8m0x2.f32(float %a, float %b) {
  %x = bitcast float %a to i32
  %y = bitcast float %b to i32
  %high = call i32 @tally.library.exponent(i32 %x, i1 false, i1 false)
  %low = call i32 @tally.library.exponent(i32 %y, i1 false, i1 false)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rz.ue8m0x2.bf16x2(i32 %ab) {
  %x = and i32 %ab, -65536
  %y = shl i32 %ab, 16
  %high = call i32 @tally.library.exponent(i32 %x, i1 false, i1 false)
  %low = call i32 @tally.library.exponent(i32 %y, i1 false, i1 false)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rz.satfinite.ue8m0x2.f32(float %a, float %b) {
  %x = bitcast float %a to i32
  %y = bitcast float %b to i32
  %high = call i32 @tally.library.exponent(i32 %x, i1 false, i1 true)
  %low = call i32 @tally.library.exponent(i32 %y, i1 false, i1 true)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rz.satfinite.ue8m0x2.bf16x2(i32 %ab) {
  %x = and i32 %ab, -65536
  %y = shl i32 %ab, 16
  %high = call i32 @tally.library.exponent(i32 %x, i1 false, i1 true)
  %low = call i32 @tally.library.exponent(i32 %y, i1 false, i1 true)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rp.ue8m0x2.f32(float %a, float %b) {
  %x = bitcast float %a to i32
  %y = bitcast float %b to i32
  %high = call i32 @tally.library.exponent(i32 %x, i1 true, i1 false)
  %low = call i32 @tally.library.exponent(i32 %y, i1 true, i1 false)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rp.ue8m0x2.bf16x2(i32 %ab) {
  %x = and i32 %ab, -65536
  %y = shl i32 %ab, 16
  %high = call i32 @tally.library.exponent(i32 %x, i1 true, i1 false)
  %low = call i32 @tally.library.exponent(i32 %y, i1 true, i1 false)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rp.satfinite.ue8m0x2.f32(float %a, float %b) {
  %x = bitcast float %a to i32
  %y = bitcast float %b to i32
  %high = call i32 @tally.library.exponent(i32 %x, i1 true, i1 true)
  %low = call i32 @tally.library.exponent(i32 %y, i1 true, i1 true)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

define i16 @tally.narrow.rp.satfinite.ue8m0x2.bf16x2(i32 %ab) {
  %x = and i32 %ab, -65536
  %y = shl i32 %ab, 16
  %high = call i32 @tally.library.exponent(i32 %x, i1 true, i1 true)
  %low = call i32 @tally.library.exponent(i32 %y, i1 true, i1 true)
  %shifted = shl i32 %high, 8
  %both = or i32 %shifted, %low
  %r = trunc i32 %both to i16
  ret i16 %r
}

; Floats in the order of integers: -0 below +0. NaN is the worst of all, or with .NaN the best.
define i32 @tally.library.key(i32 %bits, i32 %of.nan) {
  %a = and i32 %bits, 2147483647
  %is.nan = icmp ugt i32 %a, 2139095040
  %negative = icmp slt i32 %bits, 0
  %inverted = xor i32 %bits, -1
  %marked = or i32 %bits, -2147483648
  %key = select i1 %negative, i32 %inverted, i32 %marked
  %r = select i1 %is.nan, i32 %of.nan, i32 %key
  ret i32 %r
}

define float @tally.library.of.key(i32 %key, i32 %of.nan) {
  %is.nan = icmp eq i32 %key, %of.nan
  %positive = icmp slt i32 %key, 0
  %cleared = and i32 %key, 2147483647
  %inverted = xor i32 %key, -1
  %bits = select i1 %positive, i32 %cleared, i32 %inverted
  %b = select i1 %is.nan, i32 2147483647, i32 %bits
  %r = bitcast i32 %b to float
  ret float %r
}

define float @tally.reduce.min.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %key = call i32 @tally.library.key(i32 %bits, i32 -1)
  %best = call i32 @tally.reduce.umin(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 -1)
  ret float %r
}

define float @tally.reduce.min.NaN.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %key = call i32 @tally.library.key(i32 %bits, i32 0)
  %best = call i32 @tally.reduce.umin(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 0)
  ret float %r
}

define float @tally.reduce.min.abs.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %size = and i32 %bits, 2147483647
  %key = call i32 @tally.library.key(i32 %size, i32 -1)
  %best = call i32 @tally.reduce.umin(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 -1)
  ret float %r
}

define float @tally.reduce.min.abs.NaN.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %size = and i32 %bits, 2147483647
  %key = call i32 @tally.library.key(i32 %size, i32 0)
  %best = call i32 @tally.reduce.umin(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 0)
  ret float %r
}

define float @tally.reduce.max.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %key = call i32 @tally.library.key(i32 %bits, i32 0)
  %best = call i32 @tally.reduce.umax(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 0)
  ret float %r
}

define float @tally.reduce.max.NaN.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %key = call i32 @tally.library.key(i32 %bits, i32 -1)
  %best = call i32 @tally.reduce.umax(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 -1)
  ret float %r
}

define float @tally.reduce.max.abs.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %size = and i32 %bits, 2147483647
  %key = call i32 @tally.library.key(i32 %size, i32 0)
  %best = call i32 @tally.reduce.umax(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 0)
  ret float %r
}

define float @tally.reduce.max.abs.NaN.f32(i32 %mask, float %v) convergent {
  %bits = bitcast float %v to i32
  %size = and i32 %bits, 2147483647
  %key = call i32 @tally.library.key(i32 %size, i32 -1)
  %best = call i32 @tally.reduce.umax(i32 %mask, i32 %key)
  %r = call float @tally.library.of.key(i32 %best, i32 -1)
  ret float %r
}
