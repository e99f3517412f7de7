#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a user types: help, lists, stdin and stdout, every form, the IR between passes.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
vadd=$TALLY_SOURCE/tests/lower/vadd.ll

works --help >help.txt
for option in --target --transform --kernel --emit --list --classify --keep-going --print-after --verify --stats --timeout --version; do
	holds help.txt $option
done
# Every option of the manual is one of the program, and the other way round.
man=$TALLY_SOURCE/docs/man/tally-lower.1
for option in $(grep -oE -- '--[a-z-]+' help.txt | sort -u); do
	grep -qF -- "${option//-/\\-}" "$man" || fail "the manual does not know $option"
done
works --version >version.txt
holds version.txt 'tally-lower 0.'

works "$vadd" --target sm_80 >stdout.ptx
holds stdout.ptx '.version 8.0'
works "$vadd" --target sm_80 --ptx-version 7.4 >version.ptx
holds version.ptx '.version 7.4'
refused "target sm_90a came with PTX 8.0; 7.8 does not know it" "$vadd" --target sm_90a --ptx-version 7.8 -o out
refused "PTX 8.9 is none that can be written" "$vadd" --target sm_90 --ptx-version 8.9 -o out
refused "'8' is no version such as 8.6" "$vadd" --target sm_90 --ptx-version 8 -o out
refused "--ptx-version means nothing for target gfx90a" "$vadd" --target gfx90a --ptx-version 8.0 -o out
works - --target sm_80 <"$vadd" >stdin.ptx
cmp -s stdout.ptx stdin.ptx || fail "stdin gives other code than a file"
works "$vadd" --target sm_80 -o - >dash.ptx
cmp -s stdout.ptx dash.ptx || fail "-o - gives other code"
works "$vadd" --target sm_80 --emit ptx >ptx.ptx
cmp -s stdout.ptx ptx.ptx || fail "--emit ptx gives other code"
works "$vadd" --target gfx90a | cat >code.hsaco
[ "$(head -c 4 code.hsaco | tail -c 3)" = ELF ] || fail "no code object on a pipe"

# Machine code is nothing for a terminal.
script -qec "'$lower' '$vadd' --target gfx90a" /dev/null >terminal.txt 2>&1 </dev/null
grep -q "name a file with -o" terminal.txt || fail "machine code went to a terminal"

works "$vadd" --target sm_80 --emit ir >target.ll
holds target.ll 'nvptx64-nvidia-cuda'
works "$vadd" --emit ir --transform guard >neutral.ll
holds neutral.ll '"tally.variant"="guard"'
works neutral.ll --target sm_80 -o again.ptx
holds again.ptx 'vadd$guard('
works "$vadd" --verify >nothing.txt
[ ! -s nothing.txt ] || fail "--verify alone writes something"

for pass in lift select refuse inline body variant; do
	"$lower" "$vadd" --target sm_80 --transform guard --print-after $pass -o out.ptx 2>pass.txt || fail "$pass"
	holds pass.txt "; after $pass"
	[ "$(grep -c '^define' pass.txt)" -ge 1 ] || fail "--print-after $pass shows no function"
done

"$lower" "$vadd" --target sm_80 --stats -o out.ptx 2>stats.txt || fail --stats
for step in read transform link optimise codegen; do
	grep -qE "^$step +[0-9.]+ ms" stats.txt || fail "--stats does not show $step"
done
if [ -n "$TALLY_PTXAS" ]; then
	PATH=$(dirname "$TALLY_PTXAS"):$PATH "$lower" "$vadd" --target sm_80 --stats -o out.ptx 2>stats.txt
	grep -q 'registers' stats.txt || fail "--stats does not show registers"
fi

# --kernel leaves the others out.
sed -e 's/@vadd(/@other(/' -e '/^target/d' -e '/^declare/d' -e '/^attributes/d' "$vadd" >other.ll
cat "$vadd" other.ll >two.ll
works two.ll --list >list.txt
holds list.txt 'kernel vadd'
holds list.txt 'kernel other'
works two.ll --target sm_80 --kernel other -o one.ptx
holds one.ptx '.entry other('
lacks one.ptx '.entry vadd('

# --classify: what each kernel takes, and why not more.
works two.ll --classify >classes.txt
[ "$(grep -c 'transforms: slice, guard, persist' classes.txt)" = 2 ] || fail "--classify: two plain kernels"
cat >spins.ptx <<'END'
.version 8.0
.target sm_80
.address_size 64
.visible .entry spins(.param .u64 p) {
	.reg .pred %q;
	.reg .b32 %r;
	.reg .b64 %a;
	ld.param.u64 %a, [p];
again:
	ld.acquire.gpu.global.u32 %r, [%a];
	setp.eq.u32 %q, %r, 0;
	@%q bra again;
	bar.arrive 1, 64;
	ret;
}
END
works spins.ptx --classify >classes.txt
lacks classes.txt 'guard, persist'
holds classes.txt 'no persist: it waits for other blocks'
holds classes.txt 'look-back: '
holds classes.txt 'warp-specialised: '
works "$vadd" --classify --target sm_80 >classes.txt
holds classes.txt 'kernel vadd'
echo ok
