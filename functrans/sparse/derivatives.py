"""Derivatives in sparse arguments: those in the stored values, as arrays of the same places."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_map, tree_unflatten
from functrans.sparse.base import JAXSparse, per_lane
from functrans.transforms import derivatives

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

P = ParamSpec("P")


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _stored(tree: Any) -> Any:
    """The tree with the stored values of sparse arrays in their place."""
    return tree_map(lambda x: x.data if _is_sparse(x) else x, tree, is_leaf=_is_sparse)


def _restored(tree: Any, values: Any) -> Any:
    """The tree with other stored values, which may have leading axes."""
    leaves, structure = tree_flatten(tree, is_leaf=_is_sparse)
    found = tree_flatten(values)[0]
    return tree_unflatten(structure, [
        _with_values(x, v) if _is_sparse(x) else v for x, v in zip(leaves, found, strict=True)])


def _with_values(x: JAXSparse, values: Any) -> Any:
    return per_lane(x.with_data, values.ndim - x.data.ndim)(values)


def _transformed(name: str, transform: Callable[..., Any], fun: Callable[..., Any], argnums: Any,
                 has_aux: bool, kwargs: dict[str, Any]) -> Callable[..., Any]:
    several = isinstance(argnums, (tuple, list))
    numbers = tuple(operator.index(i) for i in (argnums if several else (argnums,)))

    @wraps(fun)
    def derivative(*args: Any, **keywords: Any) -> Any:
        places = [i + len(args) if i < 0 else i for i in numbers]
        if any(not 0 <= i < len(args) for i in places):
            raise ArgumentError(f"sparse.{name}: argnums={argnums} of {len(args)} arguments.",
                                where=user_source())

        def on_values(*values: Any) -> Any:
            full = list(args)
            for i, v in zip(places, values, strict=True):
                full[i] = _restored(args[i], v)
            return fun(*full, **keywords)

        given = tuple([_stored(args[i]) for i in places])
        out = transform(on_values, argnums=tuple(range(len(places))), has_aux=has_aux,
                        **kwargs)(*given)
        return out, [args[i] for i in places]

    return derivative


def value_and_grad(fun: Callable[P, Any], argnums: int | Sequence[Any] = 0,
                   has_aux: bool = False, **kwargs: Any) -> Callable[P, Any]:
    """`functrans.value_and_grad` in the stored values of sparse arguments.

    The gradient in a sparse argument is a sparse array of its places. Errors as there.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> value, g = sparse.value_and_grad(lambda m, x: m @ x)(
    ...     sparse.BCOO.fromdense(jnp.array([0.0, 2.0])), jnp.array([3.0, 4.0]))
    >>> float(value), g, g.data.tolist()
    (8.0, BCOO(float32[2], nse=1), [4.0])
    """
    call = _transformed("value_and_grad", derivatives.value_and_grad, fun, argnums, has_aux, kwargs)

    @wraps(fun)
    def value_and_grad_fun(*args: Any, **keywords: Any) -> Any:
        (value, gradients), given = call(*args, **keywords)
        return value, _selected(argnums, [_restored(x, g) for x, g in zip(given, gradients)])

    return value_and_grad_fun


def _selected(argnums: Any, found: list[Any]) -> Any:
    return tuple(found) if isinstance(argnums, (tuple, list)) else found[0]


def grad(fun: Callable[P, Any], argnums: int | Sequence[Any] = 0, has_aux: bool = False,
         **kwargs: Any) -> Callable[P, Any]:
    """`functrans.grad` in the stored values of sparse arguments; see `value_and_grad`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.grad(lambda m: (m * m).sum())(sparse.eye(2)).data.tolist()
    [2.0, 2.0]
    """
    call = value_and_grad(fun, argnums, has_aux, **kwargs)

    @wraps(fun)
    def grad_fun(*args: Any, **keywords: Any) -> Any:
        value, gradient = call(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


def _jacobian(name: str, transform: Callable[..., Any], fun: Callable[..., Any], argnums: Any,
              has_aux: bool, kwargs: dict[str, Any]) -> Callable[..., Any]:
    call = _transformed(name, transform, fun, argnums, has_aux, kwargs)

    @wraps(fun)
    def jacobian_fun(*args: Any, **keywords: Any) -> Any:
        out, given = call(*args, **keywords)
        columns, aux = out if has_aux else (out, None)
        # a leaf of the result has a tuple, one for each argument
        is_columns = lambda t: isinstance(t, tuple) and len(t) == len(given)
        found = tree_map(lambda t: _selected(argnums, [_restored(x, v) for x, v in zip(given, t)]),
                         columns, is_leaf=is_columns)
        return (found, aux) if has_aux else found

    return jacobian_fun


def jacfwd(fun: Callable[P, Any], argnums: int | Sequence[Any] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[P, Any]:
    """`functrans.jacfwd` in the stored values of sparse arguments, for dense results.

    The axes of the result are batch axes of the sparse Jacobian.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2,2,2], nse=2)
    """
    return _jacobian("jacfwd", derivatives.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable[P, Any], argnums: int | Sequence[Any] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[P, Any]:
    """`functrans.jacrev` in the stored values of sparse arguments; see `jacfwd`.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2,2,2], nse=2)
    """
    return _jacobian("jacrev", derivatives.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev

publish(globals(), __all__)
