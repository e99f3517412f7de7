; SPDX-License-Identifier: Apache-2.0
; The contract's approximate, flushing and directed arithmetic on NVIDIA GPUs: one PTX instruction each.

define float @tally.approx.rcp.f32(float %a) {
  %r = call float asm "rcp.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.sqrt.f32(float %a) {
  %r = call float asm "sqrt.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.rsqrt.f32(float %a) {
  %r = call float asm "rsqrt.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.ex2.f32(float %a) {
  %r = call float asm "ex2.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.lg2.f32(float %a) {
  %r = call float asm "lg2.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.sin.f32(float %a) {
  %r = call float asm "sin.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.cos.f32(float %a) {
  %r = call float asm "cos.approx.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define float @tally.approx.div.f32(float %a, float %b) {
  %r = call float asm "div.approx.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define float @tally.approx.div.full.f32(float %a, float %b) {
  %r = call float asm "div.full.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.approx.rcp.ftz.f64(double %a) {
  %r = call double asm "rcp.approx.ftz.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define double @tally.approx.rsqrt.ftz.f64(double %a) {
  %r = call double asm "rsqrt.approx.ftz.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.ftz.f32(float %a) {
  %r = call float asm "mul.ftz.f32 $0, $1, 0f3F800000;", "=f,f"(float %a)
  ret float %r
}

define float @tally.round.add.rz.f32(float %a, float %b) {
  %r = call float asm "add.rz.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.add.rz.f64(double %a, double %b) {
  %r = call double asm "add.rz.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.sub.rz.f32(float %a, float %b) {
  %r = call float asm "sub.rz.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.sub.rz.f64(double %a, double %b) {
  %r = call double asm "sub.rz.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.mul.rz.f32(float %a, float %b) {
  %r = call float asm "mul.rz.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.mul.rz.f64(double %a, double %b) {
  %r = call double asm "mul.rz.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.div.rz.f32(float %a, float %b) {
  %r = call float asm "div.rz.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.div.rz.f64(double %a, double %b) {
  %r = call double asm "div.rz.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.fma.rz.f32(float %a, float %b, float %c) {
  %r = call float asm "fma.rz.f32 $0, $1, $2, $3;", "=f,f,f,f"(float %a, float %b, float %c)
  ret float %r
}

define double @tally.round.fma.rz.f64(double %a, double %b, double %c) {
  %r = call double asm "fma.rz.f64 $0, $1, $2, $3;", "=d,d,d,d"(double %a, double %b, double %c)
  ret double %r
}

define float @tally.round.sqrt.rz.f32(float %a) {
  %r = call float asm "sqrt.rz.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.sqrt.rz.f64(double %a) {
  %r = call double asm "sqrt.rz.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.round.rcp.rz.f32(float %a) {
  %r = call float asm "rcp.rz.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.rcp.rz.f64(double %a) {
  %r = call double asm "rcp.rz.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.cvt.rz.f32.f64(double %a) {
  %r = call float asm "cvt.rz.f32.f64 $0, $1;", "=f,d"(double %a)
  ret float %r
}

define half @tally.cvt.rz.f16.f32(float %a) {
  %r = call i16 asm "cvt.rz.f16.f32 $0, $1;", "=h,f"(float %a)
  %h = bitcast i16 %r to half
  ret half %h
}

define float @tally.cvt.rz.f32.i32(i32 %a) {
  %r = call float asm "cvt.rz.f32.s32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rz.f32.u32(i32 %a) {
  %r = call float asm "cvt.rz.f32.u32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rz.f32.i64(i64 %a) {
  %r = call float asm "cvt.rz.f32.s64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define float @tally.cvt.rz.f32.u64(i64 %a) {
  %r = call float asm "cvt.rz.f32.u64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define double @tally.cvt.rz.f64.i64(i64 %a) {
  %r = call double asm "cvt.rz.f64.s64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}

define double @tally.cvt.rz.f64.u64(i64 %a) {
  %r = call double asm "cvt.rz.f64.u64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}

define float @tally.round.add.rm.f32(float %a, float %b) {
  %r = call float asm "add.rm.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.add.rm.f64(double %a, double %b) {
  %r = call double asm "add.rm.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.sub.rm.f32(float %a, float %b) {
  %r = call float asm "sub.rm.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.sub.rm.f64(double %a, double %b) {
  %r = call double asm "sub.rm.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.mul.rm.f32(float %a, float %b) {
  %r = call float asm "mul.rm.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.mul.rm.f64(double %a, double %b) {
  %r = call double asm "mul.rm.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.div.rm.f32(float %a, float %b) {
  %r = call float asm "div.rm.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.div.rm.f64(double %a, double %b) {
  %r = call double asm "div.rm.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.fma.rm.f32(float %a, float %b, float %c) {
  %r = call float asm "fma.rm.f32 $0, $1, $2, $3;", "=f,f,f,f"(float %a, float %b, float %c)
  ret float %r
}

define double @tally.round.fma.rm.f64(double %a, double %b, double %c) {
  %r = call double asm "fma.rm.f64 $0, $1, $2, $3;", "=d,d,d,d"(double %a, double %b, double %c)
  ret double %r
}

define float @tally.round.sqrt.rm.f32(float %a) {
  %r = call float asm "sqrt.rm.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.sqrt.rm.f64(double %a) {
  %r = call double asm "sqrt.rm.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.round.rcp.rm.f32(float %a) {
  %r = call float asm "rcp.rm.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.rcp.rm.f64(double %a) {
  %r = call double asm "rcp.rm.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.cvt.rm.f32.f64(double %a) {
  %r = call float asm "cvt.rm.f32.f64 $0, $1;", "=f,d"(double %a)
  ret float %r
}

define half @tally.cvt.rm.f16.f32(float %a) {
  %r = call i16 asm "cvt.rm.f16.f32 $0, $1;", "=h,f"(float %a)
  %h = bitcast i16 %r to half
  ret half %h
}

define float @tally.cvt.rm.f32.i32(i32 %a) {
  %r = call float asm "cvt.rm.f32.s32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rm.f32.u32(i32 %a) {
  %r = call float asm "cvt.rm.f32.u32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rm.f32.i64(i64 %a) {
  %r = call float asm "cvt.rm.f32.s64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define float @tally.cvt.rm.f32.u64(i64 %a) {
  %r = call float asm "cvt.rm.f32.u64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define double @tally.cvt.rm.f64.i64(i64 %a) {
  %r = call double asm "cvt.rm.f64.s64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}

define double @tally.cvt.rm.f64.u64(i64 %a) {
  %r = call double asm "cvt.rm.f64.u64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}

define float @tally.round.add.rp.f32(float %a, float %b) {
  %r = call float asm "add.rp.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.add.rp.f64(double %a, double %b) {
  %r = call double asm "add.rp.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.sub.rp.f32(float %a, float %b) {
  %r = call float asm "sub.rp.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.sub.rp.f64(double %a, double %b) {
  %r = call double asm "sub.rp.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.mul.rp.f32(float %a, float %b) {
  %r = call float asm "mul.rp.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.mul.rp.f64(double %a, double %b) {
  %r = call double asm "mul.rp.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.div.rp.f32(float %a, float %b) {
  %r = call float asm "div.rp.f32 $0, $1, $2;", "=f,f,f"(float %a, float %b)
  ret float %r
}

define double @tally.round.div.rp.f64(double %a, double %b) {
  %r = call double asm "div.rp.f64 $0, $1, $2;", "=d,d,d"(double %a, double %b)
  ret double %r
}

define float @tally.round.fma.rp.f32(float %a, float %b, float %c) {
  %r = call float asm "fma.rp.f32 $0, $1, $2, $3;", "=f,f,f,f"(float %a, float %b, float %c)
  ret float %r
}

define double @tally.round.fma.rp.f64(double %a, double %b, double %c) {
  %r = call double asm "fma.rp.f64 $0, $1, $2, $3;", "=d,d,d,d"(double %a, double %b, double %c)
  ret double %r
}

define float @tally.round.sqrt.rp.f32(float %a) {
  %r = call float asm "sqrt.rp.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.sqrt.rp.f64(double %a) {
  %r = call double asm "sqrt.rp.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.round.rcp.rp.f32(float %a) {
  %r = call float asm "rcp.rp.f32 $0, $1;", "=f,f"(float %a)
  ret float %r
}

define double @tally.round.rcp.rp.f64(double %a) {
  %r = call double asm "rcp.rp.f64 $0, $1;", "=d,d"(double %a)
  ret double %r
}

define float @tally.cvt.rp.f32.f64(double %a) {
  %r = call float asm "cvt.rp.f32.f64 $0, $1;", "=f,d"(double %a)
  ret float %r
}

define half @tally.cvt.rp.f16.f32(float %a) {
  %r = call i16 asm "cvt.rp.f16.f32 $0, $1;", "=h,f"(float %a)
  %h = bitcast i16 %r to half
  ret half %h
}

define float @tally.cvt.rp.f32.i32(i32 %a) {
  %r = call float asm "cvt.rp.f32.s32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rp.f32.u32(i32 %a) {
  %r = call float asm "cvt.rp.f32.u32 $0, $1;", "=f,r"(i32 %a)
  ret float %r
}

define float @tally.cvt.rp.f32.i64(i64 %a) {
  %r = call float asm "cvt.rp.f32.s64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define float @tally.cvt.rp.f32.u64(i64 %a) {
  %r = call float asm "cvt.rp.f32.u64 $0, $1;", "=f,l"(i64 %a)
  ret float %r
}

define double @tally.cvt.rp.f64.i64(i64 %a) {
  %r = call double asm "cvt.rp.f64.s64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}

define double @tally.cvt.rp.f64.u64(i64 %a) {
  %r = call double asm "cvt.rp.f64.u64 $0, $1;", "=d,l"(i64 %a)
  ret double %r
}
