"""quad and fixed_quad: integrals of functions.

quad halves the interval of the largest error, in one `while_loop`; under `vmap` each lane has its
own intervals. Its derivative in what the function closes over is the integral of the derivative,
over the intervals that were found; in the limits it is the function there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import converted, is_traced
from functrans.scipy.arguments import inexact, known_size, refused
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.transforms.staged import closure_convert
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

# Kronrod's 21 points and weights, and the weights of Gauss's 10 among them: Piessens et al.,
# QUADPACK (1983)
_POINTS = np.array([
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
    0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
    0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
    0.294392862701460198131126602103866, 0.148874338981631210884826001129720, 0.0])
_KRONROD = np.array([
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
    0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
    0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707,
    0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
    0.149445554002916905664936468389821])
_GAUSS = np.array([
    0.066671344308688137593568809893332, 0.149451349150580593145863396957658,
    0.219086362515982043995534934228163, 0.269266719309996355091226921569469,
    0.295524224714752870173815619188769])
KRONROD_POINTS = np.concatenate([-_POINTS, _POINTS[-2::-1]])
KRONROD_WEIGHTS = np.concatenate([_KRONROD, _KRONROD[-2::-1]])
GAUSS_WEIGHTS = np.zeros(21)
GAUSS_WEIGHTS[1:10:2] = _GAUSS
GAUSS_WEIGHTS[11:20:2] = _GAUSS[::-1]


class _Intervals(NamedTuple):
    """Intervals with their integrals, errors and the size of what was added up."""

    left: Array
    right: Array
    value: Array
    error: Array
    size: Array


def quad(func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
         full_output: int = 0, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50,
         points: Sequence[float] | None = None) -> tuple[Array, Array]:
    """The integral of `func(x, *args)` from a to b, and an estimate of its error.

    `func` takes one number and returns one, and is computed at many by `vmap`. Limits may be
    infinite where they are known, and `points` are places where the function is not smooth. At most
    `limit` intervals are made; the error says what was reached.
    Raises ShapeError for a function with another result.
    Source: Piessens et al., QUADPACK (1983), of which this is the rule without extrapolation.

    >>> import functrans as ft
    >>> value, error = ft.scipy.integrate.quad(lambda x, k: ft.numpy.exp(-k * x), 0, ft.numpy.inf,
    ...                                        (2.0,))
    >>> round(float(value), 4)
    0.5
    """
    check_callable(func, "scipy.integrate.quad")
    if full_output:
        raise refused("integrate.quad", "full_output", "it returns the integral and its error.")
    limit = known_size("integrate.quad", "limit", limit)
    more = args if isinstance(args, tuple) else (args,)
    low, high = (v.reshape(()) for v in inexact(a, b))
    dtype = low.dtype
    left_open, right_open = _infinite(low), _infinite(high)
    sign = 1.0
    if left_open > 0 or right_open < 0:  # from infinity backwards
        low, high, left_open, right_open, sign = high, low, right_open, left_open, -1.0
    if left_open == right_open and left_open:
        return jnp.zeros((), dtype), jnp.zeros((), dtype)

    def one(x: Array) -> Array:
        value = jnp.asarray(func(x, *more))
        if value.shape or dtypes.kind(value.dtype) == "c":
            raise ShapeError(f"functrans.scipy.integrate.quad: the function returns "
                             f"{value.dtype}{list(value.shape)}.", where=user_source(),
                             why="it returns one real number for one number.")
        return value.astype(dtype)

    convert, constants = closure_convert(one, jnp.zeros((), dtype))
    middles = _breaks(points, low, high, left_open, right_open)
    if len(middles) + 1 > limit:
        raise ArgumentError(f"functrans.scipy.integrate.quad: limit is {limit}.",
                            where=user_source(), why=f"there are {len(middles)} points.")

    def transformed(low: Array, high: Array, consts: Sequence[Array]) -> Callable[[Array], Array]:
        """The integrand on a finite interval."""
        if left_open and right_open:
            return lambda t: (convert((1 - t) / t, *consts) + convert((t - 1) / t, *consts)) / t**2
        if right_open:
            return lambda t: convert(low + (1 - t) / t, *consts) / t**2
        if left_open:
            return lambda t: convert(high - (1 - t) / t, *consts) / t**2
        return lambda t: convert(t, *consts)

    is_finite = not (left_open or right_open)

    @custom_jvp
    def integral(low: Array, high: Array, consts: Any) -> tuple[Array, Array, _Intervals]:
        start, stop = (low, high) if is_finite else (jnp.zeros((), dtype), jnp.ones((), dtype))
        edges = jnp.stack([start, *middles, stop])
        found = _refined(transformed(low, high, consts), edges, epsabs, epsrel, limit)
        return jnp.sum(found.value), jnp.sum(found.error), found

    @integral.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (low, high, consts), (low_dot, high_dot, consts_dot) = primals, tangents
        value, error, found = integral(low, high, consts)

        def moved(t: Array) -> Array:
            out: Array = jvp(lambda *c: transformed(low, high, c)(t), tuple(consts),
                             tuple(consts_dot))[1]
            return out

        slope = jnp.zeros((), dtype)
        if consts:
            used = found.size > 0
            half = jnp.where(used, (found.right - found.left) / 2, 0)
            # unused places hold the whole interval, with no weight
            center = (found.right + found.left) / 2
            width = (found.right - found.left) / 2
            nodes = center[:, None] + width[:, None] * jnp.asarray(KRONROD_POINTS).astype(dtype)
            weights = half[:, None] * jnp.asarray(KRONROD_WEIGHTS).astype(dtype)
            slope = jnp.sum(vmap(vmap(moved))(nodes) * weights)
        if not right_open:
            slope = slope + convert(high, *consts) * high_dot
        if not left_open:
            slope = slope - convert(low, *consts) * low_dot
        still = _Intervals(*(jnp.zeros_like(v) for v in found))
        return (value, error, found), (slope, jnp.zeros_like(error), still)

    value, error, _ = integral(low, high, tuple(constants))
    return sign * value, error


def _infinite(limit: Array) -> int:
    """-1 or 1 for a limit that is known to be infinite."""
    if is_traced(limit):
        return 0
    value = limit.item()
    return 0 if math.isfinite(value) or math.isnan(value) else int(math.copysign(1, value))


def _breaks(points: Sequence[float] | None, low: Array, high: Array, left_open: int,
            right_open: int) -> list[Array]:
    if points is None:
        return []
    if left_open or right_open:
        raise ArgumentError("functrans.scipy.integrate.quad: points, and an infinite limit.",
                            where=user_source(), fix="the sum of two integrals")
    values = [jnp.clip(converted("scipy.integrate.quad", p, low.dtype), jnp.minimum(low, high),
                       jnp.maximum(low, high)) for p in points]
    ordered = jnp.sort(jnp.stack(values)) if values else jnp.zeros(0)
    ordered = jnp.where(low <= high, ordered, ordered[::-1])
    return [ordered[i] for i in range(len(values))]


def _rule(f: Callable[[Array], Array], left: Array, right: Array) -> tuple[Array, Array, Array]:
    """The integral over an interval, its error, and the integral of the magnitude."""
    dtype = left.dtype
    half, center = (right - left) / 2, (right + left) / 2
    y = vmap(f)(center + half * jnp.asarray(KRONROD_POINTS).astype(dtype))
    kronrod, gauss = (jnp.asarray(w).astype(dtype) for w in (KRONROD_WEIGHTS, GAUSS_WEIGHTS))
    value = jnp.sum(kronrod * y)
    size = jnp.sum(kronrod * jnp.abs(y)) * jnp.abs(half)
    spread = jnp.sum(kronrod * jnp.abs(y - value / 2)) * jnp.abs(half)
    rough = jnp.abs((value - jnp.sum(gauss * y)) * half)
    error = jnp.where((spread > 0) & (rough > 0), spread * jnp.minimum(
        1, (200 * rough / jnp.where(spread > 0, spread, 1)) ** 1.5), rough)
    return value * half, jnp.maximum(error, 50 * float(finfo(dtype).eps) * size), size


def _refined(f: Callable[[Array], Array], edges: Array, epsabs: float, epsrel: float, limit: int
             ) -> _Intervals:
    dtype, count = edges.dtype, edges.shape[0] - 1
    left = jnp.full(limit, 0, dtype).at[:].set(edges[0]).at[:count].set(edges[:-1])
    right = jnp.full(limit, 0, dtype).at[:].set(edges[-1]).at[:count].set(edges[1:])
    first = [_rule(f, edges[i], edges[i + 1]) for i in range(count)]
    filled = [jnp.zeros(limit, dtype).at[:count].set(jnp.stack(v)) for v in zip(*first)]
    roundoff = 60 * float(finfo(dtype).eps)

    def unfinished(state: Any) -> Any:
        s, n = state
        allowed = jnp.maximum(epsabs, epsrel * jnp.abs(jnp.sum(s.value)))
        allowed = jnp.maximum(allowed, roundoff * jnp.sum(s.size))
        return (jnp.sum(s.error) > allowed) & (n < limit)

    def improve(state: Any) -> Any:
        s, n = state
        worst = jnp.argmax(s.error)
        low, high = s.left[worst], s.right[worst]
        middle = (low + high) / 2
        both = [_rule(f, low, middle), _rule(f, middle, high)]
        new = [(low, middle, *both[0]), (middle, high, *both[1])]
        return _Intervals(*(v.at[worst].set(p).at[n].set(q)
                            for v, p, q in zip(s, new[0], new[1]))), n + 1

    start = (_Intervals(left, right, *filled), jnp.array(count))
    return lax.while_loop(unfinished, improve, start)[0]


def fixed_quad(func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
               n: int = 5) -> tuple[Array, None]:
    """The integral of `func(x, *args)` from a to b by Gauss's rule of n points, and None.

    `func` takes a vector of points, and its results' last axis is theirs.

    >>> import functrans as ft
    >>> value, _ = ft.scipy.integrate.fixed_quad(lambda x: x ** 2, 0.0, 3.0)
    >>> round(float(value), 4)
    9.0
    """
    check_callable(func, "scipy.integrate.fixed_quad")
    order = known_size("integrate.fixed_quad", "n", n)
    low, high = inexact(a, b)
    if any(_infinite(v) for v in (low, high)):
        raise ArgumentError("functrans.scipy.integrate.fixed_quad: a limit is infinite.",
                            where=user_source(), fix="functrans.scipy.integrate.quad")
    nodes, weights = (jnp.asarray(v).astype(low.dtype) for v in
                      np.polynomial.legendre.leggauss(order))
    half = (high - low) / 2
    value = jnp.asarray(func(half * nodes + (high + low) / 2, *args))
    return half * jnp.sum(weights * value, axis=-1), None
