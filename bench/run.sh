#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the figures: every program build/bench/bench_NAME and every script bench/NAME.sh, or those named.
set -euo pipefail
cd "$(dirname "$0")/.."
export TALLY_SOURCE=$PWD TALLY_BUILD=$PWD/build

names() {
	local path
	for path in build/bench/bench_* bench/*.sh; do
		[ -x "$path" ] && [ -f "$path" ] && [ "$path" != bench/run.sh ] || continue
		path=${path##*/}
		path=${path#bench_}
		echo "${path%.sh}"
	done | sort -u
}

[ $# -gt 0 ] || mapfile -t all < <(names)
for name in "${@:-${all[@]}}"; do
	if [ -f "bench/$name.sh" ] && [ "$name" != run ]; then
		bash "bench/$name.sh"
	elif [ -x "build/bench/bench_$name" ]; then
		"build/bench/bench_$name"
	else
		echo "bench: error: no figures named \"$name\"; known: $(names | tr '\n' ' ')" >&2
		exit 1
	fi
done
