#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A large PTX file goes through LLVM in parts: the same bytes however many at once, accepted by ptxas, in bounded memory; kernels
# beside their variants stay as they came; an error says the line of the whole file.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
generate() { python3 "$TALLY_SOURCE/tests/lower/big_ptx.py" "$1"; }

# most_memory COMMAND...: MiB of the largest process that it is and starts
most_memory() {
	python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)' "$@"
}

entries() { grep -o '\.entry [A-Za-z0-9_$]*' "$1" | sort; }

generate 260000 >some.ptx
for transform in none slice,guard guard,persist; do
	works some.ptx --target sm_80 --transform $transform --jobs 1 -o one.ptx
	works some.ptx --target sm_80 --transform $transform --jobs 7 -o many.ptx
	cmp one.ptx many.ptx || fail "$transform: --jobs changes the output"
	assemble one.ptx sm_80
	[ "$(grep -c '\.file' one.ptx)" -ge 1 ] || fail "$transform: no source file is named"
	lacks one.ptx .section
	kernels=$(entries some.ptx | wc -l)
	[ "$(entries one.ptx | grep -vc '\$')" = "$kernels" ] || fail "$transform: other kernels than came"
	[ $transform = none ] || [ "$(entries one.ptx | grep -c '\$')" -ge "$kernels" ] || fail "$transform: variants are missing"
	cp one.ptx "$transform.ptx"
done

# Each of the kernels has the same code as when it is lowered alone.
works some.ptx --target sm_80 --kernel kernel_17 -o alone.ptx
code() { sed -n "/\.entry $1(/,/^}/p" "$2" | grep -v '\.loc' | sed 's,//.*,,; s/_\$p[0-9]*//g; s/\$L__\([A-Za-z_]*\)[0-9]*/$L__\1/g'; }
diff <(code kernel_17 alone.ptx) <(code kernel_17 none.ptx) || fail "a kernel of a part differs from one alone"

# As it came, but for the header.
head -3 slice,guard.ptx | grep -q 'as they came' || fail "no word about the kernels"
[ "$(sed 1,3d some.ptx | head -c 200000)" = "$(sed '1,/address_size/d' slice,guard.ptx | head -c 200000)" ] ||
	fail "the kernels are not as they came"
# Other ways through LLVM leave nothing as it came.
for option in "-O1" "--ptx-version 8.3" "--target sm_90 --kernel kernel_3"; do
	works some.ptx --target sm_80 $option --transform guard -o other.ptx
	! head -3 other.ptx | grep -q 'as they came' || fail "$option: kernels as they came"
done
works some.ptx --target sm_90 --transform guard -o newer.ptx
grep -qx '.target sm_90' newer.ptx || fail "another target than asked for"
assemble newer.ptx sm_90
sed 's/^.target sm_80/.target sm_90a/' some.ptx >special.ptx
works special.ptx --target sm_100 --transform guard -o other.ptx
! head -3 other.ptx | grep -q 'as they came' || fail "sm_90a as it came for sm_100"

# A function whose address is taken, state of a function: as a whole.
{ cat some.ptx; printf '.func f() { ret; }\n.visible .entry taker() { .reg .b64 %%d<2>; P: .callprototype _ (); mov.u64 %%d1, f; call %%d1, P; ret; }\n'; } >taken.ptx
works taken.ptx --target sm_80 -o other.ptx
lacks other.ptx '_$p'
{ cat some.ptx; printf '.visible .entry keeper() { .reg .b32 %%r<2>; .global .u32 calls; atom.global.add.u32 %%r1, [calls], 1; ret; }\n'; } >state.ptx
works state.ptx --target sm_80 --transform guard -o other.ptx
lacks other.ptx '_$p'

# The first error in the file, with its place; nothing written.
line=$(($(wc -l <some.ptx) / 2))
line=$((line + $(sed -n "$line,\$p" some.ptx | grep -n -m1 'mov.u32 %r20, 1;' | cut -d: -f1) - 1))
sed "${line}s/mov.u32/mov.u33/" some.ptx >bad.ptx
for jobs in 1 5; do
	refused "bad.ptx:$line:2: error: " bad.ptx --target sm_80 --transform guard --jobs $jobs -o out
done
refused "--jobs" some.ptx --target sm_80 --jobs 0 -o out
refused "is no number" some.ptx --target sm_80 --jobs many -o out

# Warnings come once, in the order of the file.
sed 's/mad.lo.u32 %r4, %r1, %r2, %r3;/&\n\t{ .param .b32 again; call.uni (again), linear, (); }/' some.ptx >whole.ptx
for jobs in 1 6; do
	"$lower" whole.ptx --target sm_80 --transform guard --keep-going --jobs $jobs -o out.$jobs 2>warnings.$jobs ||
		{ head -3 warnings.$jobs >&2; fail "kernels that stay whole"; }
	[ "$(grep -o "kernel_[0-9]*' stays whole" warnings.$jobs)" = "$(entries some.ptx | sed "s/.entry //; s/\$/' stays whole/" | sort -t_ -k2n)" ] ||
		fail "--jobs $jobs: not one warning for each kernel, in order"
done
cmp out.1 out.6 || fail "kernels that stay whole: --jobs changes the output"

# Ten times the input and what LLVM needs for a part, in the largest process.
generate 5000000 >big.ptx
size=$(($(stat -c %s big.ptx) >> 20))
floor=$(most_memory "$lower" "$TALLY_SOURCE/tests/lower/vector_order.ptx" --target sm_80 -o out)
for transform in none guard; do
	most=$(most_memory "$lower" big.ptx --target sm_80 --transform $transform --jobs 2 -o big.out)
	[ "$most" -le $((size * 10 + floor + 64)) ] || fail "$transform: $most MiB for $size MiB of PTX (an empty file: $floor MiB)"
	echo "$transform: $most MiB for $size MiB of PTX; a small kernel takes $floor MiB"
done
echo ok
