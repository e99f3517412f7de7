# SPDX-License-Identifier: Apache-2.0
"""When requests come: seconds from the beginning, ascending; the same list for the same seed.

poisson: exponential gaps.
bursty: the shape of the Azure Functions traces (Shahrad et al., "Serverless in the Wild", USENIX ATC 2020: most of
    the functions have gaps whose coefficient of variation is above 1), generated: time is cut into windows of 100 ms,
    a window's rate is the mean rate times a log-normal factor (sigma 0.8, mean 1) whose logarithm keeps 0.6 of
    the window before (first-order autoregression), at most 4; arrivals in a window are Poisson. Gaps then have a
    coefficient of variation of about 1.5. The number of requests is made that of the wanted rate by
    stretching time.
"""
import math
import random

WINDOW, SIGMA, KEEP, MOST = 0.1, 0.8, 0.6, 4.0


def poisson(rate, seconds, chance):
    times, t = [], chance.expovariate(rate)
    while t < seconds:
        times.append(t)
        t += chance.expovariate(rate)
    return times


def bursty(rate, seconds, chance):
    times, state = [], chance.gauss(0, 1)
    for n in range(math.ceil(seconds / WINDOW)):
        factor = min(MOST, math.exp(SIGMA * state - SIGMA * SIGMA / 2))
        times += [n * WINDOW + t for t in poisson(rate * factor, WINDOW, chance)]
        state = KEEP * state + math.sqrt(1 - KEEP * KEEP) * chance.gauss(0, 1)
    stretch = len(times) / (rate * seconds)
    return [t * stretch for t in times]


TRACES = {"poisson": poisson, "bursty": bursty}


def arrivals(trace, rate, seconds, seed):
    """`seed`: anything that str() tells apart."""
    times = TRACES[trace](rate, seconds, random.Random(str(seed)))
    return [round(t, 6) for t in times] or [0.0]
