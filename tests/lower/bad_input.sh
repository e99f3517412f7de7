#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input and bad command lines: status 1, exactly one line that says what is wrong, nothing written.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
vadd=$TALLY_SOURCE/tests/lower/vadd.ll

# The command line.
refused "no input" --target sm_80
refused "no --target (known: sm_70, " "$vadd" -o out
refused "unknown target 'sm_33' (known: sm_70, " "$vadd" --target sm_33 -o out
refused 'unknown or ambiguous option "--frobnicate" (see tally-lower --help)' "$vadd" --target sm_80 --frobnicate -o out
refused "--target wants a value" "$vadd" --target
refused "unknown transform 'slices'" "$vadd" --target sm_80 --transform slices -o out
refused "transform 'opaque' does not go with others" "$vadd" --target sm_80 --transform slice,opaque -o out
refused "transform 'opaque' does not go with others" "$vadd" --target sm_80 --transform opaque,slice -o out
refused '--emit wants ptx, asm, obj or ir, not "elf"' "$vadd" --target sm_80 --emit elf -o out
refused "target gfx90a has no such form: --emit ptx" "$vadd" --target gfx90a --emit ptx -o out
refused "target sm_80 has no such form: --emit obj" "$vadd" --target sm_80 --emit obj -o out
refused "-O: 'fast' is no number" "$vadd" --target sm_80 -O fast -o out
refused "no pass 'bodies' (there are: lift, select, " "$vadd" --target sm_80 --print-after bodies -o out
refused 'unexpected argument "more.ll"' "$vadd" more.ll --target sm_80 -o out
refused "no kernel 'vsub' (there is: vadd)" "$vadd" --target sm_80 --kernel vsub -o out

printf '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { bar.arrive 1, 64; ret; }\n' >arrive.ptx
refused "kernel 'k' cannot be made persistent: threads arrive" arrive.ptx --target sm_80 --transform persist -o out

# Files.
refused "missing.bc" missing.bc --target sm_80 -o out
refused "$work" "$work" --target sm_80 -o out
: >empty
refused "empty" empty --target sm_80 -o out
refused "nowhere/out" "$vadd" --target sm_80 -o nowhere/out
mkdir folder
refused "folder" "$vadd" --target sm_80 -o folder
refused "/nowhere/libdevice.bc" "$TALLY_SOURCE/tests/lower/maths.ll" --target sm_80 --libdevice /nowhere/libdevice.bc -o out

# Names with newlines and control characters still make one line.
refused "no name" $'no\nname' --target sm_80 -o out
refused "x y" "$vadd" --target sm_80 --kernel $'x\ny' -o out
refused "ou t/x" "$vadd" --target sm_80 -o $'ou\nt/x'
printf 'BC\300\336' >$'mag\nic'
refused "mag ic" $'mag\nic' --target sm_80 -o out

# Options that contradict each other.
refused "--output does not go with it" "$vadd" --list -o out
refused "--target does not go with it" "$vadd" --list --target sm_80
refused "--transform does not go with it" "$vadd" --classify --transform slice
refused "--classify does not go with it" "$vadd" --classify --list
refused "'none' does not go with others" "$vadd" --target sm_80 --transform slice,none -o out

# Without an end, or as good as.
refused "more than 1 GiB" /dev/zero --list
truncate -s 1T sparse
refused "more than 4 GiB" sparse --list
rm sparse

# What cannot be written is said, whoever writes it.
for arguments in "$vadd --list" --help --version "$vadd --target sm_80"; do
	# shellcheck disable=SC2086
	"$lower" $arguments >/dev/full 2>stderr.txt && fail "$arguments: status 0 on a full disk"
	[ "$(cat stderr.txt)" = "<stdout>: error: cannot write: No space left on device" ] ||
		{ cat stderr.txt >&2; fail "$arguments on a full disk"; }
done
mkdir temporary
for target in x86-64 gfx90a sm_80; do
	(ulimit -f 0; TMPDIR=$work/temporary exec "$lower" "$vadd" --target $target -o out) 2>stderr.cut
	[ $? = 1 ] || fail "status with no room for a file, $target"
	[ ! -e out ] || fail "out was written with no room for it"
	[ -z "$(ls temporary)" ] && ! ls out.* 2>/dev/null || fail "left behind: $(ls temporary out.*)"
done

# An output that exists keeps what it holds.
echo precious >kept
"$lower" empty --target sm_80 -o kept 2>/dev/null && fail "empty input was taken"
[ "$(cat kept)" = precious ] || fail "the old output is gone"

# Random bytes, wrong magics, truncations of everything that can be read.
for seed in 1 2 3 4 5 6 7 8; do
	openssl enc -aes-128-ctr -nosalt -K 0$seed -iv 00 -in /dev/zero 2>/dev/null | head -c $((seed * 701)) >random
	refused "random" random --target sm_80 -o out
done
for magic in 'BC\300\336' '\177ELF\2\1\1' '\120\355\125\272\1\0\20\0' '__CLANG_OFFLOAD_BUNDLE__' '\20\377\20\255' '//' '.version 8.0'; do
	printf "$magic" >magic
	refused "magic" magic --target sm_80 -o out
	{ printf "$magic"; head -c 300 random; } >magic
	refused "magic" magic --target sm_80 -o out
done
source=$TALLY_SOURCE/conformance/kernels/matmul_tiled.cu
clang_bitcode "$source" whole.bc
nvcc_ptx "$source" whole.ptx
"$TALLY_NVCC" -gencode arch=compute_80,code=compute_80 -fatbin "$source" -o whole.fatbin || fail nvcc
for input in whole.bc whole.ptx whole.fatbin; do
	size=$(stat -c %s $input)
	for part in 1 4 5 17 63 64 65 200 $((size / 3)) $((size / 2)) $((size - 60)); do
		head -c $part $input >cut
		refused "cut" cut --target x86-64 -o out
	done
done

# Bitcode damaged inside: LLVM's reader trusts what it reads, and runs into nothing or out of memory.
"$lower" "$vadd" --target x86-64 --emit ir -o neutral.ll && llvm-as-22 neutral.ll -o flip.bc || fail "llvm-as"
size=$(stat -c %s flip.bc)
for offset in $(seq 16 23 $((size - 1))); do
	for byte in '\377' '\177'; do
		rm -f out
		cp flip.bc flipped
		printf "$byte" | dd of=flipped bs=1 seek=$offset conv=notrunc status=none
		"$lower" flipped --emit ir -o out 2>stderr.txt
		case $?/$(wc -l <stderr.txt)/$([ -e out ] && echo written) in
		0/0/written | 1/1/) ;;
		*) cat stderr.txt >&2; fail "byte $offset set to $byte" ;;
		esac
	done
done

# PTX with mistakes: file, line and column, the kernel and the instruction.
cat >wrong.ptx <<'END'
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<3>;
	frobnicate.b32 %r1, %r2;
	ret;
}
END
refused "wrong.ptx:7:" wrong.ptx --target sm_80 -o out
refused "frobnicate" wrong.ptx --target sm_80 -o out
sed 's/frobnicate.b32 %r1, %r2;/add.s32 %r1 %r2;/' wrong.ptx >syntax.ptx
refused "syntax.ptx:7:" syntax.ptx --target sm_80 -o out

# IR that is none, and IR that breaks the contract.
echo 'define void @k() { ret i32 0 }' >wrong.ll
refused "wrong.ll" wrong.ll --target sm_80 -o out

# A kernel that a transform must refuse, and one that only another vendor can run.
cat >whole.ll <<'END'
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
define void @spins() #0 { ret void }
define void @tensor() #1 {
  call void asm sideeffect "wgmma.fence.sync.aligned;", ""()
  ret void
}
attributes #0 = { "tally.kernel" "tally.warp"="32" "tally.refuse"="it waits for blocks with higher numbers" }
attributes #1 = { "tally.kernel" "tally.warp"="32" "tally.vendor"="nvidia" "tally.locked"="wgmma.fence at gemm.cu:12:5" }
END
refused "kernel 'spins' cannot be transformed: it waits for blocks with higher numbers" whole.ll --target sm_90a --transform guard -o out
refused "gemm.cu:12:5: error: kernel 'tensor' is locked to nvidia by 'wgmma.fence'" whole.ll --target gfx90a -o out
# With --keep-going each costs itself only.
"$lower" whole.ll --target gfx90a --transform guard --keep-going -o out 2>stderr.txt || fail "--keep-going"
[ "$(grep -c warning: stderr.txt)" = 2 ] || { cat stderr.txt >&2; fail "--keep-going warns twice"; }
"$lower" whole.ll --target sm_90a --transform guard --keep-going -o out 2>stderr.txt || fail "--keep-going"
holds out '.entry tensor$guard('
lacks out '.entry spins$guard('

# Time runs out.
{
	echo 'target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"'
	echo 'define void @k(ptr addrspace(1) %p, i32 %v0) "tally.kernel" "tally.warp"="32" {'
	for i in $(seq 1 150000); do echo "  %v$i = mul i32 %v$((i - 1)), %v$((i / 2))"; done
	echo '  store i32 %v150000, ptr addrspace(1) %p, align 4'
	echo '  ret void'
	echo '}'
} >long.ll
refused "(--timeout)" long.ll --target gfx90a -O 3 --timeout 1 -o out

# Memory runs out: at the limit that was asked for, and at the one that damaged input meets by itself.
if ! grep -q __asan_init "$lower"; then # sanitizers need more than any limit
	refused "(--memory)" long.ll --target gfx90a -O 3 --memory 48 -o out
	refused "is no number" long.ll --target gfx90a --memory lots -o out
fi

# A fault inside the compiler is one line too. prepared PID: its handlers are in place; SIGILL's comes after the
# two that are tried here, and is none of a sanitizer's.
prepared() {
	local caught
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
	((0x${caught:-0} >> ($(kill -l ILL) - 1) & 1))
}
for signal in SEGV ABRT; do
	rm -f out
	"$lower" long.ll --target gfx90a -O 3 -o out 2>stderr.txt &
	pid=$!
	for _ in $(seq 3000); do prepared $pid && break || sleep 0.02; done
	kill -$signal $pid
	wait $pid
	[ $? = 1 ] || fail "status after SIG$signal"
	[ "$(wc -l <stderr.txt)" = 1 ] || { cat stderr.txt >&2; fail "not one line after SIG$signal"; }
	holds stderr.txt "long.ll: error: crash while "
	[ ! -e out ] || fail "out was written after SIG$signal"
done
echo ok
