# SPDX-License-Identifier: Apache-2.0
# libtally.so loads in old containers: no symbol newer than glibc 2.31, no library but libc's, and
# nothing exported but the hooks.
set -eu
lib=$TALLY_BUILD/lib/libtally.so
fail=0
newer=$(objdump -T "$lib" | grep -oE 'GLIBC_[0-9]+\.[0-9]+(\.[0-9]+)?' | sort -uV |
	awk -F'[_.]' '$2 > 2 || $3 > 31')
if [ -n "$newer" ]; then
	echo "needs newer glibc than 2.31:"
	objdump -T "$lib" | grep -F "$newer"
	fail=1
fi
others=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-x86-64\.so\.2)$' || true)
if [ -n "$others" ]; then
	echo "needs other libraries: $others"
	fail=1
fi
exported=$(objdump -T "$lib" | awk '/\*UND\*/ {next} $1 ~ /^[0-9a-f]+$/ {print $NF}' |
	grep -vE '^(cu[A-Z]|dlsym$)' || true)
if [ -n "$exported" ]; then
	echo "exports more than hooks: $exported"
	fail=1
fi
# The check itself has to be able to see them.
objdump -T "$lib" | grep -qE ' cuLaunchKernel$' || { echo "cuLaunchKernel is not exported"; fail=1; }
objdump -T "$lib" | grep -qE ' dlsym$' || { echo "dlsym is not exported"; fail=1; }
exit $fail
