; Maths in every form that a target cannot select: vectors, half, two results, integers, frem.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

define void @maths(ptr addrspace(1) %p, float %x, double %d, half %h, <2 x float> %v, i32 %n) #0 {
  %s = call float @llvm.sin.f32(float %x)
  %e = call double @llvm.exp.f64(double %d)
  %hp = call half @llvm.pow.f16(half %h, half %h)
  %vt = call <2 x float> @llvm.tanh.v2f32(<2 x float> %v)
  %pi = call float @llvm.powi.f32.i32(float %x, i32 %n)
  %f = call { double, i32 } @llvm.frexp.f64.i32(double %d)
  %sc = call { float, float } @llvm.sincos.f32(float %x)
  %lr = call i64 @llvm.lrint.i64.f32(float %x)
  %rem = frem double %d, 3.0
  %erf = call float @tally.math.erf.f32(float %x)
  %rz = call float @tally.round.add.rz.f32(float %x, float %s)
  %cv = call bfloat @tally.cvt.rp.bf16.f32(float %x)
  store float %s, ptr addrspace(1) %p, align 4
  store double %e, ptr addrspace(1) %p, align 8
  store half %hp, ptr addrspace(1) %p, align 2
  store volatile <2 x float> %vt, ptr addrspace(1) %p, align 8
  store volatile float %pi, ptr addrspace(1) %p, align 4
  store volatile { double, i32 } %f, ptr addrspace(1) %p, align 8
  store volatile { float, float } %sc, ptr addrspace(1) %p, align 4
  store volatile i64 %lr, ptr addrspace(1) %p, align 8
  store volatile double %rem, ptr addrspace(1) %p, align 8
  store volatile float %erf, ptr addrspace(1) %p, align 4
  store volatile float %rz, ptr addrspace(1) %p, align 4
  store volatile bfloat %cv, ptr addrspace(1) %p, align 2
  ret void
}

declare float @llvm.sin.f32(float)
declare double @llvm.exp.f64(double)
declare half @llvm.pow.f16(half, half)
declare <2 x float> @llvm.tanh.v2f32(<2 x float>)
declare float @llvm.powi.f32.i32(float, i32)
declare { double, i32 } @llvm.frexp.f64.i32(double)
declare { float, float } @llvm.sincos.f32(float)
declare i64 @llvm.lrint.i64.f32(float)
declare float @tally.math.erf.f32(float)
declare float @tally.round.add.rz.f32(float, float)
declare bfloat @tally.cvt.rp.bf16.f32(float)

attributes #0 = { "tally.kernel" "tally.warp"="32" }
