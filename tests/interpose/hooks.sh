# SPDX-License-Identifier: Apache-2.0
# Runs hooks_test with libtally.so preloaded, alone and beside another preloaded library.
set -eu
tests=$TALLY_BUILD/tests/interpose
tally=$TALLY_BUILD/lib/libtally.so
export LD_LIBRARY_PATH=$tests
env LD_PRELOAD="$tally" "$tests/hooks_test"
# RTLD_NEXT sees what the program was started with: the driver too, as in a program linked with it.
env LD_PRELOAD="$tally:$tests/libchain.so:$tests/libcuda.so.1" "$tests/hooks_test" chain
env LD_PRELOAD="$tests/libchain.so:$tally:$tests/libcuda.so.1" "$tests/hooks_test" chain
