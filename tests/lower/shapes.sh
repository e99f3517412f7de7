#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shapes of instructions on the way through IR that made kernels slower (docs/lowering.md): each comes out as it went in.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
here=$TALLY_SOURCE/tests/lower

works "$here/shapes.ptx" --target sm_90 --verify -o out.ptx
assemble out.ptx sm_90
# kernel NAME: its text into NAME.txt
kernel() { sed -n "/\.entry $1(/,/^}/p" out.ptx >"$1.txt"; }
for name in match convert pack add near loop stays single field number words anew; do kernel $name; done

# A bit of a mask is one LOP3 with a predicate, `@!p not` a choice: no shift, no second compare, no mask of all ones.
lacks match.txt shr
lacks match.txt -1,
[ "$(grep -c setp match.txt)" = 2 ] && [ "$(grep -c selp match.txt)" = 2 ] || fail "match: not two tests and two choices"
# Conversions clamp by themselves, and make of a NaN what the machine makes of it.
lacks convert.txt setp
lacks convert.txt selp
for type in s32.f32 u32.f32 s32.f64 s64.f32 u64.f64; do holds convert.txt "cvt.rzi.$type"; done
grep -qE 'mov\.b32[[:space:]]+%r[0-9]+, \{%(rs|h)' pack.txt || fail "pack: two halves are not one move"
# Additions to neighbours are one access, to pairs no loop over compare-and-swap.
holds add.txt 'atom.relaxed.gpu.global.add.v4.f32 {'
holds add.txt 'atom.release.sys.global.add.v2.f32 {'
holds add.txt 'atom.relaxed.gpu.global.add.noftz.v2.f16x2 {'
holds add.txt 'atom.relaxed.gpu.global.add.noftz.bf16x2'
holds add.txt '.add.noftz.f16x2 %'
lacks add.txt cas
[ "$(grep -c 'atom\.' add.txt)" = 5 ] || fail "add: not five atomic operations"
# Shared memory has addresses of 32 bits.
grep -qE 'mad\.lo\.s32' near.txt || fail "near: the address is no multiply-add of 32 bits"
grep -E 'ld\.shared|st\.shared' near.txt | grep -q '%rd' && fail "near: a shared address of 64 bits"
# The machine's shifts clamp by themselves; the loop ends as it did, so that ptxas can count its rounds.
lacks loop.txt selp
lacks loop.txt min
for shift in shl.b32 shr.u32 shr.s32; do holds loop.txt "$shift"; done
grep -qE 'setp\.lt\.u32.*, 2048;' loop.txt || fail "loop: it asks for the number of this round"
# The multiply-add is in front of the branch.
awk '/fma/ { fma = NR } /bra/ && !bra { bra = NR } END { exit !(fma && fma < bra) }' stays.txt || fail "stays: the multiply-add went behind the branch"

# From elect.sync ptxas knows that one lane is left; a mask stays one that LOP3 takes along, a bfe that was written stays one;
# a comparison of halves is a number at once.
holds single.txt elect.sync
[ "$(grep -c 'bfe\.' field.txt)" = 1 ] || fail "field: a shift and a mask became a bfe"
holds number.txt set.lt.f16.f16
lacks number.txt setp
# A word is an instruction, whatever is carried.
for words in 'add.cc.u32' 'addc.cc.u32' 'sub.cc.u64' 'subc.cc.u64'; do holds words.txt "$words"; done
[ "$(grep -oE '(add|sub)c?(\.cc)?\.[us](32|64)' words.txt | wc -l)" -le 9 ] || fail "words: more than an instruction a word"
# Selection would merge what two blocks compute, and ask for equality without a sign.
[ "$(grep -c 'mul\.wide\.[su]32' anew.txt)" = 2 ] || fail "anew: blocks share a value that each had for itself"
grep -qE 'setp\.(eq|ne)\.b' out.ptx && fail "equality without a sign"
[ "$(grep -F '.shared .align' anew.txt | grep -oE 'wide|small' | tr '\n' ' ')" = 'wide small ' ] || fail "anew: shared variables in another order"
works "$here/shapes.ptx" --target sm_90 --ptx-version 7.8 --kernel single -o older.ptx
lacks older.ptx elect
assemble older.ptx sm_90

# Older machines have pairs of f16, but no vectors and no pairs of bf16 in one instruction.
works "$here/shapes.ptx" --target sm_80 --verify -o out.ptx
assemble out.ptx sm_80
kernel add
lacks add.txt .v4.
holds add.txt 'add.noftz.f16x2'
for target in x86-64 gfx90a gfx1100; do works "$here/shapes.ptx" --target $target -o out.bin; done
echo ok
