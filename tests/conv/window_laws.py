"""Laws of differentiable functions of arrays, through the public transforms, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functrans.array  # noqa: F401  (registers the array type)
from functrans.core.avals import get_aval
from functrans.core.evaluate import eval_jaxpr
from functrans.core.staging import stage
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp
from functrans.transforms.vmap import vmap

Fun = Callable[..., Any]


def wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype == np.float32 else x


def check_derivatives(fun: Fun, args: Sequence[np.ndarray], order: int = 2, seed: int = 0,
                      eps: float = 1e-6) -> None:
    """jvp against central differences, and <ct, jvp t> = <vjp ct, t>; then of the gradient."""
    rng = np.random.default_rng(seed)
    tangents = [rng.normal(size=a.shape) for a in args]
    out, tangent = jvp(fun, tuple(args), tuple(tangents))
    high = np.asarray(fun(*[a + eps * t for a, t in zip(args, tangents)]))
    low = np.asarray(fun(*[a - eps * t for a, t in zip(args, tangents)]))
    np.testing.assert_allclose(np.asarray(tangent), (high - low) / (2 * eps), rtol=1e-5, atol=1e-6)
    primal, pull = vjp(fun, *args)
    np.testing.assert_allclose(np.asarray(primal), np.asarray(out), rtol=1e-12, atol=1e-12)
    ct = rng.normal(size=primal.shape)
    back = [np.asarray(b) for b in pull(ct)]
    for b, a in zip(back, args):
        assert b.shape == a.shape and b.dtype == a.dtype
    np.testing.assert_allclose(np.vdot(ct, tangent),
                               sum(np.vdot(b, t) for b, t in zip(back, tangents)),
                               rtol=1e-8, atol=1e-8)
    if order > 1:
        for i in range(len(args)):
            check_derivatives(lambda *xs, i=i: vjp(fun, *xs)[1](ct)[i], args, order - 1, seed + 1)


def check_batching(fun: Fun, args: Sequence[np.ndarray], lanes: int = 2) -> None:
    """vmap over every choice of arguments, at the first and at the last axis, is a loop."""
    rng = np.random.default_rng(5)
    stacks = [np.stack([a + 0.1 * rng.normal(size=a.shape) for _ in range(lanes)]) for a in args]
    for mapped in itertools.product((False, True), repeat=len(args)):
        if not any(mapped):
            continue
        for last in (False, True):
            axes = [(a.ndim if last else 0) if m else None for a, m in zip(args, mapped)]
            given = [a if x is None else np.moveaxis(s, 0, x)
                     for a, s, x in zip(args, stacks, axes)]
            got = np.asarray(vmap(fun, in_axes=tuple(axes))(*given))
            for lane in range(lanes):
                one = fun(*[s[lane] if m else a for s, a, m in zip(stacks, args, mapped)])
                np.testing.assert_allclose(got[lane], np.asarray(one), rtol=1e-9, atol=1e-9)


def check_staging(fun: Fun, args: Sequence[np.ndarray]) -> None:
    """The type rule gives the type of the result, and the staged program the same numbers."""
    direct = fun(*args)
    closed = stage(lambda *xs: [fun(*xs)], [get_aval(a) for a in args])
    (aval,) = closed.out_avals
    assert (aval.shape, aval.dtype) == (direct.shape, direct.dtype)
    (staged,) = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    np.testing.assert_array_equal(np.asarray(staged), np.asarray(direct))
