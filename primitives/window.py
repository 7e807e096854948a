"""Pooling: reductions over windows that slide over all axes of an array.

The derivative of a largest element is taken at its place: `window_argmax` finds which place of
each window that is, `window_take` reads a tangent there, and its transpose `window_put` adds a
cotangent there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans._runtime import wrap
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Shape
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.primitives.arithmetic import add_p, max_p, min_p
from functrans.primitives.base import LinearPrimitive, sample_array
from functrans.primitives.broadcast import align_batch, broadcast_in_dim
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import Differentiable, linear
from functrans.primitives.geometry import (
    Padding,
    Pads,
    count_windows,
    dilate,
    embed,
    extract,
    padded_sizes,
    positive_ints,
    resolve_padding,
    sliding,
    taps,
)
from functrans.primitives.reduce import reduce_max_p, reduce_min_p
from functrans.primitives.shape import pad
from functrans.primitives.shape import slice as slice_

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, PyTree

__all__ = ["reduce_window", "reduce_window_max", "reduce_window_max_p", "reduce_window_min",
           "reduce_window_min_p", "reduce_window_sum", "reduce_window_sum_p", "window_argmax_p",
           "window_argmin_p", "window_put_p", "window_take_p"]

Axes = tuple[int, ...]
NDArray = np.ndarray[Any, Any]

# Below this many places a window is folded one whole-array operation per place and axis.
_FEW = 16


class Windowed(Primitive, abstract=True):
    """An operation with the parameters of windows; all its operands are mapped together."""

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              window_dimensions: Axes, window_strides: Axes, padding: Pads, base_dilation: Axes,
              window_dilation: Axes, **params: Any) -> tuple[Any, int]:
        if "shape" in params:
            size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
            params["shape"] = (size, *params["shape"])
        out = self.bind(*align_batch(operands, axes), window_dimensions=(1, *window_dimensions),
                        window_strides=(1, *window_strides), padding=((0, 0), *padding),
                        base_dilation=(1, *base_dilation),
                        window_dilation=(1, *window_dilation), **params)
        return out, 0


class WindowReduction(Windowed, abstract=True):
    """Folds the elements of each window with a ufunc; padding holds its neutral element."""

    ufunc: ClassVar[np.ufunc]
    kinds: ClassVar[str] = "biuf"

    def neutral(self, x: NDArray) -> Any:
        """What the padding holds."""
        raise TypeError("a window reduction must give its neutral element")

    def type(self, x: ShapedArray, **params: Any) -> ShapedArray:
        if dtypes.kind(x.dtype) not in self.kinds:
            raise DTypeError(f"{self.name} does not take {x.dtype}.", where=user_source())
        return x.with_shape(_places(self.name, x, **params))

    def evaluate(self, x: Any, *, window_dimensions: Axes, window_strides: Axes, padding: Pads,
                 base_dilation: Axes, window_dilation: Axes) -> NDArray:
        x = embed(x, padding, base_dilation, self.neutral(x))
        return self.fold(x, window_dimensions, window_strides, window_dilation)

    def fold(self, x: NDArray, window: Axes, strides: Axes, dilation: Axes) -> NDArray:
        """The reduction of each window, one axis after the other."""
        for axis, (n, stride, spread) in enumerate(zip(window, strides, dilation, strict=True)):
            if n > _FEW:
                windows = np.moveaxis(x, axis, -1)
                windows = sliding(windows, x.ndim - 1, (n,), (stride,), (spread,))
                x = np.moveaxis(self.ufunc.reduce(windows, -1, dtype=x.dtype), -1, axis)
                continue
            total: Any = None
            for i, part in enumerate(taps(x, axis, n, stride, spread)):
                if i < 2:
                    total = part if i == 0 else self.ufunc(total, part)
                else:
                    self.ufunc(total, part, out=total)
            x = total
        return x

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        out = self.type(x, **params)
        return Cost(out.size * math.prod(params["window_dimensions"]), x.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        return _samples((sample_array(2, 5, 4),))


class ReduceWindowSum(WindowReduction, LinearPrimitive):
    """The sum of the elements in each window."""

    ufunc = np.add
    kinds = "iufc"

    def neutral(self, x: NDArray) -> Any:
        return 0

    def transpose(self, ct: Any, x: Linear, *, window_dimensions: Axes, window_strides: Axes,
                  padding: Pads, base_dilation: Axes, window_dilation: Axes) -> tuple[Any]:
        """Sums of ct over the windows that cover an element; strides and dilation swap."""
        pads = []
        for n, m, k, stride, (low, _), holes, spread in zip(
                x.aval.shape, ct.shape, window_dimensions, window_strides, padding, base_dilation,
                window_dilation, strict=True):
            window = dilate(k, spread)
            before = window - low - 1
            after = dilate(n, holes) + window - 1 - dilate(m, stride) - before
            pads.append((before, after))
        return (self.bind(ct, window_dimensions=window_dimensions, window_strides=base_dilation,
                          padding=tuple(pads), base_dilation=window_strides,
                          window_dilation=window_dilation),)


class WindowExtremum(WindowReduction, abstract=True):
    """The largest or smallest element of each window; the first of equals has the derivative."""

    place: ClassVar[Primitive]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), window_take_p.bind(t, self.place.bind(x, **params), **params)


class WindowPlace(WindowReduction, abstract=True):
    """The number of the place, row by row, of the first largest or smallest element; or of NaN."""

    def type(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return ShapedArray(super().type(x, **params).shape, np.dtype(np.int32))

    def evaluate(self, x: Any, *, window_dimensions: Axes, window_strides: Axes, padding: Pads,
                 base_dilation: Axes, window_dilation: Axes) -> NDArray:
        x = embed(x, padding, base_dilation, self.neutral(x))
        best = self.fold(x, window_dimensions, window_strides, window_dilation)
        has_nan = x.dtype.kind == "f" and bool(np.isnan(best).any())
        windows = sliding(x, 0, window_dimensions, window_strides, window_dilation)
        # the number of places before the first that holds the best, without branches
        count = math.prod(window_dimensions)
        place = np.zeros(best.shape, np.uint8 if count <= 255 else np.int32)
        pending = np.ones(best.shape, np.bool_)
        for tap in itertools.islice(np.ndindex(*window_dimensions), count - 1):
            part = windows[(..., *tap)]
            pending &= part != best
            if has_nan:
                pending &= part == part
            np.add(place, pending, out=place)
        return place.astype(np.int32)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), None


class _WindowMax(WindowReduction, abstract=True):
    ufunc = np.maximum

    def neutral(self, x: NDArray) -> Any:
        return reduce_max_p.start(x)["initial"]


class _Smallest(WindowReduction, abstract=True):
    ufunc = np.minimum

    def neutral(self, x: NDArray) -> Any:
        return reduce_min_p.start(x)["initial"]


class WindowArgmax(_WindowMax, WindowPlace):
    """The number of the place of the first largest element of each window."""


class WindowArgmin(_Smallest, WindowPlace):
    """The number of the place of the first smallest element of each window."""


window_argmax_p, window_argmin_p = WindowArgmax(), WindowArgmin()


class ReduceWindowMax(_WindowMax, WindowExtremum):
    """The largest element of each window, NaN if there is one."""

    place = window_argmax_p


class ReduceWindowMin(_Smallest, WindowExtremum):
    """The smallest element of each window, NaN if there is one."""

    place = window_argmin_p


class WindowTake(Windowed, Differentiable):
    """From each window of x the element at a place given by its number; 0 from the padding."""

    derivatives = (linear, None)

    def type(self, x: ShapedArray, place: ShapedArray, **params: Any) -> ShapedArray:
        _check_place(self.name, place, _places(self.name, x, **params))
        return ShapedArray(place.shape, x.dtype)

    def evaluate(self, x: Any, place: Any, *, window_dimensions: Axes, window_strides: Axes,
                 padding: Pads, base_dilation: Axes, window_dilation: Axes) -> NDArray:
        x = np.ascontiguousarray(embed(x, padding, base_dilation))
        at = _flat_places(x.shape, place, window_dimensions, window_strides, window_dilation)
        return np.take(x.reshape(-1), at)

    def transpose(self, ct: Any, x: Linear, place: Any, **params: Any) -> tuple[Any, None]:
        return window_put_p.bind(ct, place, shape=x.aval.shape, **params), None

    def samples(self) -> Iterator[Sample]:
        for sample in _samples((sample_array(2, 5, 4),)):
            yield Sample((*sample.args, _sample_places(sample)), sample.params)


class WindowPut(Windowed, Differentiable):
    """Zeros of `shape` to which, for each window, an element is added at the place given."""

    derivatives = (linear, None)

    def type(self, x: ShapedArray, place: ShapedArray, *, shape: Shape,
             **params: Any) -> ShapedArray:
        _check_place(self.name, place, x.shape)
        return ShapedArray(shape, x.dtype)

    def evaluate(self, x: Any, place: Any, *, shape: Axes, window_dimensions: Axes,
                 window_strides: Axes, padding: Pads, base_dilation: Axes,
                 window_dilation: Axes) -> NDArray:
        padded = padded_sizes(self.name, shape, padding, base_dilation)
        out = np.zeros(padded, x.dtype)
        at = _flat_places(out.shape, place, window_dimensions, window_strides, window_dilation)
        apart = all(dilate(n, spread) <= stride for n, stride, spread
                    in zip(window_dimensions, window_strides, window_dilation, strict=True))
        if apart:
            out.reshape(-1)[at] = x
        else:
            np.add.at(out.reshape(-1), at.reshape(-1), np.ravel(x))
        return extract(out, shape, padding, base_dilation)

    def transpose(self, ct: Any, x: Linear, place: Any, *, shape: Shape,
                  **params: Any) -> tuple[Any, None]:
        return window_take_p.bind(ct, place, **params), None

    def samples(self) -> Iterator[Sample]:
        for sample in _samples((sample_array(2, 5, 4),)):
            places = _sample_places(sample)
            yield Sample((sample_array(*places.shape, seed=1), places),
                         {**sample.params, "shape": (2, 5, 4)})


window_take_p, window_put_p = WindowTake(), WindowPut()
reduce_window_sum_p = ReduceWindowSum()
reduce_window_max_p, reduce_window_min_p = ReduceWindowMax(), ReduceWindowMin()


def _places(name: str, x: ShapedArray, *, window_dimensions: Axes, window_strides: Axes,
            padding: Pads, base_dilation: Axes, window_dilation: Axes) -> Shape:
    """How many windows there are along each axis."""
    if x.ndim != len(window_dimensions):
        raise ShapeError(f"{name}: windows of {len(window_dimensions)} dimensions over {x}.",
                         where=user_source(), fix="a window of size 1 in the other dimensions")
    sizes = padded_sizes(name, x.shape, padding, base_dilation)
    return tuple(count_windows(n, dilate(k, spread), stride) for n, k, stride, spread
                 in zip(sizes, window_dimensions, window_strides, window_dilation, strict=True))


def _check_place(name: str, place: ShapedArray, shape: Shape) -> None:
    if place.shape != shape or place.dtype != np.int32:
        raise ShapeError(f"{name}: places of type {place} for windows of shape {shape}.",
                         where=user_source(), why="there is one int32 number per window.")


def _flat_places(shape: Sequence[int], place: NDArray, window: Axes, strides: Axes,
                 dilation: Axes) -> NDArray:
    """Where in an array of `shape`, seen as flat, the chosen element of every window stands."""
    steps = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    within = np.zeros((), np.intp)
    start = np.zeros((), np.intp)
    for d, step in enumerate(steps):
        within = np.add.outer(within, np.arange(window[d]) * (dilation[d] * step))
        start = np.add.outer(start, np.arange(place.shape[d]) * (strides[d] * step))
    return start + within.reshape(-1)[place]


def _samples(args: tuple[Any, ...]) -> Iterator[Sample]:
    base = {"window_dimensions": (1, 2, 2), "window_strides": (1, 2, 2),
            "padding": ((0, 0), (0, 0), (0, 0)), "base_dilation": (1, 1, 1),
            "window_dilation": (1, 1, 1)}
    yield Sample(args, base)
    yield Sample(args, {**base, "window_dimensions": (2, 3, 2), "window_strides": (1, 1, 2),
                        "padding": ((1, 0), (1, 1), (0, 1))})
    yield Sample(args, {**base, "padding": ((0, 0), (-1, 1), (0, -1)),
                        "base_dilation": (1, 2, 1), "window_dilation": (1, 1, 2)})


def _sample_places(sample: Sample) -> NDArray:
    shape = _places("sample", get_aval(sample.args[0]), **sample.params)
    number = math.prod(sample.params["window_dimensions"])
    return np.random.default_rng(2).integers(0, number, shape, dtype=np.int32)


def reduce_window_sum(operand: ArrayLike, window_dimensions: Sequence[int],
                      window_strides: Sequence[int] | None = None, padding: Padding = "VALID",
                      base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """The sum over each window; windows have a size in every dimension of the operand.

    >>> import functrans as ft
    >>> ft.lax.reduce_window_sum(ft.numpy.array([1.0, 2.0, 3.0, 4.0]), (2,), (2,)).tolist()
    [3.0, 7.0]
    """
    return _bind(reduce_window_sum_p, operand, window_dimensions, window_strides, padding,
                 base_dilation, window_dilation)


def reduce_window_max(operand: ArrayLike, window_dimensions: Sequence[int],
                      window_strides: Sequence[int] | None = None, padding: Padding = "VALID",
                      base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """The largest element of each window (max pooling); padding never wins.

    >>> import functrans as ft
    >>> ft.lax.reduce_window_max(ft.numpy.array([1.0, 5.0, 3.0, 4.0]), (2,), (2,)).tolist()
    [5.0, 4.0]
    """
    return _bind(reduce_window_max_p, operand, window_dimensions, window_strides, padding,
                 base_dilation, window_dilation)


def reduce_window_min(operand: ArrayLike, window_dimensions: Sequence[int],
                      window_strides: Sequence[int] | None = None, padding: Padding = "VALID",
                      base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """The smallest element of each window; padding never wins.

    >>> import functrans as ft
    >>> ft.lax.reduce_window_min(ft.numpy.array([1.0, 5.0, 3.0, 4.0]), (2,), (2,)).tolist()
    [1.0, 3.0]
    """
    return _bind(reduce_window_min_p, operand, window_dimensions, window_strides, padding,
                 base_dilation, window_dilation)


def _bind(primitive: WindowReduction, x: Any, window: Sequence[int],
          strides: Sequence[int] | None, padding: Padding, base_dilation: Sequence[int] | None,
          window_dilation: Sequence[int] | None) -> Array:
    if dtypes.kind(x.dtype) not in primitive.kinds:
        raise DTypeError(f"{primitive.name} does not take {x.dtype}.", where=user_source())
    params = _parameters(primitive.name, x.shape, window, strides, padding, base_dilation,
                         window_dilation)
    return primitive.bind(x, **params)


def _parameters(name: str, shape: Shape, window: Sequence[int], strides: Sequence[int] | None,
                padding: Padding, base_dilation: Sequence[int] | None,
                window_dilation: Sequence[int] | None) -> dict[str, Any]:
    """The parameters of windows over `shape`, checked and completed."""
    n = len(shape)
    sizes = positive_ints(name, "window_dimensions", window, n)
    steps = positive_ints(name, "window_strides", strides, n)
    holes = positive_ints(name, "base_dilation", base_dilation, n)
    spread = positive_ints(name, "window_dilation", window_dilation, n)
    extents = [dilate(k, d) for k, d in zip(sizes, spread, strict=True)]
    pads = resolve_padding(name, padding, [dilate(k, d) for k, d in zip(shape, holes, strict=True)],
                           extents, steps)
    padded_sizes(name, shape, pads, holes)
    return {"window_dimensions": sizes, "window_strides": steps, "padding": pads,
            "base_dilation": holes, "window_dilation": spread}


_KNOWN: dict[Primitive, WindowReduction] = {
    add_p: reduce_window_sum_p, max_p: reduce_window_max_p, min_p: reduce_window_min_p}


def reduce_window(operand: PyTree, init_value: PyTree,
                  computation: Callable[[PyTree, PyTree], PyTree], window_dimensions: Sequence[int],
                  window_strides: Sequence[int] | None = None, padding: Padding = "VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> PyTree:
    """Each window folded by `computation`, from `init_value`, which padding and holes hold too.

    Sums, maxima and minima (lax.add, numpy.maximum, operator.add, a lambda that does the same)
    run as one operation. Any other function of two values must be elementwise; it is applied to
    whole arrays, once per place in a window, and differentiated as it is. operand and init_value
    may be pytrees of arrays of one shape, which computation(accumulated, element) then takes too.
    Raises ArgumentError when these do not match.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 3.0, 4.0])
    >>> ft.lax.reduce_window(x, 1.0, ft.lax.mul, (2,), (2,)).tolist()
    [2.0, 12.0]
    """
    name = "reduce_window"
    leaves, tree = tree_flatten(operand)
    inits, init_tree = tree_flatten(init_value)
    if not leaves or tree != init_tree or any(x.shape != leaves[0].shape for x in leaves):
        raise ArgumentError(f"{name}: the operand is {tree}, the initial value {init_tree}.",
                            where=user_source(), why="there is one initial value per array, and "
                                                     "all arrays have one shape.")
    params = _parameters(name, leaves[0].shape, window_dimensions, window_strides, padding,
                         base_dilation, window_dilation)
    inits = [i if hasattr(i, "dtype") else wrap(np.asarray(i, x.dtype), True)
             for x, i in zip(leaves, inits, strict=True)]
    if tree.num_nodes == 1:
        primitive = _recognise(leaves[0], inits[0], computation)
        if primitive is not None:
            x, weak = primitive.bind(leaves[0], **params), get_aval(inits[0]).weak_type
            return x if weak or not x.weak_type else convert_element_type(x, x.dtype)
    config = [(low, high, d - 1) for (low, high), d
              in zip(params["padding"], params["base_dilation"], strict=True)]
    padded = [pad(x, i, config) for x, i in zip(leaves, inits, strict=True)]
    places = _places(name, get_aval(leaves[0]), **params)
    total = tree_unflatten(tree, [broadcast_in_dim(i, places, ()) for i in inits])
    if any(isinstance(n, int) and n == 0 for n in places):  # no window fits: nothing to slice
        return total
    for tap in np.ndindex(*params["window_dimensions"]):
        starts = [t * d for t, d in zip(tap, params["window_dilation"], strict=True)]
        limits = [s + (n - 1) * stride + 1 for s, n, stride
                  in zip(starts, places, params["window_strides"], strict=True)]
        parts = [slice_(x, starts, limits, params["window_strides"]) for x in padded]
        total = computation(total, tree_unflatten(tree, parts))
    return total


def _recognise(x: Any, init: Any, computation: Callable[[Any, Any], Any]) -> WindowReduction | None:
    """The primitive that folds with `computation` from `init`, if there is one."""
    if isinstance(init, Tracer) or dtypes.kind(x.dtype) == "b":
        return None
    scalar = ShapedArray((), x.dtype)
    jaxpr = stage(lambda a, b: [computation(a, b)], [scalar, scalar], name="computation").jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.outvars != jaxpr.eqns[0].outvars:
        return None
    eqn = jaxpr.eqns[0]
    primitive = _KNOWN.get(eqn.primitive)
    if primitive is None or set(eqn.invars) != set(jaxpr.invars):
        return None
    start = primitive.neutral(np.empty(0, x.dtype))
    return primitive if np.asarray(init) == start else None
