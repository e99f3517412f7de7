#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names that begin with a percent sign, which PTX allows and LLVM's writer of it does not: they come out as
# they went in, whatever is made of the module.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
input=$TALLY_SOURCE/tests/lower/percent.ptx

assemble "$input" sm_75
for transform in none persist slice,guard slice,guard,persist; do
	for target in sm_70 sm_90 x86-64 gfx90a; do
		works "$input" --target $target --transform $transform -o out.ptx
		[[ $target == sm_* ]] || continue
		assemble out.ptx $target
		for name in '.entry %count(' '.entry %k1(' ' %total' "%table["; do holds out.ptx "$name"; done
		lacks out.ptx 'tally_percent'
		[[ $transform != *persist* ]] || { holds out.ptx '.entry %count$persist(' && holds out.ptx '.entry %k1$persist('; }
		[[ $transform != slice* ]] || holds out.ptx '.entry %count$slice_guard('
	done
done
# In code this name would mean the register that LLVM's writer calls so.
sed 's/%total/%rd3/' "$input" >register.ptx
refused "'%rd3' is what a register is called" register.ptx --target sm_90 --transform none -o out
