#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every fuzz target of tests/fuzz at once, each for the same time: a line for each with what was
# executed, covered and found. The program may come from another machine (it holds all it needs).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=$root/build-fuzz/bin/tally-fuzz minutes=1 jobs=$(nproc) out=$root/build-fuzz/found targets=()
all=(ptx asm code container ir image report sass profiles store wire)
# Who gets the processes that are left when every target has one, in this order.
weighty=(code ptx container code ptx asm ir ptx report)

usage() {
	cat <<'END'
bench/fuzz.sh [--minutes N] [--jobs N] [--program FILE] [--out FOLDER] [TARGET...]
  --minutes N     for each target, fractions allowed (1)
  --jobs N        processes at a time (all CPUs); the targets take turns where there are fewer
  --program FILE  tally-fuzz (build-fuzz/bin/tally-fuzz)
  --out FOLDER    what was found, the logs and the grown corpus (build-fuzz/found)
Exit status 1 when anything was found.
END
}

die() {
	printf 'fuzz: error: %s\n' "$*" >&2
	exit 2
}

check=
while [ $# -gt 0 ]; do
	case $1 in
	--minutes | --jobs | --program | --out)
		[ -n "${2:-}" ] || die "$1 wants a value (see --help)"
		printf -v "${1#--}" %s "$2"
		shift
		;;
	--check) check=1 ;; # the arguments alone
	-h | --help) usage; exit 0 ;;
	-*) die "unknown option $1 (see --help)" ;;
	*)
		[[ " ${all[*]} " == *" $1 "* ]] || die "no target \"$1\" (there are: ${all[*]})"
		targets+=("$1")
		;;
	esac
	shift
done
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
[[ $minutes =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ ]] || die "--minutes $minutes: a number, fractions allowed"
[[ $jobs =~ ^[1-9][0-9]{0,3}$ ]] || die "--jobs $jobs: a whole number from 1 to 9999"
seconds=$(awk "BEGIN { print int($minutes * 60) }")
[ "$seconds" -ge 1 ] || die "--minutes $minutes: at least a second"
[ -z "$check" ] || exit 0
[ -x "$program" ] || die "no $program: ./dev fuzz builds it"
mkdir -p "$out" || exit 2
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1:detect_stack_use_after_return=0:alloc_dealloc_mismatch=0}
export TALLY_FUZZ_TARGET

# Where processes may not be traced there is no looking for leaks.
: >"$out/empty"
TALLY_FUZZ_TARGET=image "$program" "$out/empty" >"$out/probe.log" 2>&1 ||
	! grep -q 'LeakSanitizer has encountered a fatal error' "$out/probe.log" ||
	{ echo "fuzz: no leak detection on this machine" >&2; ASAN_OPTIONS+=:detect_leaks=0; }

# One process of a target until its time is over; after a finding it goes on.
run() {
	local target=$1 number=$2 end=$((SECONDS + seconds)) left turn=0
	local log=$out/$target/$number.log
	while left=$((end - SECONDS)); [ $left -gt 0 ] && [ $turn -lt 50 ]; do
		TALLY_FUZZ_TARGET=$target "$program" -max_total_time=$left -timeout=20 -rss_limit_mb=4096 \
			-malloc_limit_mb=2048 -max_len=16384 -reload=10 -print_final_stats=1 \
			-use_value_profile=$((number % 2)) -artifact_prefix="$out/$target/" \
			"$out/$target/corpus" "$root/tests/fuzz/corpus/$target" >>"$log" 2>&1 && break
		turn=$((turn + 1))
	done
}

# How many processes each target of this turn has.
share() {
	local -n counts=$1
	local free=$((jobs - ${#turn[@]})) target
	for target in "${turn[@]}"; do counts[$target]=1; done
	while [ $free -gt 0 ]; do
		local given=0
		for target in "${weighty[@]}"; do
			[ $free -gt 0 ] && [ -n "${counts[$target]:-}" ] || continue
			counts[$target]=$((counts[$target] + 1)) free=$((free - 1)) given=1
		done
		[ $given = 1 ] || break
	done
}

summary() {
	local target=$1 found
	found=$(find "$out/$target" -maxdepth 1 -type f \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' \
		-o -name 'oom-*' \) | wc -l)
	cat "$out/$target"/*.log | awk -v target="$target" -v found="$found" -v processes="$2" '
		/stat::number_of_executed_units/ { units += $2 }
		/ cov: / { for (i = 1; i < NF; i++) {
			if ($i == "cov:" && $(i + 1) > cov) cov = $(i + 1)
			if ($i == "ft:" && $(i + 1) > ft) ft = $(i + 1) } }
		END { printf "%-10s %d processes, %d executions, %d edges, %d features, %d findings\n",
			target, processes, units, cov, ft, found }'
	[ "$found" = 0 ]
}

status=0
while [ ${#targets[@]} -gt 0 ]; do
	turn=("${targets[@]:0:$jobs}") targets=("${targets[@]:$jobs}")
	unset processes
	declare -A processes=()
	share processes
	for target in "${turn[@]}"; do
		rm -rf "${out:?}/$target"
		mkdir -p "$out/$target/corpus"
		for number in $(seq "${processes[$target]}"); do run "$target" "$number" & done
	done
	wait
	for target in "${turn[@]}"; do summary "$target" "${processes[$target]}" || status=1; done
done
rm -f "$out/empty" "$out/probe.log"
[ $status = 0 ] || {
	echo "found (each runs again with TALLY_FUZZ_TARGET=TARGET $program FILE):"
	find "$out" -maxdepth 2 -type f \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \)
}
exit $status
