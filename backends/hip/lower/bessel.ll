; SPDX-License-Identifier: Apache-2.0
; Bessel functions of integer order, which ocml has for the orders 0 and 1 alone. Abramowitz and Stegun 9.1.27: the
; recurrence J(n+1) = 2n/x J(n) - J(n-1) keeps its accuracy upwards for Y, and for J where n <= x. Else J goes
; downwards from the ratio J(n)/J(n-1), a continued fraction (9.1.73), and is scaled by J0 or J1, whichever is larger.
; In double precision for both types: the recurrences lose some digits.

declare double @__ocml_j0_f64(double)
declare double @__ocml_j1_f64(double)
declare double @__ocml_y0_f64(double)
declare double @__ocml_y1_f64(double)
declare double @llvm.fabs.f64(double)

; F(n) upwards from F(0) = %f0 and F(1) = %f1, n >= 1, x > 0.
define internal double @tally.hip.bessel.up(i32 %n, double %x, double %f0, double %f1) alwaysinline {
entry:
  br label %loop
loop:
  %i = phi i32 [ 1, %entry ], [ %next, %step ]
  %a = phi double [ %f0, %entry ], [ %b, %step ]
  %b = phi double [ %f1, %entry ], [ %c, %step ]
  %more = icmp slt i32 %i, %n
  %low = fcmp oeq double %b, 0xFFF0000000000000
  %over = xor i1 %low, true
  %go = and i1 %more, %over
  br i1 %go, label %step, label %done
step:
  %twice = uitofp i32 %i to double
  %t0 = fmul double %twice, 2.0
  %t1 = fdiv double %t0, %x
  %t2 = fmul double %t1, %b
  %c = fsub double %t2, %a
  %next = add i32 %i, 1
  br label %loop
done:
  ret double %b
}

; J(n)/J(n-1) for x < n: one term after another of the continued fraction, from the innermost one that matters.
define internal double @tally.hip.bessel.ratio(i32 %n, double %x) alwaysinline {
entry:
  %h = fdiv double 2.0, %x
  %nd = uitofp i32 %n to double
  %w = fmul double %nd, %h
  %z0 = fadd double %w, %h
  %wz = fmul double %w, %z0
  %q1first = fsub double %wz, 1.0
  br label %grow
; How many terms: the denominators grow until 1e9, whose square is beyond double's precision.
grow:
  %k = phi i32 [ 1, %entry ], [ %k1, %more ]
  %z = phi double [ %z0, %entry ], [ %z1, %more ]
  %q0 = phi double [ %w, %entry ], [ %q1, %more ]
  %q1 = phi double [ %q1first, %entry ], [ %q2, %more ]
  %small = fcmp olt double %q1, 1.0e9
  br i1 %small, label %more, label %terms
more:
  %k1 = add i32 %k, 1
  %z1 = fadd double %z, %h
  %zq = fmul double %z1, %q1
  %q2 = fsub double %zq, %q0
  br label %grow
terms:
  %last = add i32 %n, %k
  br label %term
term:
  %m = phi i32 [ %last, %terms ], [ %m1, %inner ]
  %t = phi double [ 0.0, %terms ], [ %t1, %inner ]
  %in = icmp sge i32 %m, %n
  br i1 %in, label %inner, label %done
inner:
  %md = uitofp i32 %m to double
  %mh = fmul double %md, %h
  %d = fsub double %mh, %t
  %t1 = fdiv double 1.0, %d
  %m1 = sub i32 %m, 1
  br label %term
done:
  ret double %t
}

; J(n) for 2 <= n, 0 < x < n.
define internal double @tally.hip.bessel.down(i32 %n, double %x, double %j0, double %j1) alwaysinline {
entry:
  %ratio = call double @tally.hip.bessel.ratio(i32 %n, double %x)
  %first = sub i32 %n, 1
  br label %loop
; a = r J(i+1), b = r J(i), and t = r J(n), whatever r is.
loop:
  %i = phi i32 [ %first, %entry ], [ %i1, %scaled ]
  %a = phi double [ %ratio, %entry ], [ %as, %scaled ]
  %b = phi double [ 1.0, %entry ], [ %bs, %scaled ]
  %t = phi double [ %ratio, %entry ], [ %ts, %scaled ]
  %go = icmp sgt i32 %i, 0
  br i1 %go, label %scaled, label %done
scaled:
  %id = uitofp i32 %i to double
  %i2 = fmul double %id, 2.0
  %f = fdiv double %i2, %x
  %fb = fmul double %f, %b
  %c = fsub double %fb, %a
  %size = call double @llvm.fabs.f64(double %c)
  %large = fcmp ogt double %size, 1.0e100
  %by = select i1 %large, double 1.0e-100, double 1.0
  %as = fmul double %b, %by
  %bs = fmul double %c, %by
  %ts = fmul double %t, %by
  %i1 = sub i32 %i, 1
  br label %loop
done:
  %s0 = call double @llvm.fabs.f64(double %j0)
  %s1 = call double @llvm.fabs.f64(double %j1)
  %use0 = fcmp oge double %s0, %s1
  %known = select i1 %use0, double %j0, double %j1
  %scale = select i1 %use0, double %b, double %a
  %product = fdiv double %known, %scale
  %j = fmul double %t, %product
  ret double %j
}

define double @tally.math.jn.f64(i32 %order, double %argument) {
entry:
  ; J(-n, x) = J(n, -x) = (-1)^n J(n, x)
  %back = icmp slt i32 %order, 0
  %minus = sub i32 0, %order
  %n = select i1 %back, i32 %minus, i32 %order
  %negative = fcmp olt double %argument, 0.0
  %mirrored = xor i1 %back, %negative
  %bit = and i32 %n, 1
  %odd = icmp ne i32 %bit, 0
  %flip = and i1 %mirrored, %odd
  %x = call double @llvm.fabs.f64(double %argument)
  %j0 = call double @__ocml_j0_f64(double %x)
  %j1 = call double @__ocml_j1_f64(double %x)
  %is0 = icmp eq i32 %n, 0
  br i1 %is0, label %zero, label %not0
zero:
  ret double %j0
not0:
  %tiny = fcmp oeq double %x, 0.0
  %huge = fcmp oeq double %x, 0x7FF0000000000000
  %edge = or i1 %tiny, %huge
  br i1 %edge, label %done, label %inside
inside:
  %is1 = icmp eq i32 %n, 1
  %nd = uitofp i32 %n to double
  %below = fcmp olt double %x, %nd
  %notone = xor i1 %is1, true
  %downwards = and i1 %below, %notone
  br i1 %downwards, label %down, label %up
down:
  %jd = call double @tally.hip.bessel.down(i32 %n, double %x, double %j0, double %j1)
  br label %done
up:
  %ju = call double @tally.hip.bessel.up(i32 %n, double %x, double %j0, double %j1)
  br label %done
done:
  %j = phi double [ 0.0, %not0 ], [ %jd, %down ], [ %ju, %up ]
  %opposite = fneg double %j
  %result = select i1 %flip, double %opposite, double %j
  ret double %result
}

define double @tally.math.yn.f64(i32 %order, double %x) {
entry:
  %y0 = call double @__ocml_y0_f64(double %x)
  %y1 = call double @__ocml_y1_f64(double %x)
  %back = icmp slt i32 %order, 0
  %minus = sub i32 0, %order
  %n = select i1 %back, i32 %minus, i32 %order
  %bit = and i32 %n, 1
  %odd = icmp ne i32 %bit, 0
  %flip = and i1 %back, %odd
  %is0 = icmp eq i32 %n, 0
  ; Below 0 there is none, at 0 and far out y0 and y1 say what it is.
  %positive = fcmp ogt double %x, 0.0
  %finite = fcmp olt double %x, 0x7FF0000000000000
  %inside = and i1 %positive, %finite
  br i1 %is0, label %zero, label %not0
zero:
  ret double %y0
not0:
  br i1 %inside, label %up, label %done
up:
  %yu = call double @tally.hip.bessel.up(i32 %n, double %x, double %y0, double %y1)
  br label %done
done:
  %y = phi double [ %y1, %not0 ], [ %yu, %up ]
  %opposite = fneg double %y
  %result = select i1 %flip, double %opposite, double %y
  ret double %result
}

define float @tally.math.jn.f32(i32 %n, float %x) {
  %wide = fpext float %x to double
  %j = call double @tally.math.jn.f64(i32 %n, double %wide)
  %r = fptrunc double %j to float
  ret float %r
}

define float @tally.math.yn.f32(i32 %n, float %x) {
  %wide = fpext float %x to double
  %y = call double @tally.math.yn.f64(i32 %n, double %wide)
  %r = fptrunc double %y to float
  ret float %r
}
