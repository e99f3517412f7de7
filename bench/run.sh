#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the figures: every program build/bench/bench_NAME, or those named, with a tallyd and a code cache of
# their own. Prints tables, writes all samples to build/bench/results.json and one line a figure to results.csv.
# A figure that misses its bound is shown, it is no failure: machines have other work.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TALLY_BUILD:-$PWD/build}
# What the build makes; all that there is while nothing is built.
if ls "$build"/bench/bench_* >/dev/null 2>&1; then
	known=$(cd "$build/bench" && printf '%s\n' bench_* | grep -v '\.' | sed 's/^bench_//')
else
	known=$(sed -n 's/^ *tally_bench(\([a-z_]*\) .*/\1/p; s/.*\/bench_\([a-z]*\) @ONLY/\1/p' bench/CMakeLists.txt | sort -u)
fi

check=
case ${1:-} in
--help | -h)
	echo "usage: bench/run.sh [NAME...]"
	echo "names:" $known
	exit 0
	;;
--check) check=1 && shift ;; # the arguments alone
esac
for name in "$@"; do
	grep -qxF -- "$name" <<<"$known" ||
		{ echo "bench: error: no figures named \"$name\"; known:" $known >&2; exit 1; }
done
[ -z "$check" ] || exit 0

scratch=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir -m 700 "$scratch/socket"
export TALLY_SOCKET=$scratch/socket/tallyd.sock TALLY_CACHE_DIR=$scratch/cache
export TALLY_LOWER=$build/bin/tally-lower LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export BENCH_PRELOAD=$build/lib/libtally.so BENCH_OUT=$build/bench
"$build/bin/tallyd" --foreground --idle-timeout 0 2>"$scratch/log" &
daemon=$!
for _ in $(seq 200); do
	[ -S "$TALLY_SOCKET" ] && break
	sleep 0.02
done

began=$(date -u +%FT%TZ)
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
echo "$began, $(nproc) processors ($processor), $(uptime | sed 's/.*load/load/')"
echo "bench,figure,value,unit,bound,verdict,n" >"$BENCH_OUT/results.csv"
: >"$BENCH_OUT/results.jsonl"
# The round trip makes a corpus of 600 MB first: only when it is asked for.
for name in ${@:-$(grep -vx roundtrip <<<"$known")}; do
	"$build/bench/bench_$name"
done
{
	printf '{"began": "%s", "ended": "%s", "processors": %s, "processor": "%s", "load": "%s", "figures": [\n' \
		"$began" "$(date -u +%FT%TZ)" "$(nproc)" "$processor" "$(cut -d' ' -f1-3 /proc/loadavg)"
	sed '$!s/$/,/' "$BENCH_OUT/results.jsonl"
	echo ']}'
} >"$BENCH_OUT/results.json"
rm "$BENCH_OUT/results.jsonl"

awk -F, 'NR > 1 && $5 != "" { n++; if ($6 == "MISS") { miss++; list = list "\n  " $1 ": " $2 ": " $3 " " $4 ", bound " $5 } }
	END { printf "\n%d of %d figures within their bounds%s\n", n - miss, n, miss ? "; missed:" list : "" }' "$BENCH_OUT/results.csv"
echo "all samples: $BENCH_OUT/results.json, results.csv"
