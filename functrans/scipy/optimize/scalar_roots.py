"""Roots of functions of one number: in brackets, and by Newton's and Halley's methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, overload

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ConcretizationError
from functrans.core.source import user_source
from functrans.numpy.common import converted, is_traced
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.optimize.implicit import (
    Function,
    at_least_eps,
    option,
    scalar_value,
    solution,
    with_args,
)
from functrans.scipy.optimize.results import ScalarRootResults
from functrans.scipy.optimize.toms748 import toms748_search
from functrans.transforms.derivatives import grad
from functrans.typing import Array, ArrayLike

_BRACKETING = ("bisect", "brentq", "brenth", "ridder", "toms748")
_METHODS = (*_BRACKETING, "newton", "halley", "secant")


def root_scalar(f: Function, args: tuple[Any, ...] = (), method: str | None = None,
                bracket: Any = None, fprime: Function | bool | None = None,
                fprime2: Function | bool | None = None, x0: ArrayLike | None = None,
                x1: ArrayLike | None = None, xtol: float | None = None, rtol: float | None = None,
                maxiter: int | None = None, options: Mapping[str, Any] | None = None
                ) -> ScalarRootResults:
    """x with `f(x, *args) = 0` for one number: within `bracket`, or near x0.

    `method` is "brentq" (with a bracket), "brenth", "bisect", "ridder" or "toms748"; "newton" (with
    x0), "halley" or "secant" (with x1). Derivatives are automatic, or `fprime` and `fprime2`. The
    loop is a `while_loop`; the root is differentiated by the implicit function theorem, in what f
    closes over and in `args`. Raises ArgumentError for a bracket whose ends have one sign, where
    values are known; `converged` is False otherwise.

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.root_scalar(lambda x, a: x * x - a, (2.0,), bracket=(0.0, 2.0))
    >>> round(float(found.root), 4)
    1.4142
    """
    if method is None:
        method = "brentq" if bracket is not None else "halley" if fprime2 else \
            "secant" if x1 is not None else "newton"
    how = method.lower()
    one_of("optimize.root_scalar", "method", how, _METHODS)
    known = option("root_scalar", dict(options or {}), {
        "xtol": xtol, "rtol": rtol, "maxiter": maxiter,
        **({"k": 1} if how == "toms748" else {})})
    of_args = with_args("root_scalar", f, args)
    if how in _BRACKETING:
        if bracket is None or len(bracket) != 2:
            raise ArgumentError(f"functrans.scipy.optimize.root_scalar: method={how!r} needs a "
                                "bracket.", where=user_source(), fix="bracket=(a, b)")
        return _in_bracket(how, of_args, bracket[0], bracket[1], known)
    if x0 is None:
        raise ArgumentError(f"functrans.scipy.optimize.root_scalar: method={how!r} needs x0.",
                            where=user_source(), fix="x0=1.0")
    more = args if isinstance(args, tuple) else (args,)
    slopes = [None if not callable(d) else (lambda x, d=d: d(x, *more)) for d in (fprime, fprime2)]
    return _near(how, of_args, x0, x1, slopes, known)


@overload
def bisect(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: Literal[False] = False, disp: bool = True) -> Array: ...


@overload
def bisect(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           *, full_output: Literal[True], disp: bool = True
           ) -> tuple[Array, ScalarRootResults]: ...


def bisect(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: bool = False, disp: bool = True
           ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of f between a and b by bisection, NaN where it is not found; see `root_scalar`.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.bisect(lambda x: x * x - 2, 0.0, 2.0)), 4)
    1.4142
    """
    return _root("bisect", f, a, b, args, xtol, rtol, maxiter, full_output)


@overload
def brentq(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: Literal[False] = False, disp: bool = True) -> Array: ...


@overload
def brentq(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           *, full_output: Literal[True], disp: bool = True
           ) -> tuple[Array, ScalarRootResults]: ...


def brentq(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: bool = False, disp: bool = True
           ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of f between a and b by Brent's method, NaN where it is not found.

    With `full_output` the results of `root_scalar` are returned as well.
    Source: Brent, Algorithms for Minimization Without Derivatives (1973).

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.brentq(lambda x: x * x - 2, 0.0, 2.0)), 4)
    1.4142
    """
    return _root("brentq", f, a, b, args, xtol, rtol, maxiter, full_output)


@overload
def ridder(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: Literal[False] = False, disp: bool = True) -> Array: ...


@overload
def ridder(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           *, full_output: Literal[True], disp: bool = True
           ) -> tuple[Array, ScalarRootResults]: ...


def ridder(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: bool = False, disp: bool = True
           ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of f between a and b by Ridders' method, NaN where it is not found.

    Source: Ridders, IEEE Trans. Circuits and Systems 26 (1979).

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.ridder(lambda x: x * x - 2, 0.0, 2.0)), 4)
    1.4142
    """
    return _root("ridder", f, a, b, args, xtol, rtol, maxiter, full_output)


@overload
def newton(func: Function, x0: ArrayLike, fprime: Function | None = None,
           args: tuple[Any, ...] = (), tol: float = 1.48e-8, maxiter: int = 50,
           fprime2: Function | None = None, x1: ArrayLike | None = None, rtol: float = 0.0,
           full_output: Literal[False] = False, disp: bool = True) -> Array: ...


@overload
def newton(func: Function, x0: ArrayLike, fprime: Function | None = None,
           args: tuple[Any, ...] = (), tol: float = 1.48e-8, maxiter: int = 50,
           fprime2: Function | None = None, x1: ArrayLike | None = None, rtol: float = 0.0,
           *, full_output: Literal[True], disp: bool = True
           ) -> tuple[Array, ScalarRootResults]: ...


def newton(func: Function, x0: ArrayLike, fprime: Function | None = None,
           args: tuple[Any, ...] = (), tol: float = 1.48e-8, maxiter: int = 50,
           fprime2: Function | None = None, x1: ArrayLike | None = None, rtol: float = 0.0,
           full_output: bool = False, disp: bool = True
           ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of func near x0 by Newton's method, NaN where it is not found.

    The derivative is automatic where there is no `fprime`; with `fprime2` it is Halley's method,
    with `x1` that of secants. `vmap` makes it one of many.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.newton(lambda x: x * x - 2, 1.0)), 4)
    1.4142
    """
    found = root_scalar(func, args, None, None, fprime, fprime2, x0, x1, tol, rtol, maxiter)
    return _value(found, full_output)


def brenth(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
           xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
           full_output: bool = False, disp: bool = True
           ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of f between a and b by Brent's method with hyperbolas, NaN where it is not found.

    Source: Bus and Dekker, ACM TOMS 1 (1975).

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.brenth(lambda x: x * x - 2, 0.0, 2.0)), 4)
    1.4142
    """
    return _root("brenth", f, a, b, args, xtol, rtol, maxiter, full_output)


def toms748(f: Function, a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (), k: int = 1,
            xtol: float = 2e-12, rtol: float = 8.881784197001252e-16, maxiter: int = 100,
            full_output: bool = False, disp: bool = True
            ) -> Array | tuple[Array, ScalarRootResults]:
    """The root of f between a and b by k interpolations a step, NaN where it is not found.

    Source: Alefeld, Potra and Shi, ACM TOMS 21 (1995), algorithm 748.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.toms748(lambda x: x * x - 2, 0.0, 2.0)), 4)
    1.4142
    """
    steps = known_size("optimize.toms748", "k", k)
    return _value(root_scalar(f, args, "toms748", (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter,
                              options={"k": steps}), full_output)


def _root(how: str, f: Function, a: ArrayLike, b: ArrayLike, args: Any, xtol: float, rtol: float,
          maxiter: int, full_output: bool) -> Array | tuple[Array, ScalarRootResults]:
    return _value(root_scalar(f, args, how, (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter),
                  full_output)


def _value(found: ScalarRootResults, full_output: bool
           ) -> Array | tuple[Array, ScalarRootResults]:
    x = jnp.where(found.converged, found.root, math.nan)
    return (x, found) if full_output else x


def _tolerances(known: dict[str, Any], dtype: Any) -> tuple[Any, Any]:
    xtol = 2e-12 if known["xtol"] is None else known["xtol"]
    return converted("scipy.optimize", xtol, dtype), at_least_eps(
        0.0 if known["rtol"] is None else known["rtol"], dtype)


def _in_bracket(how: str, fun: Function, a: ArrayLike, b: ArrayLike, known: dict[str, Any]
                ) -> ScalarRootResults:
    a, b = (v.reshape(()) for v in inexact(a, b))
    xtol, rtol = _tolerances(known, a.dtype)
    limit = 100 if known["maxiter"] is None else known["maxiter"]

    def value(x: Array) -> Array:
        return scalar_value("root_scalar", fun, x)

    ends = value(a), value(b)
    if not any(is_traced(v) for v in ends):
        try:
            same = float(ends[0]) * float(ends[1]) > 0
        except ConcretizationError:
            same = False
        if same:
            raise ArgumentError("functrans.scipy.optimize: f(a) and f(b) have one sign: "
                                f"{float(ends[0]):.3g} and {float(ends[1]):.3g}.",
                                where=user_source(), why="the root is between them.",
                                fix="a wider bracket, or method='newton' with x0")

    def search(start: Array) -> tuple[Array, Any]:
        how_found: Any = partial(toms748_search, k=known["k"]) if how == "toms748" else \
            _SEARCHES[how]
        found: tuple[Array, Any] = how_found(value, a, b, xtol, rtol, limit)
        return found

    root, (count, calls, converged) = solution(value, a, search)
    return ScalarRootResults(root, count, calls, converged)


def _bisected(f: Function, a: Array, b: Array, xtol: Any, rtol: Any, limit: int) -> Any:
    fa, fb = f(a), f(b)

    def unfinished(state: Any) -> Any:
        low, high, fl, _, count = state
        return (jnp.abs(high - low) > xtol + rtol * jnp.abs(low)) & (count < limit) & (fl != 0)

    def improve(state: Any) -> Any:
        low, high, fl, fh, count = state
        middle = low + (high - low) / 2
        fm = f(middle)
        left = jnp.sign(fm) == jnp.sign(fl)
        done = fm == 0
        low, fl = jnp.where(left | done, middle, low), jnp.where(left | done, fm, fl)
        return low, jnp.where(left, high, middle), fl, jnp.where(left, fh, fm), count + 1

    start = (jnp.where(fb == 0, b, a), b, jnp.where(fb == 0, fb, fa), fb, 0)
    low, high, fl, _, count = lax.while_loop(unfinished, improve, start)
    found = jnp.where(fl == 0, low, low + (high - low) / 2)
    close = (jnp.abs(high - low) <= xtol + rtol * jnp.abs(low)) | (fl == 0)
    return found, (count, count + 2, close & (fa * fb <= 0))


def _brent(f: Function, a: Array, b: Array, xtol: Any, rtol: Any, limit: int,
           hyperbolic: bool = False) -> Any:
    fa, fb = f(a), f(b)

    def delta(x: Array) -> Array:
        found: Array = (xtol + rtol * jnp.abs(x)) / 2
        return found

    def unfinished(state: Any) -> Any:
        _, now, blk, _, fnow, _, _, _, count = state
        return (fnow != 0) & (jnp.abs(blk - now) / 2 > delta(now)) & (count < limit)

    def improve(state: Any) -> Any:
        pre, now, blk, fpre, fnow, fblk, spre, snow, count = state
        d = delta(now)
        half = (blk - now) / 2
        secant = pre == blk
        # a secant, or through three points the inverse parabola or a hyperbola
        p1 = jnp.where(fnow == fpre, 1, fnow - fpre)
        line = -fnow * (now - pre) / p1
        dpre = (fpre - fnow) / jnp.where(pre == now, 1, pre - now)
        dblk = (fblk - fnow) / jnp.where(blk == now, 1, blk - now)
        if hyperbolic:
            divisor, rise = fblk * dpre - fpre * dblk, fblk - fpre
        else:
            divisor, rise = dblk * dpre * (fblk - fpre), fblk * dblk - fpre * dpre
        curve = -fnow * rise / jnp.where(divisor == 0, 1, divisor)
        trial = jnp.where(secant, line, curve)
        good = (jnp.abs(spre) > d) & (jnp.abs(fnow) < jnp.abs(fpre)) & (
            2 * jnp.abs(trial) < jnp.minimum(jnp.abs(spre), 3 * jnp.abs(half) - d))
        spre, snow = jnp.where(good, snow, half), jnp.where(good, trial, half)
        point = now + jnp.where(jnp.abs(snow) > d, snow, jnp.where(half > 0, d, -d))
        return arranged(now, point, blk, fnow, f(point), fblk, spre, snow, count + 1)

    def arranged(pre: Any, now: Any, blk: Any, fpre: Any, fnow: Any, fblk: Any, spre: Any,
                 snow: Any, count: Any) -> Any:
        """The bracket is between `now`, the better end, and `blk`."""
        crossed = (fpre != 0) & (fnow != 0) & (jnp.sign(fpre) != jnp.sign(fnow))
        blk, fblk = jnp.where(crossed, pre, blk), jnp.where(crossed, fpre, fblk)
        spre, snow = jnp.where(crossed, now - pre, spre), jnp.where(crossed, now - pre, snow)
        swap = jnp.abs(fblk) < jnp.abs(fnow)
        pre, now, blk = jnp.where(swap, now, pre), jnp.where(swap, blk, now), jnp.where(
            swap, now, blk)
        fpre, fnow, fblk = jnp.where(swap, fnow, fpre), jnp.where(swap, fblk, fnow), jnp.where(
            swap, fnow, fblk)
        return pre, now, blk, fpre, fnow, fblk, spre, snow, count

    at_a = fa == 0
    b_first = jnp.where(at_a, a, b)
    start = arranged(a, b_first, a, fa, jnp.where(at_a, fa, fb), fa, b - a, b - a, 0)
    _, now, blk, _, fnow, _, _, _, count = lax.while_loop(unfinished, improve, start)
    close = (fnow == 0) | (jnp.abs(blk - now) / 2 <= delta(now))
    return now, (count, count + 2, close & (fa * fb <= 0))


def _ridders(f: Function, a: Array, b: Array, xtol: Any, rtol: Any, limit: int) -> Any:
    fa, fb = f(a), f(b)

    def unfinished(state: Any) -> Any:
        low, high, fl, fh, x, count = state
        return (jnp.abs(high - low) > xtol + rtol * jnp.abs(x)) & (count < limit) & (
            fl != 0) & (fh != 0)

    def improve(state: Any) -> Any:
        low, high, fl, fh, _, count = state
        half = (high - low) / 2
        middle = low + half
        fm = f(middle)
        root = jnp.sqrt(fm * fm - fl * fh)
        x = middle + half * jnp.sign(fl - fh) * fm / jnp.where(root == 0, 1, root)
        x = jnp.where(root == 0, middle, x)
        fx = f(x)
        # the two of four points that have the root between them, as near as can be
        between = jnp.sign(fm) != jnp.sign(fx)
        left = jnp.sign(fl) != jnp.sign(fx)
        new_low = jnp.where(between, middle, jnp.where(left, low, x))
        new_fl = jnp.where(between, fm, jnp.where(left, fl, fx))
        new_high = jnp.where(between, x, jnp.where(left, x, high))
        new_fh = jnp.where(between, fx, jnp.where(left, fx, fh))
        return new_low, new_high, new_fl, new_fh, x, count + 1

    low, high, fl, fh, x, count = lax.while_loop(unfinished, improve, (a, b, fa, fb, a, 0))
    found = jnp.where(fl == 0, low, jnp.where(fh == 0, high, x))
    close = (jnp.abs(high - low) <= xtol + rtol * jnp.abs(x)) | (fl == 0) | (fh == 0)
    return found, (count, 2 * count + 2, close & (fa * fb <= 0))


_SEARCHES = {"bisect": _bisected, "brentq": _brent, "ridder": _ridders,
             "brenth": partial(_brent, hyperbolic=True)}


def _near(how: str, fun: Function, x0: ArrayLike, x1: ArrayLike | None, slopes: list[Any],
          known: dict[str, Any]) -> ScalarRootResults:
    x, *second = (v.reshape(()) for v in inexact(x0, *([] if x1 is None else [x1])))
    xtol, rtol = _tolerances({**known, "xtol": 1.48e-8 if known["xtol"] is None
                              else known["xtol"]}, x.dtype)
    limit = 50 if known["maxiter"] is None else known["maxiter"]

    def value(z: Array) -> Array:
        return scalar_value("root_scalar", fun, z)

    def slope(z: Array) -> Array:
        found: Array = grad(value)(z) if slopes[0] is None else \
            scalar_value("root_scalar", slopes[0], z)
        return found

    def bend(z: Array) -> Array:
        found: Array = grad(slope)(z) if slopes[1] is None else \
            scalar_value("root_scalar", slopes[1], z)
        return found

    def unfinished(state: Any) -> Any:
        z, last, *_, count = state
        return (jnp.abs(z - last) > xtol + rtol * jnp.abs(z)) & (count < limit)

    def improve(state: Any) -> Any:
        z, last, fz, flast, count = state
        if how == "secant":
            rise = fz - flast
            step = jnp.where(rise == 0, 0, fz * (z - last) / jnp.where(rise == 0, 1, rise))
        else:
            d = slope(z)
            step = jnp.where(fz == 0, 0, fz / d)
            if how == "halley":
                correction = step * bend(z) / d / 2
                step = jnp.where(jnp.abs(correction) < 1, step / (1 - correction), step)
        point = z - step
        return point, z, value(point), fz, count + 1

    def search(z: Array) -> tuple[Array, Any]:
        near = z * (1 + 1e-4) + jnp.where(z >= 0, 1e-4, -1e-4)
        other = second[0] if second else near
        if how == "secant":
            start = (other, z, value(other), value(z), 0)
        else:
            start = (z, jnp.full_like(z, math.inf), value(z), value(z), 0)
        found, last, fz, _, count = lax.while_loop(unfinished, improve, start)
        close = (jnp.abs(found - last) <= xtol + rtol * jnp.abs(found)) & jnp.isfinite(fz)
        return found, (count, count + 1, close)

    root, (count, calls, converged) = solution(value, x, search)
    return ScalarRootResults(root, count, calls, converged)
