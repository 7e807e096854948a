"""Parameters in one dtype, computation in another, and scaled losses for float16.

Source: Micikevicius et al., Mixed precision training, ICLR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, publish
from functrans.tree import leaves, map
from functrans.tree_util import register_dataclass
from functrans.typing import Array, DTypeLike

T = TypeVar("T")

__all__ = ["DynamicLossScale", "NoLossScale", "Policy", "StaticLossScale", "all_finite",
           "get_policy", "select_tree"]


def _cast(tree: T, dtype: Any) -> T:
    def cast(x: Any) -> Any:
        kind = getattr(x, "dtype", None)
        return x.astype(dtype) if kind is not None and jnp.issubdtype(kind, jnp.floating) else x

    result: T = map(cast, tree)
    return result


@dataclass(frozen=True)
class Policy:
    """The dtypes of parameters, of computation and of outputs.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> policy = ft.mixed_precision.Policy(compute_dtype="bfloat16")
    >>> params = {"w": jnp.ones(3), "step": jnp.array(0)}
    >>> {k: v.dtype.name for k, v in policy.cast_to_compute(params).items()}
    {'w': 'bfloat16', 'step': 'int32'}
    >>> policy.cast_to_output(jnp.ones(1, "bfloat16")).dtype
    dtype('float32')
    >>> policy.cast_to_param({"w": jnp.ones(1, "bfloat16")})["w"].dtype
    dtype('float32')
    """

    param_dtype: DTypeLike = "float32"
    compute_dtype: DTypeLike = "float32"
    output_dtype: DTypeLike = "float32"

    def cast_to_param(self, tree: T) -> T:
        """Floating leaves in `param_dtype`; others as they are."""
        return _cast(tree, self.param_dtype)

    def cast_to_compute(self, tree: T) -> T:
        """Floating leaves in `compute_dtype`."""
        return _cast(tree, self.compute_dtype)

    def cast_to_output(self, tree: T) -> T:
        """Floating leaves in `output_dtype`."""
        return _cast(tree, self.output_dtype)


_SHORT = {"full": "float32", "f32": "float32", "half": "float16", "f16": "float16",
          "bf16": "bfloat16"}


def get_policy(text: str) -> Policy:
    """A policy by its text: one dtype, or some of "params=...,compute=...,output=...".

    Without parameters and outputs these are float32. Raises ArgumentError for other texts.

    >>> import functrans as ft
    >>> ft.mixed_precision.get_policy("params=float32,compute=bfloat16")
    Policy(param_dtype='float32', compute_dtype='bfloat16', output_dtype='float32')
    """
    if "=" not in text:
        dtype = _dtype(text, text)
        return Policy(dtype, dtype, dtype)
    fields = {"params": "param_dtype", "compute": "compute_dtype", "output": "output_dtype"}
    given: dict[str, str] = {}
    for part in text.split(","):
        name, _, dtype = part.strip().partition("=")
        if name not in fields:
            raise ArgumentError(f"get_policy got {text!r}.",
                                fix='"params=float32,compute=bfloat16,output=float32"')
        given[fields[name]] = _dtype(dtype, text)
    return Policy(**given)


def _dtype(name: str, text: str) -> str:
    dtype = _SHORT.get(name, name)
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise ArgumentError(f"get_policy got {text!r}, where {name!r} is no dtype.",
                            fix="float16, bfloat16, float32 or float64")
    return dtype


@register_dataclass
@dataclass(frozen=True)
class NoLossScale:
    """Leaves losses and gradients as they are: for bfloat16 and float32.

    >>> scale = ft.mixed_precision.NoLossScale()
    >>> scale.scale(3.0), scale.unscale(3.0), scale.adjust(True) == scale
    (3.0, 3.0, True)
    """

    def scale(self, tree: T) -> T:
        """The loss itself."""
        return tree

    def unscale(self, tree: T) -> T:
        """The gradients themselves."""
        return tree

    def adjust(self, is_finite: Any) -> NoLossScale:
        """Itself."""
        return self


@register_dataclass
@dataclass(frozen=True)
class StaticLossScale:
    """Multiplies losses by a constant, so that gradients in float16 do not underflow.

    >>> import functrans as ft
    >>> scale = ft.mixed_precision.StaticLossScale(ft.numpy.array(1024.0))
    >>> float(scale.unscale(scale.scale(ft.numpy.array(3.0))))
    3.0
    >>> scale.adjust(False) == scale
    True
    """

    loss_scale: Any

    def scale(self, tree: T) -> T:
        """Losses times the scale, in their dtypes."""
        result: T = map(lambda x: x * jnp.asarray(self.loss_scale).astype(x.dtype), tree)
        return result

    def unscale(self, tree: T) -> T:
        """Gradients divided by the scale, in their dtypes."""
        result: T = map(lambda x: (x / jnp.asarray(self.loss_scale).astype(
            jnp.promote_types(x.dtype, np.float32))).astype(x.dtype), tree)
        return result

    def adjust(self, is_finite: Any) -> StaticLossScale:
        """Itself."""
        return self


@register_dataclass
@dataclass(frozen=True)
class DynamicLossScale(StaticLossScale):
    """A scale that doubles after `period` steps with finite gradients, and halves after others.

    `adjust(is_finite)` gives the scale of the next step; skip the update where they are not
    finite (`select_tree`).

    >>> import functrans as ft, functrans.numpy as jnp
    >>> scale = ft.mixed_precision.DynamicLossScale(jnp.array(1024.0), period=jnp.array(2))
    >>> [float(s.loss_scale) for s in (scale.adjust(False), scale.adjust(True).adjust(True))]
    [512.0, 2048.0]
    >>> scaled = scale.scale(jnp.array(2.0))
    >>> float(scaled), float(scale.unscale(scaled))
    (2048.0, 2.0)
    """

    counter: Any = 0
    period: Any = 2000
    factor: Any = 2.0
    min_loss_scale: Any = 1.0

    def adjust(self, is_finite: Any) -> DynamicLossScale:
        """The scale of the next step, after gradients that were finite or not."""
        scale = jnp.asarray(self.loss_scale)
        last = jnp.asarray(self.counter) == jnp.asarray(self.period) - 1
        grown = scale * self.factor
        grown = jnp.where(jnp.isfinite(grown), grown, scale)
        shrunk = jnp.maximum(scale / self.factor, self.min_loss_scale)
        after = jnp.where(is_finite, jnp.where(last, grown, scale), shrunk).astype(scale.dtype)
        counter = jnp.where(jnp.logical_and(is_finite, ~last), jnp.asarray(self.counter) + 1, 0)
        return DynamicLossScale(after, counter, self.period, self.factor, self.min_loss_scale)


def all_finite(tree: Any) -> Array:
    """Whether all numbers of a tree are finite.

    >>> import functrans as ft
    >>> bool(ft.mixed_precision.all_finite({"a": 1.0, "b": ft.numpy.array([1.0, ft.numpy.inf])}))
    False
    """
    total = jnp.array(True)
    for x in leaves(tree):
        total = jnp.logical_and(total, jnp.all(jnp.isfinite(x)))
    return total


def select_tree(pred: Any, on_true: T, on_false: T) -> T:
    """The leaves of one tree or of the other, by a boolean.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> ft.mixed_precision.select_tree(True, {"a": jnp.zeros(2)}, {"a": jnp.ones(2)})
    {'a': Array([0., 0.], dtype=float32)}
    """
    result: T = map(lambda a, b: lax.select(jnp.asarray(pred), jnp.asarray(a), jnp.asarray(b)),
                    on_true, on_false)
    return result


publish(globals(), __all__)
