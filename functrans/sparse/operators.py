"""What the operators and methods of sparse arrays do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans._runtime import csr_product, rows_of_coordinates
from functrans.core.errors import IndexingError
from functrans.core.source import user_source
from functrans.numpy.common import axis_tuple
from functrans.sparse.base import OPERATIONS, JAXSparse, OtherFormat, mismatch, outside
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR, bcsr_dot_general, rows_times_rows, sum_of_rows
from functrans.sparse.formats import COO, CSC, CSR
from functrans.sparse.gathers import bcoo_take
from functrans.sparse.layout import bcoo_sum_duplicates
from functrans.sparse.movement import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    reshaped,
)
from functrans.sparse.products import (
    alike,
    bcoo_dot_general,
    bcoo_multiply_sparse,
    read_places,
)
from functrans.sparse.rows import coordinates
from functrans.sparse.sums import made_of, parts_of
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape

__all__ = ["as_bcoo", "unary"]


def as_bcoo(x: JAXSparse) -> BCOO:
    """Any sparse array as batched coordinates."""
    if isinstance(x, BCOO):
        return x
    if isinstance(x, BCSR):
        return x.to_bcoo()
    if isinstance(x, CSC):
        return as_bcoo(x.batched()).transpose()
    if isinstance(x, CSR):
        return x.batched().to_bcoo()
    if isinstance(x, COO):
        return x.batched()
    if isinstance(x, OtherFormat):
        found: BCOO = x.to_bcoo()
        return found
    raise TypeError(f"{type(x).__name__} is no sparse array")


def _like(out: Any, x: JAXSparse) -> Any:
    """A sparse result in the format of an operand, where it has that."""
    if not isinstance(out, BCOO) or isinstance(x, BCOO) or out.n_sparse != 2:
        return out
    if isinstance(x, BCSR):
        return BCSR.from_bcoo(out)
    if out.ndim != 2:
        return out
    if isinstance(x, COO):
        return COO.from_bcoo(out)
    if isinstance(x, CSR):
        m = BCSR.from_bcoo(out)
        return CSR((m.data, m.indices, m.indptr), shape=m.shape)
    return _like(out.transpose(), CSR.__new__(CSR)).transpose()


def unary(x: JAXSparse, fun: Callable[[Any], Any]) -> Any:
    """An elementwise function with f(0) = 0, on the sums of duplicates."""
    mat = as_bcoo(x)
    if not mat.unique_indices:
        mat = bcoo_sum_duplicates(mat, nse=mat.nse)
        return _like(mat.with_data(fun(mat.data)), x)
    return x.with_data(fun(x.data))


def _at_once(x: Any, y: Any) -> Any:
    """A product whose operands are known, by the runtime: 1 us where tracing it would take 40."""
    left, right = type(x), type(y)
    if left is BCSR:
        if right is BCSR:
            return rows_times_rows(x, y)
        return csr_product(x.data, x.indices, x.indptr, y, x._columns, False)
    if right is BCSR:
        return csr_product(y.data, y.indices, y.indptr, x, y._columns, True) \
            if getattr(x, "ndim", 0) == 1 else NotImplemented
    if left is CSR:
        return csr_product(x.data, x.indices, x.indptr, y, x._shape[1], False)
    if left is CSC:
        return csr_product(x.data, x.indices, x.indptr, y, x._shape[0], True)
    if left is BCOO and not isinstance(y, JAXSparse):
        return _coordinates_at_once(x, y, False)
    if right is BCOO and not isinstance(x, JAXSparse) and getattr(x, "ndim", 0) == 1:
        return _coordinates_at_once(y, x, True)
    return NotImplemented


def _coordinates_at_once(mat: BCOO, other: Any, transpose: bool) -> Any:
    """The same for coordinates, whose rows are compressed for it: that takes as long as reading."""
    if len(mat.sparse_shape) != 2:
        return NotImplemented
    rows, columns = mat.sparse_shape
    found = rows_of_coordinates(mat.data, mat.indices, rows, columns, mat.indices_sorted)
    if found is NotImplemented or found[3] is not None:  # of another dtype, in another order
        return NotImplemented
    data, indices, indptr, _ = found
    return csr_product(data, indices, indptr, other, columns, transpose)


def _matmul(x: Any, y: Any) -> Any:
    at_once = _at_once(x, y)
    if at_once is not NotImplemented:
        return at_once
    x, y = (as_bcoo(a) if isinstance(a, OtherFormat) else a if isinstance(a, JAXSparse)
            else jnp.asarray(a) for a in (x, y))
    if not x.ndim or not y.ndim:
        raise mismatch("matmul", "an operand has no axes.", "x * y")
    kept = x if isinstance(x, JAXSparse) else y
    contract = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
    if x.shape[contract[0][0]] != y.shape[contract[1][0]]:
        raise mismatch("matmul", f"shapes {x.shape} and {y.shape} do not fit.")
    if x.ndim <= 2 and y.ndim <= 2:
        if isinstance(kept, COO) and not (isinstance(x, JAXSparse) and isinstance(y, JAXSparse)):
            compressed = kept.compressed()
            of_rows = kept if compressed is None else compressed
            x, y = (of_rows if a is kept else a for a in (x, y))
        x, y = (a.batched() if isinstance(a, (COO, CSR)) else a for a in (x, y))
        if isinstance(x, CSC):
            x, contract = x.batched(), ((0,), contract[1])
        if isinstance(y, CSC):
            y, contract = y.batched(), (contract[0], (1,))
        dims = (contract, ((), ()))
        if isinstance(x, BCSR) or isinstance(y, BCSR):
            out = bcsr_dot_general(x, y, dimension_numbers=dims)
        else:
            out = bcoo_dot_general(x, y, dimension_numbers=dims)
        out = as_bcoo(out) if isinstance(out, JAXSparse) else out
        return _like(out, kept)
    x, y = (as_bcoo(a) if isinstance(a, JAXSparse) else a for a in (x, y))
    if x.ndim == 1 or y.ndim == 1:
        out = bcoo_dot_general(x, y, dimension_numbers=(contract, ((), ())))
        return _like(out, kept)
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = _repeated(x, batch), _repeated(y, batch)
    lanes = tuple(range(len(batch)))
    n = len(batch)
    return _like(bcoo_dot_general(x, y, dimension_numbers=(((n + 1,), (n,)), (lanes, lanes))), kept)


def _repeated(x: Any, batch: tuple[Any, ...]) -> Any:
    shape = (*batch, *x.shape[-2:])
    if x.shape == shape:
        return x
    if not isinstance(x, BCOO):
        return jnp.broadcast_to(x, shape)
    return bcoo_broadcast_in_dim(x, shape=shape,
                                 broadcast_dimensions=range(len(shape) - x.ndim, len(shape)))


def _add(x: Any, y: Any) -> Any:
    if not isinstance(x, JAXSparse):
        return x + y.todense()
    if not isinstance(y, JAXSparse):
        return x.todense() + y
    if type(x) is type(y) and isinstance(x, (BCSR, CSR)) and x.shape == y.shape:
        pair: list[BCSR] = [m if isinstance(m, BCSR) else m.batched()  # type: ignore[attr-defined]
                            for m in (x, y)]
        if pair[0].n_batch == pair[1].n_batch and pair[0].n_dense == pair[1].n_dense:
            rows = sum_of_rows(pair)
            return rows if isinstance(x, BCSR) else CSR((rows.data, rows.indices, rows.indptr),
                                                        shape=rows.shape)
    a, b = alike("add", as_bcoo(x), as_bcoo(y))
    out = bcoo_concatenated(a, b)
    return _like(out, x)


def bcoo_concatenated(a: BCOO, b: BCOO) -> BCOO:
    """The places of two arrays of one shape and layout one after the other: their sum."""
    n = a.n_batch
    dtype = jnp.result_type(a.data, b.data)
    index = jnp.result_type(a.indices, b.indices)
    data = jnp.concatenate([a.data.astype(dtype), b.data.astype(dtype)], n)
    parts = [*parts_of(a), *parts_of(b)]
    if {len(p) for p in parts} == {3}:  # of rows: not to be read again
        indices = coordinates([p[1] for p in parts], [p[2] for p in parts]).astype(index)
    else:
        indices = jnp.concatenate([a.indices.astype(index), b.indices.astype(index)], n)
    if len({len(p) for p in parts}) > 1:
        parts = [(m.data, m.indices) for m in (a, b)]
    found = BCOO.tree_unflatten((a.sparse_shape, False, False), (data, indices))
    return made_of(found, parts)


def _subtract(x: Any, y: Any) -> Any:
    if isinstance(x, JAXSparse) and isinstance(y, JAXSparse):
        return _add(x, -y)
    return x.todense() - y if isinstance(x, JAXSparse) else x - y.todense()


def _multiply(x: JAXSparse, y: Any) -> Any:
    if isinstance(y, JAXSparse):
        return _like(bcoo_multiply_sparse(as_bcoo(x), as_bcoo(y)), x)
    if jnp.ndim(y) == 0:
        return x.with_data(x.data * y)
    return _with_dense(x, y, operator.mul)


def _with_dense(x: JAXSparse, y: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The stored values combined with those of a dense array at their places."""
    y, mat = jnp.asarray(y), as_bcoo(x)
    shape = jnp.broadcast_shapes(mat.shape, y.shape)
    if shape != mat.shape:
        mat = bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(
            len(shape) - mat.ndim, len(shape)))
        x = mat
    read = read_places(mat, y, "a product" if combine is operator.mul else "a quotient")
    if combine is operator.truediv:
        # places out of bounds read zeros
        beyond = outside(mat.indices, mat.sparse_shape)
        beyond = beyond.reshape(*beyond.shape, *[1] * mat.n_dense)
        read = jnp.where(beyond, jnp.ones((), read.dtype), read)
    return _like(mat.with_data(combine(mat.data, read)), x)


def _divide(x: Any, y: Any) -> Any:
    if isinstance(y, JAXSparse):
        raise mismatch("divide", "a sparse divisor is zero where nothing is stored.",
                       "x / y.todense()")
    return x.with_data(x.data / y) if jnp.ndim(y) == 0 else _with_dense(x, y, operator.truediv)


def _power(x: JAXSparse, power: Any) -> Any:
    if isinstance(power, (int, float, np.number)) and power > 0:
        return unary(x, lambda v: v ** power)
    raise mismatch("power", f"a power of {power!r} does not keep zeros.", "x.todense() ** power")


def _dtype_of_sums(dtype: Any) -> Any:
    """The dtype of a dense array's sum: booleans are counted, small integers have room."""
    return eval_shape(jnp.sum, ShapeDtypeStruct((1,), dtype)).dtype


def _sum(x: JAXSparse, axis: Any) -> Any:
    mat = as_bcoo(x.astype(_dtype_of_sums(x.dtype)))
    axes = axis_tuple(axis, mat.ndim, "sum")
    out = bcoo_reduce_sum(mat, axes=axes)
    return out.todense() if len(axes) == mat.ndim else _like(out, x)


def _getitem(x: JAXSparse, index: Any) -> Any:
    mat = as_bcoo(x)
    parts = list(index) if isinstance(index, tuple) else [index]
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if given > mat.ndim:
        raise IndexingError(f"{given} indices for a sparse array of {mat.ndim} axes.",
                            where=user_source())
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[at:at + 1] = [slice(None)] * (mat.ndim - given)
    new = [k for k, p in enumerate(parts) if p is None]
    bounds, gone, turned, taken = [], [], [], {}
    starts: dict[int, Any] = {}
    for axis, (part, n) in enumerate(zip([p for p in parts if p is not None], mat.shape,
                                         strict=True)):
        if isinstance(part, slice):
            start, stop, step = part.indices(n)
            count = len(range(start, stop, step))
            if step < 0:
                turned.append(axis)
                start, step = start + (count - 1) * step, -step
            bounds.append((start, start + (count - 1) * step + 1 if count else start, step))
            continue
        if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
            if not -n <= part < n:
                raise IndexingError(f"index {part} is out of bounds for axis {axis} of size {n}.",
                                    where=user_source())
            bounds.append((int(part) % n, int(part) % n + 1, 1))
            gone.append(axis)
            continue
        part = jnp.asarray(part)
        if np.dtype(part.dtype).kind not in "iu" or part.ndim > 1:
            raise IndexingError("a sparse array is indexed by integers, slices and vectors of "
                                f"integers, not by {part.dtype} of shape {part.shape}.",
                                where=user_source(), fix="x.todense()[...]")
        bounds.append((0, n, 1))
        if part.ndim:
            taken[axis] = part
        else:
            starts[axis] = jnp.where(part < 0, part + n, part)
            gone.append(axis)
    if len(taken) > 1:
        raise IndexingError("a sparse array takes one vector of integers.", where=user_source(),
                            fix="x.todense()[...]")
    begin, end, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
    out = bcoo_slice(mat, start_indices=[min(b, n) for b, n in zip(begin, mat.shape)],
                     limit_indices=[min(b, n) for b, n in zip(end, mat.shape)], strides=steps)
    if starts:
        out = bcoo_dynamic_slice(out, [starts.get(a, 0) for a in range(out.ndim)],
                                 [1 if a in starts else n for a, n in enumerate(out.shape)])
    out = bcoo_rev(out, turned) if turned else out
    for axis, numbers in taken.items():
        out = bcoo_take(out, numbers, axis)
    out = bcoo_squeeze(out, dimensions=gone) if gone else out
    if new:
        kept = [k for k in range(len(parts)) if k not in new]
        axes = iter(out.shape)
        removed = {[k for k in range(len(parts)) if k not in new][a] for a in gone}
        kept = [k for k in kept if k not in removed]
        sizes = [1 if k in new else next(axes) for k in range(len(parts)) if k not in removed]
        out = bcoo_reshape(out, new_sizes=sizes)
    return out.todense() if out.ndim == 0 else _like(out, x)


def _reshape(x: JAXSparse, *shape: Any) -> Any:
    return _like(reshaped(as_bcoo(x), *shape), x)


OPERATIONS.update(matmul=_matmul, add=_add, subtract=_subtract, multiply=_multiply,
                  divide=_divide, power=_power, unary=unary, sum=_sum, getitem=_getitem,
                  reshape=_reshape, concatenate=bcoo_concatenate)
