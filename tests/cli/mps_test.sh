#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tally run --mps, with a stand-in for NVIDIA's control daemon: who starts it, who uses it, who stops it.
. "$TALLY_SOURCE/tests/cli/lib.sh"
tally=$bin/tally
mkdir "$work/tools" "$work/fake"
cp "$TALLY_SOURCE/tests/cli/fake_mps.sh" "$work/tools/nvidia-cuda-mps-control"
export FAKE_MPS=$work/fake PATH=$work/tools:$PATH CUDA_VISIBLE_DEVICES=1
unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_MPS_CLIENT_PRIORITY
own=$work/s/mps/pipes
# shellcheck disable=SC2016
show='echo "$CUDA_MPS_PIPE_DIRECTORY|$CUDA_MPS_LOG_DIRECTORY|${CUDA_MPS_CLIENT_PRIORITY-none}"'

starts() { grep -c "^start" "$FAKE_MPS/log" 2>/dev/null; }
alive() {
    local pid
    pid=$(cat "$1/nvidia-cuda-mps-control.pid" 2>/dev/null) &&
        grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$pid/status" 2>/dev/null
}
gone() { ! alive "$1" && [ ! -e "$1/control" ]; }
# Not by asking it: who is asked is not idle.
no_daemon() { [ ! -S "$TALLY_SOCKET" ]; }
kill_fakes() {
    local status=$? pid
    for pid in "$work"/*/nvidia-cuda-mps-control.pid "$own/nvidia-cuda-mps-control.pid"; do
        [ ! -f "$pid" ] || kill "$(cat "$pid")" 2>/dev/null
    done
    (exit $status)
    finish
}
trap kill_fakes EXIT

# serve IDLE: a tallyd of our own, in the background.
serve() {
    "$bin/tallyd" --idle-timeout "$1" || fail "tallyd does not start"
}

# The machine may have a real MPS: then auto uses that one, and this test says nothing.
if [ -e /tmp/nvidia-mps/control ]; then
    echo "skipped: an MPS runs here"
    exit 0
fi

# auto starts one, with nothing of the program's in its environment; the next one uses it.
hold 2
run 0 "$tally" run --device cuda -- sh -c "$show"
same "$out" "$own|$work/s/mps/logs|1"
alive "$own" || fail "no MPS was started"
has "$(cat "$FAKE_MPS/log")" "start $own preload= visible= priority="
run 0 "$tally" run --device cuda --priority high --slo 1.05 -- sh -c "$show; echo \$TALLY_SLO"
same "$out" "$own|$work/s/mps/logs|none
1.05"
# Many at once, and one inside another: still one.
for i in 1 2 3 4 5; do
    "$tally" run --device cuda -- "$tally" run --device cuda -- sh -c "$show" >"$work/many$i" 2>/dev/null &
done
wait
for i in 1 2 3 4 5; do same "$(cat "$work/many$i")" "$own|$work/s/mps/logs|1"; done
same "$(starts)" 1
# With the last program it goes, and then tallyd.
release
until_true gone "$own"
until_true no_daemon
grep -q "^quit $own" "$FAKE_MPS/log" || fail "it was not asked to quit"

# A tallyd that is killed leaves it to the next one, also while a program runs.
serve 2
mkfifo "$work/hold"
"$tally" run --device cuda -- sh -c "echo up; read -r line" <"$work/hold" >"$work/held" 2>/dev/null &
holder=$!
exec 7>"$work/hold"
until_true grep -q up "$work/held"
kill_dead "$(daemon_pid)"
alive "$own" || fail "it went with tallyd"
run 0 "$tally" run --device cuda -- sh -c "$show"
has "$out" "$own|"
kill_dead "$(daemon_pid)"
alive "$own" || fail "it went with the second tallyd"
serve 2
same "$(starts)" 2
exec 7>&-
wait $holder
until_true gone "$own"
until_true no_daemon

# Somebody whom Tally does not know uses it: it stays, and so does tallyd.
hold 1
run 0 "$tally" run --device cuda -- true
echo 4711 >"$own/servers"
echo 4712 >"$own/clients"
release
sleep 4
alive "$own" || fail "stopped under a client"
[ -n "$(daemon_pid)" ] || fail "tallyd left it behind"
rm "$own/clients"
until_true gone "$own"
until_true no_daemon

# Asked to end, tallyd stops it when nobody is there, and leaves it where somebody is.
serve 0
run 0 "$tally" run --device cuda -- true
kill "$(daemon_pid)"
until_true gone "$own"
until_true no_daemon

# The files of one that was killed are not taken for it.
hold 2
run 0 "$tally" run --device cuda -- true
kill_dead "$(cat "$own/nvidia-cuda-mps-control.pid")"
before=$(starts)
run 0 "$tally" run --device cuda -- sh -c "$show"
has "$out" "$own|"
same "$(starts)" $((before + 1))
release
until_true gone "$own"
until_true no_daemon

# The user's own: used, never touched; where none answers it is the user's business, or an error.
theirs=$work/theirs
mkdir "$theirs"
CUDA_MPS_PIPE_DIRECTORY=$theirs CUDA_MPS_LOG_DIRECTORY=$theirs nvidia-cuda-mps-control -d
export CUDA_MPS_PIPE_DIRECTORY=$theirs
serve 1
run 0 "$tally" run --device cuda --mps on -- sh -c "$show"
same "$out" "$theirs||1"
until_true no_daemon
alive "$theirs" || fail "the user's MPS was stopped"
[ ! -e "$own/control" ] || fail "another one was started"
CUDA_MPS_CLIENT_PRIORITY=0 run 0 "$tally" run --device cuda -- sh -c "$show"
same "$out" "$theirs||0"
run 0 "$tally" run --device cuda --mps off -- sh -c "$show"
same "$out" "$work/s/mps/none||none"
kill "$(cat "$theirs/nvidia-cuda-mps-control.pid")"
before=$(starts)
run 0 "$tally" run --device cuda -- sh -c "$show"
same "$out" "$theirs||1"
run 1 "$tally" run --device cuda --mps on -- echo ran
has "$err" "no MPS answers in $theirs (CUDA_MPS_PIPE_DIRECTORY)"
same "$out" ""
unset CUDA_MPS_PIPE_DIRECTORY
same "$(starts)" "$before"

# off starts nothing; the CPU device has none, and says so only when it is asked for.
run 0 "$tally" run --device cuda --mps off -- sh -c "$show"
same "$out" "$work/s/mps/none||none"
if [ -e "$lib/libcuda.so.1" ]; then
    run 0 "$tally" run --device cpu -- sh -c "$show"
    same "$out" "||none"
    same "$err" ""
    run 0 "$tally" run --device cpu --mps off -- sh -c "$show"
    same "$out$err" "||none"
fi
run 1 "$tally" run --device cpu --mps on -- echo ran
has "$err" "the CPU device has no MPS"
same "$(starts)" "$before"

# It does not start, or is not there: auto goes on, on fails.
touch "$FAKE_MPS/broken"
run 0 "$tally" run --device cuda -- sh -c "$show"
same "$out" "||1"
has "$err" "nvidia-cuda-mps-control -d does not start: Cannot create the named pipe; programs take turns"
run 1 "$tally" run --device cuda --mps on -- echo ran
has "$err" "--mps on: nvidia-cuda-mps-control -d does not start: Cannot create the named pipe"
rm "$work/tools/nvidia-cuda-mps-control"
if ! command -v nvidia-cuda-mps-control >/dev/null; then
    run 0 "$tally" run --device cuda -- sh -c "$show"
    same "$out" "||1"
    case $err in *mps*) fail "said: $err" ;; esac
    run 1 "$tally" run --device cuda --mps on -- echo ran
    has "$err" "--mps on: nvidia-cuda-mps-control is not in PATH"
fi

# Wrong options.
run 1 "$tally" run --mps maybe -- true
has "$err" '--mps wants auto, on or off, not "maybe"'
run 1 "$tally" run --slo 1.05 -- true
has "$err" "--slo is for programs of priority high"
run 1 "$tally" run --priority high --slo 0.9 -- true
has "$err" '--slo wants a number from 1.001 to 100, not "0.9"'
