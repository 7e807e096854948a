"""Graphs between dense, masked and sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.arithmetic import bcoo_of, is_sparse
from functrans.scipy.sparse.compressed import csr_array
from functrans.scipy.sparse.csgraph.graphs import Graph, is_null, traced
from functrans.scipy.sparse.places import columns_of, compact
from functrans.sparse.base import JAXSparse
from functrans.typing import Array, ArrayLike

if TYPE_CHECKING:  # numpy.ma takes longer to import than all of this package
    Masked = np.ma.MaskedArray[tuple[int, ...], np.dtype[Any]]


def csgraph_from_dense(graph: ArrayLike, null_value: float | None = 0, nan_null: bool = True,
                       infinity_null: bool = True) -> csr_array:
    """The sparse graph of a dense matrix, without what is no edge: `null_value`, NaN and infinity.

    Which elements are edges has to be known. Raises ConcretizationError for traced matrices.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.csgraph_from_dense([[0.0, 2.0], [jnp.inf, 3.0]]).data.tolist()
    [2.0, 3.0]
    """
    x = jnp.asarray(graph)
    if is_traced(x):
        raise traced("csgraph_from_dense")
    dense = np.asarray(x)
    if dense.ndim != 2:
        raise ArgumentError(f"functrans.scipy.sparse.csgraph.csgraph_from_dense: a graph of shape "
                            f"{dense.shape}.", where=user_source(), fix="a matrix")
    u, v = np.nonzero(~is_null(dense, np, null_value, nan_null, infinity_null))
    return csr_array((x[u, v], (u, v)), shape=dense.shape)


def csgraph_to_dense(csgraph: JAXSparse, null_value: float = 0) -> Array:
    """The dense matrix of a sparse graph, `null_value` where there is no edge.

    Of parallel edges the least weight counts. Weights may be traced.

    >>> from functrans.scipy.sparse import csgraph, csr_array
    >>> csgraph.csgraph_to_dense(csr_array([[0.0, 2.0], [0.0, 0.0]]), jnp.inf).tolist()
    [[inf, 2.0], [inf, inf]]
    """
    if not is_sparse(csgraph):
        raise ArgumentError("functrans.scipy.sparse.csgraph.csgraph_to_dense: a graph that is not "
                            "sparse.", where=user_source(), fix="csgraph_from_dense(graph)")
    mat = compact(bcoo_of(csgraph))
    rows, columns = columns_of(mat)
    data = mat.data.astype(jnp.result_type(mat.data, float)) if mat.dtype.kind != "f" else mat.data
    least = jnp.full(mat.shape, np.inf, data.dtype).at[rows, columns].min(data, mode="drop")
    stored = jnp.zeros(mat.shape, bool).at[rows, columns].set(True, mode="drop")
    return jnp.where(stored, least, jnp.asarray(null_value, data.dtype))


def csgraph_from_masked(graph: Masked) -> csr_array:
    """The sparse graph of a masked array of NumPy, whose masked elements are no edges.

    >>> import numpy
    >>> from functrans.scipy.sparse import csgraph
    >>> masked = numpy.ma.masked_values([[0.0, 2.0], [1.0, 0.0]], 0)
    >>> csgraph.csgraph_from_masked(masked).data.tolist()
    [2.0, 1.0]
    """
    held = np.ma.asarray(graph)
    u, v = np.nonzero(~np.ma.getmaskarray(held))
    return csr_array((held.data[u, v], (u, v)), shape=held.shape)


def csgraph_masked_from_dense(graph: ArrayLike, null_value: float | None = 0,
                              nan_null: bool = True, infinity_null: bool = True,
                              copy: bool = True) -> Masked:
    """The masked array of NumPy of a dense matrix, where what is no edge is masked.

    >>> from functrans.scipy.sparse import csgraph
    >>> csgraph.csgraph_masked_from_dense([[0.0, 2.0], [1.0, 0.0]]).mask.tolist()
    [[True, False], [False, True]]
    """
    if is_traced(graph):
        raise traced("csgraph_masked_from_dense")
    dense = np.asarray(graph)
    dense = dense if dense.dtype.kind == "f" else dense.astype(float)
    return np.ma.masked_array(dense, is_null(dense, np, null_value, nan_null, infinity_null),
                              copy=copy)


def csgraph_to_masked(csgraph: Graph) -> Masked:
    """The masked array of NumPy of a sparse graph, masked where there is no edge.

    >>> from functrans.scipy.sparse import csgraph, csr_array
    >>> csgraph.csgraph_to_masked(csr_array([[0.0, 2.0], [0.0, 0.0]])).sum()
    np.float32(2.0)
    """
    dense = csgraph_to_dense(csgraph, np.nan)  # type: ignore[arg-type]
    if is_traced(dense):
        raise traced("csgraph_to_masked")
    return np.ma.masked_invalid(np.asarray(dense))
