"""One function for each window: M points in the default float.

With `sym` a window is symmetric, for filters; without it periodic, for spectra. Other parameters
may be traced unless a docstring says that they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import refused
from functrans.scipy.signal.windows.forms import values_of
from functrans.typing import Array, ArrayLike


def _made(name: str, M: int, sym: bool, *parameters: Any) -> Array:
    return jnp.asarray(values_of(name, M, sym, parameters)).astype(default_float())


def barthann(M: int, sym: bool = True) -> Array:
    """The window of Bartlett and Hann.

    >>> barthann(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _made("barthann", M, sym)


def bartlett(M: int, sym: bool = True) -> Array:
    """The triangle from 0 over 1 to 0.

    >>> bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _made("bartlett", M, sym)


def blackman(M: int, sym: bool = True) -> Array:
    """Blackman's window 0.42 + 0.5 cos(x) + 0.08 cos(2 x), x from -pi to pi.

    >>> print(blackman(5).round(2)[1:4])
    [0.34 1.   0.34]
    """
    return _made("blackman", M, sym)


def blackmanharris(M: int, sym: bool = True) -> Array:
    """The window of Blackman and Harris, of four cosines.

    >>> print(blackmanharris(5).round(4))
    [1.000e-04 2.175e-01 1.000e+00 2.175e-01 1.000e-04]
    """
    return _made("blackmanharris", M, sym)


def bohman(M: int, sym: bool = True) -> Array:
    """Bohman's window (1 - |x|) cos(pi |x|) + sin(pi |x|) / pi.

    >>> bohman(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _made("bohman", M, sym)


def boxcar(M: int, sym: bool = True) -> Array:
    """The window that is 1 everywhere.

    >>> boxcar(2).tolist()
    [1.0, 1.0]
    """
    return _made("boxcar", M, sym)


def chebwin(M: int, at: float, sym: bool = True) -> Array:
    """The window of Dolph and Chebyshev, `at` (known) decibels down in all side lobes.

    >>> print(chebwin(3, 50).round(4))
    [0.5032 1.     0.5032]
    """
    return _made("chebwin", M, sym, at)


def cosine(M: int, sym: bool = True) -> Array:
    """Half a wave of the sine.

    >>> cosine(3).round(4).tolist()
    [0.5, 1.0, 0.5]
    """
    return _made("cosine", M, sym)


def dpss(M: int, NW: float, Kmax: int | None = None, sym: bool = True, norm: str | None = None,
         return_ratios: bool = False) -> Array:
    """The discrete prolate spheroidal sequence of half bandwidth NW (known) that is the window.

    Raises ArgumentError for Kmax, other norms and ratios: there is the first sequence alone.
    Source: Slepian, Bell System Technical Journal 57 (1978).

    >>> print(dpss(3, 1.0).round(4))
    [0.5931 1.     0.5931]
    """
    if Kmax is not None or norm not in (None, "approximate") or return_ratios:
        raise refused("signal.windows.dpss", "Kmax, norm and return_ratios",
                      "it returns the first sequence, with its largest value scaled to 1.")
    return _made("dpss", M, sym, NW)


def exponential(M: int, center: ArrayLike | None = None, tau: ArrayLike = 1.0,
                sym: bool = True) -> Array:
    """exp(-|n - center| / tau), about the middle by default.

    >>> print(exponential(3).round(4))
    [0.3679 1.     0.3679]
    """
    if sym and center is not None:
        raise ArgumentError("functrans.scipy.signal.windows.exponential: there is a center, and "
                            "sym is True.", where=user_source(), fix="sym=False")
    return _made("exponential", M, sym, center, tau)


def flattop(M: int, sym: bool = True) -> Array:
    """The window that is flat about the middle of its spectrum, of five cosines.

    >>> print(flattop(3).round(4))
    [-4.e-04  1.e+00 -4.e-04]
    """
    return _made("flattop", M, sym)


def gaussian(M: int, std: ArrayLike, sym: bool = True) -> Array:
    """exp(-x**2 / 2 std**2) by the distance x from the middle.

    >>> print(gaussian(3, 1.0).round(4))
    [0.6065 1.     0.6065]
    """
    return _made("gaussian", M, sym, std)


def general_cosine(M: int, a: Sequence[ArrayLike], sym: bool = True) -> Array:
    """sum a[k] cos(k x) for x from -pi to pi.

    >>> general_cosine(3, [0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    return _made("general_cosine", M, sym, a)


def general_gaussian(M: int, p: ArrayLike, sig: ArrayLike, sym: bool = True) -> Array:
    """exp(-|x / sig|**2p / 2) by the distance x from the middle.

    >>> print(general_gaussian(3, 1.0, 1.0).round(4))
    [0.6065 1.     0.6065]
    """
    return _made("general_gaussian", M, sym, p, sig)


def general_hamming(M: int, alpha: ArrayLike, sym: bool = True) -> Array:
    """alpha + (1 - alpha) cos(x) for x from -pi to pi.

    >>> general_hamming(3, 0.75).tolist()
    [0.5, 1.0, 0.5]
    """
    return _made("general_hamming", M, sym, alpha)


def hamming(M: int, sym: bool = True) -> Array:
    """Hamming's window 0.54 + 0.46 cos(x), x from -pi to pi.

    >>> print(hamming(3).round(2))
    [0.08 1.   0.08]
    """
    return _made("hamming", M, sym)


def hann(M: int, sym: bool = True) -> Array:
    """Hann's window 0.5 + 0.5 cos(x), x from -pi to pi.

    >>> hann(4, sym=False).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _made("hann", M, sym)


def kaiser(M: int, beta: ArrayLike, sym: bool = True) -> Array:
    """Kaiser's window i0(beta sqrt(1 - x**2)) / i0(beta), x from -1 to 1.

    >>> print(kaiser(3, 2.0).round(4))
    [0.4387 1.     0.4387]
    """
    return _made("kaiser", M, sym, beta)


def kaiser_bessel_derived(M: int, beta: ArrayLike, *, sym: bool = True) -> Array:
    """The window of an even size whose squares half a window apart sum to 1.

    >>> print(kaiser_bessel_derived(2, 2.0).round(4))
    [0.7071 0.7071]
    """
    if not sym:
        raise ArgumentError("functrans.scipy.signal.windows.kaiser_bessel_derived is symmetric.",
                            where=user_source(), fix="sym=True")
    return _made("kaiser_bessel_derived", M, sym, beta)


def lanczos(M: int, *, sym: bool = True) -> Array:
    """The main lobe of sinc.

    >>> print(lanczos(5).round(4))
    [0.     0.6366 1.     0.6366 0.    ]
    """
    return _made("lanczos", M, sym)


def nuttall(M: int, sym: bool = True) -> Array:
    """Nuttall's window of four cosines.

    >>> print(nuttall(3).round(4))
    [4.e-04 1.e+00 4.e-04]
    """
    return _made("nuttall", M, sym)


def parzen(M: int, sym: bool = True) -> Array:
    """Parzen's window: a box convolved with itself three times.

    >>> print(parzen(3).round(4))
    [0.0741 1.     0.0741]
    """
    return _made("parzen", M, sym)


def taylor(M: int, nbar: int = 4, sll: float = 30, norm: bool = True, sym: bool = True) -> Array:
    """Taylor's window with `nbar` lobes of one height, `sll` decibels down (all known).

    >>> print(taylor(3).round(4))
    [0.4669 1.     0.4669]
    """
    return _made("taylor", M, sym, nbar, sll, norm)


def triang(M: int, sym: bool = True) -> Array:
    """The triangle that is above 0 at both ends.

    >>> triang(3).tolist()
    [0.5, 1.0, 0.5]
    """
    return _made("triang", M, sym)


def tukey(M: int, alpha: ArrayLike = 0.5, sym: bool = True) -> Array:
    """The window that is 1, with half waves of the cosine over the part alpha at both ends.

    >>> tukey(5).tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0]
    """
    return _made("tukey", M, sym, alpha)
