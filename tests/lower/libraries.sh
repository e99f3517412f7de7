#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every function of libdevice, and every one of ocml and ockl that clang's HIP headers declare, called
# from a kernel of its own: all of them lower for every vendor's machines.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
toolkit=$(dirname "$(dirname "$(readlink -f "$TALLY_NVCC")")")
libdevice=$toolkit/nvvm/libdevice/libdevice.10.bc

# kernels NAME...: a kernel use_NAME for each, whose arguments come from memory.
kernels() {
	cat <<'END'
template <auto F> struct caller;
template <class R, class... A, R (*F)(A...)> struct caller<F> {
	static __device__ void run(char *p) { *(R *)p = F(*(A *)p...); }
};
template <class... A, void (*F)(A...)> struct caller<F> {
	static __device__ void run(char *p) { F(*(A *)p...); }
};
END
	local name
	for name; do echo "extern \"C\" __global__ void use_$name(char *p) { caller<$name>::run(p); }"; done
}

# lowers FILE TARGET...: every kernel of it.
lowers() {
	local file=$1 target
	shift
	for target; do works "$file" --target "$target" -O1 -o code; done
}

# The names that are in the library and in clang's header.
names=$(llvm-nm-22 "$libdevice" 2>/dev/null | grep -oE '__nv_\w+' | sort -u |
	grep -xF "$(grep -ohE '__nv_\w+' /usr/lib/llvm-22/lib/clang/22/include/__clang_cuda_libdevice_declares.h)")
[ "$(wc -w <<<"$names")" -gt 300 ] || fail "libdevice has $(wc -w <<<"$names") functions"
# shellcheck disable=SC2086
kernels $names >nv.cu
clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 "--cuda-path=$toolkit" -std=c++17 -w -O1 -nocudalib -emit-llvm \
	-c nv.cu -o nv.bc 2>clang.log || { cat clang.log >&2; fail "clang on libdevice's functions"; }
lowers nv.bc sm_80 gfx90a
# Bessel functions of any order are not ocml's but ours (amd_model.sh): on each kind of machine.
for name in jn jnf yn ynf; do
	for target in gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201; do
		works nv.bc --kernel "use___nv_$name" --target $target -o code
	done
done

for version in 19 22; do
	headers=/usr/lib/llvm-$version/lib/clang/$version/include
	names=$(grep -ohE '__oc[mk]l_\w+\(' $headers/__clang_hip_libdevice_declares.h | tr -d '(' | sort -u)
	[ "$(wc -w <<<"$names")" -gt 200 ] || fail "clang $version declares $(wc -w <<<"$names") functions"
	# shellcheck disable=SC2086
	kernels $names >hip.hip
	for chip in gfx90a gfx1030; do
		"clang++-$version" -x hip --cuda-device-only --offload-arch=$chip -nogpulib -nogpuinc -include \
			$headers/__clang_hip_runtime_wrapper.h -std=c++17 -w -O1 -emit-llvm -c hip.hip -o hip$version.$chip.bc \
			2>clang.log || { cat clang.log >&2; fail "clang $version on ocml's functions"; }
	done
done
lowers hip19.gfx90a.bc sm_80 x86-64
lowers hip22.gfx1030.bc gfx1100
lowers hip22.gfx90a.bc gfx942
echo ok
