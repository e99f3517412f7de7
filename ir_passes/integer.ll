; SPDX-License-Identifier: Apache-2.0
; Portable bodies of the integer operations, to the letter of the PTX ISA's pseudo-code.

declare i32 @llvm.ctlz.i32(i32, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i32 @llvm.umin.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)

; One byte of prmt (default mode): nibble `n` chooses it, its top bit replicates the sign.
define i32 @tally.library.prmt.byte(i64 %ab, i32 %n) {
  %index = and i32 %n, 7
  %shift = shl i32 %index, 3
  %shift64 = zext i32 %shift to i64
  %moved = lshr i64 %ab, %shift64
  %byte = trunc i64 %moved to i8
  %sign = ashr i8 %byte, 7
  %top = and i32 %n, 8
  %replicate = icmp ne i32 %top, 0
  %chosen = select i1 %replicate, i8 %sign, i8 %byte
  %wide = zext i8 %chosen to i32
  ret i32 %wide
}

define i32 @tally.prmt(i32 %a, i32 %b, i32 %s) {
  %a64 = zext i32 %a to i64
  %b64 = zext i32 %b to i64
  %high = shl i64 %b64, 32
  %ab = or i64 %high, %a64
  %n1 = lshr i32 %s, 4
  %n2 = lshr i32 %s, 8
  %n3 = lshr i32 %s, 12
  %r0 = call i32 @tally.library.prmt.byte(i64 %ab, i32 %s)
  %r1 = call i32 @tally.library.prmt.byte(i64 %ab, i32 %n1)
  %r2 = call i32 @tally.library.prmt.byte(i64 %ab, i32 %n2)
  %r3 = call i32 @tally.library.prmt.byte(i64 %ab, i32 %n3)
  %s1 = shl i32 %r1, 8
  %s2 = shl i32 %r2, 16
  %s3 = shl i32 %r3, 24
  %o1 = or i32 %r0, %s1
  %o2 = or i32 %o1, %s2
  %o3 = or i32 %o2, %s3
  ret i32 %o3
}

; Bit fields: position and length are the low 8 bits of their operands.
; The lowest `l` bits set; all when there are as many or more.
define i32 @tally.library.low.bits.i32(i32 %l) {
  %all = icmp uge i32 %l, 32
  %safe = and i32 %l, 31
  %bit = shl i32 1, %safe
  %some = sub i32 %bit, 1
  %mask = select i1 %all, i32 -1, i32 %some
  ret i32 %mask
}

define i32 @tally.bfe.u32(i32 %a, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %outside = icmp uge i32 %pos8, 32
  %safe = and i32 %pos8, 31
  %moved = lshr i32 %a, %safe
  %mask = call i32 @tally.library.low.bits.i32(i32 %len8)
  %field = and i32 %moved, %mask
  %r = select i1 %outside, i32 0, i32 %field
  ret i32 %r
}

; The sign bit is the field's last one, or the operand's own where the field reaches past it.
define i32 @tally.bfe.s32(i32 %a, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %shift = call i32 @llvm.umin.i32(i32 %pos8, i32 31)
  %moved = ashr i32 %a, %shift
  %length = call i32 @llvm.umin.i32(i32 %len8, i32 32)
  %unused = sub i32 32, %length
  %safe = and i32 %unused, 31
  %up = shl i32 %moved, %safe
  %down = ashr i32 %up, %safe
  %empty = icmp eq i32 %len8, 0
  %r = select i1 %empty, i32 0, i32 %down
  ret i32 %r
}

define i32 @tally.bfi.b32(i32 %a, i32 %b, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %outside = icmp uge i32 %pos8, 32
  %safe = and i32 %pos8, 31
  %mask = call i32 @tally.library.low.bits.i32(i32 %len8)
  %there = shl i32 %mask, %safe
  %moved = shl i32 %a, %safe
  %in = and i32 %moved, %there
  %not = xor i32 %there, -1
  %kept = and i32 %b, %not
  %both = or i32 %kept, %in
  %r = select i1 %outside, i32 %b, i32 %both
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.u32(i32 %a) {
  %m = or i32 %a, 0
  %zeros = call i32 @llvm.ctlz.i32(i32 %m, i1 false)
  %none = icmp eq i32 %m, 0
  %r = select i1 %none, i32 -1, i32 %zeros
  ret i32 %r
}

define i32 @tally.bfind.u32(i32 %a) {
  %shift = call i32 @tally.bfind.shiftamt.u32(i32 %a)
  %none = icmp eq i32 %shift, -1
  %pos = sub i32 31, %shift
  %r = select i1 %none, i32 -1, i32 %pos
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.s32(i32 %a) {
  %sign = ashr i32 %a, 31
  %m = xor i32 %a, %sign
  %zeros = call i32 @llvm.ctlz.i32(i32 %m, i1 false)
  %none = icmp eq i32 %m, 0
  %r = select i1 %none, i32 -1, i32 %zeros
  ret i32 %r
}

define i32 @tally.bfind.s32(i32 %a) {
  %shift = call i32 @tally.bfind.shiftamt.s32(i32 %a)
  %none = icmp eq i32 %shift, -1
  %pos = sub i32 31, %shift
  %r = select i1 %none, i32 -1, i32 %pos
  ret i32 %r
}

; The lowest `l` bits set; all when there are as many or more.
define i64 @tally.library.low.bits.i64(i64 %l) {
  %all = icmp uge i64 %l, 64
  %safe = and i64 %l, 63
  %bit = shl i64 1, %safe
  %some = sub i64 %bit, 1
  %mask = select i1 %all, i64 -1, i64 %some
  ret i64 %mask
}

define i64 @tally.bfe.u64(i64 %a, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %p = zext i32 %pos8 to i64
  %l = zext i32 %len8 to i64
  %outside = icmp uge i64 %p, 64
  %safe = and i64 %p, 63
  %moved = lshr i64 %a, %safe
  %mask = call i64 @tally.library.low.bits.i64(i64 %l)
  %field = and i64 %moved, %mask
  %r = select i1 %outside, i64 0, i64 %field
  ret i64 %r
}

; The sign bit is the field's last one, or the operand's own where the field reaches past it.
define i64 @tally.bfe.s64(i64 %a, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %p = zext i32 %pos8 to i64
  %l = zext i32 %len8 to i64
  %shift = call i64 @llvm.umin.i64(i64 %p, i64 63)
  %moved = ashr i64 %a, %shift
  %length = call i64 @llvm.umin.i64(i64 %l, i64 64)
  %unused = sub i64 64, %length
  %safe = and i64 %unused, 63
  %up = shl i64 %moved, %safe
  %down = ashr i64 %up, %safe
  %empty = icmp eq i64 %l, 0
  %r = select i1 %empty, i64 0, i64 %down
  ret i64 %r
}

define i64 @tally.bfi.b64(i64 %a, i64 %b, i32 %pos, i32 %len) {
  %pos8 = and i32 %pos, 255
  %len8 = and i32 %len, 255
  %p = zext i32 %pos8 to i64
  %l = zext i32 %len8 to i64
  %outside = icmp uge i64 %p, 64
  %safe = and i64 %p, 63
  %mask = call i64 @tally.library.low.bits.i64(i64 %l)
  %there = shl i64 %mask, %safe
  %moved = shl i64 %a, %safe
  %in = and i64 %moved, %there
  %not = xor i64 %there, -1
  %kept = and i64 %b, %not
  %both = or i64 %kept, %in
  %r = select i1 %outside, i64 %b, i64 %both
  ret i64 %r
}

define i32 @tally.bfind.shiftamt.u64(i64 %a) {
  %m = or i64 %a, 0
  %zeros = call i64 @llvm.ctlz.i64(i64 %m, i1 false)
  %z = trunc i64 %zeros to i32
  %none = icmp eq i64 %m, 0
  %r = select i1 %none, i32 -1, i32 %z
  ret i32 %r
}

define i32 @tally.bfind.u64(i64 %a) {
  %shift = call i32 @tally.bfind.shiftamt.u64(i64 %a)
  %none = icmp eq i32 %shift, -1
  %pos = sub i32 63, %shift
  %r = select i1 %none, i32 -1, i32 %pos
  ret i32 %r
}

define i32 @tally.bfind.shiftamt.s64(i64 %a) {
  %sign = ashr i64 %a, 63
  %m = xor i64 %a, %sign
  %zeros = call i64 @llvm.ctlz.i64(i64 %m, i1 false)
  %z = trunc i64 %zeros to i32
  %none = icmp eq i64 %m, 0
  %r = select i1 %none, i32 -1, i32 %z
  ret i32 %r
}

define i32 @tally.bfind.s64(i64 %a) {
  %shift = call i32 @tally.bfind.shiftamt.s64(i64 %a)
  %none = icmp eq i32 %shift, -1
  %pos = sub i32 63, %shift
  %r = select i1 %none, i32 -1, i32 %pos
  ret i32 %r
}

define i32 @tally.library.bmsk(i32 %a, i32 %b, i1 %position, i1 %width) {
  %a1 = and i32 %a, 31
  %b1 = and i32 %b, 31
  %m0 = shl i32 -1, %a1
  %mask0 = select i1 %position, i32 0, i32 %m0
  %sum = add i32 %a1, %b1
  %over = icmp uge i32 %sum, 32
  %pw = or i1 %position, %width
  %any = or i1 %over, %pw
  %safe = and i32 %sum, 31
  %m1 = shl i32 -1, %safe
  %empty = icmp eq i32 %b1, 0
  %m1e = select i1 %empty, i32 -1, i32 %m1
  %mask1 = select i1 %any, i32 0, i32 %m1e
  %not = xor i32 %mask1, -1
  %r = and i32 %mask0, %not
  ret i32 %r
}

define i32 @tally.bmsk.clamp(i32 %a, i32 %b) {
  %position = icmp uge i32 %a, 32
  %width = icmp uge i32 %b, 32
  %r = call i32 @tally.library.bmsk(i32 %a, i32 %b, i1 %position, i1 %width)
  ret i32 %r
}

define i32 @tally.bmsk.wrap(i32 %a, i32 %b) {
  %r = call i32 @tally.library.bmsk(i32 %a, i32 %b, i1 false, i1 false)
  ret i32 %r
}

; The n-th set bit from `base`, upwards or downwards.
define i32 @tally.fns(i32 %mask, i32 %base, i32 %offset) {
entry:
  %here = icmp eq i32 %offset, 0
  %down = icmp slt i32 %offset, 0
  %step = select i1 %down, i32 -1, i32 1
  %negated = sub i32 0, %offset
  %distance = select i1 %down, i32 %negated, i32 %offset
  %count0 = sub i32 %distance, 1
  br label %loop
loop:
  %pos = phi i32 [ %base, %entry ], [ %pos.next, %next ]
  %count = phi i32 [ %count0, %entry ], [ %count.next, %next ]
  %inside = icmp ult i32 %pos, 32
  br i1 %inside, label %test, label %none
test:
  %moved = lshr i32 %mask, %pos
  %low = and i32 %moved, 1
  %set = icmp ne i32 %low, 0
  br i1 %here, label %only, label %walk
only:
  %only.r = select i1 %set, i32 %pos, i32 -1
  ret i32 %only.r
walk:
  %last = icmp eq i32 %count, 0
  %found = and i1 %set, %last
  br i1 %found, label %done, label %next
next:
  %less = sub i32 %count, 1
  %count.next = select i1 %set, i32 %less, i32 %count
  %pos.next = add i32 %pos, %step
  br label %loop
done:
  ret i32 %pos
none:
  ret i32 -1
}

; Dot products of packed bytes (dp4a) and of halves with bytes (dp2a).
define i32 @tally.dp4a.uu(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 24
  %a0 = lshr i32 %a0u, 24
  %b0u = shl i32 %b, 24
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 16
  %a1 = lshr i32 %a1u, 24
  %b1u = shl i32 %b, 16
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  %a2u = shl i32 %a, 8
  %a2 = lshr i32 %a2u, 24
  %b2u = shl i32 %b, 8
  %b2 = lshr i32 %b2u, 24
  %p2 = mul i32 %a2, %b2
  %s2 = add i32 %s1, %p2
  %a3u = shl i32 %a, 0
  %a3 = lshr i32 %a3u, 24
  %b3u = shl i32 %b, 0
  %b3 = lshr i32 %b3u, 24
  %p3 = mul i32 %a3, %b3
  %s3 = add i32 %s2, %p3
  ret i32 %s3
}

define i32 @tally.dp4a.us(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 24
  %a0 = lshr i32 %a0u, 24
  %b0u = shl i32 %b, 24
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 16
  %a1 = lshr i32 %a1u, 24
  %b1u = shl i32 %b, 16
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  %a2u = shl i32 %a, 8
  %a2 = lshr i32 %a2u, 24
  %b2u = shl i32 %b, 8
  %b2 = ashr i32 %b2u, 24
  %p2 = mul i32 %a2, %b2
  %s2 = add i32 %s1, %p2
  %a3u = shl i32 %a, 0
  %a3 = lshr i32 %a3u, 24
  %b3u = shl i32 %b, 0
  %b3 = ashr i32 %b3u, 24
  %p3 = mul i32 %a3, %b3
  %s3 = add i32 %s2, %p3
  ret i32 %s3
}

define i32 @tally.dp4a.su(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 24
  %a0 = ashr i32 %a0u, 24
  %b0u = shl i32 %b, 24
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 16
  %a1 = ashr i32 %a1u, 24
  %b1u = shl i32 %b, 16
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  %a2u = shl i32 %a, 8
  %a2 = ashr i32 %a2u, 24
  %b2u = shl i32 %b, 8
  %b2 = lshr i32 %b2u, 24
  %p2 = mul i32 %a2, %b2
  %s2 = add i32 %s1, %p2
  %a3u = shl i32 %a, 0
  %a3 = ashr i32 %a3u, 24
  %b3u = shl i32 %b, 0
  %b3 = lshr i32 %b3u, 24
  %p3 = mul i32 %a3, %b3
  %s3 = add i32 %s2, %p3
  ret i32 %s3
}

define i32 @tally.dp4a.ss(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 24
  %a0 = ashr i32 %a0u, 24
  %b0u = shl i32 %b, 24
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 16
  %a1 = ashr i32 %a1u, 24
  %b1u = shl i32 %b, 16
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  %a2u = shl i32 %a, 8
  %a2 = ashr i32 %a2u, 24
  %b2u = shl i32 %b, 8
  %b2 = ashr i32 %b2u, 24
  %p2 = mul i32 %a2, %b2
  %s2 = add i32 %s1, %p2
  %a3u = shl i32 %a, 0
  %a3 = ashr i32 %a3u, 24
  %b3u = shl i32 %b, 0
  %b3 = ashr i32 %b3u, 24
  %p3 = mul i32 %a3, %b3
  %s3 = add i32 %s2, %p3
  ret i32 %s3
}

define i32 @tally.dp2a.lo.uu(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = lshr i32 %a0u, 16
  %b0u = shl i32 %b, 24
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = lshr i32 %a1u, 16
  %b1u = shl i32 %b, 16
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.lo.us(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = lshr i32 %a0u, 16
  %b0u = shl i32 %b, 24
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = lshr i32 %a1u, 16
  %b1u = shl i32 %b, 16
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.lo.su(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = ashr i32 %a0u, 16
  %b0u = shl i32 %b, 24
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = ashr i32 %a1u, 16
  %b1u = shl i32 %b, 16
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.lo.ss(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = ashr i32 %a0u, 16
  %b0u = shl i32 %b, 24
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = ashr i32 %a1u, 16
  %b1u = shl i32 %b, 16
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.hi.uu(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = lshr i32 %a0u, 16
  %b0u = shl i32 %b, 8
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = lshr i32 %a1u, 16
  %b1u = shl i32 %b, 0
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.hi.us(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = lshr i32 %a0u, 16
  %b0u = shl i32 %b, 8
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = lshr i32 %a1u, 16
  %b1u = shl i32 %b, 0
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.hi.su(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = ashr i32 %a0u, 16
  %b0u = shl i32 %b, 8
  %b0 = lshr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = ashr i32 %a1u, 16
  %b1u = shl i32 %b, 0
  %b1 = lshr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.dp2a.hi.ss(i32 %a, i32 %b, i32 %c) {
  %a0u = shl i32 %a, 16
  %a0 = ashr i32 %a0u, 16
  %b0u = shl i32 %b, 8
  %b0 = ashr i32 %b0u, 24
  %p0 = mul i32 %a0, %b0
  %s0 = add i32 %c, %p0
  %a1u = shl i32 %a, 0
  %a1 = ashr i32 %a1u, 16
  %b1u = shl i32 %b, 0
  %b1 = ashr i32 %b1u, 24
  %p1 = mul i32 %a1, %b1
  %s1 = add i32 %s0, %p1
  ret i32 %s1
}

define i32 @tally.sad.u32(i32 %a, i32 %b, i32 %c) {
  %less = icmp ult i32 %a, %b
  %ab = sub i32 %a, %b
  %ba = sub i32 %b, %a
  %d = select i1 %less, i32 %ba, i32 %ab
  %r = add i32 %c, %d
  ret i32 %r
}

define i32 @tally.sad.s32(i32 %a, i32 %b, i32 %c) {
  %less = icmp slt i32 %a, %b
  %ab = sub i32 %a, %b
  %ba = sub i32 %b, %a
  %d = select i1 %less, i32 %ba, i32 %ab
  %r = add i32 %c, %d
  ret i32 %r
}
