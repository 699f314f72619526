# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Kernels of Triton that use what its compiler makes of them: products of matrices with copies in
several stages, scans, sorts, reductions, atomics, conversions and random numbers."""

import triton
import triton.language as tl


@triton.jit
def log_softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    shifted = value - tl.max(value, axis=0)
    total = tl.sum(tl.exp(shifted), axis=0)
    tl.store(y + row * columns + at, shifted - tl.log(total), mask=at < columns)


@triton.jit
def rms_norm(x, weight, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        square += value * value
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        gain = tl.load(weight + at, mask=at < columns, other=0.0)
        tl.store(y + row * columns + at, (value * scale * gain).to(tl.float16), mask=at < columns)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + inner
        left_mask = (rows[:, None] < m) & (at[None, :] < k)
        right_mask = (at[:, None] < k) & (columns[None, :] < n)
        left = tl.load(a + rows[:, None] * k + at[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + at[:, None] * n + columns[None, :], mask=right_mask, other=0.0)
        total += tl.dot(left, right)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], tl.maximum(total, 0.1 * total), mask=mask)


@triton.jit
def byte_matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.int32)
    for start in range(0, k, K):
        at = start + inner
        left = tl.load(a + rows[:, None] * k + at[None, :])
        right = tl.load(b + at[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def attention(q, k, v, o, length, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    head = tl.program_id(1) * length * D
    rows, width = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + width[None, :])
    most = tl.full((M,), -float("inf"), tl.float32)
    weight = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        at = start + tl.arange(0, N)
        key = tl.load(k + head + at[None, :] * D + width[:, None])
        score = tl.dot(query, key) * scale
        now = tl.maximum(most, tl.max(score, axis=1))
        part = tl.exp(score - now[:, None])
        fade = tl.exp(most - now)
        weight = weight * fade + tl.sum(part, axis=1)
        value = tl.load(v + head + at[:, None] * D + width[None, :])
        total = total * fade[:, None] + tl.dot(part.to(tl.float16), value)
        most = now
    result = total / weight[:, None]
    tl.store(o + head + rows[:, None] * D + width[None, :], result.to(tl.float16))


@triton.jit
def running_product(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=1.0)
    tl.store(y + row * columns + at, tl.cumprod(value, axis=0), mask=at < columns)


@triton.jit
def sorted_rows(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.sort(tl.load(x + at), descending=True))


@triton.jit
def least_place(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=float("inf"))
    tl.store(y + row, tl.argmin(value, axis=0))


@triton.jit
def bins(x, y, size, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=BINS - 1)
    counts = tl.histogram(value, BINS)
    tl.atomic_add(y + tl.arange(0, BINS), counts)


@triton.jit
def uniform(y, seed, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.rand(seed, at), mask=at < size)


@triton.jit
def transposed(x, y, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=inside)
    across = (j[:, None] < columns) & (i[None, :] < rows)
    tl.store(y + j[:, None] * rows + i[None, :], tl.trans(tile), mask=across)


@triton.jit
def beyond(x, y, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < size, other=0.0))


@triton.jit
def same_place(x, y, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(y, tl.load(y) + tl.sum(value, axis=0))
