#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How fast a best-effort program stops, on the CPU device, with a tallyd of its own.
exec bash "$(dirname "$0")/interpose.sh" stop_latency
