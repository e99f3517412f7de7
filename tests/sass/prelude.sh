#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The build's own tool takes no guard that is not as the patcher relies on: it says what is wrong, and leaves no table.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
folder=$TALLY_BUILD/backends/cuda/sass
make=$folder/make_prelude
[ -x "$TALLY_PTXAS" ] && [ -e "$folder/prelude_90_8.ptx" ] || { echo "SKIPPED: no ptxas, or one that knows no sm_90"; exit 77; }
good=("$folder"/prelude_90_{8,24,1032}.cubin)

"$make" table.c 90 "${good[@]}" || fail "the guard of the build"
grep -q '{90, 528, 40, ' table.c || { grep -A3 preludes table.c >&2; fail "the facts of sm_90"; }
"$make" none.c || fail "no chips"

# bad EXPECTED CHIP CUBIN CUBIN CUBIN
bad() {
	local expected=$1
	shift
	"$make" bad.c "$@" 2>stderr.txt && fail "taken: $expected"
	[ "$(wc -l <stderr.txt)" = 1 ] && grep -qF -- "$expected" stderr.txt || { cat stderr.txt >&2; fail "not '$expected'"; }
	[ ! -e bad.c ] || fail "a table is left: $expected"
}

# changed EXPECTED SED-EXPRESSION: the guard's text changed, assembled for all three.
changed() {
	local files=() before
	for before in 8 24 1032; do
		sed -E "$2" "$folder/prelude_90_$before.ptx" >"c$before.ptx"
		cmp -s "c$before.ptx" "$folder/prelude_90_$before.ptx" && fail "nothing changed: $2"
		"$TALLY_PTXAS" -arch=sm_90 "c$before.ptx" -o "c$before.cubin" >ptxas.log 2>&1 || { head -3 ptxas.log >&2; fail "ptxas: $2"; }
		files+=("c$before.cubin")
	done
	bad "$1" 90 "${files[@]}"
}

bad "is for sm_80, not sm_90" 90 "$folder"/prelude_80_{8,24,1032}.cubin
bad "does not read all of the launch parameter" 90 "${good[0]}" "${good[0]}" "${good[0]}"
bad "but not by its operand" 90 "${good[0]}" "${good[2]}" "${good[1]}"
head -c 3000 "${good[0]}" >cut.cubin
bad "damaged: its section headers" 90 cut.cubin cut.cubin cut.cubin
"$TALLY_PTXAS" -arch=sm_90 "$TALLY_SOURCE/tests/sass/kernels.ptx" -o other.cubin || fail ptxas
bad "has no code or no attributes" 90 other.cubin other.cubin other.cubin
changed "2 pmevents, not 3" '0,/pmevent 7;/s/pmevent 7;//'
changed "its pmevents are apart" '0,/pmevent 7;/s/pmevent 7;/pmevent 7; membar.sys;/'
changed "does not read all of the launch parameter" 's/ld.param.u32 %hi, \[launch\+12\]/mov.u32 %hi, 5/; s/ld.param.u32 %lo, \[launch\+8\]/mov.u32 %lo, 0/'
changed "unknown control flow" '0,/pmevent 7;/s/pmevent 7;/setp.eq.u32 %pass, %x, 77; @%pass trap; pmevent 7;/'
use='.local .b32 own[64]; .reg .u64 %own; mov.u64 %own, own; st.local.u32 [%own], %x; mul.wide.u32 %word, %y, 4; add.u64 %own, %own, %word;'
changed "bytes of stack" "0,/pmevent 7;/s/pmevent 7;/$use ld.local.u32 %x, [%own]; setp.eq.u32 %pass, %x, 77; @%pass exit; pmevent 7;/"
