"""Graphs as they are read: dense or sparse matrices of weights, on the host or traced."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.callbacks import pure_callback
from functrans.core.dtypes import default_float, kind
from functrans.core.errors import ArgumentError, ConcretizationError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import concrete_value, is_traced
from functrans.scipy.sparse.arithmetic import bcoo_of, is_sparse
from functrans.scipy.sparse.compressed import csr_array
from functrans.scipy.sparse.places import summed
from functrans.sparse.base import JAXSparse
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike

Graph = ArrayLike | JAXSparse
NONE = -9999  # the predecessor of a node that has none
NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class HostGraph:
    """Edges on the host by the node that they leave: weights, targets and pointers."""

    weights: NDArray
    targets: NDArray
    starts: NDArray
    columns: int

    @property
    def size(self) -> int:
        """The number of nodes, or of rows."""
        return len(self.starts) - 1

    @property
    def sources(self) -> NDArray:
        """The node that each edge leaves."""
        return np.repeat(np.arange(self.size), np.diff(self.starts))

    @cached_property
    def lists(self) -> list[list[tuple[int, float]]]:
        """The targets and weights of each node's edges, as Python's loops like them."""
        pairs = list(zip(self.targets.tolist(), self.weights.tolist()))
        bounds = self.starts.tolist()
        return [pairs[a:b] for a, b in itertools.pairwise(bounds)]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The targets of each node's edges."""
        targets, bounds = self.targets.tolist(), self.starts.tolist()
        return [targets[a:b] for a, b in itertools.pairwise(bounds)]

    def turned(self) -> HostGraph:
        """The graph with all edges in the other direction."""
        return of_edges(self.targets, self.sources, self.weights, self.columns, self.size)

    def both_ways(self) -> HostGraph:
        """The graph where each edge goes in both directions; of parallel ones the least stays."""
        u, v, w = self.sources, self.targets, self.weights
        u, v, w = np.r_[u, v], np.r_[v, u], np.r_[w, w]
        order = np.lexsort((w, v, u))
        u, v, w = u[order], v[order], w[order]
        first = np.r_[True, (u[1:] != u[:-1]) | (v[1:] != v[:-1])][:u.size]
        return of_edges(u[first], v[first], w[first], self.size, self.columns)


def stable_order(numbers: NDArray, n: int) -> NDArray:
    """The order of numbers below n in which equal ones stay as they are."""
    # NumPy counts digits of 16 bits, and compares wider ones
    return np.argsort(numbers.astype(np.uint16) if n <= 2**16 else numbers, kind="stable")


def ends(above: NDArray) -> NDArray:
    """The root of each node of a forest, of the node above each; roots are above themselves."""
    while True:
        higher = above[above]
        if (higher == above).all():
            return higher
        above = higher


def of_edges(u: NDArray, v: NDArray, w: NDArray, rows: int, columns: int) -> HostGraph:
    """The graph of edges from u to v."""
    u, v, w = np.asarray(u), np.asarray(v), np.asarray(w)
    if not ((u[1:] > u[:-1]) | ((u[1:] == u[:-1]) & (v[1:] >= v[:-1]))).all():
        # what is turned has its minor numbers in order, and is not sorted by these again
        if not (v[1:] >= v[:-1]).all():
            order = stable_order(v, columns)
            u, v, w = u[order], v[order], w[order]
        order = stable_order(u, rows)
        u, v, w = u[order], v[order], w[order]
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(u, minlength=rows)[:rows], out=starts[1:])
    return HostGraph(w, v.astype(np.int64), starts, columns)


def _host(x: Any) -> NDArray:
    return np.asarray(concrete_value(x) if isinstance(x, Tracer) else x)


def is_null(x: Any, xp: Any, null: Any = 0, nan_null: bool = True, inf_null: bool = True) -> Any:
    """Where a dense matrix has no edge."""
    none = xp.zeros(x.shape, bool)
    if null is not None and null == null and abs(null) != np.inf:
        none = xp.isclose(x, null) if kind(x.dtype) in "fc" and null else x == null
    if kind(x.dtype) == "f":
        if nan_null or null is None or null != null:
            none = none | xp.isnan(x)
        if inf_null or (null is not None and abs(null) == np.inf):
            none = none | xp.isinf(x)
    return none


def checked(name: str, graph: Any, square: bool = True) -> Any:
    """A graph as a sparse array or a dense matrix."""
    if type(graph).__module__.startswith("numpy.ma"):
        held: Any = np.where(np.ma.getmaskarray(graph), np.inf, graph.data.astype(float))
    elif isinstance(graph, csr_array) and graph.has_canonical_format and not any(
            isinstance(p, Tracer) for p in (graph.data, graph.indices, graph.indptr)):
        held = graph  # the graph as it is read, and no less known than its coordinates
    elif is_sparse(graph):
        held = summed(bcoo_of(graph))
    else:
        held = jnp.asarray(graph)
    shape = tuple(held.shape)
    if len(shape) != 2 or (square and shape[0] != shape[1]):
        raise ShapeError(f"functrans.scipy.sparse.csgraph.{name}: a graph of shape {shape}.",
                         where=user_source(), why="it is a matrix of weights from each node to "
                         "each." if square else "it is a matrix.")
    if kind(held.dtype) == "c":
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.{name}: weights are complex.",
                            where=user_source(), fix="abs(graph)")
    return held


def is_known(graph: Any) -> bool:
    """Whether the values and places of a graph are known, and no derivative is taken in them."""
    parts = (graph.data, graph.indices) if isinstance(graph, JAXSparse) else (graph,)  # type: ignore[attr-defined]
    return not any(isinstance(p, Tracer) for p in parts)


def host_graph(name: str, graph: Any, square: bool = True, unweighted: bool = False) -> HostGraph:
    """A graph whose values are known; ConcretizationError where they are traced."""
    held = checked(name, graph, square)
    rows, columns = (int(n) for n in held.shape)
    if isinstance(held, csr_array):
        # each edge once, in order, and known: `checked` leaves no others in this format
        used = held.nnz
        w = np.asarray(held.data)[:used]
        return HostGraph(np.ones(used) if unweighted else w.astype(np.float64),
                         np.asarray(held.indices)[:used].astype(np.int64),
                         np.asarray(held.indptr).astype(np.int64), columns)
    if isinstance(held, JAXSparse):
        mat: Any = held
        if is_traced(mat.data) or is_traced(mat.indices):
            raise traced(name)
        at, w = _host(mat.indices), _host(lax.stop_gradient(mat.data))
        u, v = at[:, 0], at[:, 1]
    else:
        if is_traced(held):
            raise traced(name)
        dense = _host(lax.stop_gradient(held) if isinstance(held, Tracer) else held)
        u, v = np.nonzero(~is_null(dense, np))
        w = dense[u, v]
    w = np.ones(w.shape) if unweighted else w.astype(np.float64)
    return of_edges(u, v, w, rows, columns)


def traced(name: str) -> ConcretizationError:
    """The error for a graph that is traced."""
    return ConcretizationError(
        f"functrans.scipy.sparse.csgraph.{name} needs a graph that is known, and this one is "
        "traced.", where=user_source(), why="what it finds has a size that depends on the graph.",
        fix="call it outside of jit, vmap and grad")


def matrix_of(name: str, graph: Any, square: bool = True) -> Array:
    """The dense matrix of weights, infinite where there is no edge; it may be traced."""
    held = checked(name, graph, square)
    dtype = held.dtype if kind(held.dtype) == "f" else default_float()
    if isinstance(held, JAXSparse):
        mat = bcoo_of(held)
        at = mat.indices
        return jnp.full(held.shape, np.inf, dtype).at[at[:, 0], at[:, 1]].min(
            mat.data.astype(dtype), mode="drop")
    dense = jnp.asarray(held)
    return jnp.where(is_null(dense, jnp), np.inf, dense.astype(dtype))


def by_host(name: str, graph: Any, fun: Callable[[HostGraph], Any], shapes: Any,
            square: bool = True, unweighted: bool = False) -> Any:
    """`fun` of a graph on the host, by a callback where it is traced: arrays of known shapes."""
    held = checked(name, graph, square)
    if is_known(held):
        found = fun(host_graph(name, held, square, unweighted))
        return tuple(map(jnp.asarray, found)) if isinstance(found, tuple) else jnp.asarray(found)
    matrix = lax.stop_gradient(matrix_of(name, held, square))
    rows, columns = (int(n) for n in matrix.shape)

    def call(weights: Any) -> Any:
        dense = np.asarray(weights).astype(np.float64)
        u, v = np.nonzero(~np.isinf(dense))
        w = np.ones(u.size) if unweighted else dense[u, v]
        found = fun(of_edges(u, v, w, rows, columns))
        many = isinstance(shapes, tuple)
        made = [np.asarray(x, s.dtype) for x, s in zip(
            found if many else (found,), shapes if many else (shapes,), strict=True)]
        return tuple(made) if many else made[0]

    return pure_callback(call, shapes, matrix, vmap_method="sequential")


def struct(shape: tuple[int, ...], dtype: Any) -> ShapeDtypeStruct:
    """The type of a result."""
    return ShapeDtypeStruct(shape, np.dtype(dtype))


def node(name: str, argument: str, value: Any, n: int) -> int:
    """The number of a node, which is known; negative ones count from the end."""
    try:
        found = int(value)
    except (TypeError, ValueError):
        found = n
    if not -n <= found < n:
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.{name}: {argument} is {value}.",
                            where=user_source(), why=f"the graph has {n} nodes.",
                            fix=f"a number from 0 to {n - 1} that is known")
    return found % n


def sparse_of(u: Any, v: Any, w: Any, n: int) -> csr_array:
    """The sparse matrix of edges."""
    return csr_array((jnp.asarray(w), (np.asarray(u), np.asarray(v))), shape=(n, n))
