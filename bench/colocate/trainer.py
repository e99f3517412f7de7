#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The best-effort program: a training loop that runs until it is told to pause. See worker.py for how it is
talked to:
    load  job     builds it and makes its first steps
    run   job     runs until the next line comes; that line is its end, {"do": "pause"}
The answer to `run` holds when each step was finished on the device (CLOCK_MONOTONIC). The loop is at most two
steps ahead of the device, as one is that prints its loss.
"""
import time

import torch

import worker
from models import TRAINING

AHEAD = 2
jobs = {}


def load(job):
    jobs[job] = TRAINING[job](worker.device)
    for _ in range(3):
        jobs[job]()
    worker.synchronize()
    return {}


def run(job):
    step, finished, under_way = jobs[job], [], []
    worker.answer(ok=True, running=True)
    while not worker.asked():
        step()
        if worker.device == "cuda":
            under_way.append(torch.cuda.Event(blocking=True))
            under_way[-1].record()
            if len(under_way) <= AHEAD:
                continue
            under_way.pop(0).synchronize()
        finished.append(time.monotonic())
    worker.read()
    for event in under_way:
        event.synchronize()
        finished.append(time.monotonic())
    worker.synchronize()
    return {"finished": finished}


if __name__ == "__main__":
    worker.serve({"load": load, "run": run})
