#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts what pack.sh packed into build/ of this tree; needs python3 alone.
#   bench/gpu/unpack.sh [FILE [BUILD]]
set -euo pipefail
cd "$(dirname "$0")/../.."
file=${1:-build/carry/tally.tar.xz}
build=${2:-build}
mkdir -p "$build"
python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$file" "$build"
"$build/bin/tally" --version
"$build/bin/tally-lower" --version
