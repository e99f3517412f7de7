# SPDX-License-Identifier: Apache-2.0
# A program without CUDA does not notice the preload: output, exit status, memory.
set -eu
tally=$TALLY_BUILD/lib/libtally.so
program=$TALLY_BUILD/tests/interpose/plain_program
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

same() {
	local a=0 b=0
	"$@" >"$scratch/out.a" 2>"$scratch/err.a" </dev/null || a=$?
	TALLY_PRIORITY=best-effort LD_PRELOAD=$tally "$@" >"$scratch/out.b" 2>"$scratch/err.b" \
		</dev/null || b=$?
	[ "$a" = "$b" ] || { echo "$*: exit status $a without, $b with the preload"; exit 1; }
	cmp "$scratch/out.a" "$scratch/out.b" || { echo "$*: output differs"; exit 1; }
	cmp "$scratch/err.a" "$scratch/err.b" || { echo "$*: error output differs"; exit 1; }
}

same "$program"
grep -q 'fork 11' "$scratch/out.b" || { cat "$scratch/out.b"; exit 1; }
same /bin/echo hello
same /bin/sh -c 'echo a; (exit 3); echo $?; exec /bin/false'
same /bin/sh -c 'kill -TERM $$'
same awk 'BEGIN { print "x" | "cat"; close("cat"); exit 9 }'

# Resident size that the library adds: at most 2 MB, measured in the same program.
rss() { "$@" /bin/sh -c 'awk "/^VmRSS/ {print \$2}" /proc/self/status'; }
without=$(rss env)
with=$(rss env LD_PRELOAD="$tally")
echo "resident: $without KiB without, $with KiB with"
[ $((with - without)) -le 2048 ] || { echo "the preload adds more than 2 MB"; exit 1; }
