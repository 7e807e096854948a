"""`sparsify`: a function on dense arrays run on sparse ones, by a rule for each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import NotCoveredError, publish
from functrans.core.jaxpr import Equation, Jaxpr, Literal
from functrans.core.primitive import HigherOrder
from functrans.core.table import Table
from functrans.core.trace import ARRAYS
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.primitives import arithmetic, transcendental
from functrans.primitives.barrier import checkpoint_name, checkpoint_name_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p
from functrans.primitives.index import gather_p
from functrans.primitives.shape import concatenate_p, copy_p, reshape_p, rev_p, slice_p
from functrans.sparse.base import JAXSparse
from functrans.sparse.bcoo import BCOO
from functrans.sparse.gathers import bcoo_gather
from functrans.sparse.layout import bcoo_transpose
from functrans.sparse.movement import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
)
from functrans.sparse.operators import as_bcoo, unary
from functrans.sparse.products import bcoo_dot_general
from functrans.transforms.staged import ShapeDtypeStruct, make_jaxpr
from functrans.typing import Array

__all__ = ["sparsify", "todense"]

P = ParamSpec("P")

DENSE_HERE = "functrans.sparse.todense"
NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)
Rule = Callable[..., Any]


def todense(x: Any) -> Array:
    """A sparse array as a dense one, and a dense one as it is; inside of `sparsify` as well.

    >>> from functrans.experimental import sparse
    >>> sparse.todense(sparse.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(x, JAXSparse):
        return x.todense()
    return checkpoint_name(jnp.asarray(x), DENSE_HERE)


def sparsify(f: Callable[P, Any]) -> Callable[P, Any]:
    """`f` on sparse arguments where it is written for dense arrays.

    Its program is run on the stored elements. Results are sparse where an operation keeps zeros,
    dense otherwise; `todense` makes an array dense on the way. Raises NotCoveredError where a
    sparse array comes to an operation that has no rule for it.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> f = sparse.sparsify(lambda m, x: jnp.sin(m).T @ x)
    >>> f(sparse.eye(2), jnp.ones(2)).round(3).tolist()
    [0.841, 0.841]
    """
    function: Callable[..., Any] = f

    @wraps(function)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, JAXSparse))
        dense = [k for k, x in enumerate(leaves) if isinstance(x, (JAXSparse, *ARRAYS, *NUMBERS))]

        def flat(*arrays: Any) -> Any:
            filled = list(leaves)
            for k, x in zip(dense, arrays, strict=True):
                filled[k] = x
            positional, named = tree_unflatten(tree, filled)
            return function(*positional, **named)

        given = [ShapeDtypeStruct(leaves[k].shape, leaves[k].dtype)
                 if isinstance(leaves[k], JAXSparse) else leaves[k] for k in dense]
        closed, shape = make_jaxpr(flat, return_shape=True)(*given)
        operands = [as_bcoo(leaves[k]) if isinstance(leaves[k], JAXSparse) else leaves[k]
                    for k in dense]
        outs = _run(closed.jaxpr, closed.consts, operands)
        return tree_unflatten(tree_flatten(shape)[1], outs)

    return sparsified


def _run(jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: Any) -> Any:
        return atom.operand if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(a) for a in eqn.invars]
        if any(isinstance(v, BCOO) for v in values):
            outs = _sparse(eqn, values)
        else:
            out = eqn.primitive.bind(*values, **eqn.params)
            outs = list(out) if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in jaxpr.outvars]


def _sparse(eqn: Equation, values: list[Any]) -> list[Any]:
    primitive = eqn.primitive
    if (rule := RULES.get(primitive)) is not None:
        out = rule(*values, **eqn.params)
        return list(out) if primitive.multiple_results else [out]
    if primitive in ZERO_PRESERVING:
        return [unary(values[0], lambda v: primitive.bind(v, **eqn.params))]
    if isinstance(primitive, HigherOrder) and primitive.called is not None:
        inner, operands = primitive.called(values, **eqn.params)
        return _run(inner, (), operands)
    raise NotCoveredError(f"sparsify: {primitive.name} has no rule for sparse arrays.",
                          where=eqn.source, why="its result would have elements that are not zero "
                                                "where nothing is stored, or its places are not "
                                                "known.",
                          fix="sparse.todense(x) before it")


def _div(x: Any, y: Any) -> Any:
    if isinstance(y, BCOO):
        return x / y.todense() if not isinstance(x, BCOO) else x / y
    return x / y


def _mul(x: Any, y: Any) -> Any:
    return x * y if isinstance(x, BCOO) else y * x


def _dot(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None,
         precision: Any = None) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers,
                            preferred_element_type=preferred_element_type)


def _reduce_sum(x: BCOO, *, axes: Sequence[Any], **params: Any) -> Any:
    out = bcoo_reduce_sum(x, axes=axes)
    return out if out.ndim else out.todense()


def _concatenate(*xs: Any, dimension: int) -> Any:
    first = next(x for x in xs if isinstance(x, BCOO))
    same = [x if isinstance(x, BCOO) else BCOO.fromdense(
        x, nse=int(np.prod(x.shape[first.n_batch:x.ndim - first.n_dense])),
        n_batch=first.n_batch, n_dense=first.n_dense) for x in xs]
    return bcoo_concatenate(same, dimension=dimension)


def _slice(x: BCOO, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


def _gather(x: Any, indices: Any, **params: Any) -> Any:
    return bcoo_gather(x, indices, **params)


def _named(x: Any, **params: Any) -> Any:
    return x.todense() if params["name"] == DENSE_HERE else \
        x.with_data(checkpoint_name_p.bind(x.data, **params))


def _convert(x: BCOO, **params: Any) -> BCOO:
    return x.with_data(convert_element_type_p.bind(x.data, **params))


def _branches(index: Any, *operands: Any, branches: Sequence[Jaxpr], **params: Any) -> list[Any]:
    functions = [lambda *xs, b=b: _run(b, (), xs) for b in branches]
    if np.dtype(index.dtype).kind == "b":
        index = index.astype("int32")
    return list(lax.switch(index, functions, *operands))


def _loop(*operands: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
          body_nconsts: int, **params: Any) -> list[Any]:
    end = cond_nconsts + body_nconsts
    first, rest = operands[:cond_nconsts], operands[cond_nconsts:end]
    return list(lax.while_loop(lambda c: _run(cond_jaxpr, (), [*first, *c])[0],
                               lambda c: _run(body_jaxpr, (), [*rest, *c]), list(operands[end:])))


def _scan(*operands: Any, jaxpr: Jaxpr, length: int, reverse: bool, unroll: int, num_consts: int,
          num_carry: int) -> list[Any]:
    end = num_consts + num_carry
    consts = operands[:num_consts]
    # what a scan walks over are batch axes of sparse operands
    xs = [x.update_layout(n_batch=max(x.n_batch, 1), on_inefficient=None)
          if isinstance(x, BCOO) else x for x in operands[end:]]

    def body(carry: Any, xs: Any) -> Any:
        outs = _run(jaxpr, (), [*consts, *carry, *xs])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, list(operands[num_consts:end]), xs, length=length, reverse=reverse)
    return [*carry, *ys]


ZERO_PRESERVING = frozenset((
    arithmetic.abs_p, arithmetic.neg_p, arithmetic.sign_p, arithmetic.floor_p, arithmetic.ceil_p,
    arithmetic.trunc_p, arithmetic.round_p, arithmetic.real_p, arithmetic.imag_p,
    arithmetic.conj_p, arithmetic.integer_pow_p, copy_p,
    *[getattr(transcendental, f"{name}_p") for name in
      ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "sqrt",
       "cbrt", "erf", "erf_inv") if f"{name}_p" in vars(transcendental)]))
"""Elementwise operations with f(0) = 0."""

RULES: Table[Rule] = Table({
    arithmetic.add_p: lambda x, y: x + y, add_any_p: lambda x, y: x + y,
    arithmetic.sub_p: lambda x, y: x - y, arithmetic.mul_p: _mul, arithmetic.div_p: _div,
    arithmetic.neg_p: lambda x: -x, convert_element_type_p: _convert,
    dot_general_p: _dot, reduce_sum_p: _reduce_sum, concatenate_p: _concatenate, slice_p: _slice,
    transpose_p: lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    reshape_p: lambda x, *, new_sizes: bcoo_reshape(x, new_sizes=new_sizes),
    rev_p: lambda x, *, dimensions: bcoo_rev(x, dimensions),
    broadcast_in_dim_p: lambda x, *, shape, broadcast_dimensions: bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions),
    dynamic_slice_p: lambda x, *starts, slice_sizes: bcoo_dynamic_slice(x, starts, slice_sizes),
    gather_p: _gather, checkpoint_name_p: _named, cond_p: _branches, while_p: _loop,
    scan_p: _scan}, otherwise="an error tells that a sparse array has no rule")

publish(globals(), __all__)
