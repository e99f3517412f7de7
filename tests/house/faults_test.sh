#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# house_test.sh finds what it is there to find: one fault of each kind in a tree of its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
fail() { echo "house_faults: $*" >&2; exit 1; }

mkdir -p "$tree"/{base,sched,ir_passes,cache,strange}
head='/* SPDX-License-Identifier: Apache-2.0 */'
printf '%s\n#include "base/error.h"\n' "$head" >"$tree/sched/good.c"
bash "$here/house_test.sh" "$tree" || fail "a clean tree is refused"

# expect FILE MESSAGE: the file (its text on stdin) has exactly this fault.
expect() {
	local out
	cat >"$tree/$1"
	if out=$(bash "$here/house_test.sh" "$tree" 2>&1); then fail "$1: no fault found"; fi
	rm "$tree/$1"
	grep -q "^$1:.*$2" <<<"$out" || fail "$1: '$2' expected, got: $out"
	[ "$(wc -l <<<"$out")" = 1 ] || fail "$1: one fault expected, got: $out"
}

expect sched/up.c 'may not include "cache/cache.h"' < <(printf '%s\n#include "cache/cache.h"\n' "$head")
expect base/up.c 'may not include' < <(printf '%s\n#  include "sched/board.h"\n' "$head")
expect strange/new.c 'no line in' < <(printf '%s\n#include "base/error.h"\n' "$head")
expect cache/llvm.c 'LLVM' < <(printf '%s\n#include <llvm-c/Core.h>\n' "$head")
expect sched/vendor.c 'vendor' < <(printf '%s\nint cuda_depth;\n' "$head")
expect sched/env.c 'environment' < <(printf '%s\nchar *p = getenv("X");\n' "$head")
expect cache/exit.c 'somebody else' < <(printf '%s\nvoid f(void) { exit(1); }\n' "$head")
expect cache/futex.c 'futex.h' < <(printf '%s\nint n = SYS_futex;\n' "$head")
expect sched/later.c 'leftover' < <(printf '%s\n/* %s: more */\n' "$head" TO''DO)
expect sched/path.c 'one machine' < <(printf '%s\nconst char *p = "/%s/me";\n' "$head" home)
expect sched/bare.c 'SPDX' < <(echo 'int x;')
expect sched/long.c 'too many (500)' < <(echo "$head"; yes 'int f(void);' | head -500)
expect sched/long.sh 'too many (800)' < <(echo "# ${head//[\/*]/}"; yes ':' | head -800)
