"""Sparse Jacobians and Hessians: their patterns from the program, their values by few products."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from functrans import numpy as jnp
from functrans.core.avals import get_aval
from functrans.core.errors import ArgumentError, DTypeError, publish
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import tree_leaves, tree_structure
from functrans.sparse.base import JAXSparse, mismatch
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR
from functrans.sparse.coloring import column_colors, star_colors
from functrans.sparse.dependence import dependence
from functrans.sparse.operators import as_bcoo
from functrans.sparse.patterns import Pattern, distinct
from functrans.transforms.derivatives import grad
from functrans.transforms.forward import jvp
from functrans.transforms.jit.api import jit
from functrans.transforms.reverse import vjp
from functrans.transforms.staged import make_jaxpr
from functrans.transforms.vmap import vmap

__all__ = ["jacobian_sparsity", "sparse_hessian", "sparse_jacobian"]

P = ParamSpec("P")

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Plan:
    """Which products to take, and where the elements of the matrix are among their results."""

    run: Callable[..., Any]
    rows: NDArray
    columns: NDArray
    out_shape: tuple[Any, ...]


def _one_array(x: Any, name: str, what: str) -> Any:
    if tree_structure(x) != tree_structure(0):
        raise ArgumentError(f"{name}: the {what} is a tree of {len(tree_leaves(x))} arrays.",
                            where=user_source(), why="a sparse matrix has one array on each side.",
                            fix="functrans.flatten_util.ravel_pytree")
    return x


def _traced_pattern(fun: Callable[..., Any], args: tuple[Any, ...], place: int, name: str
                    ) -> tuple[tuple[Any, ...], NDArray, NDArray, bool]:
    """The shape of the result, the places of the Jacobian, and whether it may be kept."""
    x = args[place]

    def tangent(t: Any, *args: Any) -> Any:
        def at(x: Any) -> Any:
            return _one_array(fun(*args[:place], x, *args[place + 1:]), name, "result")

        return jvp(at, (args[place],), (t,))[1]

    closed = make_jaxpr(tangent)(jnp.zeros_like(x), *args)
    patterns: list[Pattern | None] = [None] * len(closed.jaxpr.invars)
    patterns[0] = Pattern.identity(tuple(get_aval(x).shape))
    (out,) = dependence(closed.jaxpr, closed.consts, patterns)
    shape = tuple(closed.jaxpr.outvars[0].aval.shape)
    empty = np.zeros(0, np.int64)
    rows, columns = (empty, empty) if out is None else out.pairs()
    return shape, rows, columns, not any(isinstance(c, Tracer) for c in closed.consts)


def _given_pattern(pattern: Any, shape: tuple[Any, ...]) -> NDArray:
    """The flat places of a pattern that a user gives: a sparse or dense array of that shape."""
    if isinstance(pattern, JAXSparse):
        mat = as_bcoo(pattern)
        if mat.n_batch or mat.n_dense:
            mat = mat.update_layout(n_batch=0, n_dense=0)
        indices, given = np.asarray(mat.indices), mat.shape
        inside = ((indices >= 0) & (indices < np.array(given))).all(-1)
        places = tuple(indices[inside].T)
    elif hasattr(pattern, "tocoo"):
        coo = pattern.tocoo()
        given, places = coo.shape, (coo.row, coo.col)
    else:
        dense = np.asarray(pattern)
        given, places = dense.shape, np.nonzero(dense)
    if math.prod(given) != math.prod(shape) or (tuple(given) != shape and len(given) != 2):
        raise mismatch("sparse_jacobian", f"a pattern of shape {given} for a Jacobian of {shape}.")
    return distinct(np.ravel_multi_index(places, given)).astype(np.int64)


def _matrix(data: Any, plan: _Plan, in_shape: tuple[Any, ...], sparse_format: str) -> Any:
    shape = (*plan.out_shape, *in_shape)
    sizes = math.prod(plan.out_shape), math.prod(in_shape)
    dtype = np.int32 if max((*shape, 0)) < 2**31 else np.int64
    if sparse_format == "bcsr":
        if len(shape) != 2:
            raise mismatch("sparse_jacobian", f"BCSR of a Jacobian of shape {shape}.",
                           "sparse_format='bcoo'")
        indptr = np.searchsorted(plan.rows, np.arange(sizes[0] + 1)).astype(dtype)
        return BCSR((data, plan.columns.astype(dtype), indptr), shape=shape, indices_sorted=True,
                    unique_indices=True)
    columns = [*np.unravel_index(plan.rows, plan.out_shape or (1,)),
               *np.unravel_index(plan.columns, in_shape or (1,))]
    kept = [c for c, n in zip(columns, (*(plan.out_shape or (None,)), *(in_shape or (None,))))
            if n is not None]
    indices = np.stack(kept, -1).astype(dtype) if kept else np.zeros((len(plan.rows), 0), dtype)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def _seeds(colors: NDArray, shape: tuple[Any, ...], dtype: Any) -> Any:
    count = int(colors.max(initial=-1)) + 1
    return (jnp.arange(count)[:, None] == jnp.asarray(colors)).astype(dtype).reshape(count, *shape)


def _jacobian_plan(fun: Callable[..., Any], args: tuple[Any, ...], place: int, pattern: Any,
                   mode: str) -> tuple[_Plan, bool]:
    x = args[place]
    in_shape = tuple(get_aval(x).shape)
    n = math.prod(in_shape)
    if pattern is None:
        out_shape, rows, columns, keep = _traced_pattern(fun, args, place, "sparse_jacobian")
    else:
        closed, result = make_jaxpr(fun, return_shape=True)(*args)
        out_shape = tuple(_one_array(result, "sparse_jacobian", "result").shape)
        flat = _given_pattern(pattern, (*out_shape, *in_shape))
        rows, columns = flat // max(n, 1), flat % max(n, 1)
        keep = not any(isinstance(c, Tracer) for c in closed.consts)
    m = math.prod(out_shape)
    by_column = column_colors(rows, columns, (m, n)) if mode != "rev" else None
    # as many colours as the fullest row are needed by columns; rows may need fewer
    least = int(np.bincount(columns, minlength=1).max(initial=0))
    if mode == "rev" or (by_column is not None and mode == "auto"
                         and 2 * least < int(by_column.max(initial=-1)) + 1):
        by_row = column_colors(columns, rows, (n, m))
        if by_column is None or 2 * (by_row.max(initial=-1) + 1) < by_column.max(initial=-1) + 1:
            return _Plan(_reverse(fun, place, by_row, rows, columns, out_shape), rows, columns,
                         out_shape), keep
    assert by_column is not None
    return _Plan(_forward(fun, place, by_column, rows, columns), rows, columns, out_shape), keep


def _at(fun: Callable[..., Any], args: tuple[Any, ...], place: int) -> Callable[[Any], Any]:
    return lambda x: fun(*args[:place], x, *args[place + 1:])


def _forward(fun: Callable[..., Any], place: int, colors: NDArray, rows: NDArray,
             columns: NDArray) -> Callable[..., Any]:
    """One derivative along a direction for each colour of columns."""
    where = jnp.asarray(colors[columns]), jnp.asarray(rows)

    def values(*args: Any) -> Any:
        x = args[place]
        seeds = _seeds(colors, tuple(x.shape), x.dtype)
        if not len(rows):
            return jnp.zeros((0,), jvp(_at(fun, args, place), (x,), (jnp.zeros_like(x),))[1].dtype)
        out = vmap(lambda s: jvp(_at(fun, args, place), (x,), (s,))[1].reshape(-1))(seeds)
        return out.at[where].get(mode="promise_in_bounds")

    return values


def _reverse(fun: Callable[..., Any], place: int, colors: NDArray, rows: NDArray,
             columns: NDArray, out_shape: tuple[Any, ...]) -> Callable[..., Any]:
    """One pass of reverse mode for each colour of rows."""
    where = jnp.asarray(colors[rows]), jnp.asarray(columns)

    def values(*args: Any) -> Any:
        out, pull = vjp(_at(fun, args, place), args[place])
        if not len(rows):
            return jnp.zeros((0,), out.dtype)
        seeds = _seeds(colors, out_shape, out.dtype)
        found = vmap(lambda s: pull(s)[0].reshape(-1))(seeds)
        return found.at[where].get(mode="promise_in_bounds")

    return values


def _hessian_plan(fun: Callable[..., Any], args: tuple[Any, ...],
                  place: int) -> tuple[_Plan, bool]:
    gradient = grad(fun, place)
    shape, rows, columns, keep = _traced_pattern(gradient, args, place, "sparse_hessian")
    n = math.prod(shape)
    # both halves, though the program may show one; colours take the diagonal to be stored
    needed = distinct(np.concatenate([rows * n + columns, columns * n + rows]))
    flat = distinct(np.concatenate([needed, np.arange(n) * (n + 1)])) if rows.size else rows
    stored = flat // max(n, 1), flat % max(n, 1)
    colors = star_colors(*stored, n)
    i, j = stored
    # an element is read in its own row where it is the only one of its colour there
    _, numbers, counts = np.unique(i * (n + 1) + colors[j] if i.size else i,
                                      return_inverse=True, return_counts=True)
    alone = counts[numbers.reshape(-1)] == 1
    present = np.zeros(flat.size, np.bool_)
    present[np.searchsorted(flat, needed)] = True
    at_row, at_column = np.where(alone, i, j)[present], np.where(alone, j, i)[present]
    return _Plan(_forward(gradient, place, colors, at_row, at_column), i[present], j[present],
                 shape), keep


def _transformed(name: str, fun: Callable[..., Any], argnums: int, sparse_format: str,
                 plan_of: Callable[..., tuple[_Plan, bool]]) -> Callable[..., Any]:
    if sparse_format not in ("bcoo", "bcsr"):
        raise ArgumentError(f"{name}: there is no sparse_format {sparse_format!r}.",
                            where=user_source(), fix="'bcoo' or 'bcsr'")
    number = operator.index(argnums)
    plans: dict[Any, _Plan] = {}

    @wraps(fun)
    def transformed(*args: Any) -> Any:
        place = number + len(args) if number < 0 else number
        if not 0 <= place < len(args):
            raise ArgumentError(f"{name}: argnums={argnums} of {len(args)} arguments.",
                                where=user_source())
        x = jnp.asarray(_one_array(args[place], name, "argument"))
        if np.dtype(x.dtype).kind in "biuc":
            raise DTypeError(f"{name} of an argument of dtype {x.dtype}.", where=user_source(),
                             why="its derivatives are real.", fix="x.astype('float32')")
        args = (*args[:place], x, *args[place + 1:])
        avals = [get_aval(a) if not isinstance(a, (dict, list, tuple, JAXSparse)) else a
                 for a in tree_leaves(args)]
        key = (place, tuple(avals), tree_structure(args))
        plan = plans.get(key)
        if plan is None:
            plan, keep = plan_of(fun, args, place)
            if keep:
                plan = _Plan(jit(plan.run), plan.rows, plan.columns, plan.out_shape)
                plans[key] = plan
        return _matrix(plan.run(*args), plan, tuple(x.shape), sparse_format)

    return transformed


def sparse_jacobian(fun: Callable[P, Any], pattern: Any = None, *, argnums: int = 0,
                    mode: str = "auto", sparse_format: str = "bcoo") -> Callable[P, Any]:
    """The Jacobian of `fun`, an array of an array, as a sparse array of the places it needs.

    The places are found in the program of `fun`, for all values of its arguments, or given by
    `pattern`: a sparse, SciPy or dense array that is not zero there. Columns that share no row are
    computed in one product, by forward mode ("fwd"), or rows by reverse mode ("rev"); "auto" takes
    what needs fewer. The shape is that of `jacfwd`; `sparse_format` is "bcoo" or "bcsr". What is
    found for a type of arguments is kept. Raises ArgumentError for trees of arrays and DTypeError
    for arguments that are not real. Source: Gebremedhin, Manne and Pothen, SIAM Review 47 (2005).

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> j = sparse.sparse_jacobian(lambda x: x[1:] - x[:-1] ** 2)(jnp.arange(4.0))
    >>> j, j.todense()[0].tolist()
    (BCOO(float32[3,4], nse=6), [0.0, 1.0, 0.0, 0.0])
    """
    if mode not in ("auto", "fwd", "rev"):
        raise ArgumentError(f"sparse_jacobian: mode is 'auto', 'fwd' or 'rev', not {mode!r}.",
                            where=user_source())
    return _transformed("sparse_jacobian", fun, argnums, sparse_format,
                        lambda f, args, place: _jacobian_plan(f, args, place, pattern, mode))


def sparse_hessian(fun: Callable[P, Any], *, argnums: int = 0,
                   sparse_format: str = "bcoo") -> Callable[P, Any]:
    """The Hessian of a real function of an array, as a sparse array of the places it needs.

    As `sparse_jacobian` of the gradient, by a star colouring, which uses that it is symmetric.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> h = sparse.sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())(jnp.ones(3))
    >>> h, h.todense().tolist()
    (BCOO(float32[3,3], nse=7), [[2.0, 2.0, 0.0], [2.0, 2.0, 2.0], [0.0, 2.0, 0.0]])
    """
    return _transformed("sparse_hessian", fun, argnums, sparse_format, _hessian_plan)


def jacobian_sparsity(fun: Callable[..., Any], *args: Any, argnums: int = 0) -> BCOO:
    """The places where the Jacobian of `fun` may not be zero, as a sparse array of booleans.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.jacobian_sparsity(lambda x: x[::-1], jnp.ones(3)).indices.tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    place = operator.index(argnums) % max(len(args), 1)
    args = tuple([jnp.asarray(a) if k == place else a for k, a in enumerate(args)])
    shape, rows, columns, _ = _traced_pattern(fun, args, place, "jacobian_sparsity")
    plan = _Plan(lambda: None, rows, columns, shape)
    found: BCOO = _matrix(jnp.ones((len(rows),), bool), plan, tuple(args[place].shape), "bcoo")
    return found


publish(globals(), __all__)
