# SPDX-License-Identifier: Apache-2.0
# tally trace: wrong usage; what it writes (trace_test.py).
. "$(dirname "$0")/lib.sh"

tally=$bin/tally
run 1 "$tally" trace
has "$err" "where to? -o FILE"
run 1 "$tally" trace -o
has "$err" "wants a value"
run 1 "$tally" trace -o "$work/t.json" --seconds never
has "$err" "--seconds wants"
run 1 "$tally" trace -o "$work/t.json" --seconds 1 true
has "$err" "either --seconds or a command"
run 1 "$tally" trace -o "$work/none/t.json" touch "$work/ran"
has "$err" "$work/none/t.json: error: cannot write: No such file or directory"
run 1 "$tally" trace -o "$work/" touch "$work/ran"
[ ! -e "$work/ran" ] || fail "the command ran though nothing could be written"
for status in 127:no-such-program-anywhere 126:/; do
    run "${status%%:*}" "$tally" trace -o "$work/t.json" -- "${status#*:}"
    has "$err" "tally trace: error: cannot run ${status#*:}: "
    same "$(printf '%s\n' "$err" | wc -l)" 1
    [ ! -e "$work/t.json" ] || fail "a trace of nothing was written"
done
run 0 "$tally" trace -o "$work/t.json" --seconds 0.01
has "$err" "0 programs, 0 events"
run 0 python3 -m json.tool "$work/t.json"

run 0 python3 "$(dirname "$0")/trace_test.py" "$work"
exit 0
