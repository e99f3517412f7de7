# SPDX-License-Identifier: Apache-2.0
# For tests that run programs built without sanitizers over libraries built with them: $sanitizer is the
# runtime that such a library wants first in the process (for LD_PRELOAD), empty in a plain build.
sanitizer=$(ldd "$TALLY_BUILD/lib/libcuda.so.1" | sed -n 's/.*=> \(.*lib[at]san.*\) (.*/\1/p')
