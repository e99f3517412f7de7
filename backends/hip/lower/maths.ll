; SPDX-License-Identifier: Apache-2.0
; tally.math.* whose form differs from ocml's: out-parameters lie in private memory there, some take
; other arguments, some are short enough to write here.

declare float @__ocml_sincos_f32(float, ptr addrspace(5))
declare float @__ocml_sincospi_f32(float, ptr addrspace(5))
declare float @__ocml_modf_f32(float, ptr addrspace(5))
declare float @__ocml_frexp_f32(float, ptr addrspace(5))
declare float @__ocml_remquo_f32(float, float, ptr addrspace(5))
declare double @__ocml_hypot_f64(double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.rint.f32(float)
declare float @llvm.round.f32(float)
declare i64 @llvm.fptosi.sat.i64.f32(float)

define void @tally.math.sincos.f32(float %x, ptr %sin, ptr %cos) {
  %slot = alloca float, align 8, addrspace(5)
  %s = call float @__ocml_sincos_f32(float %x, ptr addrspace(5) %slot)
  %c = load float, ptr addrspace(5) %slot, align 8
  store float %s, ptr %sin, align 4
  store float %c, ptr %cos, align 4
  ret void
}

define void @tally.math.sincospi.f32(float %x, ptr %sin, ptr %cos) {
  %slot = alloca float, align 8, addrspace(5)
  %s = call float @__ocml_sincospi_f32(float %x, ptr addrspace(5) %slot)
  %c = load float, ptr addrspace(5) %slot, align 8
  store float %s, ptr %sin, align 4
  store float %c, ptr %cos, align 4
  ret void
}

define float @tally.math.modf.f32(float %x, ptr %out) {
  %slot = alloca float, align 8, addrspace(5)
  %r = call float @__ocml_modf_f32(float %x, ptr addrspace(5) %slot)
  %o = load float, ptr addrspace(5) %slot, align 8
  store float %o, ptr %out, align 4
  ret float %r
}

define float @tally.math.frexp.f32(float %x, ptr %out) {
  %slot = alloca i32, align 8, addrspace(5)
  %r = call float @__ocml_frexp_f32(float %x, ptr addrspace(5) %slot)
  %o = load i32, ptr addrspace(5) %slot, align 8
  store i32 %o, ptr %out, align 4
  ret float %r
}

define float @tally.math.remquo.f32(float %x, float %y, ptr %out) {
  %slot = alloca i32, align 8, addrspace(5)
  %r = call float @__ocml_remquo_f32(float %x, float %y, ptr addrspace(5) %slot)
  %o = load i32, ptr addrspace(5) %slot, align 8
  store i32 %o, ptr %out, align 4
  ret float %r
}

define i64 @tally.math.llrint.f32(float %x) {
  %n = call float @llvm.rint.f32(float %x)
  %r = call i64 @llvm.fptosi.sat.i64.f32(float %n)
  ret i64 %r
}

define i64 @tally.math.llround.f32(float %x) {
  %n = call float @llvm.round.f32(float %x)
  %r = call i64 @llvm.fptosi.sat.i64.f32(float %n)
  ret i64 %r
}

declare double @__ocml_sincos_f64(double, ptr addrspace(5))
declare double @__ocml_sincospi_f64(double, ptr addrspace(5))
declare double @__ocml_modf_f64(double, ptr addrspace(5))
declare double @__ocml_frexp_f64(double, ptr addrspace(5))
declare double @__ocml_remquo_f64(double, double, ptr addrspace(5))
declare double @llvm.rint.f64(double)
declare double @llvm.round.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)

define void @tally.math.sincos.f64(double %x, ptr %sin, ptr %cos) {
  %slot = alloca double, align 8, addrspace(5)
  %s = call double @__ocml_sincos_f64(double %x, ptr addrspace(5) %slot)
  %c = load double, ptr addrspace(5) %slot, align 8
  store double %s, ptr %sin, align 8
  store double %c, ptr %cos, align 8
  ret void
}

define void @tally.math.sincospi.f64(double %x, ptr %sin, ptr %cos) {
  %slot = alloca double, align 8, addrspace(5)
  %s = call double @__ocml_sincospi_f64(double %x, ptr addrspace(5) %slot)
  %c = load double, ptr addrspace(5) %slot, align 8
  store double %s, ptr %sin, align 8
  store double %c, ptr %cos, align 8
  ret void
}

define double @tally.math.modf.f64(double %x, ptr %out) {
  %slot = alloca double, align 8, addrspace(5)
  %r = call double @__ocml_modf_f64(double %x, ptr addrspace(5) %slot)
  %o = load double, ptr addrspace(5) %slot, align 8
  store double %o, ptr %out, align 8
  ret double %r
}

define double @tally.math.frexp.f64(double %x, ptr %out) {
  %slot = alloca i32, align 8, addrspace(5)
  %r = call double @__ocml_frexp_f64(double %x, ptr addrspace(5) %slot)
  %o = load i32, ptr addrspace(5) %slot, align 8
  store i32 %o, ptr %out, align 4
  ret double %r
}

define double @tally.math.remquo.f64(double %x, double %y, ptr %out) {
  %slot = alloca i32, align 8, addrspace(5)
  %r = call double @__ocml_remquo_f64(double %x, double %y, ptr addrspace(5) %slot)
  %o = load i32, ptr addrspace(5) %slot, align 8
  store i32 %o, ptr %out, align 4
  ret double %r
}

define i64 @tally.math.llrint.f64(double %x) {
  %n = call double @llvm.rint.f64(double %x)
  %r = call i64 @llvm.fptosi.sat.i64.f64(double %n)
  ret i64 %r
}

define i64 @tally.math.llround.f64(double %x) {
  %n = call double @llvm.round.f64(double %x)
  %r = call i64 @llvm.fptosi.sat.i64.f64(double %n)
  ret i64 %r
}

define float @tally.math.norm.f32(i32 %n, ptr %p) {
entry:
  br label %next
next:
  %k = phi i32 [ 0, %entry ], [ %k1, %add ]
  %sum = phi double [ 0.0, %entry ], [ %sum1, %add ]
  %more = icmp slt i32 %k, %n
  br i1 %more, label %add, label %done
add:
  %at = getelementptr float, ptr %p, i32 %k
  %v = load float, ptr %at, align 4
  %w = fpext float %v to double
  %sum1 = call double @llvm.fma.f64(double %w, double %w, double %sum)
  %k1 = add i32 %k, 1
  br label %next
done:
  %root = call double @llvm.sqrt.f64(double %sum)
  %r = fptrunc double %root to float
  ret float %r
}

define double @tally.math.norm.f64(i32 %n, ptr %p) {
entry:
  br label %next
next:
  %k = phi i32 [ 0, %entry ], [ %k1, %add ]
  %sum = phi double [ 0.0, %entry ], [ %sum1, %add ]
  %more = icmp slt i32 %k, %n
  br i1 %more, label %add, label %done
add:
  %at = getelementptr double, ptr %p, i32 %k
  %v = load double, ptr %at, align 8
  %sum1 = call double @__ocml_hypot_f64(double %sum, double %v)
  %k1 = add i32 %k, 1
  br label %next
done:
  ret double %sum
}

define float @tally.math.rnorm.f32(i32 %n, ptr %p) {
entry:
  br label %next
next:
  %k = phi i32 [ 0, %entry ], [ %k1, %add ]
  %sum = phi double [ 0.0, %entry ], [ %sum1, %add ]
  %more = icmp slt i32 %k, %n
  br i1 %more, label %add, label %done
add:
  %at = getelementptr float, ptr %p, i32 %k
  %v = load float, ptr %at, align 4
  %w = fpext float %v to double
  %sum1 = call double @llvm.fma.f64(double %w, double %w, double %sum)
  %k1 = add i32 %k, 1
  br label %next
done:
  %root = call double @llvm.sqrt.f64(double %sum)
  %one = fdiv double 1.0, %root
  %r = fptrunc double %one to float
  ret float %r
}

define double @tally.math.rnorm.f64(i32 %n, ptr %p) {
entry:
  br label %next
next:
  %k = phi i32 [ 0, %entry ], [ %k1, %add ]
  %sum = phi double [ 0.0, %entry ], [ %sum1, %add ]
  %more = icmp slt i32 %k, %n
  br i1 %more, label %add, label %done
add:
  %at = getelementptr double, ptr %p, i32 %k
  %v = load double, ptr %at, align 8
  %sum1 = call double @__ocml_hypot_f64(double %sum, double %v)
  %k1 = add i32 %k, 1
  br label %next
done:
  %r = fdiv double 1.0, %sum
  ret double %r
}
