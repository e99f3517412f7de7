#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job of Tally, shown: a server and a trainer share the CPU device. Four modes (the server alone,
# the trainer alone, both as they are, both under Tally), repeated and interleaved; one table, one picture.
# Exit status 1 when an expectation fails; report.py says which.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
build=${TALLY_BUILD:-$(dirname "$source")/build}
repeats=3
seconds=3
load=0.35 # of the device, offered by the server
steps=8	  # after which the trainer's checksum is taken

usage() {
	cat <<'END'
usage: demo/run.sh [--repeats N] [--seconds S] [--load SHARE]
  --repeats N    runs of each mode; medians are shown (3)
  --seconds S    length of a run (3)
  --load SHARE   of the device, that the server's requests need (0.35)
Writes demo.png, demo.csv (every latency) and demo.json (every result) to build/demo.
END
}
die() {
	printf 'demo: error: %s\n' "$*" >&2
	exit 1
}

check=
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h) usage; exit 0 ;;
	--check) check=1 ;; # the arguments alone
	--repeats | --seconds | --load)
		[ -n "${2:-}" ] || die "$1 wants a number"
		printf -v "${1#--}" %s "$2"
		shift
		;;
	*) die "unknown argument \"$1\" (see --help)" ;;
	esac
	shift
done
# above WHAT LEAST MOST: a number, fractions allowed, greater than LEAST.
above() {
	[[ ${!1} =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ ]] && awk "BEGIN { exit !(${!1} > $2 && ${!1} <= $3) }" ||
		die "--$1 ${!1}: a number above $2, at most $3"
}
[[ $repeats =~ ^[1-9][0-9]{0,3}$ ]] || die "--repeats $repeats: a whole number from 1 to 9999"
above seconds 0 3600
above load 0 1
[ -z "$check" ] || exit 0
for program in demo/server demo/trainer bin/tally bin/tallyd lib/libcuda.so.1 lib/libcudart.so.13 lib/libtally.so; do
	[ -e "$build/$program" ] || die "$build/$program is missing: ./dev build makes it"
done

runs=$build/demo/runs
rm -rf "$runs"
mkdir -p "$runs"
private=$(mktemp -d)
export TALLY_SOCKET=$private/tallyd.sock TALLY_CACHE_DIR=$build/demo/cache
export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
tally=$build/bin/tally
children=()

# A daemon of our own would end by itself after a while; there is no reason to wait for that.
finish() {
	local pid
	for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
	pid=$("$tally" status --json 2>/dev/null | sed -n 's/.*"daemon": {"running": true.*"pid": \([0-9]*\).*/\1/p') || true
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$private"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Runs programs side by side; all have to succeed. Arguments: command lines, each one string.
together() {
	local line pid failed=0
	children=()
	for line in "$@"; do
		eval "$line &"
		children+=($!)
	done
	for pid in "${children[@]}"; do wait "$pid" || failed=1; done
	children=()
	[ $failed = 0 ] || die "a program of the demo failed"
}

# The command line of a server or trainer that writes its result to runs/NAME.json.
# $start is when every program of a run begins to measure.
server() {
	echo "$1 '$build/demo/server' --rate $rate --seconds $seconds --start-at $start --json '$runs/$2.json' >'$runs/$2.log'"
}
trainer() {
	echo "$1 '$build/demo/trainer' --seconds $seconds --steps $steps --start-at $start --json '$runs/$2.json' >'$runs/$2.log'"
}
run_mode() {
	local mode=$1 n=$2
	start=$(date +%s.%N | awk '{ printf "%.3f", $1 + 0.6 }')
	case $mode in
	server) together "$(server '' "server-$n-server")" ;;
	trainer) together "$(trainer '' "trainer-$n-trainer")" ;;
	plain) together "$(trainer '' "plain-$n-trainer")" "$(server '' "plain-$n-server")" ;;
	tally)
		together "$(trainer "'$tally' run --device cpu --priority best-effort --name trainer --" "tally-$n-trainer")" \
			"$(server "'$tally' run --device cpu --priority high --name server --" "tally-$n-server")"
		"$tally" status --json >"$runs/tally-$n-status.json"
		;;
	esac
}

# Once without a clock, so that the kernels are compiled and cached; then back to back: what a request costs.
# The least of several medians, since whatever else the machine does only adds to it.
printf 'demo: compiling the kernels\n' >&2
"$build/demo/trainer" --steps 2 >"$runs/warm-trainer.log"
"$build/demo/server" --rate 0 --requests 20 >"$runs/warm-server.log"
for n in 1 2 3 4 5; do
	"$build/demo/server" --rate 0 --requests 100 --json "$runs/service-$n.json" >"$runs/service.log"
done
rate=$(sed -n 's/.*"p50_ms": \([0-9.]*\),.*/\1/p' "$runs"/service-*.json | sort -n |
	awk -v load="$load" 'NR == 1 && $1 > 0 { printf "%.2f", 1e3 * load / $1 }')
[ -n "$rate" ] || die "the server's results hold no latency"
for n in $(seq "$repeats"); do
	printf 'demo: run %d of %d\n' "$n" "$repeats" >&2
	for mode in server trainer plain tally; do run_mode "$mode" "$n"; done
done
python3 "$source/report.py" "$build/demo" "$source/plot.gp"
