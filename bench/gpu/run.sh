#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with an NVIDIA GPU and stock PyTorch: conformance on the GPU, then a high-priority server
# beside a best-effort trainer, as they are and under Tally, time-sliced and under MPS (started and stopped
# here; a server that is already there is left alone and MPS is not measured). A few minutes.
#   bench/gpu/run.sh BUILD [OUTPUT]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: bench/gpu/run.sh BUILD [OUTPUT]}" && pwd)
output=${2:-$build/bench/gpu}
mkdir -p "$output"
private=$(mktemp -d)
export TALLY_SOCKET=$private/tallyd.sock TALLY_CACHE_DIR=$private/cache PYTHONUNBUFFERED=1
export CUBLAS_WORKSPACE_CONFIG=:4096:8 # PyTorch's deterministic mode asks for it
tally=("$build/bin/tally" run --device cuda)
high=("${tally[@]}" --priority high --)
low=("${tally[@]}" --priority best-effort --)
mps=no
finish() {
	[ $mps = no ] || echo quit | nvidia-cuda-mps-control >/dev/null
	rm -rf "$private"
}
trap finish EXIT

title() { printf '\n== %s\n' "$*"; }
python() { timeout 90 python3 "$here/$@"; }

# beside TITLE SERVER-PREFIX... , TRAINER-PREFIX...: the server, measured while the trainer runs
beside() {
	title "$1"
	shift
	local server=() trainer=()
	while [ "$1" != , ]; do server+=("$1"); shift; done
	shift
	trainer=("$@")
	"${trainer[@]}" timeout 90 python3 "$here/train.py" 9 &
	sleep 9 # until it trains
	"${server[@]}" timeout 90 python3 "$here/serve.py" --graph
	"$build/bin/tally" status --json >"$output/status.json" 2>/dev/null
	wait
}

{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	title conformance
	timeout 300 "$build/bin/conformance" --build "$build" --device cuda --target none --jobs "$(nproc)" --live 20 >"$output/conformance.txt"
	tail -1 "$output/conformance.txt"
	title "alone, without Tally"
	python serve.py
	python serve.py --graph
	python train.py 3
	title "alone, under Tally"
	"${high[@]}" timeout 90 python3 "$here/serve.py"
	"${high[@]}" timeout 90 python3 "$here/serve.py" --graph
	"${low[@]}" timeout 90 python3 "$here/train.py" 3
	"${low[@]}" timeout 90 python3 "$here/triton_add.py"
	"${high[@]}" timeout 90 python3 "$here/triton_add.py"
	beside "together, time-slicing" env , env
	beside "together, time-slicing, Tally" "${high[@]}" , "${low[@]}"
	if ! pgrep -x nvidia-cuda-mps >/dev/null && command -v nvidia-cuda-mps-control >/dev/null; then
		export CUDA_MPS_PIPE_DIRECTORY=$private/mps CUDA_MPS_LOG_DIRECTORY=$private/mps-log
		mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
		nvidia-cuda-mps-control -d && mps=yes
		sleep 2
		beside "together, MPS" env , env
		beside "together, MPS, Tally" "${high[@]}" , "${low[@]}"
	fi
} 2>&1 | tee "$output/log.txt"
