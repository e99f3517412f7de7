# SPDX-License-Identifier: Apache-2.0
# The client half goes into libtally.so, which has to load where glibc is 2.31: nothing newer, nothing
# but libc.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$TALLY_BUILD/archive
if nm "$archive/libtally_sched_client.a" | grep -E '__(asan|tsan|ubsan)_' >/dev/null; then
    echo "sanitized build: nothing to check"
    exit 0
fi
${CC:-cc} -shared -Wl,-z,defs -o "$work/client.so" -Wl,--whole-archive \
    "$archive/libtally_sched_client.a" -Wl,--no-whole-archive "$archive/libtally_base.a"
versions=$(objdump -T "$work/client.so" | grep -oE 'GLIBC_[0-9.]+' | sort -uV)
[ -n "$versions" ] || { echo "no versions found"; exit 1; }
newest=$(printf '%s\nGLIBC_2.31\n' "$versions" | sort -V | tail -1)
if [ "$newest" != GLIBC_2.31 ]; then
    objdump -T "$work/client.so" | grep -F "$newest"
    exit 1
fi
needed=$(objdump -p "$work/client.so" | awk '/NEEDED/ { print $2 }' | sort | tr '\n' ' ')
case $needed in
"libc.so.6 " | "ld-linux-x86-64.so.2 libc.so.6 ") ;;
*)
    echo "the client needs more than libc: $needed"
    exit 1
    ;;
esac
