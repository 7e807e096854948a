"""What the laws of compiled programs compute: functions of one primitive, with their arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
from functrans import lax
from functrans.core import dtypes
from tests.laws.primitives import Case
from tests.laws.test_primitive_laws import smooth_function

Program = tuple[Callable[..., tuple[Any, ...]], tuple[Any, ...]]


def values_of(case: Case) -> Program:
    """The results alone, and mapped over two elements."""
    def both(args, stacked):
        return case.outs(*args), ft.vmap(case.outs)(*stacked) if stacked else []

    stacked = [np.stack([a, a[::-1].copy() if a.ndim and dtypes.kind(a.dtype) in "f"
                         and not case.primitive.name.startswith(("cholesky", "triangular_solve"))
                         else a]) for a in case.args]
    return both, (list(case.args), stacked)


def derivatives_of(case: Case, twice: bool) -> Program:
    """Forward, reverse, mapped reverse, and `twice`: reverse over reverse."""
    fun, args = smooth_function(case)
    every = tuple(range(len(args)))

    def loss(*xs):
        squares = [lax.mul(lax.abs(o), lax.abs(o)) for o in fun(*xs)]
        return sum(lax.reduce_sum(s, range(s.ndim)) for s in squares)

    gradient = ft.grad(loss, every)

    def derivatives(args, stacked):
        pushed = ft.jvp(fun, tuple(args), tuple(map(np.ones_like, args)))[1]
        found = [pushed, gradient(*args), ft.vmap(gradient)(*stacked)]
        if twice:
            found.append(ft.grad(lambda *xs: sum(lax.reduce_sum(lax.abs(g), range(g.ndim))
                                                 for g in gradient(*xs)), every)(*args))
        return tuple(found)

    return derivatives, (list(args), [np.stack([a, a]) for a in args])


def together(programs: list[Program]) -> Program:
    """One program that computes all of them."""
    funs, args = zip(*programs, strict=True)
    return (lambda *every: tuple(f(*a) for f, a in zip(funs, every, strict=True))), args
