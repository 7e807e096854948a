"""Roots in brackets by interpolation of the third order, and brackets of minima."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact
from functrans.scipy.optimize.implicit import Function, scalar_value, with_args
from functrans.typing import Array, ArrayLike

_GROW = 1.618034


def _over(x: Any, y: Any) -> Any:
    """x / y, which is 0 where y is."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _inverse_cubic(points: list[Array], values: list[Array]) -> Array:
    """Where the cubic through four points, as a function of the values, is at 0."""
    total = points[0]
    for i in (1, 2, 3):
        weight = points[i] - points[0]
        for j in range(4):
            if j != i:
                weight = weight * _over(values[j], values[j] - values[i])
        total = total + weight
    return total


def _newton_quadratic(a: Array, b: Array, d: Array, fa: Array, fb: Array, fd: Array, steps: int
                      ) -> Array:
    """Newton's steps for the parabola through three points, from the end where it is convex."""
    slope = _over(fb - fa, b - a)
    bend = _over(_over(fd - fb, d - b) - slope, d - a)
    r = jnp.where(bend * fa > 0, a, b)
    for _ in range(steps):
        value = fa + (slope + bend * (r - b)) * (r - a)
        r = r - _over(value, slope + bend * (2 * r - a - b))
    return jnp.where(bend == 0, a - _over(fa, slope), r)


def _inside(c: Array, a: Array, b: Array) -> Array:
    """c, or the middle where c is not between the ends."""
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    found: Array = jnp.where((c > low) & (c < high), c, (a + b) / 2)
    return found


def toms748_search(f: Function, a: Array, b: Array, xtol: Any, rtol: Any, limit: int, k: int
                   ) -> Any:
    """Alefeld, Potra and Shi, ACM TOMS 21 (1995), algorithm 748, with k steps of interpolation."""
    fa, fb = f(a), f(b)
    bracketed = fa * fb <= 0
    at_b = fb == 0
    a, fa = jnp.where(at_b, b, a), jnp.where(at_b, fb, fa)

    def done(s: Any) -> Any:
        a, b, fa, *_ = s
        return (jnp.abs(b - a) <= xtol + rtol * jnp.minimum(jnp.abs(a), jnp.abs(b))) | (fa == 0)

    def closer(s: Any, c: Array) -> Any:
        """The bracket with c in place of one end, which becomes d, and d becomes e."""
        a, b, fa, fb, d, fd, *_, calls = s
        fc = f(c)
        left = jnp.sign(fa) != jnp.sign(fc)
        root = fc == 0
        new = (jnp.where(left & ~root, a, c), jnp.where(root, c, jnp.where(left, c, b)),
               jnp.where(left & ~root, fa, fc), jnp.where(root, fc, jnp.where(left, fc, fb)),
               jnp.where(left, b, a), jnp.where(left, fb, fa), d, fd, calls + 1)
        ended = done(s)
        return tuple(jnp.where(ended, old, now) for old, now in zip(s, new))

    def interpolated(s: Any, steps: int) -> Array:
        a, b, fa, fb, d, fd, e, fe, _ = s
        values = [fa, fb, fd, fe]
        distinct = jnp.isfinite(fe)
        for i in range(4):
            for j in range(i):
                distinct = distinct & (values[i] != values[j])
        cubic = _inverse_cubic([a, b, d, jnp.where(jnp.isfinite(e), e, a)], values)
        quadratic = _newton_quadratic(a, b, d, fa, fb, fd, steps)
        good = distinct & (cubic > jnp.minimum(a, b)) & (cubic < jnp.maximum(a, b))
        return _inside(jnp.where(good, cubic, quadratic), a, b)

    def improve(state: Any) -> Any:
        s, count = state
        width = jnp.abs(s[1] - s[0])
        for steps in range(2, k + 2):
            s = closer(s, interpolated(s, steps))
        a, b, fa, fb, *_ = s
        better = jnp.abs(fa) < jnp.abs(fb)
        u, fu = jnp.where(better, a, b), jnp.where(better, fa, fb)
        c = u - 2 * fu * _over(b - a, fb - fa)
        c = jnp.where(jnp.abs(c - u) > jnp.abs(b - a) / 2, (a + b) / 2, c)
        s = closer(s, _inside(c, a, b))
        # where the bracket did not halve, its middle
        wide = jnp.abs(s[1] - s[0]) > width / 2
        halved = closer(s, (s[0] + s[1]) / 2)
        return tuple(jnp.where(wide, now, old) for old, now in zip(s, halved)), count + 1

    none = jnp.full_like(a, jnp.inf)
    first = (a, b, fa, fb, none, none, none, none, jnp.array(2))
    start = closer(first, _inside(b - fb * _over(b - a, fb - fa), a, b))
    s, count = lax.while_loop(lambda s: ~done(s[0]) & (s[1] < limit), improve,
                              (start, jnp.array(1)))
    a, b, fa, fb, *_, calls = s
    best = jnp.where(jnp.abs(fa) <= jnp.abs(fb), a, b)
    return best, (count, calls, done(s) & bracketed)


def bracket(func: Function, xa: ArrayLike = 0.0, xb: ArrayLike = 1.0, args: tuple[Any, ...] = (),
            grow_limit: float = 110.0, maxiter: int = 1000
            ) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Three points, the middle one the lowest, downhill from two; their values, and their number.

    Steps are those to the minimum of a parabola, at most `grow_limit` times the last one. Raises
    ArgumentError where there is no such bracket within `maxiter` steps, if values are known.
    Source: Press et al., Numerical Recipes (1992), 10.1.

    >>> import functrans as ft
    >>> _, xb, _, fa, fb, fc, _ = ft.scipy.optimize.bracket(lambda x: (x - 4) ** 2, 0.0, 1.0)
    >>> print(xb.round(2), fb < fa, fb < fc)
    4.0 True True
    """
    of_args = with_args("bracket", func, args)
    a, b = (v.reshape(()) for v in inexact(xa, xb))

    def f(x: Array) -> Array:
        return scalar_value("bracket", of_args, x)

    fa, fb = f(a), f(b)
    uphill = fa < fb
    a, b = jnp.where(uphill, b, a), jnp.where(uphill, a, b)
    fa, fb = jnp.where(uphill, fb, fa), jnp.where(uphill, fa, fb)
    c = b + _GROW * (b - a)

    def unfinished(s: Any) -> Any:
        _, _, _, _, fb, fc, _, count, ended = s
        return (fc < fb) & ~ended & (count < maxiter)

    def improve(s: Any) -> Any:
        a, b, c, fa, fb, fc, calls, count, _ = s
        p, q = (b - a) * (fb - fc), (b - c) * (fb - fa)
        bend = jnp.where(jnp.abs(q - p) < 1e-21, 1e-21, q - p)
        w = b - ((b - c) * q - (b - a) * p) / (2 * bend)
        most = b + grow_limit * (c - b)
        far = c + _GROW * (c - b)
        within = (w - c) * (b - w) > 0
        at_most = ~within & ((w - most) * (most - c) >= 0)
        beyond = ~within & ~at_most & ((w - most) * (c - w) > 0)
        w = jnp.where(at_most, most, jnp.where(within | beyond, w, far))
        fw = f(w)
        lower, higher = within & (fw < fc), within & (fw > fb)
        down = beyond & (fw < fc)
        again = (within & ~lower & ~higher) | down
        b2, c2 = jnp.where(down, c, b), jnp.where(down, w, c)
        fb2, fc2 = jnp.where(down, fc, fb), jnp.where(down, fw, fc)
        w2 = jnp.where(again, c2 + _GROW * (c2 - b2), w)
        fw2 = jnp.where(again, f(w2), fw)
        moved = (b2, c2, w2, fb2, fc2, fw2)
        ends = ((b, w, c, fb, fw, fc), (a, b, w, fa, fb, fw))
        found = tuple(jnp.where(lower, x, jnp.where(higher, y, z))
                      for x, y, z in zip(*ends, moved))
        return (*found, calls + 1 + again, count + 1, lower | higher)

    begin = (a, b, c, fa, fb, f(c), jnp.array(3), jnp.array(0), jnp.array(False))
    a, b, c, fa, fb, fc, calls, *_ = lax.while_loop(unfinished, improve, begin)
    valid = (fb <= fa) & (fb <= fc) & ((fb < fa) | (fb < fc)) & ((a - b) * (b - c) > 0)
    valid = valid & jnp.isfinite(a + b + c)
    if not is_traced(valid) and not bool(valid):
        raise ArgumentError("functrans.scipy.optimize.bracket: no bracket was found: f is "
                            f"{float(fa):.3g}, {float(fb):.3g}, {float(fc):.3g} at "
                            f"{float(a):.3g}, {float(b):.3g}, {float(c):.3g}.",
                            where=user_source(), why="a minimum is lower than both ends.",
                            fix="other points xa and xb, or a larger maxiter")
    return a, b, c, fa, fb, fc, calls
