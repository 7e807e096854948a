"""Functions with derivative rules of their own, under the names of `jax.custom_derivatives`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from functrans.core.errors import publish
from functrans.core.tree import tree_map
from functrans.transforms.callables import custom_gradient
from functrans.transforms.custom_jvp import custom_jvp, custom_jvp_call_p
from functrans.transforms.custom_vjp import custom_vjp, custom_vjp_call_p
from functrans.transforms.custom_vjp_rules import CustomVJPPrimal
from functrans.transforms.linear_call import linear_call
from functrans.transforms.staged import closure_convert
from functrans.transforms.tangents import SymbolicZero, instantiate, symbolic_zero

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
           "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p",
           "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal"]


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> PyTree:
    """The zero tangents of a tree of values, as arrays or as `SymbolicZero`s.

    >>> zero_from_primal(2.0).item(), zero_from_primal(2.0, symbolic_zeros=True)
    (0.0, SymbolicZero(f32[]))
    """
    return tree_map(symbolic_zero if symbolic_zeros else partial(instantiate, None), val)


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The values of a tree of `CustomVJPPrimal`, as forward rules get with `symbolic_zeros=True`.

    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(2.0, True)})
    {'x': 2.0}
    """
    return tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree,
                    is_leaf=lambda x: isinstance(x, CustomVJPPrimal))


publish(globals(), __all__)
