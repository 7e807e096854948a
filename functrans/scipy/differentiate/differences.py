"""Differences of a high order, with steps that fall until the derivative stays the same.

Nodes are at geometric distances, so that a smaller step needs two new values. Source: Fornberg,
Math. Comp. 51 (1988), for the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, real, refused
from functrans.scipy.named_result import OptimizeResult
from functrans.transforms.flat import check_callable
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

Evaluate = Callable[[Array], Array]


def _weights(nodes: Array) -> Array:
    """Of values at nodes (n, ...), which include 0, those of the derivative there."""
    n = nodes.shape[0]
    powers = jnp.stack([nodes**k for k in range(n)])  # (powers, nodes, ...)
    matrix = jnp.moveaxis(powers, (0, 1), (-2, -1))
    right = jnp.zeros((n, 1), nodes.dtype).at[1].set(1)
    found = jnp.linalg.solve(matrix, jnp.broadcast_to(right, (*matrix.shape[:-1], 1)))[..., 0]
    return jnp.moveaxis(found, -1, 0)


def _converged(name: str, evaluate: Evaluate, x: Array, out: tuple[int, ...], options: Any
               ) -> OptimizeResult:
    """The derivative in each element of x, of results of shape `out`, which ends in that of x."""
    tolerances, maxiter, order, initial_step, step_factor, direction = options
    dtype = x.dtype
    eps = float(finfo(dtype).eps)
    given = dict(tolerances or {})
    if set(given) - {"atol", "rtol"}:
        raise ArgumentError(f"functrans.scipy.differentiate.{name}: tolerances are {given}.",
                            where=user_source(), fix="tolerances={'atol': 0.0, 'rtol': 1e-8}")
    atol = float(finfo(dtype).tiny) if given.get("atol") is None else given["atol"]
    rtol = math.sqrt(eps) if given.get("rtol") is None else given["rtol"]
    most = known_size(f"differentiate.{name}", "maxiter", maxiter)
    half = (known_size(f"differentiate.{name}", "order", order) + 1) // 2
    first, factor, side = (jnp.broadcast_to(v.astype(dtype), x.shape) for v in inexact(
        initial_step, step_factor, direction))
    sides = lax.stop_gradient(direction) if isinstance(direction, Tracer) else direction
    # read as it was given: under jit operations on what is known are staged
    central_only = not is_traced(sides) and not np.asarray(sides).any()
    places = jnp.arange(1, half + 1, dtype=dtype).reshape((half,) + (1,) * x.ndim)
    outer = factor ** -(places - 1)
    zero = jnp.zeros_like(x)[None]
    central = _weights(jnp.concatenate([-outer[::-1], zero, outer]))[half + 1:]
    if not central_only:
        many = jnp.arange(1, 2 * half + 1, dtype=dtype).reshape((2 * half,) + (1,) * x.ndim)
        away = jnp.sqrt(factor) ** -(many - 1)
        one_sided = _weights(jnp.concatenate([zero, away]))
    sign = jnp.sign(side)
    here = evaluate(x)

    def at(moves: Array) -> Array:
        """Values at several places, (places, *out)."""
        return vmap(lambda m: evaluate(x + m))(moves)

    def along(weights: Array, values: Array) -> Array:
        extra = len(out) - x.ndim
        shaped = weights.reshape(weights.shape[0], *(1,) * extra, *x.shape)
        return jnp.sum(shaped * values, axis=0)

    def estimate(table: Any, h: Array) -> Array:
        up, down, ahead = table
        middle = along(central, up - down) / h
        if central_only:
            return middle
        aside = (along(one_sided[1:], ahead) + one_sided[0] * here) / (h * jnp.where(
            sign == 0, 1, sign))
        return jnp.where(sign == 0, middle, aside)

    # for the direction of each element only its own places are looked at
    inner = jnp.where(sign == 0, 1, 0) if not central_only else 1
    begin_moves = first * outer * inner
    ahead = at(first * away * sign) if not central_only else jnp.zeros((0, *out), here.dtype)
    table = (at(begin_moves), at(-begin_moves), ahead)

    def shrunk(table: Any, h: Array) -> Any:
        """The values for the step h, of which the last ones are new."""
        up, down, ahead = table
        move = (h * factor ** -(half - 1.0)) * inner
        new = at(jnp.stack([move, -move]))
        up = jnp.concatenate([up[1:], new[:1]])
        down = jnp.concatenate([down[1:], new[1:]])
        if not central_only:
            ends = h * sign * jnp.sqrt(factor) ** -(2.0 * half - 1)
            ahead = jnp.concatenate([ahead[2:], at(jnp.stack([ends * jnp.sqrt(factor), ends]))])
        return up, down, ahead

    nan = jnp.full(out, math.nan, here.dtype)
    wide = jnp.zeros(out, jnp.int32)

    def status_of(df: Array, error: Array, last: Array, x: Array) -> Array:
        met = error < atol + rtol * jnp.abs(df)
        lost = ~jnp.isfinite(df) | ~jnp.broadcast_to(jnp.isfinite(x), out)
        return jnp.where(met, 0, jnp.where(lost, -3, jnp.where(error > 10 * last, -1, 1)))

    def unfinished(s: Any) -> Any:
        return jnp.any(s[4] == 1) & (s[-1] < most)

    def improve(s: Any) -> Any:
        table, h, df, error, status, nit, nfev, count = s
        h = h / factor
        table = shrunk(table, h)
        open_ = status == 1
        new = estimate(table, h)
        gap = jnp.abs(new - df)
        after = lax.stop_gradient(status_of(new, gap, error, x))
        return (table, h, jnp.where(open_, new, df), jnp.where(open_, gap, error),
                jnp.where(open_, after, status), nit + open_, nfev + 2 * open_, count + 1)

    df = estimate(table, first)
    lost = ~jnp.isfinite(df)
    begin = (table, first, df, nan, jnp.where(lost, -3, 1), wide + 1, wide + 2 * half + 1,
             jnp.array(1))
    _, _, df, error, status, nit, nfev, _ = lax.while_loop(unfinished, improve, begin)
    status = jnp.where(status == 1, -2, status)
    return OptimizeResult(success=status == 0, status=status, df=df, error=lax.stop_gradient(error),
                          nit=nit, nfev=nfev, x=x)


def derivative(f: Callable[..., Any], x: ArrayLike, *, args: Any = (),
               tolerances: Mapping[str, float] | None = None, maxiter: int = 10, order: int = 8,
               initial_step: ArrayLike = 0.5, step_factor: ArrayLike = 2.0,
               step_direction: ArrayLike = 0, preserve_shape: bool = False, callback: None = None
               ) -> OptimizeResult:
    """The derivative of `f(x, *args)` in each element of x, by differences.

    f works on the elements of arrays; with `preserve_shape` it takes x as it is and returns
    elements in the same places, after leading axes. Differences of `order` begin with
    `initial_step`, which is divided by `step_factor` until the change of the derivative is at most
    the `tolerances` `atol` and `rtol` (the root of epsilon). `step_direction` is 0 for central
    differences, or the side on which f is evaluated, 1 or -1. The result has `df`, `error`,
    `success`, `status` (0; -1 where the error grew, -2 after `maxiter`, -3 where f is not finite),
    `nit` and `nfev`. It runs under `jit`, `vmap` and derivatives.

    >>> import functrans as ft
    >>> found = ft.scipy.differentiate.derivative(ft.numpy.exp, ft.numpy.array([0.0, 1.0]))
    >>> print(found.df.round(2))
    [1.   2.72]
    """
    check_callable(f, "scipy.differentiate.derivative")
    if callback is not None:
        raise refused("differentiate.derivative", "callback", "the loop is compiled.",
                      "functrans.debug.callback within f")
    more = args if isinstance(args, tuple) else (args,)
    (at,) = real("differentiate.derivative", x)
    if not preserve_shape:
        at = jnp.broadcast_to(at, jnp.broadcast_shapes(at.shape, *map(jnp.shape, more)))

    def evaluate(v: Array) -> Array:
        value = jnp.asarray(f(v, *more))
        fits = value.shape == v.shape if not preserve_shape else \
            value.shape[value.ndim - v.ndim:] == v.shape
        if not fits:
            raise ShapeError(f"functrans.scipy.differentiate.derivative: f returns shape "
                             f"{value.shape} for {v.shape}.", where=user_source(),
                             why="each element of x has its own derivative.",
                             fix="functrans.scipy.differentiate.jacobian")
        return value.astype(jnp.result_type(value.dtype, at.dtype))

    return _converged("derivative", evaluate, at, evaluate(at).shape, (
        tolerances, maxiter, order, initial_step, step_factor, step_direction))


def jacobian(f: Callable[[Array], Any], x: ArrayLike, *,
             tolerances: Mapping[str, float] | None = None, maxiter: int = 10, order: int = 8,
             initial_step: ArrayLike = 0.5, step_factor: ArrayLike = 2.0,
             step_direction: ArrayLike = 0) -> OptimizeResult:
    """The Jacobian of f at points x (m, ...), by differences: `df` is (n, m, ...).

    f takes (m, ...) and returns (n, ...), or (...) for one function. `initial_step` and
    `step_direction` are numbers, or one for each of the m variables. See `derivative`.

    >>> import functrans as ft
    >>> found = ft.scipy.differentiate.jacobian(
    ...     lambda x: ft.numpy.stack([x[0] * x[1], x[0] ** 2]), ft.numpy.array([1.0, 2.0]))
    >>> print(found.df.round(2))
    [[2. 1.]
     [2. 0.]]
    """
    check_callable(f, "scipy.differentiate.jacobian")
    (at,) = real("differentiate.jacobian", x)
    if not at.ndim:
        raise ShapeError("functrans.scipy.differentiate.jacobian: x is a number.",
                         where=user_source(), why="its first axis is that of the variables.",
                         fix="functrans.scipy.differentiate.derivative")
    m = at.shape[0]
    chosen = jnp.eye(m, dtype=bool).reshape(m, m, *(1,) * (at.ndim - 1))

    def evaluate(v: Array) -> Array:
        """Of each variable, all functions where that alone is moved: (n, m, ...)."""
        points = jnp.where(chosen, v, at)
        found = vmap(lambda p: jnp.asarray(f(p)))(points)
        if found.ndim == at.ndim:  # one function
            return found
        return jnp.moveaxis(found, 0, 1)

    def spread(v: ArrayLike) -> Array:
        (given,) = inexact(v)
        return given.reshape(*given.shape, *(1,) * (at.ndim - given.ndim)) if given.ndim else given

    return _converged("jacobian", evaluate, at, evaluate(at).shape, (
        tolerances, maxiter, order, spread(initial_step), step_factor, spread(step_direction)
        if jnp.ndim(step_direction) else step_direction))


def hessian(f: Callable[[Array], Any], x: ArrayLike, *,
            tolerances: Mapping[str, float] | None = None, maxiter: int = 10, order: int = 8,
            initial_step: ArrayLike = 0.5, step_factor: ArrayLike = 2.0) -> OptimizeResult:
    """The Hessian of f at points x (m, ...), by differences of differences: `ddf` is (m, m, ...).

    f takes (m, ...) and returns (...). See `derivative`.

    >>> import functrans as ft
    >>> found = ft.scipy.differentiate.hessian(lambda x: x[0] ** 2 * x[1],
    ...                                        ft.numpy.array([1.0, 2.0]), initial_step=0.1)
    >>> print(found.ddf.round())
    [[4. 2.]
     [2. 0.]]
    """
    check_callable(f, "scipy.differentiate.hessian")
    how: dict[str, Any] = {"maxiter": maxiter, "order": order, "initial_step": initial_step,
                           "step_factor": step_factor}
    given = dict(tolerances or {})
    (at,) = real("differentiate.hessian", x)
    # the inner derivative is found to more digits than are asked of the outer one
    finer = given | ({"rtol": given["rtol"] / 100} if given.get("rtol") is not None else {})

    def slope(v: Array) -> Array:
        found: Array = jacobian(f, v, tolerances=finer, **how).df
        return found

    outer = jacobian(slope, at, tolerances=tolerances, **how)
    return OptimizeResult(success=outer.success, status=outer.status, ddf=outer.df,
                          error=outer.error, nfev=outer.nfev)
