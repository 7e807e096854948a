"""From what users pass to what operations take: arrays, tracers, NumPy values, Python scalars."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans._runtime import wrap
from functrans.core import dtypes
from functrans.core.errors import NonArrayError, shown
from functrans.core.keypath import KeyPath, keystr
from functrans.core.masked import refuse_masked
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["array_method", "to_array", "to_arrays"]

_SCALARS = (bool, int, float, complex)


def to_array(x: Any, what: str = "an argument") -> Array:
    """x as an immutable array; arrays and tracers pass, NumPy arrays are copied.

    Raises NonArrayError naming `what` when x is no array or number.
    """
    if isinstance(x, ARRAYS):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        dtype = dtypes.as_dtype(x.dtype)
        return wrap(np.array(x, dtype))
    if isinstance(x, _SCALARS):
        dtype = dtypes.canonical_scalar(x)
        return wrap(np.asarray(x, dtype), dtypes.kind(dtype) != "b")
    functional = array_method(x)
    if functional is not None:
        return to_array(functional(), what)
    for_array = getattr(x, "__array__", None)
    if for_array is not None:
        return to_array(np.asarray(x), what)
    raise NonArrayError(f"{what} is {shown(x)}, of type {type(x).__name__}.", where=user_source(),
                        why="arrays and numbers are needed here.", fix=_fix_for(x))


def array_method(x: Any) -> Callable[[], Any] | None:
    """The method of a library's object that gives the array it stands for, if its class has one.

    `__functrans_array__` of an array that can be written into gives what is in it now,
    `__jax_array__` is what classes written for JAX have.
    """
    cls = type(x)
    for name in ("__functrans_array__", "__jax_array__"):
        if hasattr(cls, name):
            method: Callable[[], Any] = getattr(x, name)
            return method
    return None


def _fix_for(x: Any) -> str:
    name = type(x).__name__
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return f"register the class as a tree: functrans.tree_util.register_dataclass({name})"
    if isinstance(x, Mapping):
        return (f"dict(x), or register the class as a tree: functrans.tree_util."
                f"register_pytree_node({name}, lambda d: (list(d.values()), tuple(d)), "
                f"lambda keys, values: {name}(zip(keys, values)))")
    if isinstance(x, (list, tuple, range)):
        return "functrans.numpy.asarray(x)"
    if hasattr(x, "__dlpack__"):
        return "functrans.numpy.from_dlpack(x)"
    if isinstance(x, Iterable) and not isinstance(x, str):
        return "functrans.numpy.array(list(x))"
    other = "close over it, lambda x: fun(x, other), or in jit mark it static: static_argnums=..."
    if isinstance(x, (str, bytes)) or callable(x) or not getattr(x, "__dict__", None):
        return other
    return (f"register the class as a tree, if its attributes are arrays: "
            f"functrans.tree_util.register_pytree_node({name}, flatten, unflatten); else {other}")


def to_arrays(leaves: Sequence[Any], what: str,
              paths: Sequence[KeyPath] | None = None) -> list[Array]:
    """All leaves of a tree as arrays; `what` and the key path name the one that is not."""
    result: list[Array] = []
    for i, x in enumerate(leaves):
        if isinstance(x, ARRAYS):
            result.append(x)
        else:
            where = what if paths is None else f"{what}{keystr(paths[i])}"
            result.append(to_array(x, where))
    return result
