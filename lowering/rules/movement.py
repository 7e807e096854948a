"""Primitives that only move elements: index arithmetic, and no code of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder, Range
from functrans.lowering.loops.index import ZERO, Index
from functrans.lowering.loops.tensor import Map, Tensor, compute_dtype, dtype_name
from functrans.lowering.rules.elementwise import Rule
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.shape import concatenate_p, iota_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["RULES", "padded"]


def _moved(eqn: Equation, xs: list[Tensor], define: Any, repeats: bool = False) -> list[Tensor]:
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    return [Map(aval.shape, dtype, xs, define, weight=0, repeats=repeats, source=eqn.source)]


def _broadcast_in_dim(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, dims = xs[0], eqn.params["broadcast_dimensions"]
    shape = eqn.params["shape"]
    repeats = len(dims) < len(shape) or any(s != shape[d] for s, d in zip(x.shape, dims))

    def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        return s.read(x, tuple([ZERO if _is_one(n) else i[d] for n, d in zip(x.shape, dims)]))

    return _moved(eqn, xs, define, repeats)


def _reshape(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, shape = xs[0], eqn.params["new_sizes"]
    if x.shape == tuple(shape):
        return [x]
    groups = _matching_groups(x.shape, tuple(shape))

    def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        out: list[Index] = []
        for (a, b), (c, d) in groups:
            if b - a == d - c == 1:
                out.append(i[c])
            else:
                out.extend(s.unflatten(s.flatten(i[c:d], shape[c:d]), x.shape[a:b]))
        return s.read(x, tuple(out))

    return _moved(eqn, xs, define)


def _matching_groups(old: tuple[Size, ...], new: tuple[Size, ...]) -> list[Any]:
    """Runs of dimensions of both shapes with equal products: less arithmetic than the whole."""
    groups = []
    a = c = 0
    while a < len(old) or c < len(new):
        b, d = a, c
        p: Size = 1
        q: Size = 1
        while True:
            if b == a and b < len(old):
                p, b = p * old[b], b + 1
            elif d == c and d < len(new):
                q, d = q * new[d], d + 1
            elif p == q:
                break
            elif d == len(new) or (b < len(old) and _less(p, q)):
                if b == len(old):
                    break
                p, b = p * old[b], b + 1
            else:
                q, d = q * new[d], d + 1
        if p != q or (isinstance(p, int) and p == 0):
            b, d = len(old), len(new)  # an empty array, or sizes that match only as a whole
        groups.append(((a, b), (c, d)))
        a, c = b, d
    return groups


def _less(p: Size, q: Size) -> bool:
    if isinstance(p, int) and isinstance(q, int):
        return p < q
    return isinstance(p, int)


def _transpose(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, permutation = xs[0], eqn.params["permutation"]
    inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
    return _moved(eqn, xs, lambda s, i: s.read(x, tuple([i[k] for k in inverse])))


def _slice(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, starts, strides = xs[0], eqn.params["start_indices"], eqn.params["strides"]
    return _moved(eqn, xs, lambda s, i: s.read(
        x, tuple([k * stride + start for k, start, stride in zip(i, starts, strides)])))


def _rev(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, dims = xs[0], eqn.params["dimensions"]
    return _moved(eqn, xs, lambda s, i: s.read(x, tuple(
        [k * -1 + (n - 1) if d in dims else k for d, (k, n) in enumerate(zip(i, x.shape))])))


def padded(s: ExprBuilder, x: Tensor, value: Callable[[], Expr], at: tuple[Index, ...],
           config: Sequence[tuple[Size, Size, int]]) -> Expr:
    """The element at an index of x with padding around it and between its elements."""
    if any(_is_zero(n) for n in x.shape):
        return value()
    tests: list[Range] = []
    index: list[Index] = []
    between: Expr | None = None
    for k, n, (low, high, interior) in zip(at, x.shape, config):
        k = k - low
        if interior:
            step = interior + 1
            whole = (n - 1) * step + 1
            tests.append((k, 0, whole))
            k = s.clamped(k, whole)
            hole = s.op("eq", s.index(k % step, "i64"), s.const(np.int64(0), "i64"), dtype="bool")
            between = hole if between is None else s.op("and", between, hole)
            k = k // step
        elif not (_is_zero(low) and _is_zero(high)):
            tests.append((k, 0, n))
            k = s.clamped(k, n)
        index.append(k)

    def inside() -> Expr:
        out = s.read(x, tuple(index))
        if between is not None:
            out = s.op("select", between, out, value(), dtype=out.dtype)
        return out

    return s.when(tests, inside, value)


def _pad(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    (x, value), config = xs, eqn.params["padding_config"]
    return _moved(eqn, xs, lambda s, i: padded(s, x, lambda: s.read(value, ()), i, config))


def _concatenate(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    d = eqn.params["dimension"]
    parts = [x for x in xs if not _is_zero(x.shape[d])]
    if len(parts) == 1:
        return [parts[0]]
    if not parts:
        return [xs[0]]

    def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        def part(k: int, start: Size) -> Expr:
            x = parts[k]
            here = i[d] - start

            def inside() -> Expr:
                return s.read(x, (*i[:d], s.clamped(here, x.shape[d]), *i[d + 1:]))

            if k == len(parts) - 1:
                return inside()
            return s.when([(here, 0, x.shape[d])], inside,
                          lambda: part(k + 1, start + x.shape[d]))

        return part(0, 0)

    return _moved(eqn, xs, define)


def _iota(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    d = eqn.params["dimension"]
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    assert dtype is not None
    return _moved(eqn, xs, lambda s, i: s.index(i[d], compute_dtype(dtype)))


def _full(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    value = np.asarray(eqn.params["value"])
    if isinstance(eqn.params["value"], (int, float, bool)) or value.ndim == 0:
        dtype = eqn.outvars[0].aval.dtype
        value = value.astype(dtype)
        short = dtype_name(dtype)
        assert short is not None
        compute = compute_dtype(short)
        if compute != short:
            value = value.astype(np.float32)
        return _moved(eqn, xs, lambda s, i: s.const(value, compute))
    return None


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1


def _is_zero(n: Size) -> bool:
    return isinstance(n, int) and n == 0


RULES: dict[Primitive, Rule] = {
    broadcast_in_dim_p: _broadcast_in_dim,
    reshape_p: _reshape,
    transpose_p: _transpose,
    slice_p: _slice,
    rev_p: _rev,
    pad_p: _pad,
    concatenate_p: _concatenate,
    iota_p: _iota,
    full_p: _full,
}
