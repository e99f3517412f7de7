; SPDX-License-Identifier: Apache-2.0
; What sm_90 and newer do in one instruction: mbarriers that count transactions, arrivals at once.

define i64 @tally.mbarrier.arrive(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %r = call i64 asm sideeffect "mbarrier.arrive.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %count)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.drop(ptr addrspace(3) %b, i32 %count) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %r = call i64 asm sideeffect "mbarrier.arrive_drop.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %count)
  ret i64 %r
}

define i64 @tally.mbarrier.arrive.expect(ptr addrspace(3) %b, i32 %tx) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %r = call i64 asm sideeffect "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;", "=l,r,r,~{memory}"(i32 %address, i32 %tx)
  ret i64 %r
}

define void @tally.mbarrier.expect(ptr addrspace(3) %b, i32 %tx) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}"(i32 %address, i32 %tx)
  ret void
}

define void @tally.mbarrier.complete(ptr addrspace(3) %b, i32 %tx) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  call void asm sideeffect "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}"(i32 %address, i32 %tx)
  ret void
}

define i1 @tally.mbarrier.try(ptr addrspace(3) %b, i64 %state) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %word = call i32 asm sideeffect "{ .reg .pred %done; mbarrier.try_wait.shared::cta.b64 %done, [$1], $2; selp.u32 $0, 1, 0, %done; }", "=r,r,l,~{memory}"(i32 %address, i64 %state)
  %r = icmp ne i32 %word, 0
  ret i1 %r
}

define i1 @tally.mbarrier.try.parity(ptr addrspace(3) %b, i32 %parity) convergent {
  %address = ptrtoint ptr addrspace(3) %b to i32
  %word = call i32 asm sideeffect "{ .reg .pred %done; mbarrier.try_wait.parity.shared::cta.b64 %done, [$1], $2; selp.u32 $0, 1, 0, %done; }", "=r,r,r,~{memory}"(i32 %address, i32 %parity)
  %r = icmp ne i32 %word, 0
  ret i1 %r
}
