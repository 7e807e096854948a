"""Products of BCOO arrays: with dense and sparse arrays, elementwise and contracted."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans._runtime import coordinates_of_rows, csr_times_csr, rows_of_coordinates
from functrans.core.dtypes import is_half, kind
from functrans.core.errors import publish
from functrans.numpy.common import is_traced
from functrans.ops import segment_sum
from functrans.primitives.coordinate_products import coo_dot_p
from functrans.sparse.base import keys, known, mismatch, per_lane
from functrans.sparse.bcoo import BCOO, add_at, full_batch, read_at
from functrans.sparse.layout import bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout
from functrans.sparse.movement import bcoo_broadcast_in_dim
from functrans.sparse.rows import csr_matmul, csr_matmul_transposed
from functrans.sparse.sums import parts_of
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_extract", "bcoo_multiply_dense",
           "bcoo_multiply_sparse"]

Dims = tuple[Any, ...]
DotDimensionNumbers = tuple[tuple[Sequence[Any], Sequence[Any]],
                            tuple[Sequence[Any], Sequence[Any]]]


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The stored values of the elementwise product with a dense array that broadcasts.

    `sp_mat.with_data(...)` of it is the product. Raises ShapeError where v would enlarge the array.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([[2.0], [3.0]])).tolist()
    [2.0, 3.0]
    """
    return sp_mat.data * read_places(sp_mat, jnp.asarray(v), "bcoo_multiply_dense")


def read_places(mat: BCOO, v: Array, name: str) -> Array:
    """What a dense array that broadcasts has at the places of a sparse one."""
    if v.ndim > mat.ndim or any(k not in (1, n) for k, n in zip(v.shape[::-1], mat.shape[::-1])):
        raise mismatch(name, f"an array of shape {v.shape} for one of {mat.shape}.")
    v = v.reshape(*[1] * (mat.ndim - v.ndim), *v.shape)
    n = mat.n_batch
    used = [k for k in range(mat.n_sparse) if v.shape[n + k] != 1 or mat.sparse_shape[k] == 1]
    ones = tuple([n + k for k in range(mat.n_sparse) if k not in used])
    v = jnp.squeeze(v, ones)
    batch = [mat.indices.shape[k] if v.shape[k] == 1 else v.shape[k] for k in range(n)]
    v = jnp.broadcast_to(v, (*batch, *v.shape[n:]))
    indices = jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[n:]))
    columns = [indices[..., k] for k in used]
    chosen = jnp.stack(columns, axis=-1) if columns else indices[..., :0]
    out: Array = per_lane(read_at, n)(v, chosen)
    return out


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the places of a sparse one, as a sparse array.

    Without `assume_unique` (by default what the array promises) a place that occurs twice has
    zeros from the second time on. Raises ShapeError where the shapes differ.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data.tolist()
    [1.0, 4.0]
    """
    x = jnp.asarray(arr)
    if x.shape != sparr.shape:
        raise mismatch("bcoo_extract", f"an array of shape {x.shape} for one of {sparr.shape}.")
    values = read_places(sparr, x, "bcoo_extract")
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        def first(indices: Array) -> Array:
            (at,), _ = keys(sparr.sparse_shape, indices)
            order = jnp.argsort(at, stable=True)
            at = at[order]
            new = jnp.concatenate([jnp.ones(min(1, at.shape[0]), bool), at[1:] != at[:-1]])
            return jnp.zeros(at.shape, bool).at[order].set(new)

        seen = per_lane(first, sparr.n_batch)(sparr.indices)
        values = jnp.where(seen.reshape(*seen.shape, *[1] * sparr.n_dense), values,
                           jnp.zeros((), values.dtype))
    return sparr.with_data(values)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays of one layout, at the places of the first.

    Shapes broadcast. Raises ShapeError where they or the layouts do not fit.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> sparse.bcoo_multiply_sparse(m, sparse.eye(2)).todense().tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    lhs, rhs = alike("bcoo_multiply_sparse", lhs, rhs)
    rhs = bcoo_sum_duplicates(rhs, nse=rhs.nse)
    lhs, sizes = full_batch(lhs), lhs.sparse_shape

    def lane(data: Array, indices: Array, other: Array, others: Array) -> Array:
        (mine, theirs), none = keys(sizes, indices, others)
        if not theirs.shape[0]:
            return jnp.zeros_like(data * jnp.ones((), other.dtype))
        at = jnp.minimum(jnp.searchsorted(theirs, mine), theirs.shape[0] - 1)
        here = (theirs[at] == mine) & (mine < none)
        here = here.reshape(-1, *[1] * (data.ndim - 1))
        product = data * other[at]
        return jnp.where(here, product, jnp.zeros((), product.dtype))

    return lhs.with_data(per_lane(lane, lhs.n_batch)(lhs.data, lhs.indices, rhs.data, rhs.indices))


def alike(name: str, lhs: BCOO, rhs: BCOO) -> tuple[BCOO, BCOO]:
    """Two arrays in one shape and one layout."""
    if lhs.shape != rhs.shape:
        shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
        lhs, rhs = (m if m.shape == shape else bcoo_broadcast_in_dim(
            m, shape=shape, broadcast_dimensions=range(len(shape) - m.ndim, len(shape)))
            for m in (lhs, rhs))
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = (bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in (lhs, rhs))
    return full_batch(lhs), full_batch(rhs)


def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: DotDimensionNumbers,
                     precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of `lax.dot_general` where at least one operand is sparse.

    With one dense operand the result is dense: products are added up at the places of the free
    axes. Of two sparse ones it is sparse; with known indices it stores each place once, under jit
    one place for each pair of stored elements. Raises ShapeError where the axes do not fit.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.bcoo_dot_general(sparse.eye(2), jnp.array([3.0, 4.0]),
    ...                         dimension_numbers=(((1,), (0,)), ((), ()))).tolist()
    [3.0, 4.0]
    """
    (lc, rc), (lb, rb) = [[tuple(map(operator.index, d)) for d in pair]
                          for pair in dimension_numbers]
    del precision
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    for axes, others in ((lc, rc), (lb, rb)):
        if len(axes) != len(others) or any(lhs.shape[a] != rhs.shape[b]
                                           for a, b in zip(axes, others)):
            raise mismatch("bcoo_dot_general", f"axes {axes} of {lhs.shape} are not axes {others} "
                           f"of {rhs.shape}.")
    if preferred_element_type is not None:
        lhs, rhs = lhs.astype(preferred_element_type), rhs.astype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_product(lhs, rhs, lc, rc, lb, rb)
    if isinstance(lhs, BCOO):
        return _dense_product(lhs, rhs, lc, rc, lb, rb)
    out = _dense_product(rhs, lhs, rc, lc, rb, lb)
    batch, free = len(lb), rhs.ndim - len(rc) - len(rb)
    return jnp.moveaxis(out, range(batch, batch + free), range(out.ndim - free, out.ndim))


def _dense_product(mat: BCOO, x: Array, mc: Dims, xc: Dims, mb: Dims, xb: Dims) -> Array:
    """Each stored element times what x has at its contracted axes, added up at its free ones."""
    dtype = jnp.result_type(mat.data, x)
    if is_half(dtype):  # sums of halves are sums in float32
        out = _dense_product(mat.astype(np.float32), x.astype(np.float32), mc, xc, mb, xb)
        return out.astype(dtype)
    if not mat.n_batch and mat.n_sparse == mat.ndim == 2 and len(mc) == 1 and not mb and \
            kind(dtype) != "b":
        return _matrix_product(mat, x, mc[0], xc[0], dtype)
    mat = bcoo_update_layout(mat, n_batch=0)
    n = mat.n_sparse
    labels = list(range(mat.ndim))
    theirs = {**dict(zip(xc, mc)), **dict(zip(xb, mb))}
    x_labels = [theirs.get(a, mat.ndim + a) for a in range(x.ndim)]
    out_labels = [*mb, *[a for a in labels if a not in mc and a not in mb],
                  *[v for v in x_labels if v >= mat.ndim]]
    read = [a for a in labels[:n] if a in x_labels]
    write = [a for a in out_labels if a < n]
    order = [x_labels.index(a) for a in read]
    rest = [k for k in range(x.ndim) if k not in order]
    rows = read_at(jnp.transpose(x, (*order, *rest)), _columns(mat.indices, read))
    stored = 10_000  # the axis of stored elements
    kept = [a for a in out_labels if a not in write]
    values = _einsum(mat.data, [stored, *labels[n:]], rows, [stored, *[x_labels[k] for k in rest]],
                     [stored, *kept])
    sizes = dict(zip([*labels, *x_labels], [*mat.shape, *x.shape]))
    out = jnp.zeros(tuple([sizes[a] for a in (*write, *kept)]), values.dtype)
    in_order = mat.indices_sorted and write == labels[:len(write)]
    out = add_at(out, _columns(mat.indices, write), values, in_order)
    found = [*write, *kept]
    return jnp.transpose(out, [found.index(a) for a in out_labels])


def _matrix_product(mat: BCOO, x: Array, contract: Any, axis: Any, dtype: Any) -> Array:
    """A matrix of coordinates, or its transpose, times what x has along an axis."""
    x = jnp.moveaxis(x, axis, 0).astype(dtype)
    rest = x.shape[1:]
    wide = x.reshape(x.shape[0], math.prod(rest))
    transpose = contract == 0
    parts = parts_of(mat)
    if len(parts) == 1 and len(parts[0]) == 3:  # made of compressed rows
        data, indices, indptr = parts[0]
        product = csr_matmul_transposed(data, indices, indptr, wide, mat.sparse_shape[1]) \
            if transpose else csr_matmul(data, indices, indptr, wide)
    else:
        product = coo_dot_p.bind(mat.data.astype(dtype), mat.indices, wide,
                                 sizes=mat.sparse_shape, transpose=transpose,
                                 is_sorted=mat.indices_sorted)
    out: Array = product.reshape(product.shape[0], *rest)
    return out


def _columns(indices: Array, axes: Sequence[Any]) -> Array:
    if list(axes) == list(range(indices.shape[-1])):
        return indices
    return jnp.stack([indices[..., a] for a in axes], axis=-1) if axes else indices[..., :0]


def _einsum(x: Array, x_labels: Sequence[Any], y: Array, y_labels: Sequence[Any],
            out_labels: Sequence[Any]) -> Array:
    """Values of elements multiplied, and added up over dense axes that both have."""
    if list(x_labels[1:]) == [] or not set(x_labels[1:]) & set(y_labels[1:]):
        shape_x = [dict(zip(x_labels, x.shape)).get(a, 1) for a in out_labels]
        shape_y = [dict(zip(y_labels, y.shape)).get(a, 1) for a in out_labels]
        x = jnp.transpose(x, [x_labels.index(a) for a in out_labels if a in x_labels])
        y = jnp.transpose(y, [y_labels.index(a) for a in out_labels if a in y_labels])
        return x.reshape(shape_x) * y.reshape(shape_y)
    names: dict[int, int] = {}
    code = [[names.setdefault(a, len(names)) for a in part]
            for part in (x_labels, y_labels, out_labels)]
    return jnp.einsum(x, code[0], y, code[1], code[2])


def _sparse_product(lhs: BCOO, rhs: BCOO, lc: Dims, rc: Dims, lb: Dims, rb: Dims) -> BCOO:
    """Pairs of stored elements that agree in the contracted axes."""
    lanes = len(lb)
    if lanes and set(lb) == set(range(lanes)) and set(rb) == set(range(lanes)) and \
            lhs.n_batch >= lanes and rhs.n_batch >= lanes and is_traced(lhs.indices):
        lhs = bcoo_transpose(lhs, permutation=(*lb, *range(lanes, lhs.ndim)))
        rhs = bcoo_transpose(rhs, permutation=(*rb, *range(lanes, rhs.ndim)))
        inner = tuple([a - lanes for a in lc]), tuple([a - lanes for a in rc])
        lhs, rhs = full_batch(lhs), full_batch(rhs)

        def lane(x: BCOO, y: BCOO) -> BCOO:
            return _pairs(x, y, *inner, (), ())

        return per_lane(lane, lanes)(lhs, rhs)  # type: ignore[no-any-return]
    return _pairs(lhs, rhs, lc, rc, lb, rb)


def _pairs(lhs: BCOO, rhs: BCOO, lc: Dims, rc: Dims, lb: Dims, rb: Dims) -> BCOO:
    lhs, rhs = (bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs))
    if not lb and len(lc) == 1 and lhs.ndim == rhs.ndim == 2:
        at_once = _rows_times_rows(lhs if lc[0] else lhs.transpose(),
                                   rhs.transpose() if rc[0] else rhs)
        if at_once is not None:
            return at_once
    left, right = [*lb, *lc], [*rb, *rc]
    sizes = tuple([lhs.shape[a] for a in left])
    free = [[a for a in range(m.ndim) if a not in used] for m, used in ((lhs, left), (rhs, right))]
    out_sizes = (*[lhs.shape[a] for a in (*lb, *free[0])], *[rhs.shape[a] for a in free[1]])
    (mine, theirs), none = known(
        lambda a, b: keys(sizes, _columns(a, left), _columns(b, right)), lhs.indices, rhs.indices)
    if is_traced(mine) or is_traced(theirs):
        i, j = (jnp.repeat(jnp.arange(lhs.nse), rhs.nse), jnp.tile(jnp.arange(rhs.nse), lhs.nse))
        agree = (mine[i] == theirs[j]) & (mine[i] < none)
    else:
        i, j = map(jnp.asarray, _matches(np.asarray(mine), np.asarray(theirs), none))
        agree = None
    values = lhs.data[i] * rhs.data[j]
    index = jnp.result_type(lhs.indices, rhs.indices)
    found = known(lambda a, b: jnp.concatenate([
        _columns(a, [*lb, *free[0]]).astype(index)[i],
        _columns(b, free[1]).astype(index)[j]], axis=-1), lhs.indices, rhs.indices)
    if agree is not None:
        values = jnp.where(agree, values, jnp.zeros((), values.dtype))
        found = jnp.where(agree[:, None], found, jnp.asarray(np.asarray(out_sizes, index)))
    out = BCOO.tree_unflatten((tuple(out_sizes), False, False), (values, found))
    if is_traced(found):
        most = out.size
        return bcoo_sum_duplicates(out, nse=most) if most < out.nse else out
    return _summed(out)


def _rows_times_rows(lhs: BCOO, rhs: BCOO) -> BCOO | None:
    """The product of two matrices on known arrays of one dtype, by the runtime."""
    left, right = (rows_of_coordinates(m.data, m.indices, m.sparse_shape[0], m.sparse_shape[1],
                                       m.indices_sorted) for m in (lhs, rhs))
    if any(p is NotImplemented or p[3] is not None for p in (left, right)):
        return None
    out = csr_times_csr(left[0], left[1], left[2], right[0], right[1], right[2],
                        rhs.sparse_shape[1])
    if out is NotImplemented:
        return None
    data, indices, indptr = out
    shape = lhs.sparse_shape[0], rhs.sparse_shape[1]
    return BCOO.tree_unflatten((shape, True, True), (data, coordinates_of_rows(indices, indptr)))


def _matches(mine: Any, theirs: Any, none: int) -> tuple[Any, Any]:
    """All pairs of equal keys, by sorting one side and repeating the other: numbers on the host."""
    order = np.argsort(theirs, kind="stable")
    keys = theirs[order]
    start = np.searchsorted(keys, mine, "left")
    count = np.where(mine < none, np.searchsorted(keys, mine, "right") - start, 0)
    i = np.repeat(np.arange(mine.size), count)
    within = np.arange(i.size) - np.repeat(np.cumsum(count) - count, count)
    return i, order[start[i] + within]


def _summed(mat: BCOO) -> BCOO:
    """Duplicates added up where indices are known: their order is found on the host."""
    sizes = mat.sparse_shape
    (found,), none = known(lambda at: keys(sizes, at), mat.indices)
    at, first, numbers = np.unique(np.asarray(found), return_index=True, return_inverse=True)
    first = first[at < none]
    data = segment_sum(mat.data, jnp.asarray(numbers.reshape(-1)), len(first))
    indices = known(lambda at: at[jnp.asarray(first)], mat.indices)
    return BCOO.tree_unflatten((sizes, True, True), (data, indices))


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: Array, *,
                             dimension_numbers: DotDimensionNumbers) -> Array:
    """The elements of a dense product at the places `indices` alone.

    `indices` (*batch, nse, n_sparse) are those of a BCOO array of the product's shape, its batch
    axes those of `dimension_numbers`. Elements that are not asked for are not computed.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> a = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> sparse.bcoo_dot_general_sampled(a, a, jnp.array([[1, 0]]),
    ...                                 dimension_numbers=(((1,), (0,)), ((), ()))).tolist()
    [15.0]
    """
    (ac, bc), (ab, bb) = [[tuple(map(operator.index, d)) for d in pair]
                          for pair in dimension_numbers]
    x, y = jnp.asarray(A), jnp.asarray(B)
    n_batch = indices.ndim - 2
    for a, b in (*zip(ac, bc), *zip(ab, bb)):
        if x.shape[a] != y.shape[b]:
            raise mismatch("bcoo_dot_general_sampled", f"axis {a} of {x.shape} is not axis {b} of "
                           f"{y.shape}.")
    if n_batch > len(ab):
        raise mismatch("bcoo_dot_general_sampled", f"indices of {n_batch} batch axes for a product "
                       f"of {len(ab)}.")
    a_free = [k for k in range(x.ndim) if k not in ac and k not in ab]
    b_free = [k for k in range(y.ndim) if k not in bc and k not in bb]
    x, y = jnp.transpose(x, (*ab, *a_free, *ac)), jnp.transpose(y, (*bb, *b_free, *bc))
    lanes, n_sparse = len(ab) - n_batch, indices.shape[-1]
    sparse_a = min(lanes + len(a_free), n_sparse)

    def lane(x: Array, y: Array, at: Array) -> Array:
        rows = read_at(x, at[:, :sparse_a])
        others = read_at(y, jnp.concatenate([at[:, :min(lanes, n_sparse)], at[:, sparse_a:]], -1))
        r, s = rows.ndim - 1 - len(ac), others.ndim - 1 - len(bc)
        shared = max(lanes - n_sparse, 0)

        def element(u: Array, v: Array) -> Array:
            dims = ((tuple(range(r, r + len(ac))), tuple(range(s, s + len(bc)))),
                    (tuple(range(shared)), tuple(range(shared))))
            return lax.dot_general(u, v, dims)

        if r == s == 0:
            return jnp.sum(rows * others, axis=tuple(range(1, rows.ndim)))
        return vmap(element)(rows, others)

    out: Array = per_lane(lane, n_batch)(x, y, indices)
    return out


publish(globals(), __all__)
