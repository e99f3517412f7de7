# SPDX-License-Identifier: Apache-2.0
# tally profile: what programs measured, while they run, after they were killed, and kept for later.
. "$(dirname "$0")/lib.sh"

export TALLY_CACHE_DIR=$work/cache
tally=$bin/tally client=$TALLY_BUILD/tests/tally_test_client

# of EXPRESSION: of `tally profile --json`, which must be valid; d is the object.
of() {
    local expression=$1
    shift
    "$tally" profile --json "$@" | python3 -c "
import json, sys
d = json.load(sys.stdin)
print(($expression))" || fail "no valid JSON, or no $expression"
}
launches='sum(k["launches"] for o in d["devices"] for k in o["kernels"])'
kept() { [ "$(of "$launches")" = "$1" ]; }

# Nothing yet: no error, and nothing is made.
run 0 "$tally" profile
has "$out" "nothing was measured yet ($work/cache)"
same "$(of 'd["devices"]')" "[]"
run 0 "$tally" profile --reset
has "$out" "of 0 kernels"
[ ! -e "$work/cache" ] || fail "reading made the store"
run 1 "$tally" profile --program 1
has "$err" "no tallyd serves"

# While it runs: from its report, and from the store within a second or two.
run 0 "$bin/tallyd" --idle-timeout 30
mkfifo "$work/hold"
"$client" 0 trainer active 5 _Z4gemmPfi plain <"$work/hold" >"$work/client" &
pid=$!
exec 7>"$work/hold"
until_true grep -q joined "$work/client"
for which in trainer $pid; do
    same "$(of 'd["program"]["name"], d["program"]["pid"]' --program $which)" "('trainer', $pid)"
    same "$(of "$launches" --program $which)" 100
done
run 0 "$tally" profile --program trainer
has "$out" "trainer (pid $pid): stops us p50/p99"
until_true kept 100

# Killed: nothing is lost, and its report is there for a while.
kill -9 $pid
wait $pid 2>/dev/null
exec 7>&-
kept 100 || fail "after the kill: $(of "$launches")"
same "$(of "$launches" --program trainer)" 100
run 1 "$tally" profile --program nobody
has "$err" "no program of that pid or name: nobody"

run 0 "$tally" profile --device nonsense
has "$out" "nothing was measured on such a device, but on test device ($work/cache)"

# What is shown.
same "$(of 'd["devices"][0]["device"], d["devices"][0]["driver"], d["devices"][0]["compiler"]')" \
    "('test device', '42', '7')"
kernel='[k for k in d["devices"][0]["kernels"] if k["symbol"] == "_Z4gemmPfi"][0]'
same "$(of "($kernel)['name'].startswith('gemm'), ($kernel)['grid'], ($kernel)['block'], ($kernel)['level'], ($kernel)['slice'], ($kernel)['reason']")" \
    "(True, [64, 2, 1], [256, 1, 1], 'slice', 128, 'fastest')"
same "$(of "($kernel)['levels']['slice']['launches'], ($kernel)['levels']['slice']['mean_ns'], ($kernel)['levels']['slice']['samples'], ($kernel)['levels']['slice']['stops'], 15000 < ($kernel)['levels']['slice']['stop_p99_ns'] < 25000")" \
    "(50, 1000000, 10, 100, True)"
run 0 "$tally" profile
has "$out" "test device (driver 42, compiler 7): 2 kernels, 0.100 s"
has "$out" "sliced 128"
has "$out" "64x2 x 256"
has "$out" "fastest        the fastest form that stops within the bound"
run 0 "$tally" profile --limit 1 --sort name
has "$out" "and 1 more"
same "$(of 'len(d["devices"][0]["kernels"])' --limit 1)" 1
for sort in time launches stop name; do
    run 0 "$tally" profile --sort $sort
    has "$out" "plain"
done
same "$(of 'd["devices"]' --device 'other')" "[]"
same "$(of 'len(d["devices"])' --device 'TEST')" 1

# A second run adds to it.
"$client" 0 again idle 1 plain </dev/null >/dev/null
until_true kept 110

# Forgotten.
run 0 "$tally" profile --reset --device other
has "$out" "of 0 kernels"
kept 110 || fail "another device was forgotten"
run 0 "$tally" profile --reset
has "$out" "of 2 kernels"
kept 0 || fail "not forgotten"

# What is no store says so; forgetting puts it aside.
kill "$(daemon_pid)"
until_true test ! -e "$TALLY_SOCKET"
until_true test ! -e "$work/cache/profiles.db-wal"
echo "not a database at all, but long enough to be read as one" >"$work/cache/profiles.db"
run 1 "$tally" profile
has "$err" "no store of this version"
run 0 "$tally" profile --reset
has "$err" "put aside"
kept 0 || fail "no new store"

# Usage.
for bad in "--sort size" "--limit x" "--limit -1" "extra" "--program x --reset" "--nonsense" "--program"; do
    run 1 "$tally" profile $bad
    same "$(printf '%s\n' "$err" | wc -l)" 1
    has "$err" "tally profile: error: "
done
