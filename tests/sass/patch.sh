#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Machine code of the conformance suite with guards, read again by a reader that shares nothing with the patcher (check.py) and, where there is one, by NVIDIA's disassembler:
# every kernel for one chip, some for each chip that ptxas knows. Then what tally-lower takes and refuses.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
kernels=$TALLY_BUILD/conformance/kernels
[ -x "$TALLY_PTXAS" ] && [ -d "$kernels" ] || { echo "SKIPPED: no ptxas or no kernels"; exit 77; }
# corpus/make.py brings one; others stand beside ptxas.
nvdisasm=
for program in "$(dirname "$TALLY_PTXAS")/nvdisasm" "$TALLY_BUILD"/corpus/python/triton/backends/nvidia/bin/nvdisasm; do
	[ -x "$program" ] && nvdisasm=$program
done
older=$(echo "$TALLY_BUILD"/corpus/python/triton/backends/nvidia/bin/ptxas)

# guard CHIP NAME ASSEMBLER: assembles a kernel and puts guards into it; adds both to `pairs`.
pairs=()
guard() {
	local a=$2.$1.${3##*/}.cubin b=$2.$1.${3##*/}.guarded
	"$3" -arch="sm_$1" "${4:-$kernels/$2.ptx}" -o "$a" 2>ptxas.log || { head -3 ptxas.log >&2; fail "ptxas -arch=sm_$1 on $2"; }
	works "$a" --target "sm_$1" --transform opaque -o "$b"
	pairs+=("$1" "$a" "$b")
}

count=0
for file in "$kernels"/*.ptx; do
	guard 90 "$(basename "$file" .ptx)" "$TALLY_PTXAS"
	count=$((count + 1))
done
[ $count -ge 40 ] || fail "only $count kernels"
# The suite's PTX is for sm_80 and newer; kernels.ptx for all.
few=(vadd no_parameters big_parameters matmul_tiled named_barriers recursion prints)
for chip in $("$TALLY_PTXAS" --help | grep -oE "'sm_[0-9]+'" | tr -dc '0-9\n' | sort -un); do
	[ "$chip" = 87 ] && continue # docs/opaque.md
	sed '/addressed_by_device/,$d' "$TALLY_SOURCE/tests/sass/kernels.ptx" >plain.ptx
	guard "$chip" plain "$TALLY_PTXAS" plain.ptx
	[ "$chip" -lt 80 ] || [ "$chip" = 90 ] || for name in "${few[@]}"; do guard "$chip" "$name" "$TALLY_PTXAS"; done
done
# What CUDA 12 wrote has its needs in other places.
if [ -x "$older" ]; then
	for chip in 75 80 90; do
		mkdir -p old && ln -sf "$older" old/ptxas12
		guard "$chip" plain old/ptxas12 plain.ptx
	done
fi
checked=$(python3 "$TALLY_SOURCE/tests/sass/check.py" "${pairs[@]}") || exit 1
[ "$checked" -ge $((${#pairs[@]} / 3)) ] || fail "$checked guards in $((${#pairs[@]} / 3)) images"
if [ -n "$nvdisasm" ]; then
	# The disassembler may be older than ptxas, and is slow: some kernels of chips that it knows.
	known=()
	for ((k = 0; k < ${#pairs[@]}; k += 3)); do
		case ${pairs[k + 1]} in
		plain.75.* | plain.80.* | plain.86.* | plain.89.* | plain.90.* | plain.100.* | plain.120.* | matmul_tiled.[89]0.* | recursion.90.*) known+=("${pairs[@]:k:3}") ;;
		esac
	done
	python3 "$TALLY_SOURCE/tests/sass/check.py" --nvdisasm "$nvdisasm" "${known[@]}" >/dev/null || exit 1
fi
# The reader sees what is wrong: a guard that waits for nothing, a parameter elsewhere, a branch that goes past the first instruction.
b=${pairs[2]}
for change in '\x18\x79\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xde\xff\x03=\x18\x79\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xde\x0f\x00' '\x00\xf0\x41\x00=\x00\xf0\x81\x00'; do
	python3 - "$b" wrong.cubin "$change" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
old, new = (bytes(int(x, 16) for x in side.split("\\x")[1:]) for side in sys.argv[3].split("="))
assert old in data, "nothing to change"
open(sys.argv[2], "wb").write(data.replace(old, new))
END
	python3 "$TALLY_SOURCE/tests/sass/check.py" "${pairs[0]}" "${pairs[1]}" wrong.cubin >/dev/null 2>&1 && fail "the reader does not see $change"
done

# From containers: a fatbin of several chips, compressed; the one for the target is taken, `a` before plain.
cat >two.cu <<'END'
__global__ void first(int *p) { *p = 1; }
__global__ void second(int *p) { *p = 2; }
END
"$TALLY_NVCC" -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90 \
	-fatbin two.cu -o two.fatbin 2>nvcc.log || { cat nvcc.log >&2; fail nvcc; }
for target in 80 86 90; do
	works two.fatbin --target sm_$target --transform opaque -o fat.$target.cubin
	works fat.$target.cubin --list >list.txt
	grep -q "sm_$([ $target = 90 ] && echo 90 || echo 80)" list.txt || { cat list.txt >&2; fail "another chip's image for sm_$target"; }
done
"$TALLY_NVCC" -cubin -arch=sm_90a two.cu -o a.cubin 2>nvcc.log || fail nvcc
works a.cubin --target sm_90 --transform opaque -o a.guarded
"$lower" a.cubin --target sm_90 --transform opaque --stats -o a.stats 2>stderr.txt || fail "--stats of machine code"
grep -qE '^read +[0-9]{1,4}\.[0-9]+ ms$' stderr.txt || { cat stderr.txt >&2; fail "--stats counts from the beginning of time"; }
cmp -s <(strings -a a.guarded | grep -c '_Z5first') <(strings -a fat.90.cubin | grep -c '_Z5first') || fail "kernels differ"
[ "$(od -An -tx1 -w1 a.guarded | wc -l)" = "$(od -An -tx1 -w1 fat.90.cubin | wc -l)" ] || fail "not the image for sm_90a"
works two.fatbin --target sm_90 --transform opaque --kernel _Z5firstPi -o one.cubin
[ "$(python3 "$TALLY_SOURCE/tests/sass/check.py" 90 a.cubin one.cubin)" = 1 ] || fail "--kernel: more than one guard"
works - --target sm_90 --transform opaque <two.fatbin >stdin.cubin
cmp -s stdin.cubin fat.90.cubin || fail "stdin gives another image"
refused "no machine code with a kernel for sm_120 in it" two.fatbin --target sm_120 --transform opaque -o out
refused "no machine code of a kernel 'third' for sm_90 in it" two.fatbin --target sm_90 --transform opaque --kernel third -o out
refused "there is no kernel 'third' in it" a.cubin --target sm_90 --transform opaque --kernel third -o out
refused "is machine code for sm_90a, which sm_100 does not run" a.cubin --target sm_100 --transform opaque -o out

# An executable with two modules.
sed 's/first/third/; s/second/fourth/' two.cu >more.cu
echo 'int main() {}' >main.cu
"$TALLY_NVCC" -arch=sm_90 two.cu more.cu main.cu -o app 2>nvcc.log || { cat nvcc.log >&2; fail nvcc; }
refused "2 of its modules have machine code for sm_90: name the kernel" app --target sm_90 --transform opaque -o out
works app --target sm_90 --transform opaque --kernel _Z6fourthPi -o fourth.cubin

# Guards are put in once.
refused "it has a guard already: take what it was made from" a.guarded --target sm_90 --transform opaque -o out
for ((k = 0; k < ${#pairs[@]}; k += 3)); do
	case ${pairs[k + 1]} in
	plain.*) refused "it has a guard already" "${pairs[k + 2]}" --target "sm_${pairs[k]}" --transform opaque -o out ;;
	esac
done
# Device-side launches, relocatable code, a kernel that the device knows by its address.
cat >launches.cu <<'END'
__global__ void child(int *p) { *p = 1; }
__global__ void parent(int *p) { child<<<1, 32>>>(p); }
END
"$TALLY_NVCC" -rdc=true -arch=sm_90 -cubin launches.cu -o unlinked.cubin 2>nvcc.log || { cat nvcc.log >&2; fail nvcc; }
refused "is not linked yet (relocatable device code)" unlinked.cubin --target sm_90 --transform opaque -o out
if "$TALLY_NVCC" -rdc=true -arch=sm_90 -c launches.cu -o launches.o 2>nvcc.log && "$TALLY_NVCC" -arch=sm_90 -dlink -cubin launches.o -lcudadevrt -o launches.cubin 2>>nvcc.log; then
	refused "its image launches kernels from the device" launches.cubin --target sm_90 --transform opaque --keep-going -o out
fi
"$TALLY_PTXAS" -arch=sm_90 "$TALLY_SOURCE/tests/sass/kernels.ptx" -o both.cubin || fail ptxas
refused "kernel 'addressed_by_device' takes no guard: its address is taken on the device" both.cubin --target sm_90 --transform opaque -o out
works both.cubin --list >list.txt
holds list.txt 'kernel plain'
holds list.txt 'kernel addressed_by_device (takes no guard: its address is taken on the device)'
works unlinked.cubin --list >list.txt
holds list.txt 'takes no guard: is not linked yet'
"$lower" both.cubin --target sm_90 --transform opaque --keep-going -o both.guarded 2>stderr.txt || fail --keep-going
[ "$(cat stderr.txt)" = "tally-lower: warning: kernel 'addressed_by_device' stays whole: its address is taken on the device" ] || { cat stderr.txt >&2; fail "--keep-going"; }
[ "$(python3 "$TALLY_SOURCE/tests/sass/check.py" 90 both.cubin both.guarded)" = 1 ] || fail "--keep-going: not one guard"

# What does not go together.
refused "--transform opaque wants the chip as --target" a.cubin --transform opaque -o out
refused "has no machine code that opaque can change" a.cubin --target gfx90a --transform opaque -o out
refused "--emit does not go with it" a.cubin --target sm_90 --transform opaque --emit ptx -o out
refused "--verify does not go with it" a.cubin --target sm_90 --transform opaque --verify -o out
refused "transform 'opaque' does not go with others" a.cubin --target sm_90 --transform guard,opaque -o out
echo "$checked guards${nvdisasm:+, disassembled}"
