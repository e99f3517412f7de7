#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
exec python3 -B "$(dirname "$0")/report_test.py"
