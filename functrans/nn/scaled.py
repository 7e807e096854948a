"""Products of operands of few bits, whose blocks share a scale (OCP microscaling formats, v1.0)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.transforms.custom_vjp import custom_vjp
from functrans.typing import Array, DotDimensionNumbers, DTypeLike

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general",
           "scaled_matmul"]


def scaled_matmul(lhs: Array, rhs: Array, lhs_scales: Array, rhs_scales: Array,
                  preferred_element_type: DTypeLike = np.float32) -> Array:
    """Products (b, m, k) times (b, n, k) over k, each block of k elements with a scale.

    The scales are (b, m, k / block) and (b, n, k / block). Raises ShapeError where they are not.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> x = jnp.ones((1, 2, 32), "float8_e4m3fn")
    >>> scales = jnp.full((1, 2, 1), 2.0).astype("float8_e8m0fnu")
    >>> ft.nn.scaled_matmul(x, x, scales, scales).tolist()
    [[[128.0, 128.0], [128.0, 128.0]]]
    """
    if lhs.ndim != 3 or rhs.ndim != 3:
        raise ShapeError(f"scaled_matmul of shapes {lhs.shape} and {rhs.shape}.",
                         where=user_source(), why="it is of (b, m, k) and (b, n, k).")
    return lax.scaled_dot(lhs, rhs, lhs_scale=lhs_scales, rhs_scale=rhs_scales,
                          dimension_numbers=(((2,), (2,)), ((0,), (0,))),
                          preferred_element_type=preferred_element_type)


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How numbers are rounded to few bits: a dtype, and a scale for each block of a sum.

    `global_scale` divides all numbers first, where there is one.
    """

    mode: str
    block_size: int
    data_type: np.dtype[Any]
    scale_type: np.dtype[Any]
    global_scale: Array | None = None
    infer_only: bool = False


def get_scaled_dot_general_config(mode: Literal["nvfp4", "mxfp8"],
                                  global_scale: Array | None = None) -> BlockScaleConfig:
    """The rounding of `scaled_dot_general`: "mxfp8" to 8 bits, or "nvfp4" to 4.

    Blocks of mxfp8 have 32 elements and a power of two, those of nvfp4 16 and a float of 8 bits,
    times one scale of all, by default 1. Raises ArgumentError for another word, and for a scale of
    all with mxfp8.

    >>> import functrans as ft
    >>> ft.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        if global_scale is not None:
            raise ArgumentError("get_scaled_dot_general_config: a scale of all with mxfp8.",
                                where=user_source(), fix="global_scale=None")
        return BlockScaleConfig(mode, 32, dtypes.as_dtype("float8_e4m3fn"),
                                dtypes.as_dtype("float8_e8m0fnu"))
    if mode != "nvfp4":
        raise ArgumentError(f"get_scaled_dot_general_config: the mode {mode!r} is none of 'nvfp4', "
                            "'mxfp8'.", where=user_source())
    scale = ftnp.ones((1,), "float32") if global_scale is None else ftnp.asarray(global_scale)
    return BlockScaleConfig(mode, 16, dtypes.as_dtype("float4_e2m1fn"),
                            dtypes.as_dtype("float8_e4m3fn"), scale)


def scaled_dot_general(lhs: Array, rhs: Array, dimension_numbers: DotDimensionNumbers,
                       preferred_element_type: DTypeLike = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: Literal["cudnn"] | None = None) -> Array:
    """`lax.dot_general` of operands that are rounded to few bits first, in blocks with scales.

    `configs` are those of lhs, of rhs and of cotangents; with None nothing is rounded. In the
    backward pass the rounding counts as the identity: cotangents and operands are rounded along
    the sums there with mxfp8, and not at all with nvfp4, where a number beyond the largest one has
    slope 0. The last block of a sum may be shorter.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> configs = [ft.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.ones((2, 32))
    >>> ft.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs).tolist()
    [[32.0, 32.0], [32.0, 32.0]]
    """
    wanted = dtypes.as_dtype(preferred_element_type)
    numbers: Any = tuple(tuple(tuple(axes) for axes in pair) for pair in dimension_numbers)
    if configs is None:
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=wanted)
    if len(configs) != 3:
        raise ArgumentError(f"scaled_dot_general: {len(configs)} configs.", where=user_source(),
                            why="there is one for lhs, for rhs and for cotangents.")
    (contract, contract_y), (batch, batch_y) = numbers
    x, free = _matrices(ftnp.asarray(lhs), batch, contract)
    y, free_y = _matrices(ftnp.asarray(rhs), batch_y, contract_y)
    shape = (*(lhs.shape[d] for d in batch), *free, *free_y)
    out: Array = _product(tuple(configs), wanted, x, y)
    return out.reshape(shape)


def _matrices(x: Array, batch: Sequence[int], contract: Sequence[int]
              ) -> tuple[Array, tuple[int, ...]]:
    """x as (batch, free, contract), and the sizes of its free axes."""
    free = [d for d in range(x.ndim) if d not in batch and d not in contract]
    sizes = [math.prod(x.shape[d] for d in axes) for axes in (batch, free, contract)]
    return x.transpose((*batch, *free, *contract)).reshape(sizes), tuple(x.shape[d] for d in free)


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _product(configs: tuple[BlockScaleConfig, ...], wanted: np.dtype[Any], x: Array, y: Array
             ) -> Array:
    return _dot(_rounded(x, configs[0]), _rounded(y, configs[1]), wanted)


def _dot(x: Array, y: Array, wanted: np.dtype[Any]) -> Array:
    """(b, m, k) times (b, n, k)."""
    return lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,))), preferred_element_type=wanted)


def _forward(configs: Any, wanted: Any, x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    return _product(configs, wanted, x, y), (x, y)


def _backward(configs: tuple[BlockScaleConfig, ...], wanted: np.dtype[Any],
              residuals: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
    (x, y), of_ct = residuals, configs[2]
    cts = []
    for own, other, own_config, other_config, g in (
            (x, y, configs[0], configs[1], ct),
            (y, x, configs[1], configs[0], ftnp.matrix_transpose(ct))):
        turned = ftnp.matrix_transpose(other)
        if of_ct.mode != "nvfp4":
            g, turned = _rounded(g, of_ct), _rounded(turned, other_config)
        slope = _dot(g, turned, wanted).astype(own.dtype)
        if of_ct.mode == "nvfp4":
            most = float(dtypes.finfo(own_config.data_type).max) \
                * float(dtypes.finfo(own_config.scale_type).max)
            scale: Any = own_config.global_scale
            slope = ftnp.where(ftnp.abs(own) <= ftnp.reshape(scale, ()) * most, slope, 0)
        cts.append(slope)
    return cts[0], cts[1]


_product.defvjp(_forward, _backward)


def _rounded(x: Array, config: BlockScaleConfig) -> Array:
    """x (b, m, k) rounded to what blocks of few bits and their scales hold, in float32."""
    size, k = config.block_size, x.shape[-1]
    count = -(-k // size)
    padded = ftnp.pad(x.astype("float32"), ((0, 0), (0, 0), (0, count * size - k)))
    blocks = padded.reshape((*x.shape[:-1], count, size))
    largest = float(dtypes.finfo(config.data_type).max)
    scale_of_all: Any = 1.0
    if config.global_scale is not None:
        scale_of_all = ftnp.reshape(config.global_scale, ())
        blocks = blocks / scale_of_all
    scales = ftnp.max(ftnp.abs(blocks), -1, keepdims=True) / largest
    if config.mode == "mxfp8":
        scales = _power_above(scales)
    else:
        most = float(dtypes.finfo(config.scale_type).max)
        scales = ftnp.clip(scales, 0, most).astype(config.scale_type).astype("float32")
    scaled = ftnp.where(scales == 0, 0, blocks / ftnp.where(scales == 0, 1, scales))
    few = ftnp.clip(scaled, -largest, largest).astype(config.data_type).astype("float32")
    rounded: Array = (few * scales * scale_of_all).reshape(padded.shape)[..., :k]
    return rounded


def _power_above(x: Array) -> Array:
    """The least power of two that is not below x, of those from 2^-127 to 2^127."""
    bits = lax.bitcast_convert_type(x, "uint32")
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    above = (fraction > 0) & (exponent != 0xFE) & ~((exponent == 0) & (fraction <= 0x400000))
    exponent = exponent + above.astype("uint32")
    return ftnp.where(exponent == 0, 2.0**-127, lax.bitcast_convert_type(exponent << 23, "float32"))
