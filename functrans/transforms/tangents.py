"""Tangent values: None is a symbolic zero; arrays are made of it only where one is needed."""

from __future__ import annotations

from typing import Any

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.tree import known_leaf
from functrans.primitives.base import zeros

__all__ = ["SymbolicZero", "instantiate", "instantiate_aval", "is_differentiable",
           "symbolic_zero", "tangent_aval"]


def is_differentiable(aval: ShapedArray) -> bool:
    """True of floating and complex values; integers and booleans have no tangents."""
    return dtypes.kind(aval.dtype) in "fc"


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of tangents of a value: its own, or float0 where there are none."""
    return aval.to_tangent_aval()


def instantiate(tangent: Any, like: Any) -> Any:
    """The tangent itself, or zeros of the shape and dtype of `like`."""
    return zeros(tangent_aval(get_aval(like))) if tangent is None else tangent


def instantiate_aval(tangent: Any, aval: ShapedArray) -> Any:
    """The tangent itself, or zeros of type `aval`."""
    return zeros(aval) if tangent is None else tangent


@known_leaf
class SymbolicZero:
    """A (co)tangent known to be zero, as custom rules with `symbolic_zeros=True` see it.

    >>> from functrans.custom_derivatives import SymbolicZero
    >>> zero = SymbolicZero(ft.typeof(jnp.ones(2)))
    >>> zero.shape, zero.dtype
    ((2,), dtype('float32'))
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> Any:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def symbolic_zero(like: Any) -> SymbolicZero:
    """The symbolic zero tangent of a value."""
    return SymbolicZero(tangent_aval(get_aval(like)))
