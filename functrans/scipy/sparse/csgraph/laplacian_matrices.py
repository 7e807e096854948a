"""Laplacians of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float, kind
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.sparse.arithmetic import CLASSES, SparseArithmetic, bcoo_of, is_sparse
from functrans.scipy.sparse.csgraph.graphs import Graph
from functrans.scipy.sparse.joining import tril, triu
from functrans.scipy.sparse.maps import LinearOperator, aslinearoperator
from functrans.typing import Array

Laplacian = Array | SparseArithmetic | LinearOperator | Callable[[Array], Array]


def laplacian(csgraph: Graph, normed: bool = False, return_diag: bool = False,
              use_out_degree: bool = False, *, copy: bool = True,
              form: Literal["array", "function", "lo"] = "array", dtype: Any = None,
              symmetrized: bool = False) -> Laplacian | tuple[Laplacian, Array]:
    """The Laplacian of a graph: degrees on the diagonal, less the weights; with it the diagonal.

    A dense graph has a dense Laplacian, a sparse one a sparse one. `normed` divides rows and
    columns by the roots of the degrees, and gives these as the diagonal. Degrees are sums of what
    comes in, or with `use_out_degree` of what goes out; loops do not count. `symmetrized` takes
    graph + graph.T*. `form` "lo" is a `LinearOperator`, "function" its product. Differentiated in
    the weights. Raises ShapeError for a graph that is not square.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.laplacian(jnp.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    one_of("sparse.csgraph.laplacian", "form", form, ("array", "function", "lo"))
    sparse = is_sparse(csgraph)
    given: Any = csgraph
    m: Any = given if isinstance(given, SparseArithmetic) else (
        CLASSES["csr", False]._of(bcoo_of(given)) if sparse else jnp.asarray(given))
    if len(m.shape) != 2 or m.shape[0] != m.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse.csgraph.laplacian: a graph of shape {m.shape}.",
                         where=user_source(), why="it is a matrix of weights from each node to "
                         "each.")
    if dtype is not None:
        m = m.astype(dtype)
    elif kind(m.dtype) == "b" or (normed and kind(m.dtype) not in "fc"):
        m = m.astype(default_float())
    elif kind(m.dtype) == "u":
        m = m.astype(np.int64)
    n = m.shape[0]
    if sparse:
        # without loops: the diagonal is that of the degrees
        matrix_class = CLASSES["coo", False]
        coo = matrix_class._of(m.to_bcoo())
        m = (tril(coo, -1) + triu(coo, 1)).tocoo()
    else:
        m = jnp.where(jnp.eye(n, dtype=bool), jnp.zeros((), m.dtype), m)
    if symmetrized:
        m = m + m.T.conj()
    degrees = m.sum(axis=1 if use_out_degree else 0).astype(m.dtype)
    diagonal = degrees
    if normed:
        alone = degrees == 0
        degrees = jnp.where(alone, 1, jnp.sqrt(jnp.where(alone, 1, degrees))).astype(m.dtype)
        m = (m / degrees / degrees[:, None])
        diagonal = jnp.where(alone, 0, 1).astype(m.dtype)
    if sparse:
        found = (-m).tocoo()
        found = found.setdiag(diagonal) if n else found
        found = found.sum_duplicates()
    else:
        found = jnp.where(jnp.eye(n, dtype=bool), diagonal, -m)
    made: Laplacian = found
    if form != "array":
        held = aslinearoperator(found)
        made = held if form == "lo" else held.dot
    return (made, degrees) if return_diag else made
