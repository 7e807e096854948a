"""The laws that every primitive of a family keeps, checked on its samples in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans._runtime import wrap
from functrans.core.avals import get_aval
from functrans.core.axes import MappedAxis
from functrans.core.evaluate import eval_jaxpr
from functrans.core.staging import stage
from functrans.transforms.batching import batch_flat
from functrans.transforms.jvp import jvp_flat
from functrans.transforms.linearize import linearize_flat

EPS = 1e-6


def widen(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype == np.float32 else x


def is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def cases(primitive: Any) -> Iterator[tuple[Any, list[np.ndarray], list[int]]]:
    """Functions of the sample's floating arguments that apply the primitive to all of them."""
    for sample in primitive.samples():
        args = [widen(a) for a in sample.args]
        where = [i for i, a in enumerate(args) if is_float(a)]

        def fun(*floats: Any, args: Any = args, where: Any = where, sample: Any = sample) -> Any:
            full = [wrap(a) for a in args]
            for i, x in zip(where, floats, strict=True):
                full[i] = x
            return [primitive.bind(*full, **sample.params)]

        yield fun, args, where


def values(xs: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in xs]


def random_like(x: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=x.shape)


def check_derivatives(fun: Any, args: list[np.ndarray], order: int = 2) -> None:
    """jvp against differences, and <ct, jvp t> = <vjp ct, t>, to the given order."""
    primals = [wrap(a) for a in args]
    tangents = [wrap(random_like(a, i)) for i, a in enumerate(args)]
    _, out_tangents = jvp_flat(fun, primals, tangents)
    high = fun(*[wrap(a + EPS * t._np) for a, t in zip(args, tangents, strict=True)])
    low = fun(*[wrap(a - EPS * t._np) for a, t in zip(args, tangents, strict=True)])
    for h, l, t in zip(high, low, out_tangents, strict=True):
        expected = (np.asarray(h) - np.asarray(l)) / (2 * EPS)
        got = np.zeros_like(expected) if t is None else np.asarray(t)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    primal_outs, linear = linearize_flat(fun, primals, [True] * len(primals))
    cts = [wrap(random_like(np.asarray(o), 7)) for o in primal_outs]
    back = linear.backwards(cts)
    forward = sum(np.vdot(c, t) for c, t in zip(values(cts), out_tangents, strict=True)
                  if t is not None)
    backward = sum(np.vdot(b, t) for b, t in zip(back, values(tangents), strict=True)
                   if b is not None)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
    if order > 1:
        fixed = [wrap(random_like(np.asarray(o), 3)) for o in primal_outs]

        def gradient(*xs: Any) -> list[Any]:
            _, lin = linearize_flat(fun, xs, [True] * len(xs))
            grads = lin.backwards(fixed)
            return [g for g in grads if g is not None]

        check_derivatives(gradient, args, order - 1)


def check_batching(fun: Any, args: list[np.ndarray], lanes: int = 3) -> None:
    """vmap over every non-empty choice of arguments is a loop."""
    stacked = [np.stack([a + 0.1 * i for i in range(lanes)]) if is_float(a)
               else np.stack([np.roll(a, i) for i in range(lanes)]) for a in args]
    for choice in range(1, 2 ** len(args)):
        mapped = [bool(choice >> i & 1) for i in range(len(args))]
        for axis_of in (lambda a: 0, lambda a: a.ndim):
            given = [np.moveaxis(s, 0, axis_of(a)) if m else a
                     for s, a, m in zip(stacked, args, mapped, strict=True)]
            axes = [axis_of(a) if m else None for a, m in zip(args, mapped, strict=True)]
            outs, out_axes = batch_flat(fun, MappedAxis(lanes), [wrap(g) for g in given], axes)
            for lane in range(lanes):
                expected = fun(*[wrap(s[lane]) if m else wrap(a)
                                 for s, a, m in zip(stacked, args, mapped, strict=True)])
                for o, at, e in zip(outs, out_axes, expected, strict=True):
                    got = np.asarray(o) if at is None else np.take(np.asarray(o), lane, at)
                    np.testing.assert_allclose(got, np.asarray(e), rtol=1e-6, atol=1e-6)


def check_staging(fun: Any, args: list[np.ndarray]) -> None:
    """The type rule gives the type of the result, and the staged program gives the same result."""
    direct = fun(*[wrap(a) for a in args])
    closed = stage(fun, [get_aval(a) for a in args])
    for aval, d in zip(closed.out_avals, direct, strict=True):
        assert (aval.shape, aval.dtype) == (d.shape, d.dtype)
    for s, d in zip(eval_jaxpr(closed.jaxpr, closed.consts, *[wrap(a) for a in args]), direct,
                    strict=True):
        np.testing.assert_array_equal(np.asarray(s), np.asarray(d))
