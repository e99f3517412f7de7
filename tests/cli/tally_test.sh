# SPDX-License-Identifier: Apache-2.0
# The command `tally`: run is transparent, status tells the truth, wrong usage is answered clearly.
. "$(dirname "$0")/lib.sh"

tally=$bin/tally
cuda="--device cuda"

# Usage.
run 0 "$tally" --help
has "$out" "usage: tally"
run 0 "$tally" --version
has "$out" "tally "
for command in run status top trace profile cache; do
    run 0 "$tally" $command --help
    has "$out" "usage: tally $command"
    run 0 "$tally" $command --version
    run 1 "$tally" $command --nonsense
    has "$err" "tally $command: error: unknown or ambiguous option \"--nonsense\""
    run 1 "$tally" $command -x
    has "$err" "unknown option \"-x\""
done
run 1 "$tally"
has "$err" "see tally --help"
run 1 "$tally" frobnicate
has "$err" 'unknown command "frobnicate"; known: run, status, top, trace, profile, cache'
run 1 "$tally" status extra
has "$err" "unexpected argument"
run 1 "$tally" run
has "$err" "which program?"
run 1 "$tally" run --priority soon -- true
has "$err" "--priority wants high, best-effort or a whole number up to 1000000, not \"soon\""
run 1 "$tally" run --priority 99999999999 -- true
run 1 "$tally" run --opaque some -- true
has "$err" "--opaque wants off, open or all, not \"some\""
run 1 "$tally" run --priority
has "$err" "wants a value"
run 1 "$tally" run --device tpu -- true
has "$err" "--device wants auto, cpu or cuda, not \"tpu\""

# Without a daemon: a clear answer, no error.
run 0 "$tally" status
has "$out" "no tallyd runs"
same "$(json 'd["daemon"]["running"], d["programs"], d["finished"]')" "(False, [], [])"
[ ! -e "$work/s" ] || fail "status made the socket folder"

# run: the program's output, input, arguments, status and signals are its own.
run 0 "$tally" run $cuda -- printf '%s|' a 'b c' --device ''
same "$out" 'a|b c|--device||'
run 7 "$tally" run $cuda sh -c 'exit 7'
same "$(echo through | "$tally" run $cuda -- cat 2>/dev/null)" through
run 143 "$tally" run $cuda -- sh -c 'kill -TERM $$'
"$tally" run $cuda -- sh -c 'trap "exit 5" USR1; echo ready; while :; do sleep 0.02; done' \
    >"$work/ready" 2>/dev/null &
pid=$!
until_true grep -q ready "$work/ready"
same "$(cat /proc/$pid/comm)" sh
kill -USR1 $pid
wait $pid
same $? 5
run 127 "$tally" run $cuda -- "$work/not-there"
has "$err" "cannot run $work/not-there: No such file or directory"
run 127 "$tally" run $cuda -- no-such-program-anywhere
touch "$work/plain"
run 126 "$tally" run $cuda -- "$work/plain"

# run: the environment.
show='echo "$TALLY_PRIORITY|$TALLY_NAME|$TALLY_SOCKET|$LD_PRELOAD|${LD_LIBRARY_PATH-}"'
run 0 "$tally" run $cuda --priority high -- sh -c "$show"
same "$out" "100|sh|$TALLY_SOCKET|$lib/libtally.so|${LD_LIBRARY_PATH-}"
run 0 "$tally" run $cuda --priority -3 --name 'my job' -- sh -c "$show"
has "$out" "-3|my job|"
run 0 "$tally" run $cuda --priority best-effort -- /bin/sh -c "$show"
has "$out" "0|sh|"
run 0 "$tally" run $cuda --opaque all -- sh -c 'echo "<$TALLY_OPAQUE>"'
has "$out" "<all>"
TALLY_OPAQUE=off run 0 "$tally" run $cuda -- sh -c 'echo "<$TALLY_OPAQUE>"'
has "$out" "<off>"
libm=$(ls /lib/*/libm.so.6 /usr/lib/libm.so.6 2>/dev/null | head -1)
LD_PRELOAD=$libm run 0 "$tally" run $cuda -- sh -c "$show"
has "$out" "|$lib/libtally.so:$libm|"
run 0 "$tally" run $cuda -- "$tally" run $cuda -- sh -c "$show"
has "$out" "|$lib/libtally.so|"
queues='echo "${CUDA_DEVICE_MAX_CONNECTIONS-none}"'
run 0 "$tally" run $cuda --priority best-effort -- sh -c "$queues"
same "$out" 8
CUDA_DEVICE_MAX_CONNECTIONS=1 run 0 "$tally" run $cuda -- sh -c "$queues"
same "$out" 1
run 0 "$tally" run $cuda --priority high -- sh -c "$queues"
same "$out" none
if [ -e "$lib/libcuda.so.1" ]; then
    LD_LIBRARY_PATH=/else run 0 "$tally" run --device cpu -- sh -c "$show"
    has "$out" "|$lib/libtally.so|$lib:/else"
else
    run 1 "$tally" run --device cpu -- true
    has "$err" "the CPU device is not part of this installation"
fi

# An installed tree: libraries in ../lib/tally; and one without them.
mkdir -p "$work/prefix/bin" "$work/prefix/lib/tally" "$work/bare/bin"
cp "$bin/tally" "$bin/tallyd" "$work/prefix/bin"
cp "$bin/tally" "$work/bare/bin"
cp "$lib/libtally.so" "$work/prefix/lib/tally"
run 0 "$work/prefix/bin/tally" run $cuda -- sh -c "$show"
has "$out" "|$work/prefix/lib/tally/libtally.so|"
run 1 "$work/bare/bin/tally" run $cuda -- true
has "$err" "libtally.so is neither in"
mkdir -p "$work/with space/bin" "$work/with space/lib"
cp "$bin/tally" "$work/with space/bin"
cp "$lib/libtally.so" "$work/with space/lib"
run 1 "$work/with space/bin/tally" run $cuda -- true
has "$err" "LD_PRELOAD cannot hold the path"

# run starts the daemon, which keeps no pipe of ours open (this substitution would never end).
kill_dead "$(daemon_pid)"
same "$("$tally" run $cuda -- echo done 2>&1 | tail -1)" done
[ -n "$(daemon_pid)" ] || fail "run started no daemon"

# Many at once on a fresh socket: all run, one daemon.
kill_dead "$(daemon_pid)"
for i in $(seq 12); do
    "$tally" run $cuda -- sh -c 'exit 3' 2>"$work/many.$i" &
    pids[i]=$!
done
for i in $(seq 12); do
    wait "${pids[i]}"
    same $? 3
done
! grep -h unscheduled "$work"/many.* || fail "some of twelve ran without a daemon"

# A daemon that cannot be had is a warning; the program runs.
long=$work/s/$(printf 'x%.0s' $(seq 120))
TALLY_SOCKET=$long run 4 "$tally" run $cuda -- sh -c 'exit 4'
has "$err" "too long"
has "$err" "runs unscheduled"
cp "$lib/libtally.so" "$work/bare/"
mkdir "$work/bare/lib" && mv "$work/bare/libtally.so" "$work/bare/lib"
TALLY_SOCKET=$work/t/d.sock run 4 "$work/bare/bin/tally" run $cuda -- sh -c 'exit 4'
has "$err" "cannot run $work/bare/bin/tallyd: No such file or directory; sh runs unscheduled"
mkdir -m 777 "$work/open"
chmod 777 "$work/open"
TALLY_SOCKET=$work/open/d.sock run 1 "$tally" run $cuda -- true
has "$err" "is open to others"
TALLY_SOCKET=$work/open/d.sock run 1 "$tally" status
has "$err" "is open to others (mode 0777): chmod 700 it or set TALLY_SOCKET"
# Nobody is told to close /tmp.
chmod 1777 "$work/open"
TALLY_SOCKET=$work/open/d.sock run 1 "$tally" status
has "$err" "is open to others (mode 1777): put the socket into a folder of your own in it"

# status: who holds whom; what the dead have left.
mkfifo "$work/high" "$work/low"
"$TALLY_BUILD/tests/tally_test_client" 100 $'serv"er\xff' active 77 <"$work/high" >"$work/1" &
exec 7>"$work/high"
until_true grep -q joined "$work/1"
"$TALLY_BUILD/tests/tally_test_client" 0 trainer active 5 <"$work/low" >"$work/2" 7>&- &
low=$!
exec 8>"$work/low"
until_true grep -q joined "$work/2"
same "$(json 'len(d["programs"])')" 2
same "$(json '[(p["priority"], p["state"], p["active"], p["launches"]) for p in d["programs"]]')" \
    "[(100, 'running', True, 77), (0, 'held', True, 5)]"
same "$(json 'd["programs"][1]["held_by"] == d["programs"][0]["pid"]')" True
same "$(json 'd["programs"][0]["held_by"]')" None
same "$(json 'ascii(d["programs"][0]["name"])')" "'serv\"er\\ufffd'"
same "$(json 'd["programs"][0]["device"], d["programs"][0]["device_name"]')" \
    "('12340000-0000-0000-0000-000000000000', 'test device')"
same "$(json 'd["programs"][1]["stop_latency_last_ns"], d["programs"][1]["stop_latency_max_ns"]')" \
    "(12000, 34000)"
has "$(json 'd["programs"][1]["why"]')" "is held by serv"
run 0 "$tally" status --why
has "$out" "trainer (pid $low, priority 0) is held by"
has "$out" "higher priorities go first"
has "$out" "12/34"
# From a program's report: what its kernels run as and why.
mkfifo "$work/third"
"$TALLY_BUILD/tests/tally_test_client" 50 teller idle 5 '_Z6vectorPKfiPf' '_ZN1a4tailIiEEvv' <"$work/third" >"$work/3" 7>&- 8>&- &
exec 9>"$work/third"
until_true grep -q joined "$work/3"
run 0 "$tally" status --why
has "$out" "vector <<<64x2x1, 256x1x1>>> runs as sliced 128: the fastest form that stops within the bound; 50 launches of 1.0 ms, stops in"
has "$out" "a::tail<int> <<<"
same "$(json '[(k["name"], k["symbol"], k["grid"], k["runs_as"], k["level"], k["slice"], k["reason"], k["levels"]["slice"]["launches"], k["levels"]["slice"]["mean_ns"])
    for p in d["programs"] if p["name"] == "teller" for k in p["kernels"]][0]')" \
    "('vector', '_Z6vectorPKfiPf', [64, 2, 1], 'sliced 128', 'slice', 128, 'fastest', 50, 1000000)"
same "$(json '[15000 < p["stop_latency_p99_ns"] < 25000 and p["counters"]["gate_waits"] for p in d["programs"] if p["name"] == "teller"]')" "[0]"
exec 9>&-
until_true eval 'test "$(json "len(d[\"programs\"])")" = 2'
# Columns are as wide as what is in them; a terminal that is too narrow gets less of the two that are names.
long=a-program-whose-name-has-some-fifty-characters-or-so
"$TALLY_BUILD/tests/tally_test_client" 50 $long idle 5 <"$work/third" >"$work/3" 7>&- 8>&- &
exec 9>"$work/third"
until_true grep -q joined "$work/3"
run 0 "$tally" status
has "$out" "$long "
has "$out" " test device "
for width in 200 130; do
    script -qec "stty cols $width; '$tally' status" /dev/null </dev/null | tr -d '\r' >"$work/wide" || fail "tally status on a terminal of $width columns"
    sed -n '/^PROGRAM/,/^$/p' "$work/wide" >"$work/table"
    grep -q ' test device ' "$work/table" || fail "no table: $(cat "$work/wide")"
    [ "$(wc -L <"$work/table")" -le $width ] || fail "wider than $width: $(cat "$work/table")"
    case $(grep -c "^$long " "$work/table")$width in 1200 | 0130) ;; *) fail "the long name on $width columns: $(cat "$work/table")" ;; esac
done
exec 9>&-
until_true eval 'test "$(json "len(d[\"programs\"])")" = 2'
kill -9 $low
until_true eval 'test "$(json "len(d[\"programs\"])")" = 1'
same "$(json '[(p["name"], p["pid"], p["launches"]) for p in d["finished"]][-1]')" "('trainer', $low, 5)"
exec 7>&- 8>&-
wait
until_true eval 'test "$(json "len(d[\"finished\"])")" = 4'
run 0 "$tally" status
has "$out" "no program uses a device now"
has "$out" "FINISHED"
for command in status cache profile --help "run --help" --version; do
    # shellcheck disable=SC2086
    "$tally" $command >/dev/full 2>"$work/err" && fail "tally $command: a full disk was not noticed"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "tally $command on a full disk: not one line: $(cat "$work/err")"
    has "$(cat "$work/err")" "error: cannot write: No space left on device"
done
# Names that are orders to a terminal: shown, never obeyed, whoever shows them.
mkfifo "$work/named"
strange=$'\033[2Jx\r\u009b2Jy\007'
"$TALLY_BUILD/tests/tally_test_client" 3 "$strange" active 5 "$strange" <"$work/named" >"$work/4" &
exec 7>"$work/named"
until_true grep -q joined "$work/4"
for command in "status --why" "status --json" profile "profile --json" "top --batch -n 1"; do
    run 0 "$tally" $command
    LC_ALL=C grep -aP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$work/out" && fail "$command passes orders on"
    true
done
has "$("$tally" status)" "?[2Jx?"
exec 7>&-
wait

# cache.
export TALLY_CACHE_DIR=$work/cache
run 0 "$tally" cache
has "$out" "$work/cache: 0 compiled kernels"
run 0 "$tally" cache status
run 0 "$tally" cache clear
has "$out" "removed 0"
run 1 "$tally" cache frobnicate
has "$err" 'unknown command "frobnicate"; known: status, clear'

# Settings that make no sense are errors before anything runs or is made.
TALLY_CACHE_SIZE=huge run 1 "$tally" cache
has "$err" 'TALLY_CACHE_SIZE is "huge"'
for command in "run $cuda -- true" cache "cache clear" profile; do
    TALLY_CACHE_DIR=elsewhere run 1 "$tally" $command
    has "$err" 'TALLY_CACHE_DIR is "elsewhere", not an absolute path'
done
for level in 1000001 -1000001 2x "" 99999999999999999999; do
    run 1 "$tally" run $cuda --priority "$level" -- true
    has "$err" "tally run: error: --priority wants high, best-effort or a whole number"
done

# Programs that Tally cannot reach are named.
cat >"$work/p.c" <<'END'
int main(void) { return 0; }
END
if ${CC:-cc} -static -o "$work/static" "$work/p.c" 2>/dev/null; then
    run 0 "$tally" run $cuda -- "$work/static"
    has "$err" "$work/static is linked statically"
fi
cat >"$work/32.s" <<'END'
.globl _start
_start: movl $1, %eax
xorl %ebx, %ebx
int $0x80
END
if as --32 -o "$work/32.o" "$work/32.s" 2>/dev/null && ld -m elf_i386 -o "$work/32" "$work/32.o" 2>/dev/null; then
    "$tally" run $cuda -- "$work/32" 2>"$work/err" # not every kernel runs it
    has "$(cat "$work/err")" "tally run: warning: $work/32 is a program of 32 bits: Tally cannot get between"
    # The same as if it were for another machine.
    "${CC:-cc}" -o "$work/other" "$work/p.c" && printf '\x03\x01' | dd of="$work/other" bs=1 seek=18 conv=notrunc 2>/dev/null
    "$tally" run $cuda -- "$work/other" >/dev/null 2>"$work/err" # no kernel runs it
    has "$(cat "$work/err")" "$work/other is for another kind of processor"
fi
# Rights that a file gives: the program itself says whether the dynamic linker lets anything in.
cat >"$work/secure.c" <<'END'
#include <sys/auxv.h>
int main(void) { return getauxval(AT_SECURE) ? 3 : 0; }
END
${CC:-cc} -o "$work/secure" "$work/secure.c"
look_secure() { # FILE TEXT: a warning with TEXT if and only if it is so
    "$1"
    local so=$?
    run $so "$tally" run $cuda -- "$1"
    if [ $so = 3 ]; then has "$err" "$1 $2"; else [[ $err != *"cannot get between"* ]] || fail "$1 was named without need"; fi
}
look_secure "$work/secure" nothing
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1; then
    chmod 755 "$work"
    for rights in 4755 2755 2745 6755; do
        cp "$work/secure" "$work/as_nobody"
        chown nobody:nogroup "$work/as_nobody" && chmod $rights "$work/as_nobody" &&
            look_secure "$work/as_nobody" "runs with the rights of another user or group"
    done
    cp "$work/secure" "$work/as_root"
    chmod 6755 "$work/as_root"
    look_secure "$work/as_root" nothing
    cp "$work/secure" "$work/able"
    ! setcap cap_net_raw+ep "$work/able" 2>/dev/null || look_secure "$work/able" "has capabilities"
fi
if [ -n "${TALLY_NVCC:-}" ] && [ -e "$lib/libcuda.so.1" ]; then
    cat >"$work/p.cu" <<'END'
__global__ void k(int *p) { *p = 1; }
int main(int n, char **) { if (n > 1) k<<<1, 1>>>(0); return 0; }
END
    "$TALLY_NVCC" -arch=sm_80 -cudart static -o "$work/cudart_static" "$work/p.cu" || fail nvcc
    strip "$work/cudart_static"
    "$tally" run --device cpu -- "$work/cudart_static" 2>"$work/err"
    has "$(cat "$work/err")" "relink it with \`nvcc -cudart shared\`"
    "$TALLY_NVCC" -arch=sm_80 -cudart shared -o "$work/cudart_shared" "$work/p.cu" || fail nvcc
    "$tally" run --device cpu -- "$work/cudart_shared" 2>"$work/err"
    ! grep -q relink "$work/err" || fail "a shared cudart was called static"
fi
exit 0
