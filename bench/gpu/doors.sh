#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with an NVIDIA GPU and nvcc: the programs of tests/cudart that give the device work in every way there is (streams, events,
# graphs, host functions, pools, cooperative launches, children ...), with exact checks: with NVIDIA's runtime, static and shared, with the
# kernels as PTX (which can be stopped) and as machine code (which cannot), without Tally, under Tally at high priority and as best effort beside
# a server of high priority that comes and goes, graphs whole and node by node, without MPS and with it. One line a run; exit status 1 when any
# fails. About two minutes.
#   bench/gpu/doors.sh BUILD [OUTPUT]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/../../tests/cudart
build=$(cd "${1:?usage: bench/gpu/doors.sh BUILD [OUTPUT]}" && pwd)
output=${2:-$build/bench/gpu}
mkdir -p "$output"
private=$(mktemp -d)
export TALLY_SOCKET=$private/tallyd.sock TALLY_CACHE_DIR=$private/cache
rival=
mps=no
failed=0
finish() {
	[ -z "$rival" ] || kill "$rival" 2>/dev/null
	[ $mps = no ] || echo quit | nvidia-cuda-mps-control >/dev/null
	rm -rf "$private"
}
trap finish EXIT

compile() {
	local name
	for name in graphs doors; do
		nvcc -O2 -std=c++17 -gencode arch=compute_80,code=compute_80 -cudart "$1" "$sources/$name.cu" -o "$private/$name-$1-ptx" || exit 1
		nvcc -O2 -std=c++17 -arch=native -cudart "$1" "$sources/$name.cu" -o "$private/$name-$1-sass" || exit 1
	done
}

# run LABEL COMMAND...: every program of every kind, the output has to be "ok"
run() {
	local label=$1 program began
	shift
	for program in "$private"/*-*-*; do
		began=$(date +%s%N)
		if [ "$(timeout 60 "$@" "$program" 2>"$private/errors")" = ok ]; then
			printf 'ok      %-40s %-20s %5d ms\n' "$label" "$(basename "$program")" $((($(date +%s%N) - began) / 1000000))
		else
			printf 'FAILED  %-40s %s\n' "$label" "$(basename "$program")"
			sed 's/^/        /' "$private/errors" | tail -5
			failed=1
		fi
	done
}

# A program of high priority that uses the device in bursts, over and over.
start_rival() {
	(while "$build/bin/tally" run --device cuda --mps "$use" --priority high -- "$private/doors-static-sass" copies events >/dev/null 2>&1; do :; done) &
	rival=$!
}
stop_rival() {
	kill "$rival" 2>/dev/null
	wait "$rival" 2>/dev/null
	rival=
}

all_ways() {
	local tally=("$build/bin/tally" run --device cuda --mps "$use")
	run "$1, without Tally" env
	run "$1, high priority" "${tally[@]}" --priority high --
	run "$1, best effort" "${tally[@]}" --priority best-effort --
	start_rival
	run "$1, best effort, rival" "${tally[@]}" --priority best-effort --
	run "$1, best effort, rival, graphs whole" env TALLY_GRAPHS=whole "${tally[@]}" --priority best-effort --
	run "$1, best effort, rival, graphs' nodes" env TALLY_GRAPHS=nodes TALLY_LEVEL=guard "${tally[@]}" --priority best-effort --
	stop_rival
}

{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	compile static
	compile shared
	use=off
	all_ways "time-slicing"
	if ! pgrep -x nvidia-cuda-mps >/dev/null && command -v nvidia-cuda-mps-control >/dev/null; then
		export CUDA_MPS_PIPE_DIRECTORY=$private/mps CUDA_MPS_LOG_DIRECTORY=$private/mps
		mkdir -p "$private/mps"
		nvidia-cuda-mps-control -d && mps=yes
		use=on
		all_ways "MPS"
	fi
	[ $failed = 0 ] && echo "all runs ok" || echo "some runs FAILED"
	exit $failed
} 2>&1 | tee "$output/doors.txt"
exit "${PIPESTATUS[0]}"
