#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz_pack.sh FILE.tar.gz: tally-fuzz, the shared libraries that it needs, the kept
# corpus and a runner, for a machine without clang and LLVM. There:
#   tar xzf FILE.tar.gz && fuzz/run.sh OUT MINUTES JOBS
# leaves summary.txt, findings.tar.gz, corpus.tar.gz and logs.tar.gz in OUT. ./dev fuzz --pack builds first.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }
out=$1 program=${TALLY_FUZZ_PROGRAM:-$root/build-fuzz/bin/tally-fuzz}
[ -x "$program" ] || { echo "fuzz_pack: error: no $program: ./dev fuzz --pack builds it" >&2; exit 2; }
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/fuzz/bin" "$stage/fuzz/lib" "$stage/fuzz/bench" "$stage/fuzz/tests/fuzz"

# Functions keep their names, for the reports.
strip --strip-debug -o "$stage/fuzz/bin/tally-fuzz" "$program"
# With the loader: a machine whose glibc is older runs it with this one.
ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | xargs cp -L -t "$stage/fuzz/lib"
cat >"$stage/fuzz/bin/with-own-libraries" <<'END'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")/.." && pwd)
exec "$here"/lib/ld-linux-*.so.* --library-path "$here/lib" "$here/bin/tally-fuzz" "$@"
END
chmod +x "$stage/fuzz/bin/with-own-libraries"
cp "$root/bench/fuzz.sh" "$stage/fuzz/bench"
cp -r "$root/tests/fuzz/corpus" "$stage/fuzz/tests/fuzz"
cat >"$stage/fuzz/run.sh" <<'END'
#!/usr/bin/env bash
# run.sh OUT MINUTES JOBS [TARGET...]: every reader for so many minutes on so many cores.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 minutes=$2 jobs=$3
shift 3
mkdir -p "$out"
work=$(mktemp -d)
program=$here/bin/tally-fuzz
TALLY_FUZZ_TARGET=image "$program" -help=1 >"$work/start.log" 2>&1 || program=$here/bin/with-own-libraries
rm -f "$work/start.log"
bash "$here/bench/fuzz.sh" --program "$program" --minutes "$minutes" --jobs "$jobs" --out "$work" "$@" |
	tee "$out/summary.txt"
status=${PIPESTATUS[0]}
cd "$work" || exit 2
find . -maxdepth 2 -type f \( -name 'crash-*' -o -name 'leak-*' -o -name 'timeout-*' -o -name 'oom-*' \) -print0 |
	tar czf "$out/findings.tar.gz" --null -T -
tar czf "$out/corpus.tar.gz" ./*/corpus
# Of a log what tells about findings, and its end.
mkdir logs
for log in ./*/*.log; do
	{ grep -nE 'ERROR|SUMMARY|runtime error|^ *#[0-9]+ 0x|DEDUP' "$log" | head -400; tail -40 "$log"; } >"logs/$(echo "${log#./}" | tr / -)"
done
tar czf "$out/logs.tar.gz" logs
exit "$status"
END
chmod +x "$stage/fuzz/run.sh"
tar -C "$stage" -czf "$out" fuzz
echo "$out: $(($(stat -c %s "$out") / 1048576)) MiB"
