#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MPS as `tally run` starts and tallyd stops it, and a latency budget, on a real GPU:
#   bench/gpu/slo.sh [FOLDER]     results (JSON, logs) go to FOLDER; about four minutes
# TALLY_SLO_SECONDS: length of a run (8); TALLY_SLO_TURNS (2); TALLY_SLO_DEVICE=cpu: the second
# half on the CPU device.
# First the life of a real control daemon, step by step, PASS or FAIL. Then the demo's server beside its
# trainer: alone, under strict priority, and with budgets of 1.05, 1.5 and 3, two turns of each; a table.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${TALLY_BUILD:-$PWD/build}
results=${1:-$build/slo}
seconds=${TALLY_SLO_SECONDS:-8}
device=${TALLY_SLO_DEVICE:-cuda}
turns=${TALLY_SLO_TURNS:-2}
size=2048 # of the trainer's matrices
[ "$device" = cuda ] || size=64
mkdir -p "$results"
private=$(mktemp -d)
tally=$build/bin/tally
export TALLY_SOCKET=$private/s/d.sock TALLY_CACHE_DIR=$private/cache
unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_MPS_CLIENT_PRIORITY
pipes=$private/s/mps/pipes
failed=0
# The runtime library alone: beside it is the CPU device's driver, which must not be found.
mkdir "$private/lib"
ln -s "$build/lib/libcudart.so.13" "$private/lib/"
export LD_LIBRARY_PATH=$private/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

finish() {
	local status=$?
	cp "$private"/s/tallyd.log "$private"/s/mps/logs/* "$results"/ 2>/dev/null
	[ ! -e "$pipes/control" ] || CUDA_MPS_PIPE_DIRECTORY=$pipes nvidia-cuda-mps-control <<<quit >/dev/null 2>&1
	[ -z "$(daemon)" ] || kill "$(daemon)"
	rm -rf "$private"
	exit $status
}
trap finish EXIT

daemon() { "$tally" status --json 2>/dev/null | sed -n 's/.*"daemon": {"running": true.*"pid": \([0-9]*\).*/\1/p'; }
# The control daemon's own file; a pid that runs.
control() { kill -0 "$(cat "$pipes/nvidia-cuda-mps-control.pid" 2>/dev/null)" 2>/dev/null; }
no_control() { ! control && [ ! -e "$pipes/control" ]; }
no_tallyd() { [ ! -S "$TALLY_SOCKET" ]; }
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
step() {
	if "${@:2}"; then echo "PASS $1"; else
		echo "FAIL $1"
		failed=1
	fi
}
serve() { "$build/bin/tallyd" --idle-timeout "$1"; }
# server ARGUMENTS of tally run...
server() { "$tally" run --device "$device" --priority high --name server "$@" -- "$build/demo/server" --seconds 2; }
sharing() { "$tally" status | awk '$1 == "server" { print $5, $6, $7; }'; }

mps() {
	echo "== MPS"
	[ ! -e /tmp/nvidia-mps/control ] || echo "note: an MPS runs in /tmp/nvidia-mps: auto uses that one, and the steps below fail"
	serve 2
	server --mps on >"$results/mps.log" 2>&1 &
	first=$!
	step "tally run --mps on starts one" within 20 control
	sleep 1
	echo "status: $(sharing)"
	ls -la "$pipes"
	echo "get_server_list: $(CUDA_MPS_PIPE_DIRECTORY=$pipes nvidia-cuda-mps-control <<<get_server_list 2>&1), status $?"
	wait $first
	step "the program ends well" test $? -eq 0
	step "with the last program it goes" within 30 no_control
	step "and tallyd" within 30 no_tallyd
	echo "with nobody there: $(CUDA_MPS_PIPE_DIRECTORY=$pipes nvidia-cuda-mps-control <<<get_server_list 2>&1), status $?"
	serve 2
	server >"$results/killed.log" 2>&1 &
	first=$!
	within 20 control
	kill -9 "$(daemon)"
	wait $first
	step "it outlives a tallyd that is killed" control
	server >>"$results/killed.log" 2>&1
	kill -9 "$(daemon)"
	serve 2
	step "a later tallyd stops it" within 40 no_control
	within 30 no_tallyd
	server --mps off >"$results/off.log" 2>&1
	step "--mps off starts none" no_control
}
[ "$device" = cpu ] || mps

echo "== a latency budget (server beside trainer, ${seconds} s each)"
serve 0
pair() { # NAME, then the server's options; "alone" has no trainer
	local name=$1 at trainer=
	shift
	at=$(($(date +%s) + 4))
	if [ "${name%.*}" != alone ]; then
		"$tally" run --device "$device" --priority best-effort --name trainer -- timeout $((seconds + 60)) "$build/demo/trainer" --size $size \
			--steps 20 --seconds $((seconds + 6)) --start-at $at --json "$results/trainer.$name.json" \
			>"$results/trainer.$name.log" 2>&1 &
		trainer=$!
	fi
	"$tally" run --device "$device" --priority high --name server "$@" -- timeout $((seconds + 60)) "$build/demo/server" --rate 400 --layers 4 \
		--warmup 300 --seconds "$seconds" --start-at $at --json "$results/server.$name.json" \
		>"$results/server.$name.log" 2>&1 &
	local server=$!
	sleep $((seconds + 3))
	"$tally" status >"$results/status.$name.txt" 2>&1
	grep budget "$results/status.$name.txt"
	wait $server $trainer
}
for turn in $(seq "$turns"); do
	pair alone.$turn
	pair strict.$turn
	for budget in 1.05 1.5 3; do pair "$budget.$turn" --slo $budget; done
done
python3 - "$results" <<'END'
import glob, json, os, sys
os.chdir(sys.argv[1])
base = {}
print(f"{'':12} {'mean ms':>8} {'p50':>8} {'p99':>8} {'p99 vs alone':>12} {'mean vs alone':>13} {'steps/s':>8}")
for turn in "12":
    for name in ("alone", "strict", "1.05", "1.5", "3"):
        try:
            server = json.load(open(f"server.{name}.{turn}.json"))
        except OSError:
            continue
        l = sorted(server["latency_ms"])
        p = lambda q: l[min(len(l) - 1, int(q * len(l)))]
        mean = sum(l) / len(l)
        if name == "alone":
            base[turn] = (mean, p(0.99))
        try:
            steps = json.load(open(f"trainer.{name}.{turn}.json")).get("steps_per_second", 0)
        except OSError:
            steps = 0
        m, t = base[turn]
        print(f"{name + ' (' + turn + ')':12} {mean:8.3f} {p(0.5):8.3f} {p(0.99):8.3f} {p(0.99) / t:12.3f} {mean / m:13.3f} {steps:8.1f}")
END
exit $failed
