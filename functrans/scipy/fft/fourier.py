"""Fourier transforms with SciPy's arguments, and the Hermitian ones of several axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from functrans import numpy as jnp
from functrans.numpy import fft as transforms
from functrans.typing import Array, ArrayLike


def _with_scipys(fun: Callable[..., Array]) -> Callable[..., Array]:
    """A transform that takes SciPy's options too, which say how it is computed, not what."""
    given = list(inspect.signature(fun).parameters.values())
    first = given[0].replace(name="x")
    keyword = inspect.Parameter.KEYWORD_ONLY
    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    more = [inspect.Parameter("overwrite_x", both, default=False, annotation="bool"),
            inspect.Parameter("workers", both, default=None, annotation="int | None"),
            inspect.Parameter("plan", keyword, default=None, annotation="None")]
    signature = inspect.Signature([first, *given[1:], *more], return_annotation="Array")
    known = {p.name for p in given}

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Array:
        if len(args) <= len(given) and kwargs.keys() <= known:
            return fun(*args, **kwargs)
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{fun.__name__}: {error}") from None
        x = bound.pop("x")
        return fun(x, **{k: v for k, v in bound.items() if k in known})

    call.__signature__ = signature  # type: ignore[attr-defined]
    del call.__wrapped__  # its source has other arguments
    call.__doc__ = (fun.__doc__ or "") + (
        "\n\n    `overwrite_x`, `workers` and `plan` are SciPy's, and are accepted.\n    ")
    call.__module__ = __name__
    return call


fft = _with_scipys(transforms.fft)
fft2 = _with_scipys(transforms.fft2)
fftn = _with_scipys(transforms.fftn)
hfft = _with_scipys(transforms.hfft)
ifft = _with_scipys(transforms.ifft)
ifft2 = _with_scipys(transforms.ifft2)
ifftn = _with_scipys(transforms.ifftn)
ihfft = _with_scipys(transforms.ihfft)
irfft = _with_scipys(transforms.irfft)
irfft2 = _with_scipys(transforms.irfft2)
irfftn = _with_scipys(transforms.irfftn)
rfft = _with_scipys(transforms.rfft)
rfft2 = _with_scipys(transforms.rfft2)
rfftn = _with_scipys(transforms.rfftn)

_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho", None: "forward"}


def hfftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
          plan: None = None) -> Array:
    """The real transform of a signal that is Hermitian over some axes, given by one half.

    >>> import functrans as ft
    >>> ft.scipy.fft.hfftn(ft.numpy.array([[1.0, 2.0, 3.0]])).round(4).tolist()
    [[8.0, -2.0, 0.0, -2.0]]
    """
    return irfftn(jnp.conj(x), s, axes, _OTHER[norm])


def ihfftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
           plan: None = None) -> Array:
    """The half of a Hermitian signal whose transform over some axes is real; see `hfftn`.

    >>> import functrans as ft
    >>> ft.scipy.fft.ihfftn(ft.numpy.array([[8.0, -2.0, 0.0, -2.0]])).real.round(4).tolist()
    [[1.0, 2.0, 3.0]]
    """
    return jnp.conj(rfftn(x, s, axes, _OTHER[norm]))


def hfft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
          plan: None = None) -> Array:
    """`hfftn` over two axes.

    >>> import functrans as ft
    >>> ft.scipy.fft.hfft2(ft.numpy.array([[1.0, 2.0, 3.0]])).round(4).tolist()
    [[8.0, -2.0, 0.0, -2.0]]
    """
    return hfftn(x, s, axes, norm)


def ihfft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
           plan: None = None) -> Array:
    """`ihfftn` over two axes.

    >>> import functrans as ft
    >>> ft.scipy.fft.ihfft2(ft.numpy.array([[8.0, -2.0, 0.0, -2.0]])).real.round(4).tolist()
    [[1.0, 2.0, 3.0]]
    """
    return ihfftn(x, s, axes, norm)
