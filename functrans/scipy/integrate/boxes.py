"""Integrals of arrays over boxes, which are divided where errors are large.

Limits are transformed away, so that what is divided is the unit box. The derivative is the integral
of the derivative over the boxes that were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of, refused
from functrans.scipy.integrate.adaptive import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from functrans.scipy.named_result import OptimizeResult
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.transforms.staged import closure_convert
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

Table = np.ndarray[Any, Any]
# Kronrod's 15 points, the weights, and those of Gauss's 7: Piessens et al., QUADPACK (1983)
_X15 = np.array([0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                 0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                 0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
                 0.207784955007898467600689403773245])
_W15 = np.array([0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                 0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                 0.204432940075298892414161999234649, 0.209482141084727828012999174891714])
_G7 = np.array([0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
                0.381830050505118944950369775488975, 0.417959183673469387755102040816327])


class Rule(NamedTuple):
    """Points in [-1, 1]^d, their weights, and those of a rougher rule."""

    points: Table
    weights: Table
    rough: Table


def _line(name: str) -> Rule:
    if name == "gk21":
        return Rule(KRONROD_POINTS[:, None], KRONROD_WEIGHTS, GAUSS_WEIGHTS)
    if name == "trapezoid":
        x = np.array([-1.0, 0.0, 1.0])
        return Rule(x[:, None], np.array([0.5, 1.0, 0.5]), np.array([1.0, 0.0, 1.0]))
    rough = np.zeros(15)
    rough[1:14:2] = np.concatenate([_G7, _G7[-2::-1]])
    return Rule(np.concatenate([-_X15, [0.0], _X15[::-1]])[:, None],
                np.concatenate([_W15, _W15[-2::-1]]), rough)


def rule_of(name: str, d: int) -> Rule:
    """A rule in d dimensions: a product of those on lines, or that of Genz and Malik."""
    if name in ("genz-malik", "gm"):
        return _genz_malik(d)
    line = _line(name)
    grids = np.meshgrid(*[line.points[:, 0]] * d, indexing="ij")
    points = np.stack([g.ravel() for g in grids], axis=1)

    def all_of(w: Table) -> Table:
        found = np.ones(1)
        for _ in range(d):
            found = (found[:, None] * w).ravel()
        return found

    return Rule(points, all_of(line.weights), all_of(line.rough))


def _genz_malik(d: int) -> Rule:
    """Genz and Malik, J. Comput. Appl. Math. 6 (1980): degree 7, with one of degree 5 within."""
    l2, l3, l5 = math.sqrt(9 / 70), math.sqrt(9 / 10), math.sqrt(9 / 19)
    eye = np.eye(d)
    pairs = [s * eye[i] + t * eye[j] for i in range(d) for j in range(i)
             for s, t in product((1, -1), repeat=2)]
    parts = [np.zeros((1, d)), np.concatenate([l2 * eye, -l2 * eye]),
             np.concatenate([l3 * eye, -l3 * eye]), l3 * np.array(pairs).reshape(-1, d),
             l5 * np.array(list(product((1, -1), repeat=d)), float)]
    whole = 2.0**d
    high = [whole * (12824 - 9120 * d + 400 * d * d) / 19683, whole * 980 / 6561,
            whole * (1820 - 400 * d) / 19683, whole * 200 / 19683, 6859 / 19683]
    low = [whole * (729 - 950 * d + 50 * d * d) / 729, whole * 245 / 486,
           whole * (265 - 100 * d) / 1458, whole * 25 / 729, 0.0]
    sizes = [len(p) for p in parts]
    return Rule(np.concatenate(parts), np.repeat(high, sizes), np.repeat(low, sizes))


class _Boxes(NamedTuple):
    low: Array
    high: Array
    value: Array  # (boxes, size)
    error: Array
    used: Array
    steps: Array


def _infinities(v: Any) -> list[int]:
    """The signs of infinite numbers, and 0 of others; what is traced is taken for finite."""
    if isinstance(v, (list, tuple)):
        return [sign for x in v for sign in _infinities(x)]
    known = lax.stop_gradient(v) if isinstance(v, Tracer) else v
    # under jit operations on what is known are staged: it is read as it was given
    values = np.zeros(jnp.shape(v)) if is_traced(known) else np.asarray(known, float)
    return [int(s) for s in np.where(np.isinf(values), np.sign(values), 0).reshape(-1)]


def _limits(name: str, a: ArrayLike, b: ArrayLike) -> list[tuple[int, int]]:
    """-1, 0 or 1 for both limits of each dimension: infinite ones are known."""
    found = list(zip(_infinities(a), _infinities(b)))
    for k, (left, right) in enumerate(found):
        if left > 0 or right < 0:
            raise ArgumentError(f"functrans.scipy.integrate.{name}: the limits of dimension {k} "
                                "end before they begin.", where=user_source(),
                                why="infinite limits are in order.", fix="the other order")
    return found


def _placed(u: Array, a: Array, b: Array, kinds: list[tuple[int, int]]) -> tuple[Array, Array]:
    """The place of a point of the unit box, and the volume there."""
    places, volume = [], jnp.ones((), u.dtype)
    for i, (left, right) in enumerate(kinds):
        t = u[i]
        if not left and not right:
            places.append(a[i] + (b[i] - a[i]) * t)
            volume = volume * (b[i] - a[i])
        elif left and right:
            s = 2 * t - 1
            s = jnp.where(s == 0, float(finfo(u.dtype).tiny) ** 0.25, s)
            places.append((1 - jnp.abs(s)) / s)
            volume = volume * 2 / s**2
        else:
            s = jnp.where(t == 0, float(finfo(u.dtype).tiny) ** 0.25, t)
            places.append(a[i] + (1 - s) / s if right else b[i] - (1 - s) / s)
            volume = volume / s**2
    return jnp.stack(places), volume


def integrated(f: Callable[[Array], Array], a: Array, b: Array, rule: Rule,
               kinds: list[tuple[int, int]], edges: list[list[float]],
               allowed: Callable[[Array, Array], Array], size_of: Callable[[Array], Array],
               most: int) -> tuple[Array, Array, _Boxes]:
    """The integral of f over a box, its error, and the boxes.

    `kinds` say which limits are infinite. `edges` divide each axis of the unit box at the start,
    `allowed(value, error)` says when the error is small, `size_of` how large the error of a box is,
    and `most` how often boxes are divided.
    """
    d = a.size
    dtype = a.dtype
    probe = jnp.asarray(f(jnp.full(d, 0.5, dtype)))
    shape, out = probe.shape, dtypes.result_type(probe.dtype, dtype)
    points = jnp.asarray(rule.points).astype(dtype)
    weights, rough = (jnp.asarray(w).astype(dtype) for w in (rule.weights, rule.rough))
    convert, constants = closure_convert(lambda x: jnp.asarray(f(x)).reshape(-1).astype(out),
                                         jnp.zeros(d, dtype))
    safe_a = jnp.stack([jnp.zeros((), dtype) if k[0] else v for v, k in zip(a, kinds)])
    safe_b = jnp.stack([jnp.zeros((), dtype) if k[1] else v for v, k in zip(b, kinds)])

    def integrand(u: Array, given: Any) -> Array:
        low, high, consts = given
        place, volume = _placed(u, low, high, kinds)
        found: Array = convert(place, *consts) * volume
        return found

    def applied(low: Array, high: Array, fun: Callable[[Array], Array]) -> tuple[Array, Array]:
        half = (high - low) / 2
        values = vmap(fun)((low + high) / 2 + half * points)
        volume = jnp.prod(half)
        best = jnp.tensordot(weights, values, 1) * volume
        return best, jnp.abs(best - jnp.tensordot(rough, values, 1) * volume)

    grids = [list(pairwise(e)) for e in edges]
    start = np.array([list(zip(*box)) for box in product(*grids)])  # (boxes, 2, d)
    first = len(start)
    children = 2**d
    capacity = first + most * (children - 1)

    @custom_jvp
    def search(given: Any) -> Any:
        def fun(u: Array) -> Array:
            return integrand(u, given)

        lows, highs = (jnp.asarray(start[:, k]).astype(dtype) for k in (0, 1))
        value, error = vmap(lambda x, y: applied(x, y, fun))(lows, highs)

        def filled(x: Array) -> Array:
            return jnp.zeros((capacity, *x.shape[1:]), x.dtype).at[:first].set(x)

        state = _Boxes(filled(lows), filled(highs), filled(value), filled(error),
                       jnp.array(first), jnp.array(0))

        def unfinished(s: _Boxes) -> Array:
            return ~allowed(jnp.sum(s.value, 0).reshape(shape),
                            jnp.sum(s.error, 0).reshape(shape)) & (s.steps < most)

        corners = jnp.asarray(np.array(list(product((0, 1), repeat=d)))).astype(dtype)

        def improve(s: _Boxes) -> _Boxes:
            worst = jnp.argmax(vmap(size_of)(s.error))
            low, high = s.low[worst], s.high[worst]
            half = (high - low) / 2
            lows = low + corners * half
            highs = jnp.where(corners > 0, high, low + half)
            value, error = vmap(lambda x, y: applied(x, y, fun))(lows, highs)
            slots = jnp.concatenate([worst[None].astype(jnp.int32),
                                     (s.used + jnp.arange(children - 1)).astype(jnp.int32)])
            return _Boxes(s.low.at[slots].set(lows), s.high.at[slots].set(highs),
                          s.value.at[slots].set(value), s.error.at[slots].set(error),
                          s.used + children - 1, s.steps + 1)

        s = lax.while_loop(unfinished, improve, state)
        numbers = jnp.stack([s.used, s.steps]).astype(dtype)
        return (jnp.sum(s.value, 0), jnp.sum(s.error, 0), s.low, s.high, s.value, s.error, numbers)

    @search.defjvp
    def rule_of_search(primals: Any, tangents: Any) -> Any:
        (given,), (moves,) = primals, tangents
        found = search(given)
        low, high, numbers = found[2], found[3], found[6]

        def moved(u: Array) -> Array:
            out: Array = jvp(lambda g: integrand(u, g), (given,), (moves,))[1]
            return out

        def add(i: Any, total: Array) -> Array:
            return total + applied(low[i], high[i], moved)[0]

        slope = lax.fori_loop(0, lax.stop_gradient(numbers[0]).astype(jnp.int32), add,
                              jnp.zeros_like(found[0]))
        return found, (slope, *map(jnp.zeros_like, found[1:]))

    value, error, low, high, values, errors, numbers = search((safe_a, safe_b, tuple(constants)))
    count, steps = (lax.stop_gradient(v).astype(jnp.int32) for v in numbers)
    boxes = _Boxes(low, high, values, errors, count, steps)
    return value.reshape(shape), lax.stop_gradient(error).reshape(shape), boxes


def _norm(how: str) -> Callable[[Array], Array]:
    one_of("integrate.quad_vec", "norm", how, ("2", "max"))
    return (lambda x: jnp.max(jnp.abs(x))) if how == "max" else (
        lambda x: jnp.sqrt(jnp.sum(jnp.abs(x) ** 2)))


def quad_vec(f: Callable[..., Any], a: ArrayLike, b: ArrayLike, epsabs: float = 1e-200,
             epsrel: float = 1e-8, norm: str = "2", cache_size: float = 100e6, limit: int = 10000,
             workers: int = 1, points: Sequence[float] | None = None,
             quadrature: str | None = None, full_output: bool = False, *,
             args: tuple[Any, ...] = ()
             ) -> tuple[Array, Array] | tuple[Array, Array, OptimizeResult]:
    """The integral of an array `f(x, *args)` of one number from a to b, and the error's norm.

    Intervals are halved, at most `limit` times, until the `norm` ("2" or "max") of the error is
    small. `quadrature` is "gk21" (with finite limits), "gk15" or "trapezoid". Infinite limits are
    known. `points` are where f is not smooth. f is computed at many places by `vmap`: `workers` and
    `cache_size` are not needed. With `full_output` also a result with `success`, `status`,
    `intervals`, `integrals`, `errors` and `neval`. Differentiated in limits, args and what f closes
    over.

    >>> import functrans as ft
    >>> value, error = ft.scipy.integrate.quad_vec(
    ...     lambda x: x ** ft.numpy.array([0.0, 1.0, 2.0]), 0.0, 1.0)
    >>> print(value.round(3))
    [1.    0.5   0.333]
    """
    check_callable(f, "scipy.integrate.quad_vec")
    low, high = (v.reshape(1) for v in inexact(a, b))
    (kind,) = _limits("quad_vec", a, b)
    one_of("integrate.quad_vec", "quadrature", quadrature, (None, "gk21", "gk15", "trapezoid"))
    rule = rule_of(quadrature or ("gk15" if any(kind) else "gk21"), 1)
    length = _norm(norm)
    eps = float(finfo(low.dtype).eps)
    edges = [0.0, 0.5, 1.0] if all(kind) else [0.0, 1.0]
    if points is not None:
        if any(kind) or any(is_traced(v) for v in (low, high)):
            raise refused("integrate.quad_vec", "points", "limits are finite and known with these.",
                          "the sum of several integrals")
        ends = float(low[0]), float(high[0])
        edges = sorted({0.0, 1.0, *((p - ends[0]) / (ends[1] - ends[0]) for p in points
                                    if min(ends) < p < max(ends))})

    def allowed(value: Array, error: Array) -> Array:
        return length(error) <= jnp.maximum(epsabs, jnp.maximum(epsrel, 2 * eps) * length(value))

    more = args if isinstance(args, tuple) else (args,)
    most = known_size("integrate.quad_vec", "limit", limit)
    value, error, boxes = integrated(lambda x: f(x[0], *more), low, high, rule, [kind], [edges],
                                     allowed, length, most)
    if not full_output:
        return value, length(error)
    good = allowed(value, error)
    used = slice(None) if is_traced(boxes.used) else slice(int(boxes.used))
    return value, length(error), OptimizeResult(
        success=good, status=jnp.where(good, 0, 1), neval=len(rule.points) * (
            2 * boxes.steps + len(edges) - 1),
        intervals=jnp.concatenate([low + (high - low) * boxes.low[used],
                                   low + (high - low) * boxes.high[used]], axis=1),
        integrals=boxes.value[used], errors=vmap(length)(boxes.error[used]))


def cubature(f: Callable[..., Any], a: ArrayLike, b: ArrayLike, *, rule: str = "gk21",
             rtol: float = 1e-8, atol: float = 0, max_subdivisions: int = 10000,
             args: tuple[Any, ...] = (), workers: int = 1, points: Any = None) -> OptimizeResult:
    """The integral of an array over a box of several dimensions, and its error.

    `f(x, *args)` takes points (n, dims) and returns (n, ...). `rule` is "gk21" or "gk15", products
    of rules on lines, or "genz-malik" (from 2 dimensions on), which has fewer points. Boxes are
    divided in all dimensions, `max_subdivisions` times at most, until all errors are at most `atol`
    + `rtol` times the value. Infinite limits are known. The result has `estimate`, `error`,
    `status` ("converged" or "not_converged", where it is known), `success`, `subdivisions`, `atol`
    and `rtol`. Differentiated in limits, args and what f closes over. `points` are refused.

    >>> import functrans as ft
    >>> found = ft.scipy.integrate.cubature(lambda x: ft.numpy.cos(x.sum(axis=1)), [0.0, 0.0],
    ...                                     [1.0, 1.0], rule="genz-malik", rtol=1e-5)
    >>> round(float(found.estimate), 3)
    0.497
    """
    check_callable(f, "scipy.integrate.cubature")
    if points is not None:
        raise refused("integrate.cubature", "points", "all boxes are divided alike.",
                      "the sum of several integrals, over the boxes between them")
    low, high = inexact(a, b)
    if low.ndim != 1 or low.shape != high.shape or not low.size:
        raise ShapeError(f"functrans.scipy.integrate.cubature: a has shape {low.shape}, b "
                         f"{high.shape}.", where=user_source(),
                         why="they are vectors, with a limit for each dimension.")
    d = low.size
    one_of("integrate.cubature", "rule", rule, ("gk21", "gk15", "genz-malik", "gm"))
    if rule in ("genz-malik", "gm") and d < 2:
        raise ArgumentError("functrans.scipy.integrate.cubature: rule='genz-malik' in one "
                            "dimension.", where=user_source(), fix="rule='gk21'")
    kinds = _limits("cubature", a, b)
    least = 10 * float(finfo(low.dtype).eps)
    relative = max(float(rtol), least)
    more = args if isinstance(args, tuple) else (args,)
    most = known_size("integrate.cubature", "max_subdivisions", max_subdivisions)

    def one(x: Array) -> Array:
        value = jnp.asarray(f(x[None], *more))
        if not value.ndim or value.shape[0] != 1:
            raise ShapeError(f"functrans.scipy.integrate.cubature: f returns shape {value.shape} "
                             "for one point.", where=user_source(),
                             why="its first axis is that of the points.")
        found: Array = value[0]
        return found

    def allowed(value: Array, error: Array) -> Array:
        return jnp.all(error <= atol + relative * jnp.abs(value))

    edges = [[0.0, 0.5, 1.0] if all(k) else [0.0, 1.0] for k in kinds]
    value, error, boxes = integrated(one, low, high, rule_of(rule, d), kinds,
                                     edges, allowed, lambda e: jnp.max(jnp.abs(e)), most)
    good = allowed(value, error)
    told = {} if is_traced(good) else {"status": "converged" if bool(good) else "not_converged"}
    return OptimizeResult(estimate=value, error=error, success=good, subdivisions=boxes.steps,
                          atol=atol, rtol=rtol, **told)
