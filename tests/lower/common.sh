# SPDX-License-Identifier: Apache-2.0
# What the tests of tally-lower share. Sourced; needs $TALLY_BUILD and $TALLY_SOURCE.
set -u
lower=$TALLY_BUILD/bin/tally-lower
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# clang_bitcode SOURCE OUTPUT: device bitcode of a CUDA file.
clang_bitcode() {
	clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 \
		--cuda-path="$(dirname "$(dirname "$TALLY_NVCC")")" -O2 -std=c++17 -emit-llvm -c \
		"$1" -o "$2" 2>clang.log || { cat clang.log >&2; fail "clang on $1"; }
}

# nvcc_ptx SOURCE OUTPUT
nvcc_ptx() {
	"$TALLY_NVCC" -arch=compute_80 -std=c++17 -ptx "$1" -o "$2" 2>nvcc.log ||
		{ cat nvcc.log >&2; fail "nvcc on $1"; }
}

# assemble FILE TARGET: ptxas accepts it. The oldest machines are left out of ptxas 13: their PTX is
# assembled for the next one, which has all of theirs.
assemble() {
	local arch=$2
	case $arch in sm_70 | sm_72) arch=sm_75 ;; esac
	"$TALLY_PTXAS" -arch="$arch" "$1" -o assembled.cubin >ptxas.log 2>&1 ||
		{ head -5 ptxas.log >&2; fail "ptxas -arch=$arch on $1"; }
}

# refused EXPECTED ARGUMENTS...: status 1, one line on stderr that holds EXPECTED, nothing on stdout,
# nothing written to out.
refused() {
	local expected=$1 status
	shift
	rm -f out
	"$lower" "$@" >stdout.txt 2>stderr.txt
	status=$?
	[ $status = 1 ] || { cat stderr.txt >&2; fail "status $status of: tally-lower $*"; }
	[ "$(wc -l <stderr.txt)" = 1 ] || { cat stderr.txt >&2; fail "not one line: tally-lower $*"; }
	grep -q "error: " stderr.txt || { cat stderr.txt >&2; fail "no 'error:': tally-lower $*"; }
	grep -qF -- "$expected" stderr.txt ||
		{ cat stderr.txt >&2; fail "expected '$expected': tally-lower $*"; }
	[ ! -s stdout.txt ] || fail "something on stdout: tally-lower $*"
	[ ! -e out ] || fail "out was written: tally-lower $*"
}

# works ARGUMENTS...: status 0, nothing on stderr.
works() {
	"$lower" "$@" 2>stderr.txt || { cat stderr.txt >&2; fail "tally-lower $*"; }
	[ ! -s stderr.txt ] || { cat stderr.txt >&2; fail "noise on stderr: tally-lower $*"; }
}

# holds FILE TEXT, lacks FILE TEXT
holds() { grep -qF -- "$2" "$1" || fail "$1 does not hold '$2'"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 holds '$2'"; }
