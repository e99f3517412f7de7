#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the AMD library does by itself, run on this machine: see amd_model.c.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
library=$TALLY_SOURCE/backends/hip/lower

for part in barriers printf; do
	sed -e 's/ addrspace(3)//g' -e 's/ syncscope("block")//g' -e 's/llvm\.amdgcn\.readfirstlane\.i32/model.readfirstlane/' \
		-e 's/llvm\.amdgcn\.s\.sleep/model.sleep/' "$library/$part.ll" >$part.ll
	clang-22 -w -O2 -c $part.ll -o $part.o 2>clang.log || { cat clang.log >&2; fail "$part.ll"; }
done
clang-22 -Wall -Wextra -Werror -O2 -pthread "$TALLY_SOURCE/tests/lower/amd_model.c" barriers.o printf.o -o model ||
	fail "the model does not build"
timeout 100 ./model || fail "the model"
sed -E 's/__ocml_([jy][01])_f64/\1/' "$library/bessel.ll" >bessel.ll
clang-22 -w -O1 -c bessel.ll -o bessel.o 2>clang.log || { cat clang.log >&2; fail bessel.ll; }
clang-22 -Wall -Wextra -Werror -O1 "$TALLY_SOURCE/tests/lower/amd_bessel.c" bessel.o -lm -o bessel || fail "the Bessel functions do not build"
timeout 100 ./bessel || fail "the Bessel functions"
