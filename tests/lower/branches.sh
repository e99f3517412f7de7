#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Branches and blocks on the way through IR stay what they were, for ptxas allocates registers and unrolls by them
# (docs/lowering.md): radix sort of pairs 92 registers instead of 80, a matrix product's loop unrolled in another way.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

works "$TALLY_SOURCE/tests/lower/branches.ptx" --target sm_90 --verify -o out.ptx
assemble out.ptx sm_90
for name in direct apart leaves warp; do sed -n "/\.entry $name(/,/^}/p" out.ptx >$name.txt; done
# branches NAME: how many conditional branches it has
branches() { grep -cE '@!?%p[0-9]+[[:space:]]+bra' "$1.txt"; }

# To the next block where it holds, by one comparison.
[ "$(grep -c setp direct.txt)" = 1 ] || fail "direct: not one comparison"
lacks direct.txt '@!'
lacks direct.txt not.pred
awk '/@%p/ { to = $3 } /^\$L/ && to != "" { if ($1 != substr(to, 1, length(to) - 1) ":") bad = 1; n++; to = "" }
     END { exit bad || n != 2 }' direct.txt || fail "direct: a branch that went to the next block goes past it"
# Nothing is assigned between the comparison and the branch, and each way has its own.
awk '/setp\.lt/ { seen = 1; next } seen && /@%p/ { exit } seen { bad = 1 } END { exit bad }' apart.txt || fail "apart: copies in front of the branch"
awk '/^\$L/ { block++ } /mov\.[bf]32.*0f/ { n[block]++ } END { for (k in n) blocks++; exit blocks < 2 }' apart.txt || fail "apart: both ways' copies in one block"
# Two ways out.
lacks leaves.txt and.pred
[ "$(branches leaves)" = 2 ] || fail "leaves: not two branches"
lacks warp.txt 'and.b32'
[ "$(grep -cE 'sh[rl]\.[bu]32' warp.txt)" = 2 ] || fail "warp: not two shifts"
# The way through IR to a stoppable form has them, too, and other machines take it.
works "$TALLY_SOURCE/tests/lower/branches.ptx" --target sm_90 --lift --transform slice,guard,persist --verify -o out.ptx
assemble out.ptx sm_90
for target in x86-64 gfx90a gfx1100; do works "$TALLY_SOURCE/tests/lower/branches.ptx" --target $target --verify -o out.bin; done

# A call that does not return ends the thread: ptxas would take what stands behind it for the way on.
cat >stops.ll <<'END'
target triple = "nvptx64-nvidia-cuda"
declare void @llvm.trap() noreturn
define internal void @last(ptr %out) noinline noreturn {
  store volatile i32 7, ptr %out
  call void @llvm.trap()
  unreachable
}
define ptx_kernel void @stops(ptr %out, i32 %n) {
  %bad = icmp eq i32 %n, 0
  br i1 %bad, label %stop, label %go
stop:
  call void @last(ptr %out)
  unreachable
go:
  store i32 %n, ptr %out
  ret void
}
END
works stops.ll --target sm_90 -o out.ptx
assemble out.ptx sm_90
sed -n '/\.entry stops(/,/^}/p' out.ptx >stops.txt
awk '/callseq/ { at = NR } /exit;/ && at { found = 1 } END { exit !found }' stops.txt || fail "stops: nothing ends the thread behind the call"
echo ok
