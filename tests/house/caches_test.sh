#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test has a code cache of its own in the build tree, whoever starts ctest and from wherever: none
# reads or fills the user's.
set -euo pipefail
env -u TALLY_CACHE_DIR ctest --test-dir "$TALLY_BUILD" --show-only=json-v1 | python3 -c '
import json, sys
own = {}
for test in json.load(sys.stdin)["tests"]:
    environment = [v for p in test.get("properties", []) if p["name"] == "ENVIRONMENT" for v in p["value"]]
    cache = [v.split("=", 1)[1] for v in environment if v.startswith("TALLY_CACHE_DIR=")]
    if len(cache) != 1 or not cache[0].startswith(sys.argv[1] + "/") or cache[0] in own:
        sys.exit("house: test %s has no code cache of its own: %s (see cmake/Tally.cmake)" % (test["name"], cache))
    own[cache[0]] = test
if len(own) < 100:
    sys.exit("house: ctest names %d tests" % len(own))
' "$TALLY_BUILD"
