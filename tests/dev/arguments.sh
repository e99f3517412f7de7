#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that what ./dev does not understand is one line and no success, before anything is installed or built, and
# that every command explains itself.
set -u
cd "$TALLY_SOURCE" || exit 1
fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# refused EXPECTED ARGUMENTS...
refused() {
	local expected=$1 output status
	shift
	output=$(timeout 60 ./dev "$@" 2>&1 </dev/null)
	status=$?
	case $status in 1 | 2) ;; *) fail "./dev $*: status $status" ;; esac
	[ "$(wc -l <<<"$output")" = 1 ] || fail "./dev $*: not one line: $output"
	[[ $output == *"error: "*"$expected"* ]] || fail "./dev $*: $output"
}

for command in setup build demo test bench colocate fuzz format clean frobnicate; do
	refused frobnicate $command --frobnicate
done
refused 'unknown argument "x"' setup x
refused 'unknown argument "x"' clean x
refused 'unknown argument "-Gx"' build -Gx
refused 'unknown argument "x"' format --check x
refused 'unknown argument "x"' test x
refused '-R wants a name' test -R
refused 'no figures named "nothing"; known: board ' bench board nothing
refused '--repeats wants a number' demo --repeats
for number in 0 -1 x 1x 1e3 100000; do refused "--repeats $number: a whole number" demo --repeats $number; done
for number in 0 -1 x . 1e3; do refused "--seconds $number: a number" demo --seconds $number; done
refused '--load 1.5: a number above 0, at most 1' demo --load 1.5
refused 'no target "nothing" (there are: ptx ' fuzz nothing
refused '--minutes wants a value' fuzz --minutes
for number in x -1 .; do refused "--minutes $number: a number" fuzz --minutes $number; done
refused '--minutes 0: at least a second' fuzz --minutes 0
for number in 0 -1 x; do refused "--jobs $number: a whole number" fuzz --jobs $number; done
refused '--pack wants a file' fuzz --pack
refused 'cannot write /nowhere/x' fuzz --pack /nowhere/x
refused 'unknown argument "b"' fuzz --pack a b

for command in setup build demo test bench colocate fuzz format clean; do
	for option in --help -h; do
		output=$(timeout 60 ./dev $command $option 2>/dev/null </dev/null) || fail "./dev $command $option"
		[[ $output == "  $command"* ]] || fail "./dev $command $option: $output"
	done
	./dev help | grep -q "^  $command" || fail "./dev help does not name $command"
done
[ "$(./dev help)" = "$(./dev)" ] || fail "./dev without a command"
# Other programs of Python.
for program in corpus/make.py corpus/roundtrip.py corpus/amd.py corpus/gpu.py bench/gpu/micro.py bench/colocate/report.py tests/gpu/run.py; do
	output=$(timeout 60 python3 $program --frobnicate 2>&1 </dev/null) && fail "$program --frobnicate"
	[ "$(wc -l <<<"$output")" = 1 ] && [[ $output == *"error: "*"--frobnicate"* ]] || fail "$program: $output"
done
echo ok
