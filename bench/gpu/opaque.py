#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""opaque.py BUILD OUT: on a GPU, machine code that a guard was put into (opaque.cu): clusters, large grids, large parameters, chains of blocks, each in slices and
stopped; and what the guard costs. Needs nvcc in PATH, nothing else. Prints a line for each check; the costs go to OUT as JSON lines."""
import ctypes
import json
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
cuda = ctypes.CDLL("libcuda.so.1")
STOP = 1 << 32
APART = 1 << 20
failures = 0


def ok(result, what):
    if result:
        sys.exit(f"opaque: error: {what}: {result}")


class Config(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


def allocate(size):
    pointer = ctypes.c_uint64()
    ok(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), "cuMemAlloc")
    ok(cuda.cuMemsetD8_v2(pointer, 0, ctypes.c_size_t(size)), "cuMemsetD8")
    return pointer.value


def write(pointer, data):
    ok(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data))), "cuMemcpyHtoD")
    ok(cuda.cuCtxSynchronize(), "cuCtxSynchronize")  # the kernels' stream does not wait for it


def words(pointer, count):
    data = (ctypes.c_uint32 * count)()
    ok(cuda.cuMemcpyDtoH_v2(data, ctypes.c_uint64(pointer), ctypes.c_size_t(4 * count)), "cuMemcpyDtoH")
    return list(data)


def zero(pointer, size):
    ok(cuda.cuMemsetD8_v2(ctypes.c_uint64(pointer), 0, ctypes.c_size_t(size)), "cuMemsetD8")
    ok(cuda.cuCtxSynchronize(), "cuCtxSynchronize")


def module(path):
    handle = ctypes.c_void_p()
    ok(cuda.cuModuleLoadData(ctypes.byref(handle), Path(path).read_bytes()), f"cuModuleLoadData {path}")
    return handle


def function(handle, name):
    result = ctypes.c_void_p()
    ok(cuda.cuModuleGetFunction(ctypes.byref(result), handle, name.encode()), name)
    return result


def launch(kernel, grid, block, arguments, guard=None, cluster=None):
    """Arguments are bytes; guard is (control, lo, hi)."""
    values = [ctypes.create_string_buffer(a, len(a)) for a in arguments]
    if guard is not None:
        values.append(ctypes.create_string_buffer(struct.pack("<QII", *guard), 16))
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
    attribute = ctypes.create_string_buffer(128)
    if cluster:
        struct.pack_into("<IIIII", attribute, 0, 4, 0, *cluster)  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    config = Config(*grid, *block, 0, stream, ctypes.addressof(attribute), 1 if cluster else 0)
    ok(cuda.cuLaunchKernelEx(ctypes.byref(config), kernel, pointers, None), "cuLaunchKernelEx")


def wait():
    ok(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize")


def check(what, good):
    global failures
    failures += not good
    print("ok    " if good else "FAILED", what, flush=True)


def u64(value):
    return struct.pack("<Q", value)


def set_control(word, hi, gate=0, apart=64):
    """One control block with its gate, broken and mailbox (all on the device here), so many bytes from each other."""
    write(control, struct.pack("<QQQQII", word, control + apart, control + 2 * apart, control + 3 * apart, 7, hi))
    for place, value in ((1, gate), (2, 0), (3, 0)):
        write(control + place * apart, struct.pack("<Q", value))


def everything(name, kernel, grid, block, arguments, runs, units, per_unit, reset=None, cluster=None):
    """A kernel in all ways: passed through, in slices, stopped at boundaries and resumed, stopped by the gate. `per_unit(u)` are the blocks of unit u."""
    blocks = grid[0] * grid[1] * grid[2]

    def ran(upto, low=0):
        wait()
        got = words(runs, blocks)
        want = [0] * blocks
        for u in range(low, upto):
            for b in per_unit(u):
                want[b] = 1
        return got == want

    def fresh():
        wait()
        zero(runs, 4 * blocks)
        if reset:
            reset()

    def go(guard):
        launch(kernel, grid, block, arguments, guard, cluster)

    fresh()
    go((0, 0, 0))
    check(f"{name}: hi = 0 runs everything", ran(units))
    fresh()
    for k in range(5):
        go((0, units * k // 5, units * (k + 1) // 5))
    check(f"{name}: five slices", ran(units))
    fresh()
    go((0, units // 3, units // 2))
    check(f"{name}: one range alone", reset is not None or ran(units // 2, units // 3))
    good = True
    for cut in sorted({0, 1, 2, units // 3, units // 2, units - 1, units}):
        fresh()
        set_control(STOP | cut, units)
        go((control, 0, units))
        good &= ran(cut)
        set_control(cut, units)
        go((control, cut, units))
        good &= ran(units)
        state = words(control, 2)
        good &= cut == units or state == [units, 0]
    check(f"{name}: stopped at boundaries and resumed", good)
    fresh()
    set_control(0, units, gate=1)
    go((control, 0, units))
    good = ran(0) and words(control, 2) == [0, 1] and words(control + 128, 1) == [1] and words(control + 192, 2) == [0, 7]
    go((control, 0, units))  # a later launch of the stream: broken, posts nothing
    good &= ran(0) and words(control + 192, 2) == [0, 7]
    check(f"{name}: a closed gate stops it, sets broken and posts the mailbox", good)


def live(name, kernel, grid, block, arguments, runs, units, reset=None):
    """Stopped by a write to the gate from another stream while it runs, until it is over."""
    blocks, stops, good = grid[0] * grid[1] * grid[2], 0, True
    for turn in range(20):
        wait()
        zero(runs, 4 * blocks)
        if reset:
            reset()
        low = 0
        for attempt in range(30):
            set_control(low, units)
            launch(kernel, grid, block, arguments, (control, low, units))
            if attempt < 6:
                ok(cuda.cuStreamWriteValue32_v2(side, ctypes.c_uint64(control + 64), 1, 0), "cuStreamWriteValue32")
                ok(cuda.cuStreamSynchronize(side), "cuStreamSynchronize")
            wait()
            reached, stopped = words(control, 2)
            letter = words(control + 192, 2)
            good &= (letter == [reached, 7]) if stopped and reached < units else letter == [0, 0]
            stops += bool(stopped and reached < units)
            good &= all(r == (k < reached) for k, r in enumerate(words(runs, blocks)))
            low = reached
            if low >= units:
                break
    check(f"{name}: {stops} stops while it runs", good and low == units and stops > 0)


def timed(go):
    start, end, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    cuda.cuEventCreate(ctypes.byref(start), 0)
    cuda.cuEventCreate(ctypes.byref(end), 0)
    ok(cuda.cuEventRecord(start, stream), "cuEventRecord")
    go()
    ok(cuda.cuEventRecord(end, stream), "cuEventRecord")
    wait()
    cuda.cuEventElapsedTime(ctypes.byref(out), start, end)
    return out.value * 1e3


def costs(out):
    """Original, passed through and active in turns; medians of 11."""
    scratch = allocate(3 * 4 * (64 << 20))
    everything_in = []
    for microseconds in (2, 10, 50):
        steps = 100000
        one = min(timed(lambda: launch(plain_image["work"], (1, 1, 1), (256, 1, 1), [u64(scratch), u64(steps)])) for _ in range(3))
        steps = int(steps * microseconds / one)
        blocks = 132 * 8 * (100 if microseconds < 5 else 30)
        everything_in.append((f"blocks of {microseconds} us", "work", blocks, [u64(scratch), u64(steps)]))
    n = 64 << 20
    everything_in.append(("vector add of 64M floats", "vadd", n // 256, [u64(scratch), u64(scratch + 4 * n), u64(scratch + 8 * n), struct.pack("<I", n)]))
    with open(out, "w", encoding="utf-8") as file:
        for what, name, blocks, arguments in everything_in:
            def run(way):
                if way == "original":
                    return timed(lambda: launch(plain_image[name], (blocks, 1, 1), (256, 1, 1), arguments))
                hi = 0 if way == "passed through" else blocks
                address = control if way.startswith("active") else 0
                set_control(0, blocks, apart=APART if way.endswith("apart") else 64)
                wait()
                return timed(lambda: launch(guarded[name], (blocks, 1, 1), (256, 1, 1), arguments, (address, 0, hi)))
            ways = ("original", "passed through", "range", "active", "active, words apart")
            seen = {way: [] for way in ways}
            for _ in range(12):
                for way in ways:
                    seen[way].append(run(way))
            middle = {way: statistics.median(seen[way][1:]) for way in ways}
            line = {"what": what, "blocks": blocks, "us": round(middle["original"], 1)}
            line |= {way: round(middle[way] / middle["original"], 4) for way in ways[1:]}
            print(json.dumps(line), flush=True)
            file.write(json.dumps(line) + "\n")


build, out_path = Path(sys.argv[1]), sys.argv[2]
ok(cuda.cuInit(0), "cuInit")
context, device = ctypes.c_void_p(), ctypes.c_int()
ok(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
ok(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
stream, side = ctypes.c_void_p(), ctypes.c_void_p()
ok(cuda.cuStreamCreate(ctypes.byref(stream), 1), "cuStreamCreate")
ok(cuda.cuStreamCreateWithPriority(ctypes.byref(side), 1, -5), "cuStreamCreateWithPriority")
control = allocate(4 * APART)
with tempfile.TemporaryDirectory() as folder:
    original, patched = Path(folder) / "k.cubin", Path(folder) / "g.cubin"
    subprocess.run(["nvcc", "-arch=sm_90", "-std=c++17", "-cubin", HERE / "opaque.cu", "-o", original], check=True)
    subprocess.run([build / "bin/tally-lower", original, "--target", "sm_90", "--transform", "opaque", "-o", patched], check=True)
    a, b = module(original), module(patched)
NAMES = ("plain", "cluster", "listed", "parameters", "chain", "work", "vadd")
plain_image = {name: function(a, name) for name in NAMES}
guarded = {name: function(b, name) for name in NAMES}

runs, done = allocate(4 << 20), allocate(4 << 20)
block = (64, 1, 1)
everything("three dimensions", guarded["plain"], (5, 7, 11), (32, 2, 2), [u64(runs)], runs, 385, lambda u: [u])
# Blocks of cluster u of a grid of 16 x 8 clusters of 2 x 2.
quad = lambda u: [(2 * (u // 16) + y) * 32 + 2 * (u % 16) + x for y in (0, 1) for x in (0, 1)]
everything("clusters of the kernel", guarded["cluster"], (32, 16, 1), block, [u64(runs)], runs, 128, quad)
triple = lambda u: [3 * u, 3 * u + 1, 3 * u + 2]
everything("clusters of the launch", guarded["plain"], (300, 1, 1), block, [u64(runs)], runs, 100, triple, cluster=(3, 1, 1))
everything("8 KiB of parameters", guarded["parameters"], (100, 1, 1), block,
           [struct.pack("<I", 1) + bytes(8184) + struct.pack("<I", 9), u64(runs), struct.pack("<I", 9)], runs, 100, lambda u: [u])
chained = (30000, 1, 1)  # more than are resident at once
clear = lambda: zero(done, 4 * 30000)
live("plain", guarded["plain"], (20000, 1, 1), (1024, 1, 1), [u64(runs)], runs, 20000)
live("chain", guarded["chain"], chained, block, [u64(done), u64(runs)], runs, 30000, clear)
large = 1 << 24
for low in (large - 3, large + 1, large + 4095):
    zero(runs, 4 * 1024)
    launch(guarded["listed"], (large + 5000, 1, 1), (32, 1, 1), [u64(runs), struct.pack("<I", 100)], (0, low, low + 5))
    wait()
    count, *ids = words(runs, 101)
    check(f"2^24 blocks and more: [{low}, {low + 5})", count == 5 and sorted(ids[:5]) == list(range(low, low + 5)))
costs(out_path)
print("opaque:", f"{failures} failed" if failures else "all ok")
sys.exit(1 if failures else 0)
