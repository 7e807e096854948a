"""Weights in 8 bits with a scale for each channel, products of them, and training with them.

A weight is values * scales: values are int8 or float8, scales float32, one for each slice along
the axes that a product contracts. A product reads 8-bit weights, and scales its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, DTypeError, ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import operand
from functrans.transforms.custom_jvp import custom_jvp
from functrans.tree import map_with_path
from functrans.tree_util import register_dataclass
from functrans.typing import Array, ArrayLike, DTypeLike, PyTree

__all__ = ["QuantizedArray", "dequantize", "fake_quantize", "matmul", "quantize", "quantize_tree"]

_LARGEST = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


@register_dataclass
@dataclass(frozen=True)
class QuantizedArray:
    """values * scales, in `dtype`: a pytree of two arrays, whose scales broadcast to the values.

    >>> q = ft.quantize.quantize(jnp.array([[1.0, -2.0]]))
    >>> q.values, q.shape, q.nbytes
    (Array([[ 127, -127]], dtype=int8), (1, 2), 10)
    """

    values: Array
    scales: Array
    dtype: Any = field(metadata={"static": True})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    @property
    def nbytes(self) -> int:
        """Bytes of values and scales."""
        return int(self.values.nbytes + self.scales.nbytes)


def _kind(dtype: DTypeLike) -> tuple[Any, float]:
    wanted = jnp.dtype(dtype)
    if wanted.name not in _LARGEST:
        raise DTypeError(f"quantize has no {wanted.name}.", where=user_source(),
                         fix="one of " + ", ".join(_LARGEST))
    return wanted, _LARGEST[wanted.name]


def _scales(w: Array, axis: int | Sequence[int], largest: float) -> Array:
    peak = jnp.max(abs(w), axis=axis, keepdims=True).astype(np.float32)
    return jnp.where(peak == 0, 1, peak / largest)


def _rounded(w: Array, scales: Array, dtype: Any, largest: float) -> Array:
    scaled = jnp.clip(w.astype(np.float32) / scales, -largest, largest)
    return (jnp.round(scaled) if dtype.kind == "i" else scaled).astype(dtype)


def quantize(w: ArrayLike, dtype: DTypeLike = "int8",
             axis: int | Sequence[int] = 0) -> QuantizedArray:
    """A weight in 8 bits, with a scale for each slice along `axis`, the axes that a product sums.

    dtype is int8 (rounded to nearest), float8_e4m3fn or float8_e5m2. Raises DTypeError for others.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> q = ft.quantize.quantize(jnp.array([[1.0, -8.0], [0.5, 4.0]]))
    >>> q.values
    Array([[ 127, -127],
           [  64,   64]], dtype=int8)
    """
    w = operand("quantize", w)
    if not jnp.issubdtype(w.dtype, jnp.floating):
        raise DTypeError(f"quantize got an array of dtype {w.dtype}.", where=user_source(),
                         fix="floating weights")
    kind, largest = _kind(dtype)
    scales = _scales(w, axis, largest)
    return QuantizedArray(_rounded(w, scales, kind, largest), scales, w.dtype)


def dequantize(q: QuantizedArray) -> Array:
    """values * scales, in the dtype that was quantized.

    >>> import functrans as ft
    >>> w = ft.numpy.array([[1.0], [-0.5]])
    >>> ft.quantize.dequantize(ft.quantize.quantize(w)).round(2).ravel().tolist()
    [1.0, -0.5]
    """
    return (q.values.astype(np.float32) * q.scales).astype(q.dtype)


def matmul(x: ArrayLike, q: QuantizedArray, *, activations: DTypeLike | None = None) -> Array:
    """x @ w of a quantized matrix w (inputs, outputs), in x's dtype, with sums in float32.

    With `activations` x is quantized, too, with a scale for each row: int8 products are exact sums
    in int32. Gradients are those to x. Raises ShapeError unless scales are those of columns.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> q = ft.quantize.quantize(jnp.eye(2) * 3)
    >>> ft.quantize.matmul(jnp.array([1.0, 2.0]), q)
    Array([3., 6.], dtype=float32)
    """
    x = operand("quantize.matmul", x)
    if q.values.ndim != 2 or q.scales.shape != (1, q.values.shape[1]):
        raise ShapeError(f"quantize.matmul got values of shape {q.values.shape} with scales of "
                         f"shape {q.scales.shape}.", where=user_source(),
                         why="a scale that is not the same along the contracted axis is no factor "
                             "of the sum.", fix="quantize(w, axis=0) of a matrix")
    if activations is None:
        out = _mixed_product(x, q.values)
    else:
        if jnp.dtype(activations) != q.values.dtype:
            raise ArgumentError(f"quantize.matmul got activations={activations!r} for weights of "
                                f"dtype {q.values.dtype}.", where=user_source(),
                                fix=f"activations={q.values.dtype.name!r}")
        out = _quantized_product(x, q.values)
    return (out * q.scales[0]).astype(x.dtype)


def _mixed_product(x: Array, values: Array) -> Array:
    """x @ values with the weights converted as they are read."""
    wide = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else np.dtype(np.float32)
    return jnp.matmul(x.astype(wide), values.astype(wide),
                      preferred_element_type=jnp.promote_types(wide, np.float32))


@custom_jvp
def _quantized_product(x: Array, values: Array) -> Array:
    kind, largest = _kind(values.dtype)
    scales = _scales(x, -1, largest)
    total = np.int32 if kind.kind == "i" else np.float32
    product = jnp.matmul(_rounded(x, scales, kind, largest), values, preferred_element_type=total)
    return product.astype(np.float32) * scales


@_quantized_product.defjvp
def _quantized_product_jvp(primals: Any, tangents: Any) -> Any:
    # straight through the rounding of x; values are constants
    x, values = primals
    return _quantized_product(x, values), _mixed_product(tangents[0], values).astype(np.float32)


def fake_quantize(w: ArrayLike, dtype: DTypeLike = "int8", axis: int | Sequence[int] = 0) -> Array:
    """w as its quantized form has it, with the gradient of w: for training in 8 bits.

    The derivative goes straight through the rounding.
    Source: Bengio, Leonard and Courville, Estimating or propagating gradients through stochastic
    neurons (2013); Jacob et al., CVPR 2018.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> w = jnp.array([[1.0], [0.303]])
    >>> ft.quantize.fake_quantize(w).ravel().round(4)
    Array([1.    , 0.2992], dtype=float32)
    >>> ft.grad(lambda w: ft.quantize.fake_quantize(w).sum())(w).ravel().tolist()
    [1.0, 1.0]
    """
    w = operand("fake_quantize", w)
    return w + lax.stop_gradient(dequantize(quantize(w, dtype, axis)) - w)


def quantize_tree(params: PyTree, dtype: DTypeLike = "int8", *,
                  where: Callable[[Any, Any], bool] | None = None) -> PyTree:
    """Parameters with their matrices quantized along axis 0; `where(path, leaf)` chooses others.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> params = {"w": jnp.ones((4, 3)), "b": jnp.ones(3)}
    >>> q = ft.quantize.quantize_tree(params)
    >>> type(q["w"]).__name__, q["w"].nbytes, q["b"].dtype.name
    ('QuantizedArray', 24, 'float32')
    """
    chosen = where or (lambda path, x: getattr(x, "ndim", 0) == 2
                       and jnp.issubdtype(x.dtype, jnp.floating))
    return map_with_path(lambda path, x: quantize(x, dtype) if chosen(path, x) else x, params)


publish(globals(), __all__)
