"""The methods of resampling, and their kernels: weights by the distance in pixels."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, shown
from functrans.core.source import user_source
from functrans.typing import Array


class ResizeMethod(enum.Enum):
    """How images are resampled.

    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name; raises ArgumentError for names of none."""
        if s not in _NAMES:
            raise ArgumentError(f"functrans.image: there is no method {shown(s)}.",
                                where=user_source(), fix=", ".join(map(repr, _NAMES)))
        return _NAMES[s]


_NAMES: Final[Mapping[str, ResizeMethod]] = MappingProxyType({
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
})


def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - x)


def _lanczos(x: Array, radius: float) -> Array:
    """The sinc window times sinc, 1 at and beside 0."""
    product = radius * jnp.sin(math.pi * x) * jnp.sin(math.pi * x / radius)
    near = x <= 1e-3
    value = jnp.where(near, 1, product / jnp.where(near, 1, (math.pi * x) ** 2))
    return jnp.where(x > radius, 0, value)


def _cubic(x: Array, a: float) -> Array:
    """Keys, Cubic convolution interpolation, IEEE Trans. ASSP 29 (1981), by its free number."""
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0, jnp.where(x >= 1, outer, inner))


class ResizeKernel(NamedTuple):
    """Weights by the distance from a pixel, which are 0 from `radius` pixels on."""

    radius: int
    weight: Callable[[Array], Array]


KERNELS: Final[Mapping[ResizeMethod, ResizeKernel]] = MappingProxyType({
    ResizeMethod.LINEAR: ResizeKernel(1, _triangle),
    ResizeMethod.LANCZOS3: ResizeKernel(3, partial(_lanczos, radius=3.0)),
    ResizeMethod.LANCZOS5: ResizeKernel(5, partial(_lanczos, radius=5.0)),
    ResizeMethod.CUBIC: ResizeKernel(2, partial(_cubic, a=-0.5)),
    ResizeMethod.CUBIC_PYTORCH: ResizeKernel(2, partial(_cubic, a=-0.75)),
})


def method_of(method: str | ResizeMethod) -> ResizeMethod:
    """A method that is given by its name or as it is."""
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)
