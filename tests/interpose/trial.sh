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

# Compilers that fail, each in its way: the program goes on, and is told why once.
lower() { printf '#!/bin/sh\n%s\n' "$1" >"$scratch/lower"; chmod +x "$scratch/lower"; rm -rf "$scratch/cache"; }
lower 'sleep 1000 & wait' # with a child that holds its output
TALLY_LOWER_TIMEOUT=1 try none "does not" "tally-lower was stopped: it took longer than 1 s (raise TALLY_LOWER_TIMEOUT)"
lower 'kill -KILL $$'
try none "does not" "tally-lower was killed by signal 9"
lower 'exit 0'
try none "does not" "wrote nothing"
lower 'head -c 5000 /dev/urandom'
try none "does not" "the driver refuses to load patched code"
chmod -x "$scratch/lower"
try none "does not" "TALLY_LOWER names no program that can be run"

# A cache without room, and one that is no folder: what was made is used all the same.
lower "cat '$TALLY_BUILD/tests/interpose/patched_kernels.so'"
: >"$scratch/cache"
try none works "cat"
rm "$scratch/cache"
mkdir "$scratch/cache"
if mount -t tmpfs -o size=4k,mode=700 tally "$scratch/cache" 2>/dev/null; then
	trap 'umount "$scratch/cache"; rm -rf "$scratch"' EXIT
	try none works "cat"
	[ -z "$(ls -A "$scratch/cache")" ] || { echo "left in a full cache: $(ls -A "$scratch/cache")"; exit 1; }
fi
