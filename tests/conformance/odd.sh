# SPDX-License-Identifier: Apache-2.0
# The conformance runner on PTX that no compiler of ours writes: one kernel, spelt in ways that the PTX ISA allows, each
# run whole, in slices, stopped and resumed, from its text and through IR. ptxas says that each is PTX.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p tree/conformance/kernels tree/bin tree/lib
ln -s "$TALLY_BUILD/bin/tally-lower" tree/bin/tally-lower
ln -s "$TALLY_BUILD"/lib/libcuda* tree/lib/
ln -s "$TALLY_BUILD/conformance/kernels/grid_3d.bc" tree/conformance/kernels/
plain=$TALLY_BUILD/conformance/kernels/grid_3d.ptx
store='st.global.u32 	\[%rd8\]'
failed=0

# odd NAME SED-SCRIPT...: the kernel edited so, with the same results. $refused: why it has no workers, if so.
odd() {
	local name=$1
	shift
	sed "$@" "$plain" >"$name.ptx"
	cmp -s "$plain" "$name.ptx" && { echo "$name: the edit changes nothing"; failed=1; return; }
	"$TALLY_PTXAS" -arch=sm_90 "$name.ptx" -o odd.cubin >odd.log 2>&1 || { echo "$name is no PTX: $(head -3 odd.log)"; failed=1; return; }
	ln -sf "$PWD/$name.ptx" tree/conformance/kernels/grid_3d.ptx
	"$TALLY_BUILD/bin/conformance" --build tree --filter grid_3d --target sm_90 --live 2 --jobs 2 >odd.log 2>&1 ||
		{ [ -n "${refused:-}" ] && grep -q "$refused" odd.log && ! grep FAILED odd.log | grep -v persist; } ||
		{ echo "$name:"; grep -E 'FAIL|error' odd.log || tail -5 odd.log; failed=1; }
}
# Functions in front of the kernel; one that adds a number; its call.
function_text() { printf '/\\.globl/i\\\n%s' "$(sed ':a;N;$!ba;s/\n/\\\n/g' <<<"$1")"; }
add_of() { printf '.func (.param .b32 r) %s(.param .b32 a) { .reg .b32 %%a; ld.param.b32 %%a, [a]; add.s32 %%a, %%a, %s; st.param.b32 [r], %%a; ret; }' "$1" "$2"; }
call_of() { printf '{ .param .b32 x; .param .b32 y; st.param.b32 [x], %s; %s ld.param.b32 %s, [y]; }' "$1" "$2" "$1"; }

# Names, and what stands in a head.
odd labels_of_ours 's/\$L__BB/$tally$L__BB/g'
odd registers 's/%r\([0-9]\)/tally_r\1/g; s/.reg .b32 	%r</.reg .b32 	tally_r</'
odd head '/^)/s/$/ .maxntid 64,4,4 .maxnreg 64 \/\/ )\n.minnctapersm 1/'
odd weak 's/\.visible/.weak/'
odd pragmas 's/^{/{ .pragma "nounroll";/'
odd forward 's/^\.visible .entry grid_3d(/.visible .entry grid_3d(.param .u64 a, .param .u64 b);\n&/'
# Where blanks, comments and lines may be.
odd one_line ':a;N;$!ba;s/\/\/[^\n]*//g;s/\n\.target/ .target/;s/\n\.address/ .address/;s/\n\s*/ /g;s/$/\n/'
odd carriage_returns 's/$/\r/'
odd comments 's/\.entry/.entry \/* { ( *\//; s/^{/{\/\/ }/; s/ret;/ret; \/* } *\/ \/\/ }/; s/^)/\/* ) *\/ ) \/\/ (/; $s/$/\/\/ the end/'
odd line_markers '1i # 1 "a } {.cu"
s/^{/# 5 "b.h"\n{\n	# 7 "c.h"/'
odd source_lines -e '/\.globl/i .file 1 "a.cu"' -e "s/$store/.loc 1 3 5\n.loc 1 7 2, function_name \$L__info_string0, inlined_at 1 3 5\n&/" \
	-e '$s/$/\n.section .debug_str { $L__info_string0: .b8 95,90,0 }/'
# Reads of the block's place.
odd reads_packed 's/mov.u32 	%r24, %nctaid.x;/{ .reg .b64 %q; .reg .b32 %h; mov.b64 %q, {%nctaid.x, %nctaid.y}; mov.b64 {%r24, %h}, %q; }/'
odd reads_short 's/mov.u32 	%r14, %ctaid.x;/{ .reg .b16 %q; mov.u16 %q, %ctaid.x; cvt.u32.u16 %r14, %q; }/'
odd reads_predicated 's/mov.u32 	%r14, %ctaid.x;/mov.u32 %r14, -1; setp.ne.s32 %p1, %r14, 0; @%p1 mov.b32 %r14, %ctaid.x;/'
odd reads_shadowed 's/mov.u32 	%r14, %ctaid.x;/{ .reg .b32 %r14; mov.s32 %r14, %ctaid.y; } mov.s32 %r14, %ctaid .x;/'
odd reads_in_function -e "$(function_text '.func (.reg .u32 r) place() { .reg .b32 %a; mov.u32 %a, %nctaid.x; mov.u32 r, %ctaid.x; add.s32 r, r, %a; ret; }')" \
	-e 's/mov.u32 	%r14, %ctaid.x;/call (%r14), place; mov.u32 %r35, %nctaid.x; sub.s32 %r14, %r14, %r35;/'
# Ways through a kernel and out of it.
odd exits "s/$store/setp.ge.u32 %p1, %r2, 2; @%p1 bra out;\n&/; s/ret;/exit; out: &/; s/%r29;/%r29; @!%p1 exit;/;"' /out:/s/ret;/st.global.u32 [%rd8], %r29; ret;/'
odd returns "s/$store/setp.ge.u32 %p1, %r2, 2; @%p1 st.global.u32 [%rd8], %r29; @%p1 ret;\n&/; s/ret;\$/ret.uni;/"
odd falls_off '/^	ret;/d'
odd branches "s/$store/rem.u32 %r35, %r29, 3; targets: .branchtargets first, second, third; brx.idx %r35, targets; first: add.s32 %r29, %r29, 1; bra last; second: add.s32 %r29, %r29, 2; bra.uni last; third: add.s32 %r29, %r29, 3; last: add.s32 %r35, %r35, 1; sub.s32 %r29, %r29, %r35;\n&/"
odd scopes "s/$store/{ here: { here: setp.eq.s32 %p1, %r2, -1; @%p1 bra here; } @%p1 bra here; }\n&/"
for how in 'proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (y), %q, (x), proto;' 'proto: .calltargets f, g; call (y), %q, (x), proto;'; do
	refused='it calls functions through pointers' odd indirect -e "$(function_text "$(add_of f 1) $(add_of g 2)")" \
		-e "s/$store/{ .reg .b64 %q, %s; and.b32 %r35, %r2, 1; setp.eq.s32 %p1, %r35, 1; mov.u64 %q, f; mov.u64 %s, g; selp.b64 %q, %s, %q, %p1; $(call_of %r29 "$how") sub.s32 %r29, %r29, %r35; add.s32 %r29, %r29, -1; }\n&/"
done
odd alias -e "$(function_text ".visible $(add_of f 1) .visible .func (.param .b32 r) other(.param .b32 a); .alias other, f;")" \
	-e "s/$store/$(call_of %r29 'call (y), other, (x);') add.s32 %r29, %r29, -1;\n&/"
odd never_returns -e "$(function_text '.func stops() .noreturn { exit; }')" -e "s/$store/setp.eq.s32 %p1, %r2, -1; @%p1 call stops;\n&/"
# Memory of a body's own, and of launches.
odd variables -e "s/^{/{ .shared .align 16 .b8 hidden[1024]; .local .b8 hollow[64]; .global .b32 hidden_too;/" \
	-e "s/$store/st.shared.u32 [hidden], %r29; st.global.u32 [hidden_too], %r29; st.local.b32 [hollow], %r29; ld.local.b32 %r29, [hollow];\n&/"
odd launch_shared -e '/\.globl/i .extern .shared .align 16 .b8 some[];'
[ $failed = 0 ] || exit 1
echo ok
