#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo's report on made-up results: the table, the picture, and each expectation failing by itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# results PLAIN TALLY RATE SUMS STOPS: two runs of each mode; the server alone has a p99 of 10 ms, the
# trainer alone 100 steps/s, and the server needs 20 % of the device.
results() {
	rm -rf "$folder/runs"
	mkdir -p "$folder/runs"
	echo '{"requests": 100, "p50_ms": 2}' >"$folder/runs/service-1.json"
	echo '{"requests": 100, "p50_ms": 2.4}' >"$folder/runs/service-2.json"
	local n mode p99
	for n in 1 2; do
		for mode in server:10 plain:"$1" tally:"$2"; do
			p99=${mode#*:}
			echo "{\"requests\": 100, \"seconds\": 1.0, \"p50_ms\": 2, \"p99_ms\": $p99, \"max_ms\": $p99, \"latency_ms\": [1, 2, $p99]}" \
				>"$folder/runs/${mode%%:*}-$n-server.json"
		done
		for mode in trainer:100 plain:70 tally:"$3"; do
			echo "{\"steps_per_second\": ${mode#*:}, \"checksum\": \"aa\"}" >"$folder/runs/${mode%%:*}-$n-trainer.json"
		done
		echo "{\"programs\": [], \"finished\": [{\"name\": \"trainer\", \"pid\": $n, \"stops\": $5, \"resumes\": $5},
			{\"name\": \"server\", \"pid\": 9, \"stops\": 1000, \"resumes\": 0}]}" >"$folder/runs/tally-$n-status.json"
	done
	echo "{\"steps_per_second\": $3, \"checksum\": \"$4\"}" >"$folder/runs/tally-2-trainer.json"
}
report() { python3 "$TALLY_SOURCE/demo/report.py" "$folder" "$TALLY_SOURCE/demo/plot.gp" >"$folder/out" 2>&1; }
fails_with() {
	if report; then echo "accepted, though: $1"; exit 1; fi
	[ "$(grep -c FAILED "$folder/out")" = 1 ] && grep -q "FAILED: .*$1" "$folder/out" || { cat "$folder/out"; echo "expected: $1"; exit 1; }
}

results 40 12 60 aa 7
report || { cat "$folder/out"; exit 1; }
grep -Eq '^both, without Tally +2\.00 +40\.00 +4\.00x +70\.00 ' "$folder/out" || { cat "$folder/out"; exit 1; }
grep -Eq '^both, under Tally +2\.00 +12\.00 +1\.20x +60\.00 +75% +14 +14$' "$folder/out" || { cat "$folder/out"; exit 1; }
grep -q 'checksums equal (aa)' "$folder/out"
[ "$(head -c 4 "$folder/demo.png" | tail -c 3)" = PNG ]
[ "$(wc -l <"$folder/demo.csv")" = 19 ]
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["stopped"] == 14' "$folder/demo.json"

results 29 12 60 aa 7 && fails_with 'without Tally p99 rose only 2.90x'
results 40 20.1 60 aa 7 && fails_with 'with Tally p99 rose 2.01x'
results 40 12 47 aa 7 && fails_with 'kept 59% of what the server leaves idle'
results 40 12 60 bb 7 && fails_with 'checksums differ'
results 40 12 60 aa 0 && fails_with 'no launch of the trainer was stopped'
