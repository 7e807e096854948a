"""Trees as vectors, as in jax.flatten_util."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from functrans.core.dtypes import result_type
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.numpy.common import operand
from functrans.numpy.creation import zeros
from functrans.numpy.joining import concatenate
from functrans.primitives.shape import slice_in_dim
from functrans.typing import Array

T = TypeVar("T")

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: T) -> tuple[Array, Callable[[Array], T]]:
    """All elements of a tree as one vector, and the function that makes the tree of such a vector.

    The vector has the dtype that the leaves promote to; where they have several, the function gives
    each its own again. It raises ShapeError for a vector of another length.

    >>> import functrans as ft
    >>> flat, unravel = ft.flatten_util.ravel_pytree({"a": ft.numpy.ones(2), "b": 3.0})
    >>> flat.tolist(), float(unravel(2 * flat)["b"])
    ([1.0, 1.0, 3.0], 6.0)
    """
    leaves, tree = tree_flatten(pytree)
    arrays = [operand("ravel_pytree", x) for x in leaves]
    shapes, dtypes = [x.shape for x in arrays], [x.dtype for x in arrays]
    sizes = [math.prod(shape) for shape in shapes]
    whole = result_type(*dtypes) if dtypes else None
    one_dtype = all(d == whole for d in dtypes)

    def unravel(flat: Array) -> T:
        vector = operand("unravel", flat)
        if vector.shape != (sum(sizes),):
            raise ShapeError(f"unravel: a vector of shape {vector.shape}.", where=user_source(),
                             why=f"the tree has {sum(sizes)} elements.")
        parts, start = [], 0
        for shape, size, dtype in zip(shapes, sizes, dtypes, strict=True):
            part = slice_in_dim(vector, start, start + size).reshape(shape)
            parts.append(part if one_dtype else part.astype(dtype))
            start += size
        result: T = tree_unflatten(tree, parts)
        return result

    if not arrays:
        return zeros(0, "float32"), unravel
    return concatenate([x.astype(whole).reshape(-1) for x in arrays]), unravel


publish(globals(), __all__)
