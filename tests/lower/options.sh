#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that no option of tally-lower is taken where it means nothing: every option with everything that the program
# does. An option that is refused is named in one line; one that is taken leaves a result.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
vadd=$TALLY_SOURCE/tests/lower/vadd.ll
printf '.version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n' >k.ptx
"$TALLY_PTXAS" -arch=sm_80 k.ptx -o k.cubin || fail "ptxas"

# What is taken: L list, C classify, O opaque, I neutral IR, N, A, X machines of NVIDIA's, AMD's, the CPU.
table=(
	'--kernel=K    COINAX'
	'-O1           NAX'
	'--emit=ir     INAX'
	'--transform=guard INAX'
	'--print-after=lift INAX'
	'--verify      CINAX'
	'--keep-going  OINAX'
	'--lift        N'
	'--coroutines  X'
	'--stats       OINAX'
	'--timeout=100 LCOINAX'
	'--timeout=0   LCOINAX'
	'--memory=0    LCOINAX'
	'--ptx-version=8.0 N'
	'--jobs=2      N'
	'--libdevice=/nowhere N'
	'--rocm-device-libs=/nowhere A'
	'-oout         OINAX'
)
declare -A does=(
	[L]="$vadd --list" [C]="$vadd --classify" [O]='k.cubin --target sm_80 --transform opaque'
	[I]="$vadd --emit ir" [N]="$vadd --target sm_80" [A]="$vadd --target gfx90a --emit asm" [X]="$vadd --target x86-64 --emit asm"
)
declare -A means=(
	[L]='--list only shows what is there: ' [C]='--classify only shows what is there: '
	[O]='--transform opaque changes machine code: ' [I]=' means nothing without a --target'
	[N]=' means nothing for target sm_80' [A]=' means nothing for target gfx90a' [X]=' means nothing for target x86-64'
)
tried=0
for row in "${table[@]}"; do
	read -r written taken <<<"$row"
	for mode in L C O I N A X; do
		option=$written
		case $mode$option in
		O--transform=*) continue ;;
		O--kernel=K) option=--kernel=k ;;
		?--kernel=*) option=--kernel=vadd ;;
		esac
		rm -f out
		# shellcheck disable=SC2086
		if [[ $taken == *$mode* ]]; then
			"$lower" ${does[$mode]} $option >stdout 2>stderr.txt || { cat stderr.txt >&2; fail "${does[$mode]} $option"; }
			[ -s stdout ] || [ -s out ] || fail "${does[$mode]} $option: no result"
		else
			refused "${means[$mode]}" ${does[$mode]} $option
			name=${option%%=*}
			name=${name/-O1/--optimise} name=${name/-oout/--output}
			grep -qF -- "$name" stderr.txt || fail "${does[$mode]} $option does not name it: $(cat stderr.txt)"
		fi
		tried=$((tried + 1))
	done
done
[ $tried -ge 120 ] || fail "only $tried were tried"
# Every option of --help is in the table, or is one of these.
for option in $("$lower" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
	case $option in
	--target | --help | --version | --output | --optimise | --list | --classify) ;;
	*) printf '%s\n' "${table[@]}" | grep -qE -- "^$option[ =]" || fail "$option is not tried" ;;
	esac
done
refused "--list only shows what is there: --transform does not go with it" k.cubin --list --transform opaque
refused "--classify only shows what is there: --emit does not go with it" "$vadd" --classify --emit ir
refused "--target does not go with it" "$vadd" --list --target sm_80
works "$vadd" --classify --target sm_80 >stdout
works "$vadd" --verify
refused "no --target" "$vadd" --verify -o out
refused "--transform opaque wants the chip" k.cubin --transform opaque -o out
refused "has no machine code that opaque can change" k.cubin --transform opaque --target gfx90a -o out
# What cannot be written is found before the work.
refused "out/x" "$vadd" --target sm_80 -o out/x
refused "is empty" /dev/null --target sm_80 -o out
refused "nowhere/out: error: cannot write" no-such-input --target sm_80 -o nowhere/out
echo ok
