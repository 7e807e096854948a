"""Initial values of weights: functions of (key, shape, dtype), equal to JAX's for the same key.

Fans: of a weight with input axis `in_axis` and output axis `out_axis`, all other axes but
`batch_axis` belong to the receptive field, which multiplies both fans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import functrans.numpy as jnp
from functrans import random
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.primitives.linalg import qr
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform",
           "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal",
           "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
           "variance_scaling", "xavier_normal", "xavier_uniform", "zeros"]

Axes: TypeAlias = int | Sequence[int]

# the standard deviation of a normal variable cut off at two of its standard deviations
_CUT_NORMAL_STDDEV = 0.87962566103423978


class Initializer(Protocol):
    """Makes an array of `shape` from a random key; `dtype` is by default that of its maker.

    >>> init = ft.nn.initializers.glorot_uniform()
    >>> isinstance(init(ft.random.key(0), (2, 3)), ft.Array)
    True
    """

    def __call__(self, key: Array, shape: Sequence[int], dtype: DTypeLike | None = None
                 ) -> Array: ...


def _float(dtype: DTypeLike | None, default: DTypeLike | None = None) -> Any:
    for choice in (dtype, default):
        if choice is not None:
            return dtypes.as_dtype(choice)
    return dtypes.default_float()


def zeros(key: Array | None, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """An initializer that gives zeros.

    >>> import functrans as ft
    >>> ft.nn.initializers.zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    return jnp.zeros(shape, _float(dtype))


def ones(key: Array | None, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """An initializer that gives ones.

    >>> import functrans as ft
    >>> ft.nn.initializers.ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    return jnp.ones(shape, _float(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer that gives `value`, broadcast.

    >>> import functrans as ft
    >>> ft.nn.initializers.constant(0.5)(None, (2,)).tolist()
    [0.5, 0.5]
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        return jnp.full(shape, value, _float(dtype, default))

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of uniform numbers in [0, scale).

    >>> import functrans as ft
    >>> ft.nn.initializers.uniform(10.0)(ft.random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        return random.uniform(key, shape, kind) * jnp.asarray(scale, kind)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of normal numbers of mean 0 and standard deviation `stddev`.

    >>> import functrans as ft
    >>> ft.nn.initializers.normal(5.0)(ft.random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        return random.normal(key, shape, kind) * jnp.asarray(stddev, kind)

    return init


def truncated_normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None,
                     lower: ArrayLike = -2.0, upper: ArrayLike = 2.0) -> Initializer:
    """The initializer of stddev times standard normal numbers that lie in (lower, upper).

    >>> import functrans as ft
    >>> x = ft.nn.initializers.truncated_normal(5.0)(ft.random.key(0), (100,))
    >>> bool(abs(x).max() <= 10)
    True
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        return random.truncated_normal(key, lower, upper, shape, kind) * jnp.asarray(stddev, kind)

    return init


def _product(shape: Sequence[int], axes: Axes) -> int:
    return math.prod(shape[a] for a in ((axes,) if isinstance(axes, int) else axes))


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
          ) -> tuple[float, float]:
    if len(shape) < 2:
        raise ShapeError(f"nn.initializers: a weight of shape {tuple(shape)} has no fans.",
                         where=user_source(), why="it needs an input and an output axis.",
                         fix="zeros, normal(stddev) or uniform(scale) for vectors")
    inputs, outputs = _product(shape, in_axis), _product(shape, out_axis)
    field = math.prod(shape) / inputs / outputs / _product(shape, batch_axis)
    return inputs * field, outputs * field


def variance_scaling(scale: ArrayLike, mode: Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"],
                     distribution: Literal["normal", "truncated_normal", "uniform"],
                     in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                     dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of random numbers of mean 0 and variance scale / fan.

    mode: "fan_in", "fan_out", "fan_avg" (their mean) or "fan_geo_avg"; distribution: "normal",
    "truncated_normal" (cut off at two standard deviations) or "uniform". Raises ArgumentError for
    others, ShapeError for shapes of less than two dimensions.

    >>> import functrans as ft
    >>> init = ft.nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")
    >>> init(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    fan_of: dict[str, Callable[[float, float], float]] = {
        "fan_in": lambda i, o: i, "fan_out": lambda i, o: o,
        "fan_avg": lambda i, o: (i + o) / 2, "fan_geo_avg": lambda i, o: math.sqrt(i * o)}
    if mode not in fan_of or distribution not in ("normal", "truncated_normal", "uniform"):
        raise ArgumentError(f"nn.initializers.variance_scaling: mode={mode!r}, "
                            f"distribution={distribution!r}.", where=user_source(),
                            why='modes are "fan_in", "fan_out", "fan_avg" and "fan_geo_avg", '
                                'distributions "normal", "truncated_normal" and "uniform".')
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        fan = fan_of[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        ratio: Any = scale
        variance = jnp.asarray(ratio / fan if fan else 0.0, kind)
        if distribution == "normal":
            return random.normal(key, shape, kind) * jnp.sqrt(variance)
        if distribution == "uniform":
            return random.uniform(key, shape, kind, -1) * jnp.sqrt(3 * variance)
        stddev = jnp.sqrt(variance) / jnp.asarray(_CUT_NORMAL_STDDEV, kind)
        return random.truncated_normal(key, -2, 2, shape, kind) * stddev

    return init


def glorot_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                   dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 1 / the mean of the fans (Glorot and Bengio, 2010).

    >>> import functrans as ft
    >>> ft.nn.initializers.glorot_uniform()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 1 / the mean of the fans (Glorot and Bengio, 2010).

    >>> import functrans as ft
    >>> ft.nn.initializers.glorot_normal()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


def lecun_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 1 / fan in (LeCun et al., 1998).

    >>> import functrans as ft
    >>> ft.nn.initializers.lecun_uniform()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                 dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 1 / fan in (LeCun et al., 1998).

    >>> import functrans as ft
    >>> ft.nn.initializers.lecun_normal()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


def he_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
               dtype: DTypeLike | None = None) -> Initializer:
    """Uniform with variance 2 / fan in, for relu (He et al., 2015, arXiv:1502.01852).

    >>> import functrans as ft
    >>> ft.nn.initializers.he_uniform()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
              dtype: DTypeLike | None = None) -> Initializer:
    """Truncated normal with variance 2 / fan in, for relu (He et al., 2015, arXiv:1502.01852).

    >>> import functrans as ft
    >>> ft.nn.initializers.he_normal()(ft.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
               ) -> Initializer:
    """The initializer of `scale` times matrices with orthonormal columns (or rows, if fewer).

    The columns run along `column_axis`; the other axes together are the rows. Saxe et al., 2013,
    arXiv:1312.6120. Raises ShapeError for shapes of less than two dimensions.

    >>> import functrans as ft
    >>> w = ft.nn.initializers.orthogonal()(ft.random.key(0), (5, 2))
    >>> bool(ft.numpy.allclose(w.T @ w, ft.numpy.eye(2), atol=1e-5))
    True
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        if len(shape) < 2:
            raise ShapeError(f"nn.initializers.orthogonal: the shape {tuple(shape)} is no matrix.",
                             where=user_source(), fix="a shape of at least two dimensions")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        tall = (rows, columns) if rows > columns else (columns, rows)
        q, r = qr(random.normal(key, tall, kind), full_matrices=False)
        q = q * jnp.sign(jnp.diagonal(r))  # uniform over all such matrices
        if rows < columns:
            q = q.T
        rest = [n for d, n in enumerate(shape) if d != column_axis % len(shape)]
        q = jnp.moveaxis(jnp.reshape(q, (*rest, columns)), -1, column_axis)
        return jnp.asarray(scale, kind) * q

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1,
                     dtype: DTypeLike | None = None) -> Initializer:
    """The initializer of kernels (*window, in, out) that are an orthogonal matrix at the centre.

    Xiao et al., 2018, arXiv:1806.05393. Raises ShapeError for shapes of less than three or more
    than five dimensions, and for fewer outputs than inputs.

    >>> import functrans as ft
    >>> ft.nn.initializers.delta_orthogonal()(ft.random.key(0), (3, 3, 2, 4)).shape
    (3, 3, 2, 4)
    """
    default = dtype

    def init(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        kind = _float(dtype, default)
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ShapeError(f"nn.initializers.delta_orthogonal: the shape {tuple(shape)}.",
                             where=user_source(), why="kernels are (*window, in, out), with one to "
                             "three window axes and at least as many outputs as inputs.")
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        centre = tuple((k - 1) // 2 for k in shape[:-2])
        return jnp.zeros(shape, kind).at[centre].set(matrix)

    return init

publish(globals(), __all__)
