#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of inference in stock PyTorch, alone, asked for in turns by micro.py: a line "MODEL/MODE COUNT" on stdin (bert/eager
100), a line of JSON on stdout. Of a step: elapsed time, elapsed time until it was queued, the launching thread's CPU time; nothing waits between steps.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "colocate"))

import torch

import worker
from server import load, requests


def measure(name, count):
    request = requests[tuple(name.split("/"))]
    with torch.inference_mode():
        request()
        worker.synchronize()
        start, busy = time.perf_counter(), time.thread_time()
        for _ in range(count):
            request()
        launched, busy = time.perf_counter(), time.thread_time() - busy
        worker.synchronize()
        end = time.perf_counter()
    return {"ns": (end - start) / count * 1e9, "call_ns": (launched - start) / count * 1e9, "cpu_ns": busy / count * 1e9}


if __name__ == "__main__":
    for model in sys.argv[1:]:
        load(model)
    worker.answer(ok=True)
    while line := worker.commands.readline().decode().split():
        try:
            worker.answer(ok=True, **measure(line[0], int(line[1])))
        except Exception as problem:
            worker.answer(ok=False, error=repr(problem))
