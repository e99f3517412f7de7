#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files as nvcc and clang write them today: every image is found, and comes out as it went in.
set -euo pipefail
[ -x "${TALLY_NVCC:-}" ] || { echo "no nvcc: skipped"; exit 77; }
list=$TALLY_BUILD/tests/container_list
# clang's bundler calls llvm-objcopy by its plain name.
PATH=$(llvm-config-22 --bindir):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >k.cu <<'SOURCE'
__global__ void k(float *p) { p[threadIdx.x] += 1; }
int main() { k<<<1, 32>>>(nullptr); return 0; }
SOURCE
cat >k.hip <<'SOURCE'
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
__device__ float g;
__global__ void k(float *p) { p[__builtin_amdgcn_workitem_id_x()] += g; }
SOURCE

# expect FILE PATTERN...: the listing matches the patterns, one each line, in order
expect() {
	local file=$1 line got
	shift
	got=$("$list" "$file")
	[ "$(wc -l <<<"$got")" = $# ] || { echo "$file: $# images expected"; echo "$got"; exit 1; }
	while read -r line; do
		[[ $line == $1 ]] || { echo "$file: '$line' is not '$1'"; exit 1; }
		shift
	done <<<"$got"
}

nvcc() { "$TALLY_NVCC" "$@"; }
nvcc -ptx -arch=compute_80 k.cu -o k.ptx
expect k.ptx 'ptx arch=sm_80 compression= *'

codes=(-gencode 'arch=compute_80,code=[sm_80,compute_80]' -gencode arch=compute_90,code=compute_90)
nvcc -fatbin "${codes[@]}" k.cu -o zstd.fatbin
nvcc -fatbin -compress-mode=speed "${codes[@]}" k.cu -o lz4.fatbin
nvcc -fatbin -no-compress "${codes[@]}" k.cu -o none.fatbin
expect zstd.fatbin 'cubin arch=sm_80 *entry 0' 'ptx arch=sm_80 compression=zstd *entry 1' 'ptx arch=sm_90 compression=zstd *'
expect lz4.fatbin 'cubin arch=sm_80 *' 'ptx arch=sm_80 compression=lz4 *' 'ptx arch=sm_90 compression=lz4 *'
expect none.fatbin 'cubin arch=sm_80 *' 'ptx arch=sm_80 compression= *' 'ptx arch=sm_90 compression= *'
for f in zstd lz4 none; do
	"$list" -x 1 $f.fatbin >$f.ptx
	"$list" -x 0 $f.fatbin >$f.cubin
	cmp zstd.ptx $f.ptx
	cmp zstd.cubin $f.cubin
done
grep -q '^\.version' zstd.ptx
! grep -qP '\x00' zstd.ptx # the padding is gone
expect zstd.cubin 'cubin arch=sm_80 *'

nvcc -fatbin -gencode arch=compute_80,code=lto_80 k.cu -o lto.fatbin
expect lto.fatbin 'ltoir arch=sm_80 *'
nvcc -c -arch=compute_80 -code=compute_80 k.cu -o k.o
expect k.o 'ptx arch=sm_80 *.nv_fatbin*'
nvcc -rdc=true -c -arch=compute_80 -code=compute_80 k.cu -o rdc.o
expect rdc.o 'ptx arch=sm_80 *__nv_relfatbin*'
nvcc -arch=compute_80 -code=compute_80 -cudart shared k.cu -o app
"$list" app | grep -q '^ptx arch=sm_80 .*\.nv_fatbin'

clang-22 -x hip --cuda-device-only --offload-arch=gfx90a -nogpuinc -nogpulib -emit-llvm -c k.hip -o hip.bc
clang-22 -x hip --cuda-device-only --offload-arch=gfx90a -nogpuinc -nogpulib -emit-llvm -S k.hip -o hip.ll
expect hip.bc 'bitcode *'
expect hip.ll 'ir *'
clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -c hip.bc -o hip.o
expect hip.o 'hsaco arch=gfx90a *'

bundler=$(command -v clang-offload-bundler-22 || true)
if [ -n "$bundler" ]; then
	: >host.o
	for type in bc o; do
		for how in '' -compress; do
			"$bundler" -type=bc -targets=host-x86_64-unknown-linux--,hipv4-amdgcn-amd-amdhsa--gfx90a \
				-input=host.o -input=hip.$type -output=b.hipfb $how
			case $type in
			bc) expect b.hipfb 'bitcode arch=gfx90a *' ;;
			o) expect b.hipfb 'hsaco arch=gfx90a *' ;;
			esac
		done
	done
	# The bundle inside a host program, where clang's HIP puts it.
	echo 'int main(void) { return 0; }' >main.c
	clang-22 -c main.c -o main.o
	objcopy --add-section .hip_fatbin=b.hipfb main.o carrier.o
	expect carrier.o 'hsaco arch=gfx90a *.hip_fatbin*'
	"$list" main.o 2>err && exit 1
	grep -q 'main.o: error: at offset 0: an ELF file without device code' err
fi
offload=$(command -v llvm-offload-binary-22 || command -v clang-offload-packager-22 || true)
if [ -n "$offload" ]; then
	"$offload" -o k.off --image=file=hip.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip \
		--image=file=zstd.ptx,triple=nvptx64-nvidia-cuda,arch=sm_80,kind=cuda
	expect k.off 'bitcode arch=gfx90a *amdgcn-amd-amdhsa' 'ptx arch=sm_80 *'
fi
echo "real files: all found"
