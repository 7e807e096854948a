"""Linear programs some of whose variables are whole numbers, by SciPy's HiGHS on the host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.callbacks import pure_callback
from functrans.core.errors import ArgumentError, BackendError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact
from functrans.scipy.optimize.constraints import LinearConstraint
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike


class MilpResults(NamedTuple):
    """The minimum of a program; `status` is 0 where it was found, as SciPy numbers it.

    >>> from functrans.scipy.optimize.integer import MilpResults
    >>> MilpResults._fields
    ('x', 'fun', 'success', 'status', 'mip_gap')
    """

    x: Array
    fun: Array
    success: Array
    status: Array
    mip_gap: Array


def _solver() -> Any:
    try:
        import scipy.optimize  # noqa: PLC0415  # may be absent
    except ImportError:
        raise BackendError("milp needs SciPy, which is not installed.", where=user_source(),
                           why="branch and bound is that of its HiGHS.",
                           fix="pip install 'functrans[sparse]', or functrans.scipy.optimize."
                               "linprog for programs without whole numbers") from None
    return scipy.optimize


def milp(c: ArrayLike, *, integrality: ArrayLike | None = None, bounds: Any = None,
         constraints: Any = None, options: Mapping[str, Any] | None = None) -> MilpResults:
    """The least c @ x under linear constraints, where variables of `integrality` 1 are whole.

    `bounds` are `Bounds` or a pair (x >= 0 by default), `constraints` a `LinearConstraint`, a tuple
    (A, lb, ub), or a list of such; 2 and 3 of `integrality` are those of SciPy. HiGHS runs on the
    host, also under `jit`, and for each lane of `vmap`. x moves in jumps: `fun` is differentiated
    in c, x is not. Raises BackendError without SciPy, ShapeError where sizes do not fit.

    >>> import functrans as ft
    >>> full = ft.scipy.optimize.LinearConstraint([[3.0, 4.0]], -ft.numpy.inf, 10.0)
    >>> found = ft.scipy.optimize.milp([-2.0, -3.0], integrality=[1, 1], constraints=full)
    >>> found.x.tolist(), float(found.fun)
    ([2.0, 1.0], -7.0)
    """
    _solver()
    (cost,) = inexact(c)
    if cost.ndim != 1 or not cost.size:
        raise ShapeError(f"functrans.scipy.optimize.milp: c has shape {cost.shape}.",
                         where=user_source(), why="it is a vector.")
    n, dtype = cost.size, cost.dtype
    kinds = np.broadcast_to(np.asarray(0 if integrality is None else integrality), (n,))
    if not np.isin(kinds, (0, 1, 2, 3)).all():
        raise ArgumentError("functrans.scipy.optimize.milp: integrality has other values.",
                            where=user_source(), why="it is 0, 1, 2 or 3 for each variable.")
    low, high = (0.0, math.inf) if bounds is None else (bounds.lb, bounds.ub) if hasattr(
        bounds, "lb") else bounds
    ends = [jnp.broadcast_to(inexact(v)[0].astype(dtype), (n,)) for v in (low, high)]
    rows, lowers, uppers = [jnp.zeros((0, n), dtype)], [jnp.zeros(0, dtype)], [jnp.zeros(0, dtype)]
    for one in _listed(constraints):
        parts = (one.A, one.lb, one.ub) if hasattr(one, "A") else one
        matrix, lower, upper = (inexact(v)[0].astype(dtype) for v in parts)
        matrix = jnp.atleast_2d(matrix)
        if matrix.shape[1] != n:
            raise ShapeError(f"functrans.scipy.optimize.milp: A has shape {matrix.shape}.",
                             where=user_source(), why=f"there are {n} variables.")
        rows.append(matrix)
        lowers.append(jnp.broadcast_to(lower, matrix.shape[:1]))
        uppers.append(jnp.broadcast_to(upper, matrix.shape[:1]))
    how = dict(options or {})

    def solved(c: Any, low: Any, high: Any, a: Any, lb: Any, ub: Any) -> tuple[Any, ...]:
        library = _solver()
        wide = [np.asarray(v, float) for v in (c, low, high, a, lb, ub)]
        under = library.LinearConstraint(*wide[3:]) if len(wide[3]) else None
        found = library.milp(wide[0], integrality=kinds, bounds=library.Bounds(*wide[1:3]),
                             constraints=under, options=how)
        x = np.full(n, np.nan) if found.x is None else found.x
        gap = getattr(found, "mip_gap", None)
        return (x.astype(dtype), np.asarray(found.success), np.asarray(found.status, np.int32),
                np.asarray(np.nan if gap is None else gap, dtype))

    shapes = (ShapeDtypeStruct((n,), dtype), ShapeDtypeStruct((), np.bool_),
              ShapeDtypeStruct((), np.int32), ShapeDtypeStruct((), dtype))
    known = [lax.stop_gradient(v) for v in (cost, *ends, jnp.concatenate(rows),
                                            jnp.concatenate(lowers), jnp.concatenate(uppers))]
    x, success, status, gap = pure_callback(solved, shapes, *known, vmap_method="sequential")
    return MilpResults(x, jnp.sum(cost * x), success, status, gap)


def _listed(constraints: Any) -> list[Any]:
    if constraints is None:
        return []
    if isinstance(constraints, LinearConstraint) or hasattr(constraints, "A"):
        return [constraints]
    if isinstance(constraints, tuple) and constraints and not (
            hasattr(constraints[0], "A") or isinstance(constraints[0], tuple)):
        return [constraints]
    return list(constraints)
