"""Tangent values: None is a symbolic zero; arrays are made of it only where one is needed."""

from __future__ import annotations

from typing import Any

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.primitives.base import zeros

__all__ = ["instantiate", "instantiate_aval", "is_differentiable", "tangent_aval"]


def is_differentiable(aval: ShapedArray) -> bool:
    """True of floating and complex values; integers and booleans have no tangents."""
    return dtypes.kind(aval.dtype) in "fc"


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of tangents of a value: its own, or float0 where there are none."""
    if is_differentiable(aval):
        return aval.strong()
    return ShapedArray(aval.shape, dtypes.float0)


def instantiate(tangent: Any, like: Any) -> Any:
    """The tangent itself, or zeros of the shape and dtype of `like`."""
    return zeros(tangent_aval(get_aval(like))) if tangent is None else tangent


def instantiate_aval(tangent: Any, aval: ShapedArray) -> Any:
    """The tangent itself, or zeros of type `aval`."""
    return zeros(aval) if tangent is None else tangent
