"""Convolution with a kernel of its own at each place."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.primitives.broadcast import transpose
from functrans.primitives.conv import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    conv_general_dilated_patches,
)
from functrans.primitives.dot import dot_general
from functrans.primitives.geometry import Padding
from functrans.typing import Array, PrecisionLike

__all__ = ["conv_general_dilated_local"]


def conv_general_dilated_local(
        lhs: Array, rhs: Array, window_strides: Sequence[int], padding: Padding,
        filter_shape: Sequence[int], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: ConvDimensionNumbers | Sequence[str] | None = None,
        precision: PrecisionLike = None) -> Array:
    """Convolution with another kernel at each place of the result.

    The spatial axes of rhs are those of the result; its axis of input features has
    `C * prod(filter_shape)` elements, those of a window in the order of
    `conv_general_dilated_patches`. The other arguments are as of `conv_general_dilated`. Raises
    ShapeError where rhs does not fit.

    >>> import functrans as ft
    >>> x, w = ft.numpy.ones((1, 2, 6)), ft.numpy.ones((3, 2 * 3, 4))
    >>> ft.lax.conv_general_dilated_local(x, w, (1,), "VALID", (3,)).shape
    (1, 3, 4)
    """
    dims = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                           rhs_dilation, dims, precision)
    patches = transpose(patches, dims.out_spec)  # batch, features of windows, places
    kernels = transpose(rhs, dims.rhs_spec)  # out, features of windows, places
    if tuple(kernels.shape[1:]) != tuple(patches.shape[1:]):
        raise ShapeError(f"conv_general_dilated_local: kernels of shape {rhs.shape}.",
                         where=user_source(),
                         why=f"there are {patches.shape[1]} elements in a window, and places of "
                         f"shape {tuple(patches.shape[2:])}.")
    places = tuple(range(2, patches.ndim))
    out = dot_general(patches, kernels, (((1,), (1,)), (places, places)), precision)
    n = len(places)  # places, batch, out
    canonical = transpose(out, (n, n + 1, *range(n)))
    back = tuple(dims.out_spec.index(d) for d in range(n + 2))
    return transpose(canonical, back)
