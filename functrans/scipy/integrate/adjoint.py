"""odeint: ordinary differential equations whose derivative is that of the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.core.tree import map_leaves, tree_flatten, tree_unflatten
from functrans.flatten_util import ravel_pytree
from functrans.scipy.integrate.steps import StepTolerance, solve
from functrans.scipy.integrate.tableaus import RK45
from functrans.transforms.custom_vjp import custom_vjp
from functrans.transforms.flat import check_callable
from functrans.transforms.reverse import vjp
from functrans.transforms.staged import closure_convert
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike, PyTree

T = TypeVar("T")


def odeint(func: Callable[..., T], y0: T, t: ArrayLike, *args: PyTree,
           rtol: float = 1.4e-8, atol: float = 1.4e-8, mxstep: float = np.inf,
           hmax: float = np.inf) -> T:
    """The solution of y' = `func(y, t, *args)` with y = y0 at t[0], at all times t.

    y is a tree of arrays, and the result has one with a new first axis of times, which go one way.
    Steps are those of Dormand and Prince, of adaptive sizes. The gradient solves the adjoint
    equation backwards, with the memory of the results alone, in y0, t, args and what `func` closes
    over; there is no forward mode (`functrans.scipy.integrate.solve_ivp` has it). `mxstep` steps
    are made for each time, of `hmax` at most; what is not reached is NaN.
    Raises ShapeError where t is no vector, or func returns another tree than y0.
    Source: Dormand and Prince (1980); Chen et al., Neural ordinary differential equations (2018).

    >>> import functrans as ft
    >>> from functrans.experimental.ode import odeint
    >>> y = odeint(lambda y, t, k: -k * y, ft.numpy.float32(1.0), ft.numpy.array([0.0, 1.0]), 2.0)
    >>> round(float(y[1]), 4)
    0.1353
    """
    check_callable(func, "experimental.ode.odeint")
    times = jnp.asarray(t)
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeError(f"functrans.experimental.ode.odeint: t has shape {times.shape}.",
                         where=user_source(), why="it is a vector of times.")
    y, unravel = ravel_pytree(y0)
    y = y.astype(dtypes.to_inexact_dtype(dtypes.result_type(y, times)))
    times = times.astype(y.real.dtype)
    leaves, tree = tree_flatten(args)
    arrays = [jnp.asarray(v) for v in leaves]

    def slope(y: Array, t: Array, *flat: Array) -> Array:
        found, _ = ravel_pytree(func(unravel(y), t, *tree_unflatten(tree, list(flat))))
        if found.shape != y.shape:
            raise ShapeError(f"functrans.experimental.ode.odeint: func returns {found.size} "
                             f"numbers, y0 has {y.size}.", where=user_source())
        return found.astype(y.dtype)

    converted, values = closure_convert(slope, y, times[0], *arrays)
    found = _solution(converted, y, times, [*arrays, *values], rtol, atol, mxstep, hmax)
    if len(times) == 1:
        return map_leaves(lambda x: x[None], unravel(y))
    return vmap(unravel)(found)


def _solution(slope: Callable[..., Array], y: Array, times: Array, operands: list[Array],
              rtol: float, atol: float, mxstep: float, hmax: float) -> Array:
    smooth = [dtypes.kind(v.dtype) in "fc" for v in operands]
    limit = float(mxstep)

    def run(fun: Callable[[Array, Array], Array], y: Array, times: Array) -> Array:
        values, _, _ = solve(fun, RK45, y, times, StepTolerance(rtol, atol), hmax, None, limit)
        return values

    def with_operands(moving: list[Array], fixed: list[Array]) -> list[Array]:
        first, second = iter(moving), iter(fixed)
        return [next(first) if s else next(second) for s in smooth]

    @custom_vjp
    def forward(y: Array, times: Array, moving: Any, fixed: Any) -> Array:
        all_of = with_operands(moving, fixed)
        return run(lambda t, y: slope(y, t, *all_of), y, times)

    def with_residuals(y: Array, times: Array, moving: Any, fixed: Any) -> Any:
        values = forward(y, times, moving, fixed)
        return values, (values, times, moving, fixed)

    def backward(residuals: Any, cts: Array) -> Any:
        values, times, moving, fixed = residuals
        lead, unravel = ravel_pytree([jnp.zeros_like(v) for v in moving])
        lead = lead.astype(values.dtype)
        size = values.shape[1]

        def adjoint(t: Array, state: Array) -> Array:
            """Backwards in time: the solution, its cotangent, and those of t and the operands."""
            y, ct = state[:size], state[size:2 * size]
            out, pull = vjp(lambda y, t, m: slope(y, t, *with_operands(m, fixed)), y, -t, moving)
            y_bar, t_bar, m_bar = pull(ct)
            flat, _ = ravel_pytree([t_bar, m_bar])
            return jnp.concatenate([-out, y_bar, flat.astype(state.dtype)])

        def interval(carry: Any, given: Any) -> Any:
            ct, t_first, bars = carry
            y, before, now, ct_now, ct_before = given
            here = slope(y, now, *with_operands(moving, fixed))
            t_bar = jnp.sum(here * ct_now).real
            state = jnp.concatenate([y, ct, (t_first - t_bar)[None].astype(y.dtype), bars])
            end = run(adjoint, state, jnp.stack([-now, -before]))[1]
            return (end[size:2 * size] + ct_before, end[2 * size].real.astype(times.dtype),
                    end[2 * size + 1:]), t_bar

        given = (values[1:], times[:-1], times[1:], cts[1:], cts[:-1])
        start = (cts[-1], jnp.zeros((), times.dtype), lead)
        (ct, t_first, bars), t_bars = lax.scan(interval, start, given, reverse=True)
        t_bars = jnp.concatenate([t_first[None], t_bars.astype(times.dtype)])
        moved = [b.astype(v.dtype) for b, v in zip(unravel(bars), moving)]
        return ct, t_bars, moved, [np.zeros(v.shape, dtypes.float0) for v in fixed]

    forward.defvjp(with_residuals, backward)
    found: Array = forward(y, times, [v for v, s in zip(operands, smooth) if s],
                           [v for v, s in zip(operands, smooth) if not s])
    return found
