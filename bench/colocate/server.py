#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The high-priority program: an inference server with an open-loop load generator inside.

A request has an arrival time that does not depend on the requests before it; they are served one at a time,
in order, and a latency is completion less arrival. See worker.py for how it is talked to:
    load     model                    builds it, eager and as a CUDA graph
    service  model mode seconds       requests back to back: the median is the service time
    measure  model mode arrivals limit   arrivals: seconds from the beginning, ascending. After `limit` seconds it
                                      ends; whoever has arrived by then and waits counts with the time waited
                                      (`unserved`), which is less than the latency would have been.
"""
import gc
import time

import torch

import worker
from models import REQUESTS

WARM, AHEAD = 0.1, 200e-6  # seconds of requests not counted; seconds before an arrival when sleeping ends
requests = {}


def load(model):
    with torch.inference_mode():
        eager = REQUESTS[model](worker.device)
        for _ in range(3):
            eager()
        worker.synchronize()
        requests[model, "eager"] = eager
        if worker.device != "cuda":
            requests[model, "graph"] = eager
            return {}
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            eager()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            held = eager()
        requests[model, "graph"] = lambda: graph.replay() or held
        requests[model, "graph"]()
        worker.synchronize()
    return {}


def back_to_back(request, seconds):
    times, start = [], time.monotonic()
    while not times or times[-1] - start < seconds:
        request()
        worker.synchronize()
        times.append(time.monotonic())
    return sorted(b - a for a, b in zip([start] + times, times))


def service(model, mode, seconds):
    request = requests[model, mode]
    with torch.inference_mode():
        back_to_back(request, WARM)
        times = back_to_back(request, seconds)
    return {"service_s": times[len(times) // 2], "n": len(times)}


def measure(model, mode, arrivals, limit):
    request = requests[model, mode]
    latencies, unserved = [], 0
    with torch.inference_mode():
        back_to_back(request, WARM)
        gc.collect()
        gc.disable()
        start = time.monotonic()
        for arrival in arrivals:
            due = start + arrival
            if time.monotonic() - start > limit:
                if due < time.monotonic():
                    latencies.append(time.monotonic() - due)
                    unserved += 1
                continue
            while (left := due - time.monotonic()) > 0:
                if left > AHEAD:
                    time.sleep(left - AHEAD)
            request()
            worker.synchronize()
            latencies.append(time.monotonic() - due)
        end = time.monotonic()
        gc.enable()
    microseconds = [round(t * 1e6) for t in latencies]
    return {"start": start, "end": end, "unserved": unserved, "latencies_us": microseconds}


if __name__ == "__main__":
    worker.serve({"load": load, "service": service, "measure": measure})
