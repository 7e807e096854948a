"""get_window: windows by their names, as functions of spectra take them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.scipy.arguments import known_size
from functrans.scipy.signal.windows.forms import FORMS, values_of
from functrans.typing import Array, ArrayLike

Window = Any  # a name, a pair of a name and parameters, beta of Kaiser's window, or its values

_SHORT: Final[Mapping[str, str]] = MappingProxyType({
    "bart": "bartlett", "bartlett": "bartlett", "brt": "bartlett", "black": "blackman",
    "blk": "blackman", "blackharr": "blackmanharris", "bkh": "blackmanharris", "bman": "bohman",
    "bmn": "bohman", "box": "boxcar", "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar",
    "brthan": "barthann", "bth": "barthann", "cheb": "chebwin", "halfcosine": "cosine",
    "flat": "flattop", "flt": "flattop", "gauss": "gaussian", "gss": "gaussian",
    "general gauss": "general_gaussian", "general cosine": "general_cosine", "ggs":
    "general_gaussian", "hamm": "hamming", "ham": "hamming", "han": "hann", "ksr": "kaiser",
    "nutl": "nuttall", "nut": "nuttall", "parz": "parzen", "par": "parzen", "poisson":
    "exponential", "sinc": "lanczos", "taylorwin": "taylor", "tri": "triang", "triangle": "triang",
    "tuk": "tukey",
})
_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType({
    "tukey": (0.5,), "taylor": (4, 30, True), "exponential": (None, 1.0)})
_NEED = ("chebwin", "dpss", "gaussian", "general_cosine", "general_gaussian", "general_hamming",
         "kaiser", "kaiser_bessel_derived")


def get_window(window: str | tuple[Any, ...] | float, Nx: int, fftbins: bool = True) -> Array:
    """A window of Nx points by its name, a tuple of its name and parameters, or Kaiser's beta.

    With `fftbins` it is periodic, and symmetric otherwise.
    Raises ArgumentError for a name of no window, or one that needs parameters without them.

    >>> get_window("hann", 4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return jnp.asarray(window_values(window, Nx, not fftbins)).astype(default_float())


def window_values(window: Window, size: int, sym: bool = False) -> Any:
    """The values of a window in float64; arrays are windows already."""
    if isinstance(window, (int, float)):
        return values_of("kaiser", size, sym, (window,))
    name, *parameters = (window,) if isinstance(window, str) else window
    if not isinstance(name, str):
        raise _unknown(window)
    name = name.lower()
    name = _SHORT.get(name, name)
    if name not in FORMS or (not parameters and name in _NEED):
        raise _unknown(window)
    defaults = _DEFAULTS.get(name, ())
    parameters = [*parameters, *defaults[len(parameters):]]
    return values_of(name, size, sym, parameters)


def _unknown(window: Any) -> ArgumentError:
    return ArgumentError(f"functrans.scipy.signal.get_window: there is no window {shown(window)}.",
                         where=user_source(), fix="'hann', ('kaiser', 8.6)")


def segment_window(name: str, window: Window, size: int | None, length: int,
                   default: int = 256) -> tuple[Any, int]:
    """A window and its size, which an array says itself and a name gets of `size`."""
    is_sequence = isinstance(window, (list, tuple)) and not isinstance(window[0], str)
    if isinstance(window, (*ARRAYS, np.ndarray)) or is_sequence:
        values = jnp.asarray(window)
    else:
        points = default if size is None else known_size(f"signal.{name}", "nperseg", size)
        points = min(points, length)
        return window_values(window, points), points
    if values.ndim != 1:
        raise ShapeError(f"functrans.scipy.signal.{name}: the window has shape {values.shape}.",
                         where=user_source(), why="it is a vector.")
    points = values.shape[0]
    if points > length:
        raise ShapeError(f"functrans.scipy.signal.{name}: the window has {points} points, the "
                         f"signal {length}.", where=user_source())
    if size is not None and size != points:
        raise ArgumentError(f"functrans.scipy.signal.{name}: nperseg is {size}, and the window has "
                            f"{points} points.", where=user_source())
    return values, points


def cast_window(values: Any, like: ArrayLike) -> Array:
    """A window in the real dtype of a signal."""
    return jnp.asarray(values).astype(jnp.asarray(like).real.dtype)
