"""Classes and values of JAX's inside that libraries compare with, and that nothing here is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import optree

from functrans.core.avals import ShapedArray
from functrans.core.dtypes import finfo
from functrans.core.trace import get_trace
from functrans.core.tree import NAMESPACE, tree_flatten
from functrans.core.tree_levels import flatten_one_level, is_tree_node
from functrans.extend.core import Primitive

__all__ = ["AbstractRef", "EArray", "ExtendedDType", "TypedComplex", "TypedFloat",
           "TypedInt", "TypedNdArray", "call_p", "closed_call_p", "global_result_handlers",
           "physical_aval", "stop_gradient_p", "supports_inf", "trace_state_clean",
           "tree_registry"]


class AbstractRef:
    """The type of a mutable reference, which functrans does not have."""


class EArray:
    """JAX's array of a dtype of its own; functrans has one class of arrays."""


class ExtendedDType:
    """JAX's class of dtypes of keys; here they are dtypes of NumPy."""


class TypedNdArray(np.ndarray[Any, Any]):
    """JAX's literal in a program; here it is a value of NumPy."""


class TypedInt(int):
    """JAX's Python number with a dtype, in a program; here it is a value of NumPy."""


class TypedFloat(float):
    """The same of a float."""


class TypedComplex(complex):
    """The same of a complex number."""


global_result_handlers: Final[dict[Any, Any]] = {}
"""JAX's functions that wrap the results of programs; libraries add to them for types of theirs."""

stop_gradient_p: Final = Primitive("stop_gradient")
"""JAX's, which its stop_gradient does not use either; libraries give it rules."""


class _Node(NamedTuple):
    """A class of nodes, as JAX's registry of Python has it."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class _KnownTypes:
    """The types that are nodes of trees, which libraries look one up in."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)

    def __getitem__(self, cls: type) -> _Node:
        """How nodes of a class are taken apart and made; KeyError for a leaf's."""
        entry = optree.register_pytree_node.get(cls, namespace=NAMESPACE)
        if entry is None:
            raise KeyError(cls)
        return _Node(flatten_one_level, entry.unflatten_func)

    def flatten_one_level(self, tree: Any) -> tuple[list[Any], Any] | None:
        """The children of a node and what else it has; None for a leaf."""
        if tree is None:
            return [], None
        if not is_tree_node(type(tree)):
            return None
        children, aux = flatten_one_level(tree)
        return list(children), aux

    def flatten(self, tree: Any,
                leaf_predicate: Callable[[Any], bool] | None = None) -> tuple[list[Any], Any]:
        """The leaves of a tree, and its structure."""
        return tree_flatten(tree, is_leaf=leaf_predicate)


tree_registry: Final = _KnownTypes()
call_p: Final = Primitive("call")
closed_call_p: Final = Primitive("closed_call")
"""Calls of programs that functrans does not make; a jitted function is `jit_p`."""


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type itself: what is stored is what is meant."""
    return aval


def trace_state_clean() -> bool:
    """Whether nothing is being traced."""
    return get_trace() is None


def supports_inf(dtype: Any) -> bool:
    """Whether a floating dtype has infinities."""
    return bool(np.isinf(finfo(dtype).max * 2)) if np.dtype(dtype).itemsize >= 2 else bool(
        np.isinf(np.asarray(np.inf).astype(dtype).astype(np.float64)))
