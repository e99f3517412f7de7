#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Code objects for every AMD target: linked, with the metadata that a driver reads.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
here=$TALLY_SOURCE/tests/lower

notes() { llvm-readelf-22 --notes "$1" >notes.txt 2>&1 || fail "readelf on $1"; }

for target in gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201; do
	for input in vadd forms atomics; do
		works "$here/$input.ll" --target $target --transform slice,guard --verify -o $input.hsaco
	done
	[ "$(llvm-readelf-22 -h vadd.hsaco | grep -c 'DYN')" = 1 ] || fail "$target: not linked"
	notes vadd.hsaco
	holds notes.txt "amdhsa.target:   amdgcn-amd-amdhsa--$target"
	holds notes.txt '.name:           vadd'
	holds notes.txt 'vadd$slice_guard'
	holds notes.txt 'max_flat_workgroup_size: 256'
	wave=64
	case $target in gfx1*) wave=32 ;; esac
	holds notes.txt ".wavefront_size: $wave"
done

# Arguments lie where the contract's C layout puts them; the launch comes last.
works "$here/forms.ll" --target gfx90a --transform guard -o forms.hsaco
notes forms.hsaco
offsets=$(grep -A3 -E '^ +- .*' notes.txt | grep -oE '\.offset: +[0-9]+' | grep -oE '[0-9]+' | head -6 | tr '\n' ' ')
[ "$offsets" = "0 2 32 64 72 80 " ] || fail "argument offsets: $offsets"
holds notes.txt 'max_flat_workgroup_size: 128'
llvm-readelf-22 --dyn-syms forms.hsaco >symbols.txt
holds symbols.txt 'PROTECTED'
for symbol in counter table forms forms.kd 'forms$guard.kd'; do
	holds symbols.txt " $symbol"
done

# Lanes: halves of a wave of 64 read their own half only; a wave of 32 is a warp.
works "$here/forms.ll" --target gfx90a --emit asm -o forms.s
holds forms.s 'ds_bpermute_b32'
holds forms.s 'v_mbcnt_hi_u32_b32'
holds forms.s 's_barrier'
works "$here/forms.ll" --target gfx1100 --emit asm -o forms.s
lacks forms.s 'v_mbcnt_hi_u32_b32'
works "$here/forms.ll" --target gfx90a --emit obj -o forms.o
[ "$(llvm-readelf-22 -h forms.o | grep -c 'REL (Relocatable')" = 1 ] || fail "no object file"

works "$here/maths.ll" --target gfx942 -o maths.hsaco
works "$here/maths.ll" --target gfx942 --emit ir -o maths.txt
lacks maths.txt '@__ocml_'

# Kernels that mean warps of 64 lanes: a wave of 64 on every machine, no masks of 32.
sed 's/"tally.warp"="32"/"tally.warp"="64"/' "$here/vadd.ll" >wide.ll
for target in gfx90a gfx1100; do
	works wide.ll --target $target -o wide.hsaco
	notes wide.hsaco
	holds notes.txt '.wavefront_size: 64'
done
sed 's/"tally.warp"="32"/"tally.warp"="64"/' "$here/forms.ll" >wide.ll
refused "kernel 'forms' means warps of 64 lanes and uses tally." wide.ll --target gfx90a -o out
refused "kernel 'forms' means warps of 64 lanes; those of target sm_80 have 32" wide.ll --target sm_80 -o out

# What the machines do not have is refused by name.
clang_bitcode "$TALLY_SOURCE/conformance/kernels/named_barriers.cu" named.bc
refused "uses a barrier of a part of the block (two warps share a wave there and cannot wait apart), which target gfx90a" \
	named.bc --target gfx90a -o out
sed 's/bar\.sync 1,/barrier.sync 1,/' "$TALLY_SOURCE/conformance/kernels/named_barriers.cu" >lanes.cu
cp "$TALLY_SOURCE/conformance/kernels/common.cuh" .
clang_bitcode lanes.cu lanes.bc
refused "a barrier of a part of the block to which lanes may come one by one (barrier without aligned)" \
	lanes.bc --target gfx1100 -o out
sed 's/bar\.sync 1, 128/bar.sync 1/' "$TALLY_SOURCE/conformance/kernels/named_barriers.cu" >mixed.cu
clang_bitcode mixed.cu mixed.bc
refused "a barrier of a part of the block with the number of one for the whole block" mixed.bc --target gfx1100 -o out
refused "/nowhere/ocml.bc" "$here/maths.ll" --target gfx90a --rocm-device-libs /nowhere -o out

# Barriers of a part of the block: words of shared memory that are cleared first, and no barrier in the loop.
works named.bc --target gfx1100 --transform guard -o named.hsaco
works named.bc --target gfx1100 --emit asm -o named.s
[ "$(grep -c 's_barrier$' named.s)" = 1 ] || fail "not one s_barrier in named_barriers"
holds named.s 'ds_cmpstore_rtn_b32'

# printf: HIP's runtime gives the buffer to kernels that ask for it, and to no others.
clang_bitcode "$TALLY_SOURCE/conformance/kernels/prints.cu" prints.bc
for target in gfx90a gfx1201; do
	works prints.bc --target $target -o prints.hsaco
	notes prints.hsaco
	holds notes.txt 'hidden_hostcall_buffer'
done
notes vadd.hsaco
lacks notes.txt 'hidden_hostcall_buffer'
refused "/nowhere/ockl.bc" prints.bc --target gfx90a --rocm-device-libs /nowhere -o out

# --keep-going: what the target refuses is left out, the others are there.
cat >heap.ll <<'END'
target datalayout = "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
declare ptr @tally.malloc(i64)
define void @heap(ptr %p) "tally.kernel" "tally.warp"="32" {
	%m = call ptr @tally.malloc(i64 8)
	store ptr %m, ptr %p, align 8
	ret void
}
define void @fine(ptr %p) "tally.kernel" "tally.warp"="32" {
	store i32 1, ptr %p, align 4
	ret void
}
END
refused "kernel 'heap' uses tally.malloc" heap.ll --target gfx90a -o out
"$lower" heap.ll --target gfx90a --transform guard --keep-going -o kept.hsaco 2>stderr.txt || fail "--keep-going"
[ "$(wc -l <stderr.txt)" = 1 ] || { cat stderr.txt >&2; fail "--keep-going says one line"; }
holds stderr.txt "kernel 'heap' left out: kernel 'heap' uses tally.malloc"
notes kept.hsaco
holds notes.txt 'fine$guard'
lacks notes.txt 'heap'
refused "kernel 'heap' uses tally.malloc" heap.ll --kernel heap --target gfx90a --keep-going -o out

# A kernel that is AMD's own may bring AMD's assembly.
cat >own.ll <<'END'
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @own(ptr addrspace(1) %p) #0 {
	%x = call i32 asm sideeffect "v_mov_b32 $0, 42", "=v"()
	store i32 %x, ptr addrspace(1) %p, align 4
	ret void
}
attributes #0 = { "target-cpu"="gfx90a" }
END
works own.ll --target gfx90a -o own.hsaco
llvm-objdump-22 -d own.hsaco >own.txt
holds own.txt 'v_mov_b32_e32'

# Real kernels, from bitcode and from PTX.
for kernel in matmul_tiled shuffle_divergent exit_in_call early_return; do
	source=$TALLY_SOURCE/conformance/kernels/$kernel.cu
	clang_bitcode "$source" $kernel.bc
	nvcc_ptx "$source" $kernel.ptx
	for input in $kernel.bc $kernel.ptx; do
		for target in gfx90a gfx1201; do
			works $input --target $target --transform slice,guard -o real.hsaco
			notes real.hsaco
			holds notes.txt "$kernel\$slice_guard"
		done
	done
done
echo ok
