"""Integrals over several variables, each by `quad` within that of the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.integrate.adaptive import quad
from functrans.typing import Array

Limit = Any  # a number, or a function of the variables outside of it


def nquad(func: Callable[..., Any], ranges: Sequence[Any], args: Any = (), opts: Any = None,
          full_output: bool = False) -> tuple[Array, Array]:
    """The integral of `func(x0, x1, ..., *args)`, and the error of the outermost `quad`.

    `ranges` has the limits of each variable, the innermost first, as a pair or a function of the
    variables after it (and `args`); `opts` are keywords of `quad`, a dict for all or one for each.
    The cost is that of `quad` to the power of the variables. Differentiated as `quad` is.
    Raises ArgumentError for `full_output` and options that do not fit.

    >>> import functrans as ft
    >>> value, _ = ft.scipy.integrate.nquad(lambda x, y: x * y, [(0.0, 1.0), (0.0, 2.0)])
    >>> round(float(value), 4)
    1.0
    """
    more = args if isinstance(args, tuple) else (args,)
    depth = len(ranges)
    options = list(opts) if isinstance(opts, (list, tuple)) else [opts or {}] * depth
    if full_output or not depth or len(options) != depth:
        raise ArgumentError(f"functrans.scipy.integrate.nquad: {depth} ranges, {len(options)} "
                            f"options, full_output={full_output}.", where=user_source(),
                            why="there are options for each range, and the counts are not kept.")

    def inner(level: int, outer: tuple[Any, ...]) -> tuple[Array, Array]:
        given = ranges[level]
        low, high = given(*outer, *more) if callable(given) else given
        how = options[level]
        how = how(*outer, *more) if callable(how) else how

        def value(x: Array) -> Any:
            return func(x, *outer, *more) if not level else inner(level - 1, (x, *outer))[0]

        return quad(value, low, high, **how)

    return inner(depth - 1, ())


def _at(limit: Limit, *variables: Any) -> Any:
    return limit(*variables) if callable(limit) else limit


def dblquad(func: Callable[..., Any], a: Any, b: Any, gfun: Limit, hfun: Limit,
            args: Sequence[Any] = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8
            ) -> tuple[Array, Array]:
    """The integral of `func(y, x, *args)` over x from a to b and y from gfun(x) to hfun(x).

    Limits of y are numbers or functions. See `nquad`.

    >>> import functrans as ft
    >>> value, _ = ft.scipy.integrate.dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: x)
    >>> round(float(value), 4)
    0.125
    """
    more = tuple(args)
    return nquad(func, [lambda x, *_: (_at(gfun, x), _at(hfun, x)), (a, b)], more,
                 {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(func: Callable[..., Any], a: Any, b: Any, gfun: Limit, hfun: Limit, qfun: Limit,
            rfun: Limit, args: Sequence[Any] = (), epsabs: float = 1.49e-8,
            epsrel: float = 1.49e-8) -> tuple[Array, Array]:
    """The integral of `func(z, y, x, *args)` over x, y from gfun(x) and z from qfun(x, y) on.

    The limits are a and b, gfun and hfun, qfun and rfun: numbers or functions. See `nquad`.

    >>> import functrans as ft
    >>> value, _ = ft.scipy.integrate.tplquad(lambda z, y, x: z, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0)
    >>> round(float(value), 4)
    2.0
    """
    more = tuple(args)
    return nquad(func, [lambda y, x, *_: (_at(qfun, x, y), _at(rfun, x, y)),
                        lambda x, *_: (_at(gfun, x), _at(hfun, x)), (a, b)], more,
                 {"epsabs": epsabs, "epsrel": epsrel})


def newton_cotes(rn: int, equal: int = 0) -> tuple[Array, float]:
    """The weights of the rule of Newton and Cotes for rn + 1 equal steps, and its error's factor.

    Times the step they give the integral. The error is the factor times step**(n + 2) (n + 3 for an
    even rn) times the derivative of order n + 1 (n + 2). Weights of many steps alternate in sign.

    >>> import functrans as ft
    >>> print(ft.scipy.integrate.newton_cotes(2)[0].round(4))
    [0.3333 1.3333 0.3333]
    """
    if int(rn) != rn or rn < 1:
        raise ArgumentError(f"functrans.scipy.integrate.newton_cotes: rn is {rn}.",
                            where=user_source(), why="it is a number of equal steps, at least 1.")
    n = int(rn)
    powers = _weights(n)
    order = n + 1 + (n % 2 == 0)
    exact = Fraction(n) ** (order + 1) / (order + 1)
    rest = exact - sum(w * Fraction(k) ** order for k, w in enumerate(powers))
    factor = rest / math.factorial(order)
    return jnp.asarray([float(w) for w in powers], default_float()), float(factor)


def _weights(n: int) -> list[Fraction]:
    """The integrals over [0, n] of Lagrange's polynomials of the places 0 to n, exactly."""
    found = []
    for k in range(n + 1):
        poly = [Fraction(1)]
        for j in range(n + 1):
            if j != k:  # times (x - j) / (k - j)
                scaled = [c / (k - j) for c in poly]
                poly = [Fraction(0), *scaled]
                for i, c in enumerate(scaled):
                    poly[i] -= j * c
        found.append(sum((c * Fraction(n) ** (i + 1) / (i + 1) for i, c in enumerate(poly)),
                         Fraction(0)))
    return found
