# SPDX-License-Identifier: Apache-2.0
# Runs trial_test on a device that does as it should and on those that do not: one line on stderr says what was wrong.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/lower" <<LOWER
#!/bin/sh
cat "$TALLY_BUILD/tests/interpose/patched_kernels.so"
LOWER
chmod +x "$scratch/lower"
export TALLY_LOWER=$scratch/lower TALLY_CACHE_DIR=$scratch/cache TALLY_SOCKET=$scratch/none TALLY_PRIORITY=best-effort
export LD_LIBRARY_PATH=$TALLY_BUILD/lib TALLY_CPU_WORKERS=2

# try FAULT ANSWER WORDS: what is on stderr beside that there is no daemon has the words in it, and is one line.
try() {
	TRIAL_FAULT=$1 "$TALLY_BUILD/tests/trial_test" "$2" >/dev/null 2>"$scratch/all" || { echo "$1: status $?"; cat "$scratch/all"; exit 1; }
	grep "^tally:" "$scratch/all" | grep -v unscheduled >"$scratch/err" || true
	[ "$(wc -l <"$scratch/err")" = "$([ "$2" = works ] && echo 0 || echo 1)" ] && grep -q "$3" "$scratch/err" "$scratch/lower" || { echo "$1:"; cat "$scratch/err"; exit 1; }
}
try none works "cat"
try hi "does not" "passed through, block 0 of"
try twice "does not" "block 77 of"
try range "does not" "started again, block 0 of"
try deaf "does not" "says that it was\|behind a closed gate"
try silent "does not" "closed gate does not say so"
printf '#!/bin/sh\necho "x: error: cannot be had" >&2\nexit 1\n' >"$scratch/lower"
rm -rf "$scratch/cache"
try none "does not" "cannot be had"
