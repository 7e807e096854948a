"""Convolution: one bilinear primitive, closed under derivatives and batching.

Besides batch, feature and spatial axes it may have a group axis in both operands and the result:
one convolution per group. `feature_group_count` and `batch_group_count` split an axis to make
one, and mapping both operands makes one of the mapped axes, without moving data.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Shape, Size
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives.base import sample_array
from functrans.primitives.broadcast import move_axis, prod
from functrans.primitives.conv_columns import convolve
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import Differentiable, linear
from functrans.primitives.geometry import (
    Padding,
    Pads,
    count_windows,
    dilate,
    padded_sizes,
    positive_ints,
    resolve_padding,
)
from functrans.primitives.precision import Precision, precision_params
from functrans.primitives.shape import reshape, rev

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, DTypeLike, PrecisionLike

__all__ = ["ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated",
           "conv_general_dilated_p", "conv_general_dilated_patches", "conv_transpose",
           "conv_with_general_padding", "transposed_padding"]

Axes = tuple[int, ...]
DimensionNumbers = Union["ConvDimensionNumbers", Sequence[str], None]


class ConvDimensionNumbers(NamedTuple):
    """Which axes are which: (batch, feature, *spatial) of lhs and out, (out, in, *spatial) of rhs.

    `lhs_spec[0]` is the place of the batch axis in lhs, and so on.

    >>> lax.conv_dimension_numbers((8, 3, 32, 32), (16, 3, 5, 5), ("NCHW", "OIHW", "NCHW")).lhs_spec
    (0, 1, 2, 3)
    """

    lhs_spec: Axes
    rhs_spec: Axes
    out_spec: Axes

    def __str__(self) -> str:
        texts = []
        for spec, letters in zip(self, ("NC", "OI", "NC"), strict=True):
            names = letters + "".join(map(str, range(len(spec) - 2)))
            axes = dict(zip(spec, names, strict=True))
            texts.append("".join(axes.get(d, "G") for d in range(max(spec, default=-1) + 1)))
        return "{},{}->{}".format(*texts)


class ConvGeneralDilated(Differentiable):
    """Sums of products of a kernel with the windows of an array, over features and window.

    `group_axes` are the places of a group axis in lhs, rhs and the result, or None.
    """

    widens_halves = False  # done in evaluate: the result may have another dtype
    derivatives = (linear, linear)

    def type(self, x: ShapedArray, w: ShapedArray, *, window_strides: Axes, padding: Pads,
             lhs_dilation: Axes, rhs_dilation: Axes, dimension_numbers: ConvDimensionNumbers,
             group_axes: Axes | None = None,
             preferred_element_type: np.dtype[Any] | None = None,
             precision: Precision | None = None) -> ShapedArray:
        xs, ws, os = dimension_numbers
        n = len(xs) - 2
        rank = n + 2 + (group_axes is not None)
        if x.ndim != rank or w.ndim != rank:
            raise ShapeError(f"convolution over {n} spatial dimensions of {x} with a kernel {w}: "
                             f"both must have {rank} dimensions.", where=user_source(),
                             fix="x[None] adds a batch axis, x[..., None] a feature axis")
        if x.dtype != w.dtype or dtypes.kind(x.dtype) not in "iufc":
            raise _bad_dtypes(x, w)
        if x.shape[xs[1]] != w.shape[ws[1]]:
            raise ShapeError(f"convolution: {x} has {x.shape[xs[1]]} features (axis {xs[1]}), the "
                             f"kernel {w} takes {w.shape[ws[1]]} (axis {ws[1]}).",
                             where=user_source(),
                             why="the kernel is summed over its input features.",
                             fix="check dimension_numbers, for example ('NHWC', 'HWIO', 'NHWC')")
        if group_axes is not None and x.shape[group_axes[0]] != w.shape[group_axes[1]]:
            raise ShapeError(f"convolution: {x} has {x.shape[group_axes[0]]} groups, the kernel "
                             f"{w} {w.shape[group_axes[1]]}.", where=user_source())
        sizes = padded_sizes("convolution", [x.shape[d] for d in xs[2:]], padding, lhs_dilation)
        sizes = tuple(count_windows(s, dilate(w.shape[d], dil), step) for s, d, dil, step
                      in zip(sizes, ws[2:], rhs_dilation, window_strides, strict=True))
        shape: list[Size] = [0] * rank
        for d, size in zip(os, (x.shape[xs[0]], w.shape[ws[0]], *sizes), strict=True):
            shape[d] = size
        if group_axes is not None:
            shape[group_axes[2]] = x.shape[group_axes[0]]
        dtype = x.dtype if preferred_element_type is None else preferred_element_type
        return ShapedArray(tuple(shape), dtype, x.weak_type and w.weak_type)

    def evaluate(self, x: Any, w: Any, *, window_strides: Axes, padding: Pads, lhs_dilation: Axes,
                 rhs_dilation: Axes, dimension_numbers: ConvDimensionNumbers,
                 group_axes: Axes | None = None,
                 preferred_element_type: np.dtype[Any] | None = None,
                 precision: Precision | None = None) -> np.ndarray[Any, Any]:
        xs, ws, os = dimension_numbers
        dtype = x.dtype if preferred_element_type is None else preferred_element_type
        inner = dtypes.computed_dtype(dtype)
        x, w = x.astype(inner, copy=False), w.astype(inner, copy=False)
        if group_axes is None:
            x, w = x.transpose(xs)[None], w.transpose(ws)[None]
        else:
            x, w = x.transpose(group_axes[0], *xs), w.transpose(group_axes[1], *ws)
        out = convolve(x, w, window_strides, padding, lhs_dilation, rhs_dilation,
                       features_last=len(os) == 2 or os[1] > os[2])
        out = out[0] if group_axes is None else out
        places = os if group_axes is None else (group_axes[2], *os)
        out = out.transpose(sorted(range(len(places)), key=places.__getitem__))
        return np.asarray(out.astype(dtype, copy=False))

    def transpose(self, ct: Any, x: Any, w: Any, **params: Any) -> tuple[Any, Any]:
        if isinstance(x, Linear):
            return _transpose_lhs(ct, x.aval, w, **params), None
        return None, _transpose_rhs(ct, x, w.aval, **params)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimension_numbers: ConvDimensionNumbers, group_axes: Axes | None = None,
              **params: Any) -> tuple[Any, int]:
        (x, w), (ax, aw) = operands, axes
        xs, ws, os = dimension_numbers
        if ax is not None and aw is not None and group_axes is None:
            dims = ConvDimensionNumbers(_shift(xs, ax), _shift(ws, aw), _shift(os, 0))
            return self.bind(x, w, dimension_numbers=dims, group_axes=(ax, aw, 0), **params), 0
        if ax is not None and aw is not None:
            assert group_axes is not None
            size, at = x.shape[ax], group_axes[2]
            x = _merge_axes(move_axis(x, ax, group_axes[0]), group_axes[0])
            w = _merge_axes(move_axis(w, aw, group_axes[1]), group_axes[1])
        elif ax is not None:  # more images
            size, at = x.shape[ax], os[0]
            x = _merge_axes(move_axis(x, ax, xs[0]), xs[0])
        else:  # more features
            assert aw is not None
            size, at = w.shape[aw], os[1]
            w = _merge_axes(move_axis(w, aw, ws[0]), ws[0])
        out = self.bind(x, w, dimension_numbers=dimension_numbers, group_axes=group_axes, **params)
        return _split_axis(out, at, size), at

    def cost(self, x: ShapedArray, w: ShapedArray, **params: Any) -> Cost:
        out = self.type(x, w, **params)
        spec = params["dimension_numbers"].rhs_spec
        per_element = 2 * prod([w.shape[d] for d in spec[1:]])
        return Cost(out.size * per_element, x.nbytes + w.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        nchw = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
        nhwc = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
        x, w = sample_array(2, 3, 5, 4), sample_array(4, 3, 3, 2, seed=1)
        base = {"window_strides": (1, 1), "padding": ((0, 0), (0, 0)), "lhs_dilation": (1, 1),
                "rhs_dilation": (1, 1), "dimension_numbers": nchw}
        yield Sample((x, w), base)
        yield Sample((x, w), {**base, "precision": Precision.HIGH})
        yield Sample((x, w), {**base, "padding": ((2, 1), (-1, 3)), "window_strides": (2, 1)})
        yield Sample((x, w), {**base, "lhs_dilation": (2, 3), "rhs_dilation": (1, 2),
                              "window_strides": (1, 2), "padding": ((0, -2), (1, 0))})
        yield Sample((np.moveaxis(x, 1, 3).copy(), np.transpose(w, (2, 3, 1, 0)).copy()),
                     {**base, "dimension_numbers": nhwc, "padding": ((1, 1), (1, 0))})
        grouped = ConvDimensionNumbers((0, 2, 3, 4), (1, 2, 3, 4), (0, 2, 3, 4))
        yield Sample((sample_array(2, 2, 3, 4, 4), sample_array(2, 2, 3, 2, 2, seed=1)),
                     {**base, "dimension_numbers": grouped, "group_axes": (1, 0, 1)})
        line = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
        yield Sample((sample_array(1, 2, 6), sample_array(1, 2, 3, seed=1)),
                     {"window_strides": (2,), "padding": ((1, 2),), "lhs_dilation": (1,),
                      "rhs_dilation": (2,), "dimension_numbers": line})


conv_general_dilated_p = ConvGeneralDilated()


def _bad_dtypes(x: ShapedArray, w: ShapedArray) -> DTypeError:
    if x.dtype != w.dtype:
        return DTypeError(f"convolution needs operands of one dtype, got {x} and {w}.",
                          where=user_source(), fix=f"kernel.astype({x.dtype.name!r})")
    return DTypeError(f"convolution does not take {x.dtype}.", where=user_source(),
                      why="it is defined for integer, floating and complex arrays.",
                      fix='x.astype("float32")')


def _shift(spec: Axes, mapped: int) -> Axes:
    return tuple(d + (d >= mapped) for d in spec)


def _merge_axes(x: Any, axis: int) -> Array:
    """x with `axis` and the next one as one axis."""
    return reshape(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2:]))


def _split_axis(x: Any, axis: int, size: Size) -> Array:
    """x with `axis` as two axes, the first of `size`."""
    rest = x.shape[axis] // size if not _is_zero(size) else 0
    return reshape(x, (*x.shape[:axis], size, rest, *x.shape[axis + 1:]))


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def _sizes(shape: Shape, spec: Axes) -> list[Size]:
    return [shape[d] for d in spec[2:]]


def _extents(shape: Shape, spec: Axes, dilation: Axes) -> list[int]:
    """The extents of a kernel's window after dilation; kernels have no symbolic window."""
    return [dilate(operator.index(shape[d]), spread)
            for d, spread in zip(spec[2:], dilation, strict=True)]


def _swapped(spec: Axes) -> Axes:
    return (spec[1], spec[0], *spec[2:])


def _at_dtype(y: Any, dtype: np.dtype[Any]) -> Any:
    return y if y.dtype == dtype else convert_element_type(y, dtype)


def _transpose_lhs(ct: Any, x: ShapedArray, w: Any, *, window_strides: Axes, padding: Pads,
                   lhs_dilation: Axes, rhs_dilation: Axes, dimension_numbers: ConvDimensionNumbers,
                   group_axes: Axes | None = None,
                   preferred_element_type: np.dtype[Any] | None = None,
                   **precision: Any) -> Any:
    """A convolution of ct with the kernel reversed; strides and dilation change places."""
    xs, ws, os = dimension_numbers
    pads = []
    for n, k, m, (low, _), xd, wd, stride in zip(
            _sizes(x.shape, xs), _sizes(w.shape, ws), _sizes(ct.shape, os), padding, lhs_dilation,
            rhs_dilation, window_strides, strict=True):
        window = dilate(k, wd)
        before = window - low - 1
        pads.append((before, dilate(n, xd) + window - 1 - dilate(m, stride) - before))
    groups = None if group_axes is None else (group_axes[2], group_axes[1], group_axes[0])
    out = conv_general_dilated_p.bind(
        ct, rev(_at_dtype(w, ct.dtype), ws[2:]), window_strides=lhs_dilation, padding=tuple(pads),
        lhs_dilation=window_strides, rhs_dilation=rhs_dilation, group_axes=groups,
        dimension_numbers=ConvDimensionNumbers(os, _swapped(ws), xs), preferred_element_type=None,
        **precision)
    return _at_dtype(out, x.dtype)


def _transpose_rhs(ct: Any, x: Any, w: ShapedArray, *, window_strides: Axes, padding: Pads,
                   lhs_dilation: Axes, rhs_dilation: Axes, dimension_numbers: ConvDimensionNumbers,
                   group_axes: Axes | None = None,
                   preferred_element_type: np.dtype[Any] | None = None,
                   **precision: Any) -> Any:
    """A convolution of lhs with ct as the kernel, summed over the batch instead of features."""
    xs, ws, os = dimension_numbers
    pads = []
    for n, k, m, (low, _), xd, wd, stride in zip(
            _sizes(x.shape, xs), _sizes(w.shape, ws), _sizes(ct.shape, os), padding, lhs_dilation,
            rhs_dilation, window_strides, strict=True):
        size = (k - 1) * wd + dilate(m, stride)  # that has room for exactly k windows
        pads.append((low, size - low - dilate(n, xd)))
    groups = None if group_axes is None else (group_axes[0], group_axes[2], group_axes[1])
    out = conv_general_dilated_p.bind(
        _at_dtype(x, ct.dtype), ct, window_strides=rhs_dilation, padding=tuple(pads),
        lhs_dilation=lhs_dilation, rhs_dilation=window_strides, group_axes=groups,
        dimension_numbers=ConvDimensionNumbers(_swapped(xs), _swapped(os), _swapped(ws)),
        preferred_element_type=None, **precision)
    return _at_dtype(out, w.dtype)


def conv_general_dilated(
        lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: Padding,
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: DimensionNumbers = None, feature_group_count: int = 1,
        batch_group_count: int = 1, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of images lhs with a kernel rhs over any number of spatial dimensions.

    As in neural networks the kernel is not reversed. `dimension_numbers` names the axes, for
    example ("NHWC", "HWIO", "NHWC"); the default is ("NCHW", "OIHW", "NCHW"). Per spatial
    dimension, `padding` is (low, high) with negative values cropping, or "SAME", "SAME_LOWER" or
    "VALID" for all; `lhs_dilation` puts holes into the images, `rhs_dilation` into the kernel.
    With `feature_group_count` the features of lhs, with `batch_group_count` its batch is cut into
    groups that meet only their part of the kernel's output features. Both operands have one
    dtype; the result has it too, or `preferred_element_type`. `precision` is that of
    `dot_general`, of products of float32 on GPUs; CPUs compute in float32, also for float16 and
    bfloat16.
    Raises ShapeError, DTypeError or ArgumentError when these do not fit together.

    >>> import functrans as ft
    >>> x, w = ft.numpy.ones((1, 1, 5, 5)), ft.numpy.ones((2, 1, 3, 3))
    >>> ft.lax.conv_general_dilated(x, w, (1, 1), "SAME").shape
    (1, 2, 5, 5)
    """
    name = "conv_general_dilated"
    lhs, rhs = _as_array(lhs), _as_array(rhs)
    dims = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    xs, ws, os = dims
    n = len(xs) - 2
    strides = positive_ints(name, "window_strides", window_strides, n)
    holes = positive_ints(name, "lhs_dilation", lhs_dilation, n)
    spread = positive_ints(name, "rhs_dilation", rhs_dilation, n)
    if isinstance(padding, str) and any(d != 1 for d in holes) and padding.upper() != "VALID":
        raise ArgumentError(f"{name}: padding={padding!r} does not go with lhs_dilation={holes}.",
                            where=user_source(),
                            why="it refers to the size of images without holes.",
                            fix="padding=[(low, high), ...], or conv_transpose")
    pads = resolve_padding(name, padding, _sizes(lhs.shape, xs),
                           _extents(rhs.shape, ws, spread), strides)
    groups = None
    if feature_group_count != 1 or batch_group_count != 1:
        axis = xs[1] if batch_group_count == 1 else xs[0]
        count = _group_count(lhs, rhs, dims, feature_group_count, batch_group_count)
        lhs, rhs = _split_axis(lhs, axis, count), _split_axis(rhs, ws[0], count)
        groups = (axis, ws[0], os[1])
        dims = ConvDimensionNumbers(*map(_shift, dims, groups))
    padded_sizes("convolution", [lhs.shape[d] for d in dims.lhs_spec[2:]], pads, holes)
    if lhs.dtype != rhs.dtype or lhs.dtype == np.bool_:  # evaluation would promote them
        raise _bad_dtypes(get_aval(lhs), get_aval(rhs))
    dtype = None if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    out = conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides, padding=pads, lhs_dilation=holes, rhs_dilation=spread,
        dimension_numbers=dims, group_axes=groups,
        preferred_element_type=None if dtype == lhs.dtype else dtype,
        **precision_params(name, precision))
    return out if groups is None else _merge_axes(out, groups[2])


def _as_array(x: Any) -> Array | np.ndarray[Any, Any]:
    array: Array | np.ndarray[Any, Any] = x if hasattr(x, "shape") else np.asarray(x, np.float32)
    return array


def _group_count(lhs: Any, rhs: Any, dims: ConvDimensionNumbers, features: int, batch: int) -> int:
    """The number of groups, after checking that it divides what is cut."""
    if features < 1 or batch < 1 or (features > 1 and batch > 1):
        raise ArgumentError(f"conv_general_dilated: feature_group_count={features} and "
                            f"batch_group_count={batch}.", where=user_source(),
                            why="both are positive, and one of them is 1.")
    cut = [(features, "features of lhs", lhs.shape[dims.lhs_spec[1]])] if features > 1 else \
        [(batch, "images of lhs", lhs.shape[dims.lhs_spec[0]])]
    count = cut[0][0]
    for _, what, size in (*cut, (count, "output features of rhs", rhs.shape[dims.rhs_spec[0]])):
        if isinstance(size, int) and size % count:
            raise ShapeError(f"conv_general_dilated: {count} groups do not divide the {size} "
                             f"{what}.", where=user_source())
    if features > 1 and lhs.shape[dims.lhs_spec[1]] != features * rhs.shape[dims.rhs_spec[1]]:
        raise ShapeError(
            f"conv_general_dilated: {get_aval(lhs)} has {lhs.shape[dims.lhs_spec[1]]} features in "
            f"{features} groups, the kernel {get_aval(rhs)} takes {rhs.shape[dims.rhs_spec[1]]} "
            f"per group.", where=user_source(),
            fix=f"a kernel with {lhs.shape[dims.lhs_spec[1]] // features} input features")
    return count


def conv_dimension_numbers(lhs_shape: Sequence[Size], rhs_shape: Sequence[Size],
                           dimension_numbers: DimensionNumbers) -> ConvDimensionNumbers:
    """Dimension numbers as places of axes, from three strings such as ("NHWC", "HWIO", "NHWC").

    N and C are batch and features of images and of the result, O and I output and input features
    of the kernel; the other letters are spatial and the same in all three. None stands for
    ("NCHW", "OIHW", "NCHW"). Raises ArgumentError when the strings do not fit together.

    >>> import functrans as ft
    >>> ft.lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).out_spec
    (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape) or rank < 2:
        raise ShapeError(f"convolution of shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}: both "
                         f"need the same number of dimensions, at least 2.", where=user_source(),
                         why="images have a batch and a feature axis, kernels one for the features "
                             "in and one for the features out.", fix="x[None] adds an axis")
    if dimension_numbers is None:
        identity = tuple(range(rank))
        return ConvDimensionNumbers(identity, identity, identity)
    specs = tuple(dimension_numbers)
    letters = [set(spec) for spec in specs]
    ends = [{"N", "C"}, {"O", "I"}, {"N", "C"}]
    fits = len(specs) == 3 and all(
        len(spec) == rank == len(found) and end <= found
        for spec, found, end in zip(specs, letters, ends))
    if not fits or any(found - end != letters[0] - ends[0] for found, end in zip(letters, ends)):
        raise ArgumentError(f"dimension_numbers={dimension_numbers!r} do not name the axes of "
                            f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}.",
                            where=user_source(), why="each string has one letter per axis: N, C, "
                            "then O, I, then N, C, and the same spatial letters.",
                            fix='("NHWC", "HWIO", "NHWC")')
    spatial = [c for c in specs[1] if c not in "OI"]
    return ConvDimensionNumbers(*(tuple(spec.index(c) for c in (*end, *spatial))
                                  for spec, end in zip(specs, ("NC", "OI", "NC"))))


def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str,
         precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of lhs (N, C, *spatial) with rhs (O, C, *window) with string padding.

    >>> import functrans as ft
    >>> ft.lax.conv(ft.numpy.ones((1, 2, 6)), ft.numpy.ones((3, 2, 3)), (2,), "VALID").shape
    (1, 3, 2)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                              padding: Padding, lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
                              preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of lhs (N, C, *spatial) with rhs (O, C, *window), any padding and dilation.

    >>> import functrans as ft
    >>> x, w = ft.numpy.ones((1, 2, 6)), ft.numpy.ones((3, 2, 3))
    >>> ft.lax.conv_with_general_padding(x, w, (1,), [(1, 1)], (2,), None).shape
    (1, 3, 11)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_transpose(lhs: Array, rhs: Array, strides: Sequence[int], padding: Padding,
                   rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers: DimensionNumbers = None, transpose_kernel: bool = False,
                   precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """Convolution with fractional strides: 1 / `strides`, which makes images larger.

    Axes are by default (N, *spatial, C) and (*spatial, I, O). String padding is that of the
    convolution whose transpose this is; pairs pad the images with holes, or, with
    `use_consistent_padding`, are the forward convolution's too. `transpose_kernel` reverses the
    kernel and exchanges its features, as the gradient of a convolution does.

    >>> import functrans as ft
    >>> x, w = ft.numpy.ones((1, 4, 4, 2)), ft.numpy.ones((3, 3, 2, 5))
    >>> ft.lax.conv_transpose(x, w, (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    name = "conv_transpose"
    n = len(lhs.shape) - 2
    if dimension_numbers is None:
        last = n + 1
        spatial = tuple(range(1, last))
        dimension_numbers = ConvDimensionNumbers(
            (0, last, *spatial), (last, n, *range(n)), (0, last, *spatial))
    dims = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    steps = positive_ints(name, "strides", strides, n)
    spread = positive_ints(name, "rhs_dilation", rhs_dilation, n)
    windows = _extents(rhs.shape, dims.rhs_spec, spread)
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        kind = padding.upper()
        pads: Padding = [transposed_padding(kind, k, s) for k, s in zip(windows, steps)]
    else:
        pads = resolve_padding(name, padding, (0,) * n, (1,) * n, (1,) * n)
        if use_consistent_padding:
            pads = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(windows, pads)]
    if transpose_kernel:
        rhs = rev(rhs, dims.rhs_spec[2:])
        dims = dims._replace(rhs_spec=_swapped(dims.rhs_spec))
    return conv_general_dilated(lhs, rhs, (1,) * n, pads, steps, spread, dims, precision=precision,
                                preferred_element_type=preferred_element_type)


def transposed_padding(kind: str, window: int, stride: int) -> tuple[int, int]:
    """Padding with which n places become n * stride (SAME), or all that windows reach (VALID)."""
    if kind == "VALID":
        return window - 1, window - 1 + max(stride - window, 0)
    total = window + stride - 2
    low = window - 1 if stride > window - 1 else -(-total // 2)
    return low, total - low


def conv_general_dilated_patches(
        lhs: Array, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Padding,
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: DimensionNumbers = None, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None) -> Array:
    """The windows of lhs as features: C * prod(filter_shape) of them, the features of lhs slowest.

    >>> import functrans as ft
    >>> x = ft.numpy.ones((1, 3, 5, 5))
    >>> ft.lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID").shape
    (1, 12, 4, 4)
    """
    shape = tuple(filter_shape)
    rank = len(shape) + 2
    dims = conv_dimension_numbers(lhs.shape, (1,) * rank, dimension_numbers)
    features, taps = lhs.shape[dims.lhs_spec[1]], int(np.prod(shape))
    kernel = np.tile(np.eye(taps, dtype=lhs.dtype).reshape(taps, 1, *shape),
                     (features, 1, *(1,) * len(shape)))
    kernel = kernel.transpose(sorted(range(rank), key=dims.rhs_spec.__getitem__))
    return conv_general_dilated(lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation,
                                dims, feature_group_count=features, precision=precision,
                                preferred_element_type=preferred_element_type)
