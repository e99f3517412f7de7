# SPDX-License-Identifier: Apache-2.0
# The life of tallyd: races, stale sockets, signals, idleness, unsafe folders.
. "$(dirname "$0")/lib.sh"

gone() { [ -z "$(daemon_pid)" ]; }

# Twenty at once: one serves, nineteen say so and end well.
for i in $(seq 20); do
    "$bin/tallyd" --idle-timeout 30 2>"$work/race.$i" &
    pids[i]=$!
done
for i in $(seq 20); do
    wait "${pids[i]}" || fail "a racing tallyd ended with status $?"
done
same "$(cat "$work"/race.* | grep -c "another tallyd serves $TALLY_SOCKET")" 19
pid=$(daemon_pid)
[ -n "$pid" ] || fail "none of twenty serves"
same "$(grep -c ': serving$' "$work/s/tallyd.log")" 1

# It is detached: its own session, no terminal, child of nobody here.
read -r _ _ _ parent _ session tty _ </proc/"$pid"/stat
[ "$session" != "$(ps -o sid= -p $$ | tr -d ' ')" ] || fail "tallyd shares our session"
same "$tty" 0
[ "$parent" != $$ ] || fail "tallyd is our child"
same "$(stat -c %a "$work/s")" 700

# SIGTERM: ends, and takes its socket along.
kill -TERM "$pid"
until_true dead "$pid"
[ ! -e "$TALLY_SOCKET" ] || fail "the socket stayed"

# kill -9: the socket stays, and the next one replaces it.
run 0 "$bin/tallyd" --idle-timeout 30
pid=$(daemon_pid)
kill_dead "$pid"
[ -S "$TALLY_SOCKET" ] || fail "no stale socket to test with"
has "$("$bin/tally" status)" "no tallyd runs"
run 0 "$bin/tallyd" --idle-timeout 30
pid=$(daemon_pid)
[ -n "$pid" ] || fail "a stale socket was not replaced"

# A cleaner that removes the socket does not make it unreachable for long.
rm "$TALLY_SOCKET"
until_true test -S "$TALLY_SOCKET"
same "$(daemon_pid)" "$pid"
kill -TERM "$pid"
until_true dead "$pid"

# Somebody removed the whole folder, lock and all, and a new daemon serves: the old one sees that it was
# replaced, and leaves the new socket alone.
run 0 "$bin/tallyd" --idle-timeout 30
old=$(daemon_pid)
rm -r "$work/s"
run 0 "$bin/tallyd" --idle-timeout 30
pid=$(daemon_pid)
[ "$pid" != "$old" ] || fail "the old daemon still serves"
until_true dead "$old"
same "$(daemon_pid)" "$pid"
kill -TERM "$pid"
until_true dead "$pid"

# A log that grew too long starts anew.
run 0 "$bin/tallyd" --idle-timeout 30
pid=$(daemon_pid)
head -c 1100000 /dev/zero >>"$work/s/tallyd.log"
kill -TERM "$pid"
until_true dead "$pid"
[ "$(stat -c %s "$work/s/tallyd.log")" -lt 10000 ] || fail "the log was not cut"

# Idle: ends by itself, but not while a program is there.
hold 1
pid=$(daemon_pid)
sleep 2
same "$(daemon_pid)" "$pid"
release
until_true dead "$pid"
[ ! -e "$TALLY_SOCKET" ] || fail "the socket stayed"
has "$(tail -1 "$work/s/tallyd.log")" "idle: ending"

# `tally run` keeps it for a program that has not joined yet.
hold 2
pid=$(daemon_pid)
mkfifo "$work/running"
"$bin/tally" run --device cuda -- sh -c 'echo up; read -r line' <"$work/running" >"$work/up" 2>/dev/null &
exec 7>"$work/running"
until_true grep -q up "$work/up"
release
sleep 4
same "$(daemon_pid)" "$pid"
exec 7>&-
wait
until_true dead "$pid"

# In the foreground it logs to the terminal and ends on Ctrl-C.
"$bin/tallyd" --foreground --idle-timeout 0 2>"$work/log" &
pid=$!
until_true grep -q serving "$work/log"
kill -INT $pid
wait $pid || fail "Ctrl-C: status $?"

# A path that a script left empty is not the default one.
for option in --help --version; do
    "$bin/tallyd" $option >/dev/full 2>"$work/err" && fail "tallyd $option: a full disk was not noticed"
    [ "$(cat "$work/err")" = "tallyd: error: cannot write: No space left on device" ] || fail "tallyd $option: $(cat "$work/err")"
done
# A mistyped path costs nobody a file, nor another program its socket.
mkdir -m 700 "$work/place"
echo precious >"$work/place/notes"
run 1 "$bin/tallyd" --socket "$work/place/notes"
same "$err" "tallyd: error: $work/place/notes is there already, and is no socket"
TALLY_SOCKET=$work/place/notes run 0 "$bin/tally" run -- true
has "$err" "$work/place/notes is there already, and is no socket"
[ "$(wc -l <<<"$err")" = 1 ] || fail "not one line: $err"
same "$(ls "$work/place") $(cat "$work/place/notes")" "notes precious"
python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
sys.stdin.read()' "$work/place/other" < <(sleep 100 & echo $! >"$work/sleeper"; wait) >"$work/listens" &
until_true grep -q listens "$work/listens"
run 1 "$bin/tallyd" --socket "$work/place/other"
same "$err" "tallyd: error: $work/place/other is another program's socket"
TALLY_SOCKET=$work/place/other run 1 "$bin/tally" status
has "$err" "cannot connect to $work/place/other: it is another program's socket"
kill "$(cat "$work/sleeper")"
run 1 "$bin/tallyd" --idle-timeout -1
has "$err" "--idle-timeout wants a number from 0 to 1000000000, not \"-1\""
run 1 "$bin/tallyd" --socket ""
has "$err" "tallyd: error: --socket wants the path of a socket"

# Folders that others could use are refused, by name.
mkdir -m 755 "$work/open"
run 1 "$bin/tallyd" --socket "$work/open/d.sock"
has "$err" "tallyd: error: the socket folder $work/open is open to others (mode 0755)"
if [ "$(id -u)" = 0 ]; then
    mkdir -m 700 "$work/theirs"
    chown 12345 "$work/theirs"
    run 1 "$bin/tallyd" --socket "$work/theirs/d.sock"
    has "$err" "belongs to user 12345"
fi
mkdir -m 700 "$work/mine"
ln -s "$work/mine" "$work/link"
run 1 "$bin/tallyd" --socket "$work/link/d.sock"
has "$err" "is not a folder"
run 1 "$bin/tallyd" --socket "$work/$(printf 'x%.0s' $(seq 120))"
has "$err" "is too long"
run 1 "$bin/tallyd" --socket relative/d.sock
has "$err" "not an absolute path"

# Options.
run 0 "$bin/tallyd" --help
has "$out" "usage: tallyd"
run 0 "$bin/tallyd" --version
has "$out" "tallyd "
for bad in "--nonsense" "--idle-timeout x" "--idle-timeout -1" "--idle-timeout" "--quantum 0" "extra"; do
    run 1 "$bin/tallyd" $bad
    same "$(printf '%s\n' "$err" | wc -l)" 1
    has "$err" "tallyd: error: "
done
until_true gone
