# SPDX-License-Identifier: Apache-2.0
# Programs with little room: few descriptors, small files. Tally takes less, never the program's life or its results.
. "$(dirname "$0")/lib.sh"
export TALLY_CACHE_DIR=$work/cache
trainer=("$TALLY_BUILD/demo/trainer" --size 64 --steps 3)

# narrow LIMIT VALUE LEVEL: the trainer under a limit, without what we inherited.
narrow() {
	local level=$3
	run 0 python3 -c 'import os, sys; os.closerange(3, 1000); os.execvp(sys.argv[1], sys.argv[1:])' \
		bash -c "ulimit $1 $2; LD_PRELOAD=$sanitizer exec \"\$@\"" narrow "$bin/tally" run --device cpu --priority "$level" -- "${trainer[@]}"
	same "$(grep -o 'checksum [0-9a-f]*' <<<"$out")" "$checksum"
}

run 0 env LD_PRELOAD="$sanitizer" "$bin/tally" run --device cpu -- "${trainer[@]}"
checksum=$(grep -o 'checksum [0-9a-f]*' <<<"$out")
for level in high best-effort; do
	narrow -n 16 $level
	# Less than what Tally would share with its daemon, enough for the compiled kernels.
	narrow -f 256 $level
done
