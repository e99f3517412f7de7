; Read-modify-write in every order and scope.
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

define void @atomics(ptr addrspace(1) %p, ptr %g) #0 {
  %a = atomicrmw add ptr addrspace(1) %p, i32 1 seq_cst, align 4
  %b = atomicrmw umax ptr addrspace(1) %p, i64 2 syncscope("block") acq_rel, align 8
  %c = atomicrmw xchg ptr %g, i32 3 syncscope("device") acquire, align 4
  %d = atomicrmw add ptr addrspace(1) %p, i32 4 monotonic, align 4
  %e = atomicrmw fadd ptr addrspace(1) %p, float 4.0 syncscope("device") release, align 4
  %f = atomicrmw add ptr addrspace(1) %p, i32 5 syncscope("device") monotonic, align 4
  %h = cmpxchg ptr addrspace(1) %p, i32 4, i32 5 syncscope("block") acquire monotonic, align 4
  %i = atomicrmw nand ptr addrspace(1) %p, i32 4 syncscope("device") seq_cst, align 4
  fence syncscope("block") acq_rel
  ret void
}

attributes #0 = { "tally.kernel" "tally.warp"="32" }
