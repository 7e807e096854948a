"""center_of_mass: sums over whole arrays."""

from __future__ import annotations

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact
from functrans.scipy.products import precise
from functrans.typing import Array, ArrayLike


@precise
def center_of_mass(input: ArrayLike, labels: None = None, index: None = None) -> tuple[Array, ...]:
    """The mean place of the elements, with these for weights: one number for each axis.

    >>> import functrans as ft
    >>> [float(v) for v in ft.scipy.ndimage.center_of_mass(ft.numpy.ones((2, 3)))]
    [0.5, 1.0]
    """
    if labels is not None or index is not None:
        raise ArgumentError("functrans.scipy.ndimage.center_of_mass does not take labels.",
                            where=user_source(), fix="center_of_mass(x * (labels == i))")
    (x,) = inexact(input)
    total = jnp.sum(x)
    found = []
    for a, n in enumerate(x.shape):
        others = tuple(i for i in range(x.ndim) if i != a)
        found.append(jnp.vdot(jnp.arange(n, dtype=x.dtype), jnp.sum(x, axis=others)) / total)
    return tuple(found)
