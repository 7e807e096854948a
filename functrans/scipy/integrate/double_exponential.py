"""Integrals and sums of many functions of one number at once.

Functions take and return arrays, of which each element is a problem of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, real, refused
from functrans.scipy.named_result import OptimizeResult
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.typing import Array, ArrayLike

_BLOCK = 16  # places to one side that are computed at once
_DIRECT = 64  # terms that are added before the rest is an integral


def _prepared(name: str, f: Callable[..., Any], args: Any, points: list[Any]
              ) -> tuple[Callable[[Array], Array], list[Array]]:
    """f for arrays with one more first axis of places, and the points in one shape."""
    check_callable(f, f"scipy.integrate.{name}")
    more = args if isinstance(args, tuple) else (args,)
    given = real(f"integrate.{name}", *points)
    shape = jnp.broadcast_shapes(*(p.shape for p in given), *(jnp.shape(a) for a in more))
    points = [jnp.broadcast_to(p, shape) for p in given]

    def value(x: Array) -> Array:
        found = jnp.asarray(f(x, *more))
        if found.shape != x.shape:
            raise ShapeError(f"functrans.scipy.integrate.{name}: f returns shape {found.shape} for "
                             f"{x.shape}.", where=user_source(),
                             why="it works on the elements of arrays of any shape.")
        return found

    return value, points


def _refuse(name: str, log: bool, callback: Any = None) -> None:
    if log:
        raise refused(f"integrate.{name}", "log=True", "values are added as they are.",
                      "lambda x: functrans.numpy.exp(f(x))")
    if callback is not None:
        raise refused(f"integrate.{name}", "callback", "the loop is compiled.",
                      "functrans.debug.callback within f")


def tanhsinh(f: Callable[..., Any], a: ArrayLike, b: ArrayLike, *, args: Any = (),
             log: bool = False, maxlevel: int | None = None, minlevel: int = 2,
             atol: float | None = None, rtol: float | None = None, preserve_shape: bool = False,
             callback: None = None) -> OptimizeResult:
    """The integral of `f(x, *args)` from a to b, for each element, by the tanh-sinh rule.

    f may be singular at the ends, which may be infinite, each element by itself; it is never
    evaluated there. f is called with a first axis of places before those of a and b. Levels halve
    the step, from `minlevel` on to `maxlevel` (10), until the estimated error is at most `atol` or
    `rtol` (the dtype's epsilon to the power 0.75) times the value. The result has `integral`,
    `error`, `success`, `status` (0; -2 after `maxlevel`, -3 where f is not finite), `maxlevel` and
    `nfev`. Differentiated in a, b, args and what f closes over. `log` is refused.
    Source: Takahasi and Mori, Publ. RIMS 9 (1974); Bailey, Jeyabalan and Li, Exp. Math. 14 (2005).

    >>> import functrans as ft
    >>> found = ft.scipy.integrate.tanhsinh(lambda x: 1 / ft.numpy.sqrt(x), 0.0, 4.0)
    >>> round(float(found.integral), 3)
    4.0
    """
    _refuse("tanhsinh", log, callback)
    fun, (low, high) = _prepared("tanhsinh", f, args, [a, b])
    dtype = low.dtype
    eps = float(finfo(dtype).eps)
    most = known_size("integrate.tanhsinh", "maxlevel", 10 if maxlevel is None else maxlevel, 0)
    least = known_size("integrate.tanhsinh", "minlevel", minlevel, 0)
    relative = eps**0.75 if rtol is None else rtol
    absolute = 0.0 if atol is None else atol
    swap = low > high
    low, high = jnp.where(swap, high, low), jnp.where(swap, low, high)
    left, right = jnp.isinf(low), jnp.isinf(high)
    base, top = jnp.where(left, 0, low), jnp.where(right, 0, high)
    # where the distance to an end of the interval is no number any more
    far = math.asinh(2 / math.pi * math.log(2 / float(finfo(dtype).tiny)) / 2) * 0.995

    def both(t: Array) -> Array:
        """The weighted values at two places, t > 0 from the middle; at 0 they are one."""
        u = math.pi / 2 * jnp.sinh(t)
        near = 1 / (jnp.exp(u) * jnp.cosh(u))  # the distance from the end, of a length of 2
        weight = math.pi / 2 * jnp.cosh(t) / jnp.cosh(u) ** 2
        parts = []
        for side in (-1, 1):
            s = side * (1 - near)
            # finite: from the nearer end; to infinity: 1/s - 1; the whole line: s / (1 - s^2)
            width = top - base
            inner = base + width * near / 2 if side < 0 else top - width * near / 2
            share = near / 2 if side < 0 else 1 - near / 2
            outer = 1 / share - 1
            gap = near * (2 - near)
            x = jnp.where(left & right, s / gap, jnp.where(right, base + outer, jnp.where(
                left, top - outer, inner)))
            volume = jnp.where(left & right, (1 + s * s) / gap**2, jnp.where(
                left | right, 0.5 / share**2, width / 2))
            at_end = ~(left | right) & ((x <= base) | (x >= top))
            safe = jnp.where(at_end | ~jnp.isfinite(x), (base + top) / 2, x)
            good = ~at_end & jnp.isfinite(x) & jnp.isfinite(volume * weight)
            value = fun(safe).astype(dtype)
            parts.append(jnp.where(good & (width != 0) | (good & (left | right)),
                                   value * volume * weight, 0))
        found: Array = jnp.where(t > 0, parts[0] + parts[1], parts[0])
        return found

    column = (_BLOCK,) + (1,) * low.ndim

    def level(k: Array, total: Array, biggest: Array) -> tuple[Array, Array, Array]:
        """Add what level k has that the last one has not."""
        h = 0.5 ** k.astype(dtype)
        first = jnp.where(k == 0, 0.0, h).astype(dtype)
        stride = jnp.where(k == 0, h, 2 * h).astype(dtype)
        blocks = jnp.ceil((far - first) / (stride * _BLOCK)).astype(jnp.int32)

        def add(i: Any, state: Any) -> Any:
            total, biggest = state
            places = (i * _BLOCK + jnp.arange(_BLOCK)).astype(dtype).reshape(column)
            t = first + stride * places
            t = jnp.broadcast_to(t, (_BLOCK, *low.shape))
            values = jnp.where(t <= far, both(jnp.minimum(t, far)), 0)
            return total + jnp.sum(values, 0), jnp.maximum(biggest, jnp.max(jnp.abs(values), 0))

        total, biggest = lax.fori_loop(0, blocks, add, (total, biggest))
        return total, biggest, blocks * 2 * _BLOCK

    def error_of(now: Array, last: Array, before: Array, k: Array, biggest: Array) -> Array:
        d1, d2 = jnp.abs(now - last), jnp.abs(now - before)
        tiny = float(finfo(dtype).tiny)
        l1, l2 = jnp.log10(jnp.maximum(d1, tiny)), jnp.log10(jnp.maximum(d2, tiny))
        scale = jnp.maximum(jnp.abs(now), tiny)
        size = jnp.log10(scale)
        # digits double from level to level
        quick = jnp.where(l2 - size < 0, (l1 - size) ** 2 / jnp.where(l2 == size, -1, l2 - size), 0)
        guess = jnp.where(l1 - size < 0, jnp.maximum(quick, 2 * (l1 - size)), 0)
        h = 0.5 ** k.astype(dtype)
        floor = eps * jnp.maximum(biggest * h, jnp.abs(now))
        rough = jnp.where(d1 == 0, 0, scale * 10 ** jnp.minimum(guess, 0))
        return lax.stop_gradient(jnp.where(k < 2, d1, jnp.maximum(rough, floor)))

    def done(s: Any) -> Any:
        k, _, _, now, _, error, _ = s
        met = (error <= absolute + relative * jnp.abs(now)) | ~jnp.isfinite(now)
        return jnp.all(met) & (k > least)

    def improve(s: Any) -> Any:
        k, total, biggest, now, last, _, calls = s
        total, biggest, more = level(k, total, biggest)
        h = 0.5 ** k.astype(dtype)
        value = total * h
        return (k + 1, total, biggest, value, now, error_of(value, now, last, k, biggest),
                calls + more)

    zero = jnp.zeros_like(low)
    begin = (jnp.array(0), zero, zero, zero, zero, jnp.full_like(low, math.inf), jnp.array(0))
    k, _, _, value, _, error, calls = lax.while_loop(
        lambda s: ~done(s) & (s[0] <= most), improve, begin)
    finite = jnp.isfinite(value)
    met = error <= absolute + relative * jnp.abs(value)
    met = met | (error <= 16 * eps * jnp.abs(value))
    status = jnp.where(~finite, -3, jnp.where(met, 0, -2))
    return OptimizeResult(success=status == 0, status=status, integral=jnp.where(
        swap, -value, value), error=error, maxlevel=k - 1, nfev=calls)


def nsum(f: Callable[..., Any], a: ArrayLike, b: ArrayLike, *, step: ArrayLike = 1,
         args: Any = (), log: bool = False, maxterms: int = 2**20,
         tolerances: Mapping[str, float] | None = None) -> OptimizeResult:
    """The sum of `f(k, *args)` for k = a, a + step, ... to b, for each element; b may be infinite.

    Up to `maxterms` terms are added. Where there are more, or infinitely many, the first are added
    and the rest is an integral by `tanhsinh`, with corrections of Euler and Maclaurin from
    derivatives of f, which is then smooth and falls. The result has `sum`, `error`, `success`,
    `status` (0; -2 where the error is larger than the `tolerances` `rtol` and `atol`, -3 where f is
    not finite) and `nfev`. Differentiated in args and what f closes over. `log` is refused.
    Raises ArgumentError for another tolerance.

    >>> import functrans as ft
    >>> found = ft.scipy.integrate.nsum(lambda k: 1 / k ** 2, 1.0, ft.numpy.inf)
    >>> round(float(found.sum), 4)
    1.6449
    """
    _refuse("nsum", log)
    given = dict(tolerances or {})
    if set(given) - {"rtol", "atol"}:
        raise ArgumentError(f"functrans.scipy.integrate.nsum: tolerances are {given}.",
                            where=user_source(), fix="tolerances={'rtol': 1e-8, 'atol': 0.0}")
    fun, (low, high, stride) = _prepared("nsum", f, args, [a, b, step])
    dtype = low.dtype
    eps = float(finfo(dtype).eps)
    relative = eps**0.5 if given.get("rtol") is None else given["rtol"]
    absolute = 0.0 if given.get("atol") is None else given["atol"]
    most = known_size("integrate.nsum", "maxterms", maxterms, 0)
    count = jnp.floor((high - low) / stride + 1e-9) + 1
    wrong = ~((stride > 0) & jnp.isfinite(low)) | jnp.isnan(high)
    empty = count < 1
    long = count > most
    terms = jnp.where(long, jnp.minimum(_DIRECT, most), jnp.where(empty, 0, count))
    terms = jnp.where(wrong, 0, terms)
    blocks = jnp.ceil(jnp.max(terms, initial=0) / _BLOCK).astype(jnp.int32)

    def add(i: Any, state: Any) -> Any:
        total, size = state
        k = (i * _BLOCK + jnp.arange(_BLOCK)).astype(dtype).reshape((_BLOCK,) + (1,) * low.ndim)
        used = k < terms
        values = jnp.where(used, fun(jnp.where(used, low + stride * k, low)).astype(dtype), 0)
        return total + jnp.sum(values, 0), size + jnp.sum(jnp.abs(values), 0)

    zero = jnp.zeros_like(low)
    total, size = lax.fori_loop(0, blocks, add, (zero, zero))
    start = low + stride * terms
    last = low + stride * (count - 1)
    ends = [jnp.where(long, start, 1.0), jnp.where(long & jnp.isfinite(high), last, math.inf)]
    rest = tanhsinh(lambda x: fun(x), jnp.where(long, ends[0], zero),
                    jnp.where(long, ends[1], zero))

    def corrections(x: Array, sign: int) -> tuple[Array, Array]:
        """Half a term, and those of the first and third derivative; and that of the fifth."""
        one = jnp.ones_like(x)

        def slope(g: Callable[[Array], Array]) -> Callable[[Array], Array]:
            return lambda v: jvp(g, (v,), (one,))[1]

        def value(v: Array) -> Array:
            return fun(v).astype(dtype)

        first = slope(value)
        third = slope(slope(first))
        fifth = slope(slope(third))
        return (value(x) / 2 + sign * (-stride * first(x) / 12 + stride**3 * third(x) / 720),
                jnp.abs(stride**5 * fifth(x)) / 30240)

    near, near_error = corrections(jnp.where(long, start, jnp.ones_like(low)), 1)
    finite_end = long & jnp.isfinite(high)
    other, other_error = corrections(jnp.where(finite_end, last, jnp.ones_like(low)), -1)
    tail = rest.integral / stride + near + jnp.where(finite_end, other, 0)
    value = total + jnp.where(long, tail, 0)
    error = eps * size + jnp.where(long, rest.error / stride + near_error + jnp.where(
        finite_end, other_error, 0), 0)
    value = jnp.where(wrong, math.nan, value)
    met = error <= absolute + relative * jnp.abs(value)
    status = jnp.where(wrong | ~jnp.isfinite(value), -3, jnp.where(met, 0, -2))
    return OptimizeResult(success=status == 0, status=status, sum=value,
                          error=lax.stop_gradient(error),
                          nfev=terms.astype(jnp.int32) + jnp.where(long, rest.nfev, 0))
