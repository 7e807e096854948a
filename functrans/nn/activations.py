"""Activation functions, elementwise; derivatives stay finite and right at kinks and far out.

At a kink the derivative is that of one side, never a mean: 0 for relu at 0. A branch that is not
chosen sees a harmless argument, so that it cannot put NaN into a gradient.
"""

from __future__ import annotations

import math

import functrans.numpy as jnp
from functrans import lax
from functrans._runtime import get_trace
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike

__all__ = ["celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
           "identity", "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid",
           "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish",
           "tanh"]


# alpha and scale with which activations keep mean 0 and variance 1 (Klambauer et al., 2017,
# arXiv:1706.02515, equation 14)
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946
# the square of x from which on tanh in the approximation of gelu is 1 to the last bit of float64
_GELU_SATURATED = 100.0


def _inexact(name: str, x: ArrayLike) -> Array:
    """x as an array; integers in the default floating dtype."""
    return promote_dtypes_inexact(name, x)[0]


def identity(x: ArrayLike) -> Array:
    """x itself.

    >>> import functrans as ft
    >>> ft.nn.identity(ft.numpy.array([-1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    return operand("identity", x)


def relu(x: ArrayLike) -> Array:
    """max(x, 0), with derivative 0 at 0.

    >>> import functrans as ft
    >>> ft.nn.relu(ft.numpy.array([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    x = operand("relu", x)
    if get_trace() is None:  # nothing to differentiate: the maximum is one fast operation
        return jnp.maximum(x, 0)
    return lax.select_n(x <= 0, x, lax.full_like(x, 0))


def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), with derivative 0 at 0 and at 6.

    >>> import functrans as ft
    >>> ft.nn.relu6(ft.numpy.array([-1.0, 3.0, 8.0])).tolist()
    [0.0, 3.0, 6.0]
    """
    x = _inexact("relu6", x)
    return jnp.where(x <= 0, 0, jnp.where(x >= 6, 6, x))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where it is not negative, else negative_slope * x.

    >>> import functrans as ft
    >>> ft.nn.leaky_relu(ft.numpy.array([-2.0, 4.0]), 0.5).tolist()
    [-1.0, 4.0]
    """
    x = _inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    >>> import functrans as ft
    >>> float(ft.nn.sigmoid(0.0))
    0.5
    """
    return lax.logistic(_inexact("sigmoid", x))


@composite
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), without overflow.

    >>> import functrans as ft
    >>> ft.nn.softplus(ft.numpy.array([-1000.0, 1000.0])).tolist()
    [0.0, 1000.0]
    """
    x = _inexact("softplus", x)
    positive = x > 0  # on each side a formula that is smooth up to 0, so every derivative is right
    return jnp.where(positive, x, 0) + jnp.log1p(jnp.exp(jnp.where(positive, -x, x)))


@composite
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), without underflow.

    >>> import functrans as ft
    >>> ft.nn.log_sigmoid(ft.numpy.array([-1000.0, -2000.0])).tolist()
    [-1000.0, -2000.0]
    """
    return -softplus(-_inexact("log_sigmoid", x))


@composite
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

    >>> import functrans as ft
    >>> ft.nn.soft_sign(ft.numpy.array([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    x = _inexact("soft_sign", x)
    return x / (1 + jnp.abs(x))


def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, and (x + 1)**2 / 4 in between.

    >>> import functrans as ft
    >>> ft.nn.sparse_plus(ft.numpy.array([-2.0, 0.0, 2.0])).tolist()
    [0.0, 0.25, 2.0]
    """
    x = _inexact("sparse_plus", x)
    inner = jnp.where(jnp.abs(x) >= 1, 0, x)
    return jnp.where(x <= -1, 0, jnp.where(x >= 1, x, (inner + 1) ** 2 / 4))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, 1 from 1 on, and (x + 1) / 2 in between: the derivative of sparse_plus.

    >>> import functrans as ft
    >>> ft.nn.sparse_sigmoid(ft.numpy.array([-2.0, 0.0, 2.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    x = _inexact("sparse_sigmoid", x)
    return jnp.where(x <= -1, 0, jnp.where(x >= 1, 1, (x + 1) / 2))


@composite
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x), also known as swish.

    >>> import functrans as ft
    >>> float(ft.nn.silu(0.0))
    0.0
    """
    x = _inexact("silu", x)
    return x * lax.logistic(x)


swish = silu


@composite
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x)).

    >>> import functrans as ft
    >>> float(ft.nn.mish(0.0))
    0.0
    """
    x = _inexact("mish", x)
    return x * jnp.tanh(softplus(x))


@composite
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2, a smooth relu; b > 0.

    >>> import functrans as ft
    >>> float(ft.nn.squareplus(0.0))
    1.0
    """
    x, b = promote_dtypes_inexact("squareplus", x, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@composite
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1).

    >>> import functrans as ft
    >>> ft.nn.elu(ft.numpy.array([-1000.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    x = _inexact("elu", x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x)))


@composite
def selu(x: ArrayLike) -> Array:
    """elu with the slopes that keep mean 0 and variance 1 through layers.

    >>> import functrans as ft
    >>> round(float(ft.nn.selu(1.0)), 4)
    1.0507
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@composite
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1): smooth at 0 for every alpha.

    >>> import functrans as ft
    >>> ft.nn.celu(ft.numpy.array([-1000.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    x = _inexact("celu", x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) / alpha))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the standard normal distribution function of x, or its tanh approximation.

    Hendrycks and Gimpel, 2016, arXiv:1606.08415.

    >>> import functrans as ft
    >>> round(float(ft.nn.gelu(1.0)), 4), round(float(ft.nn.gelu(1.0, approximate=False)), 4)
    (0.8412, 0.8413)
    """
    x = _inexact("gelu", x)
    x = lax.convert_element_type(x, x.dtype)  # as in JAX, never weak
    if not approximate:
        return 0.5 * x * lax.erfc(x * -math.sqrt(0.5))
    # squares would overflow far out, where tanh is 1 and its derivative 0 anyway
    square = jnp.minimum(x * x, _GELU_SATURATED)
    slope = math.sqrt(2 / math.pi)
    return 0.5 * x * (1 + jnp.tanh(x * (slope + 0.044715 * slope * square)))


@composite
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along `axis` times the sigmoid of the second.

    Raises ShapeError when the axis has an odd size.

    >>> import functrans as ft
    >>> ft.nn.glu(ft.numpy.array([2.0, 0.0])).tolist()
    [1.0]
    """
    x = _inexact("glu", x)
    size = x.shape[axis]
    if isinstance(size, int) and size % 2:
        raise ShapeError(f"nn.glu: axis {axis} of {x.aval} has the odd size {size}.",
                         where=user_source(), why="it is cut into two halves.")
    first, second = jnp.split(x, 2, axis)
    return first * lax.logistic(second)


def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1].

    >>> import functrans as ft
    >>> ft.nn.hard_tanh(ft.numpy.array([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    x = operand("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@composite
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    >>> import functrans as ft
    >>> ft.nn.hard_sigmoid(ft.numpy.array([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return relu6(_inexact("hard_sigmoid", x) + 3) / 6


@composite
def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x), also known as hard_swish.

    >>> import functrans as ft
    >>> ft.nn.hard_silu(ft.numpy.array([0.0, 3.0, 4.0])).tolist()
    [0.0, 3.0, 4.0]
    """
    x = _inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent.

    >>> import functrans as ft
    >>> float(ft.nn.tanh(0.0))
    0.0
    """
    return jnp.tanh(x)
