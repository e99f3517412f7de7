target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
define void @spins() #0 { ret void }
define void @tensor() #1 {
  call void asm sideeffect "wgmma.fence.sync.aligned;", ""()
  ret void
}
attributes #0 = { "tally.kernel" "tally.warp"="32" "tally.refuse"="it waits for blocks with higher numbers" }
attributes #1 = { "tally.kernel" "tally.warp"="32" "tally.vendor"="nvidia" "tally.locked"="wgmma.fence at gemm.cu:12:5" }
