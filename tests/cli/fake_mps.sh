#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What nvidia-cuda-mps-control does, as far as its documentation goes: one control daemon for each pipe
# folder, commands on standard input, an error when nobody serves the folder. The daemon is a `sleep`.
# What it was started with, and each command, is written to $FAKE_MPS/log; the files servers and clients in
# the pipe folder are what the lists show.
pipes=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}
pidfile=$pipes/nvidia-cuda-mps-control.pid

# A dead one that nobody has reaped is dead.
alive() { [ -f "$pidfile" ] && grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$(cat "$pidfile")/status" 2>/dev/null; }

if [ "${1-}" = -d ]; then
    if [ -e "$FAKE_MPS/broken" ]; then
        echo "Cannot create the named pipe" >&2
        exit 1
    fi
    if alive; then
        echo "An instance of this daemon is already running" >&2
        exit 1
    fi
    [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || { echo "no log directory" >&2; exit 1; }
    sleep 0.1 # starting takes a moment
    echo "start $pipes preload=${LD_PRELOAD-} visible=${CUDA_VISIBLE_DEVICES-} priority=${TALLY_PRIORITY-}" \
        >>"$FAKE_MPS/log"
    # It keeps the outputs that it was started with, as a daemon may.
    setsid sleep 300 &
    echo $! >"$pidfile"
    mkfifo "$pipes/control"
    exit 0
fi
[ $# -eq 0 ] || { echo "usage" >&2; exit 2; }
alive || { echo "Cannot find MPS control daemon process"; exit 1; }
while read -r command argument; do
    echo "$command $pipes" >>"$FAKE_MPS/log"
    case $command in
    get_server_list) cat "$pipes/servers" 2>/dev/null ;;
    get_client_list) cat "$pipes/clients" 2>/dev/null ;;
    quit)
        kill "$(cat "$pidfile")"
        rm -f "$pidfile" # and leaves the rest, as one that is killed does
        ;;
    *) echo "Unknown command" ;;
    esac
done
exit 0
