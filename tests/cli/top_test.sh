# SPDX-License-Identifier: Apache-2.0
# tally top: frames as text, wrong usage, and the live view on a pseudo-terminal (top_test.py).
. "$(dirname "$0")/lib.sh"

tally=$bin/tally
run 0 "$tally" top --once
has "$out" "no tallyd runs"
run 0 "$bin/tallyd" --idle-timeout 60
run 0 "$tally" top --once
has "$out" "no program uses a device now"

long=_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_
mkfifo "$work/high" "$work/low"
"$TALLY_BUILD/tests/tally_test_client" 100 server active 77 <"$work/high" >"$work/1" &
exec 7>"$work/high"
"$TALLY_BUILD/tests/tally_test_client" 0 trainer active 5 _Z6vectorPKfiPf $long "${long:0:60}" <"$work/low" >"$work/2" 7>&- &
low=$!
exec 8>"$work/low"
until_true grep -q joined "$work/1"
until_true grep -q joined "$work/2"

run 1 "$tally" top --once --program nobody
has "$err" "tally top: error: no program of that pid or name: nobody"
run 0 "$tally" top --once --program trainer --totals
has "$out" "2 programs, 1 held"
has "$out" "by server"
has "$out" "is held by server"
has "$out" " vector "
has "$out" "vectorized_elementwise_kernel<"
has "$out" "sliced 128"
has "$out" "the fastest form that stops within the bound"
same "$(grep -c $'\033' <<<"$out")" 0
same "$(awk '$2 == "trainer" { print $(NF - 4) }' <<<"$out")" 5
# The name that a report cut is told as far as it is there.
has "$out" "<...>"
run 0 "$tally" top --once --program $low
has "$out" "sliced 128"
run 0 "$tally" top --once
has "$out" "the program gives no account of its kernels"

# Rates are those of the interval: 1000 launches come between two frames, whatever their distance, and are in the
# next one alone.
rates() { awk '/^tally top/ { n++ } n > 1 && $2 == "trainer" && $(NF - 4) { print $(NF - 4) }' "$work/frames"; }
frames_after() { [ "$(grep -c '^tally top' "$work/frames")" -gt "$1" ]; }
"$tally" top -b -n 1000 -i 1 -p trainer >"$work/frames" &
frames=$!
until_true grep -q trainer "$work/frames"
echo "+ 1000" >&8
until_true eval '[ -n "$(rates)" ]'
until_true frames_after $(($(grep -c '^tally top' "$work/frames") + 1))
kill $frames
wait $frames
rate=$(rates)
same "$(wc -l <<<"$rate")" 1
[ "$rate" -gt 1 ] && [ "$rate" -le 1000 ] || fail "$rate launches a second"
run 0 "$tally" top -b -n 2 -i 0.1 -p trainer
same "$(grep -c '^tally top' <<<"$out")" 2

run 1 "$tally" top --interval 0
has "$err" "--interval wants seconds"
run 1 "$tally" top --sort colour
has "$err" "--sort wants priority, time"
run 1 "$tally" top -b -n 0
has "$err" "--frames wants"
run 1 "$tally" top extra
has "$err" "unexpected argument"
run 1 "$tally" top --nonsense
has "$err" "unknown or ambiguous option"
run 1 "$tally" top </dev/null
has "$err" "use --batch"
"$tally" top --once >/dev/full 2>"$work/err" && fail "a full disk was not noticed"
has "$(cat "$work/err")" "cannot write"
exec 7>&- 8>&-

# A container may have no pseudo-terminals (/dev/pts).
if ! python3 -c 'import os; os.openpty()' 2>/dev/null; then
    echo "no pseudo-terminals here: the live view is not tried"
    exit 0
fi
export TERM=xterm
run 0 python3 "$(dirname "$0")/top_test.py"
exit 0
