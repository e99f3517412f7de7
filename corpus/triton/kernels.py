# SPDX-License-Identifier: Apache-2.0
"""Triton kernels as deep-learning programs hold them; compile.py makes PTX of them without a GPU."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + at, e / tl.sum(e, 0), at < columns)


@triton.jit
def layer_norm(x, out, weight, bias, mean_out, scale_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    out += row * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.where(at < columns, tl.load(x + at, at < columns, other=0.0).to(tl.float32) - mean, 0.0)
        total += v * v
    scale = tl.rsqrt(tl.sum(total, 0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = (tl.load(x + at, at < columns, other=0.0).to(tl.float32) - mean) * scale
        tl.store(out + at, v * tl.load(weight + at, at < columns) + tl.load(bias + at, at < columns), at < columns)


@triton.jit
def layer_norm_backward(dx, dy, dw, db, x, weight, means, scales, lock, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + at, mask, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask, other=0.0).to(tl.float32)
    mean = tl.load(means + row)
    scale = tl.load(scales + row)
    hat = tl.where(mask, (v - mean) * scale, 0.0)
    wg = tl.where(mask, w * g, 0.0)
    a = tl.sum(hat * wg, 0) / columns
    b = tl.sum(wg, 0) / columns
    tl.store(dx + row * columns + at, (wg - (hat * a + b)) * scale, mask)
    group = row % GROUP
    lock += group
    count = lock + GROUP
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    part_w = (g * hat).to(w.dtype)
    part_b = g.to(w.dtype)
    dw += group * columns + at
    db += group * columns + at
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw, mask)
        part_b += tl.load(db, mask)
    tl.store(dw, part_w, mask)
    tl.store(db, part_b, mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def cross_entropy(logits, labels, loss, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits += row.to(tl.int64) * columns
    label = tl.load(labels + row)
    most = tl.full([1], -float("inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(logits + at, at < columns, other=-float("inf")).to(tl.float32)
        next = tl.maximum(most, tl.max(v, 0))
        total = total * tl.exp(most - next) + tl.sum(tl.exp(v - next), 0)
        most = next
    picked = tl.load(logits + label).to(tl.float32)
    tl.store(loss + row + tl.arange(0, 1), tl.log(total) + most - picked)


@triton.jit
def matmul(a, b, c, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    pm = first + (pid % (GROUP * columns)) % size
    pn = (pid % (GROUP * columns)) // size
    m = (pm * BM + tl.arange(0, BM)) % M
    n = (pn * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    pa = a + m[:, None] * stride_am + k[None, :]
    pb = b + k[:, None] * stride_bk + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, tl.cdiv(K, BK)):
        va = tl.load(pa, k[None, :] < K - at * BK, other=0.0)
        vb = tl.load(pb, k[:, None] < K - at * BK, other=0.0)
        total = tl.dot(va, vb, total)
        pa += BK
        pb += BK * stride_bk
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    pc = c + stride_cm * m[:, None] + n[None, :]
    tl.store(pc, total.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = pid // columns * BM
    n = pid % columns * BN
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        total = tl.dot(da.load([m, at]), db.load([n, at]).T, total)
    dc.store([m, n], total.to(tl.float16))


@triton.jit
def matmul_persistent(a, b, c, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    start = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    for tile in tl.range(start, tiles, PROGRAMS, flatten=True):
        m = tile // columns * BM
        n = tile % columns * BN
        total = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            total = tl.dot(da.load([m, at]), db.load([n, at]).T, total)
        dc.store([m, n], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, lse, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * N * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    vq = tl.load(q + head + m[:, None] * D + d[None, :])
    most = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    scale *= 1.44269504
    end = (tl.program_id(0) + 1) * BM if CAUSAL else N
    for start in range(0, end, BN):
        vk = tl.load(k + head + (start + n)[None, :] * D + d[:, None])
        qk = tl.dot(vq, vk) * scale
        if CAUSAL:
            qk = tl.where(m[:, None] >= (start + n)[None, :], qk, -1e6)
        next = tl.maximum(most, tl.max(qk, 1))
        p = tl.exp2(qk - next[:, None])
        alpha = tl.exp2(most - next)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        vv = tl.load(v + head + (start + n)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), vv, acc)
        most = next
    acc = acc / total[:, None]
    tl.store(lse + tl.program_id(1) * N + m, most + tl.log2(total))
    tl.store(out + head + m[:, None] * D + d[None, :], acc.to(tl.float16))


@triton.jit
def attention_backward(q, k, v, do, dq, dk, dv, lse, delta, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * N * D
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    vk = tl.load(k + head + n[:, None] * D + d[None, :])
    vv = tl.load(v + head + n[:, None] * D + d[None, :])
    gk = tl.zeros([BN, D], tl.float32)
    gv = tl.zeros([BN, D], tl.float32)
    for start in range(0, N, BM):
        m = start + tl.arange(0, BM)
        vq = tl.load(q + head + m[:, None] * D + d[None, :])
        vdo = tl.load(do + head + m[:, None] * D + d[None, :])
        l = tl.load(lse + tl.program_id(1) * N + m)
        de = tl.load(delta + tl.program_id(1) * N + m)
        p = tl.exp2(tl.dot(vk, tl.trans(vq)) * (scale * 1.44269504) - l[None, :])
        gv = tl.dot(p.to(tl.float16), vdo, gv)
        dp = tl.dot(vv, tl.trans(vdo))
        ds = (p * (dp - de[None, :])).to(tl.float16)
        gk = tl.dot(ds, vq, gk)
        gq = tl.dot(tl.trans(ds), vk)
        tl.atomic_add(dq + head + m[:, None] * D + d[None, :], gq * scale, sem="relaxed")
    tl.store(dk + head + n[:, None] * D + d[None, :], (gk * scale).to(tl.float16))
    tl.store(dv + head + n[:, None] * D + d[None, :], gv.to(tl.float16))


@triton.jit
def quantise(x, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, at < columns, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(v), 0) / 448.0
    tl.store(scales + row, scale)
    tl.store(out + row * columns + at, (v / scale).to(tl.float8e4nv), at < columns)


@triton.jit
def dropout(x, out, n, seed, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, at < n)
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), at < n)


@triton.jit
def cumulate(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, at < columns, other=0.0)
    tl.store(out + row * columns + at, tl.cumsum(v, 0), at < columns)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def count_bins(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.arange(0, 256), tl.histogram(tl.load(x + at), 256))


@triton.jit
def embed(ids, table, out, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    tl.store(out + row * WIDTH + at, tl.load(table + tl.load(ids + row).to(tl.int64) * WIDTH + at))
