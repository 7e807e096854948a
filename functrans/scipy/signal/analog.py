"""Prototypes of analog filters by their own names, their bands, and filters by their losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_complex, default_float
from functrans.core.errors import ArgumentError, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.signal.classical import (
    bessel_prototype,
    buttord,
    cheb1ord,
    cheb2ord,
    ellipord,
    elliptic,
    iirfilter,
)
from functrans.scipy.signal.design import Cutoff
from functrans.scipy.signal.forms import known_numbers
from functrans.scipy.signal.prototypes import (
    Values,
    Zeros,
    butterworth,
    chebyshev_1,
    chebyshev_2,
    digital,
    transformed,
)
from functrans.typing import Array, ArrayLike

ZerosPolesGain = tuple[Array, Array, Array]


def _given(found: Zeros) -> ZerosPolesGain:
    return (jnp.asarray(found.zeros).astype(default_complex()),
            jnp.asarray(found.poles).astype(default_complex()),
            jnp.asarray(found.gain).astype(default_float()))


def _order(name: str, N: int) -> int:
    return known_size(f"signal.{name}", "N", N, 0)


def buttap(N: int) -> ZerosPolesGain:
    """Zeros, poles and gain of Butterworth's analog low pass of order N with the edge 1.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.buttap(1)
    >>> z.size, p.real.tolist(), float(k)
    (0, [-1.0], 1.0)
    """
    return _given(butterworth(_order("buttap", N)))


def cheb1ap(N: int, rp: float) -> ZerosPolesGain:
    """Zeros, poles and gain of Chebyshev's analog low pass with ripples of rp dB; see `buttap`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.cheb1ap(3, 1.0)
    >>> p.size, round(float(k), 4)
    (3, 0.4913)
    """
    return _given(chebyshev_1(_order("cheb1ap", N), float(rp)))


def cheb2ap(N: int, rs: float) -> ZerosPolesGain:
    """Zeros, poles and gain of Chebyshev's analog low pass, rs dB down; see `buttap`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.cheb2ap(3, 40.0)
    >>> z.size, p.size
    (2, 3)
    """
    return _given(chebyshev_2(_order("cheb2ap", N), float(rs)))


def ellipap(N: int, rp: float, rs: float) -> ZerosPolesGain:
    """Zeros, poles and gain of the elliptic analog low pass; see `cheb1ap` and `cheb2ap`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.ellipap(3, 1.0, 40.0)
    >>> z.size, p.size
    (2, 3)
    """
    return _given(elliptic(_order("ellipap", N), float(rp), float(rs)))


def besselap(N: int, norm: str = "phase") -> ZerosPolesGain:
    """Zeros, poles and gain of Bessel's analog low pass; see `bessel` for `norm`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.besselap(2)
    >>> z.size, p.size, round(float(k), 4)
    (0, 2, 1.0)
    """
    one_of("signal.besselap", "norm", norm, ("phase", "delay", "mag"))
    return _given(bessel_prototype(_order("besselap", N), norm))


# Bands ---------------------------------------------------------------------------------------


def _known(name: str, z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Zeros:
    zeros, poles, gain = (np.atleast_1d(v) for v in known_numbers(name, z, p, k))
    if len(zeros) > len(poles):
        raise ArgumentError(f"functrans.scipy.signal.{name}: there are {len(zeros)} zeros and "
                            f"{len(poles)} poles.", where=user_source(),
                            why="a filter has a pole for each zero.")
    return Zeros(zeros.astype(complex), poles.astype(complex), float(gain[0]))


def lp2lp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: float = 1.0) -> ZerosPolesGain:
    """A low pass with the edge 1, by zeros, poles and gain, as one with the edge wo.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.lp2lp_zpk([], [-1.0], 1.0, 3.0)
    >>> p.real.tolist(), float(k)
    ([-3.0], 3.0)
    """
    return _given(transformed(_known("lp2lp_zpk", z, p, k), np.array([float(wo)]), "lowpass"))


def lp2hp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: float = 1.0) -> ZerosPolesGain:
    """A low pass with the edge 1, by zeros, poles and gain, as a high pass with the edge wo.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.lp2hp_zpk([], [-1.0], 1.0, 3.0)
    >>> z.real.tolist(), p.real.tolist(), float(k)
    ([0.0], [-3.0], 1.0)
    """
    return _given(transformed(_known("lp2hp_zpk", z, p, k), np.array([float(wo)]), "highpass"))


def _edges(wo: float, bw: float) -> Values:
    high = (bw + math.sqrt(bw * bw + 4 * wo * wo)) / 2
    return np.array([wo * wo / high, high])


def lp2bp_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: float = 1.0, bw: float = 1.0
              ) -> ZerosPolesGain:
    """A low pass by zeros, poles and gain as a band pass of the width bw around wo.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.lp2bp_zpk([], [-1.0], 1.0, 2.0, 1.0)
    >>> z.size, p.size, round(float(k), 4)
    (1, 2, 1.0)
    """
    return _given(transformed(_known("lp2bp_zpk", z, p, k), _edges(float(wo), float(bw)),
                              "bandpass"))


def lp2bs_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, wo: float = 1.0, bw: float = 1.0
              ) -> ZerosPolesGain:
    """A low pass by zeros, poles and gain as one that stops the width bw around wo.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.lp2bs_zpk([], [-1.0], 1.0, 2.0, 1.0)
    >>> z.size, p.size, round(float(k), 4)
    (2, 2, 1.0)
    """
    return _given(transformed(_known("lp2bs_zpk", z, p, k), _edges(float(wo), float(bw)),
                              "bandstop"))


def bilinear_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, fs: float) -> ZerosPolesGain:
    """The digital filter of an analog one by zeros, poles and gain; see `bilinear`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.bilinear_zpk([], [-2.0], 1.0, 1.0)
    >>> z.real.tolist(), p.real.tolist(), float(k)
    ([-1.0], [0.0], 0.25)
    """
    return _given(digital(_known("bilinear_zpk", z, p, k), float(fs)))


def _substituted(b: ArrayLike, a: ArrayLike, top: list[Any], bottom: list[Any]
                 ) -> tuple[Array, Array]:
    """b(s) / a(s) at s = top / bottom, polynomials of the new s, divided by the first of a."""
    parts = [jnp.atleast_1d(v) for v in inexact(b, a)]
    dtype = parts[0].dtype
    above, below = (jnp.stack([jnp.asarray(v, dtype) for v in c]) for c in (top, bottom))
    order = max(v.shape[0] for v in parts) - 1
    found = []
    for c in parts:
        degree, terms = c.shape[0] - 1, []
        for power in range(degree + 1):
            term = c[degree - power:degree - power + 1]
            for _ in range(power):
                term = jnp.convolve(term, above)
            for _ in range(order - power):
                term = jnp.convolve(term, below)
            terms.append(term)
        size = max(t.shape[0] for t in terms)
        found.append(jnp.stack([jnp.pad(t, (size - t.shape[0], 0)) for t in terms]).sum(0))
    return found[0] / found[1][0], found[1] / found[1][0]


def lp2lp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """A low pass with the edge 1, by numerator and denominator, as one with the edge wo.

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.signal.lp2lp([1.0], [1.0, 1.0], 3.0)]
    [[3.0], [1.0, 3.0]]
    """
    return _trimmed(b, a, *_substituted(b, a, [1.0, 0.0], [wo]))


def _trimmed(b: ArrayLike, a: ArrayLike, top: Array, bottom: Array) -> tuple[Array, Array]:
    """A numerator that is no longer than it was, beside its denominator."""
    less = jnp.atleast_1d(jnp.asarray(a)).shape[0] - jnp.atleast_1d(jnp.asarray(b)).shape[0]
    return top[max(top.shape[0] - bottom.shape[0] + less, 0):], bottom


def lp2hp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """A low pass with the edge 1, by numerator and denominator, as a high pass with the edge wo.

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.signal.lp2hp([1.0], [1.0, 1.0], 3.0)]
    [[1.0, 0.0], [1.0, 3.0]]
    """
    return _substituted(b, a, [wo], [1.0, 0.0])


def _squared(wo: ArrayLike) -> ArrayLike:
    return wo * wo if isinstance(wo, (int, float)) else jnp.square(wo)


def lp2bp(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
          ) -> tuple[Array, Array]:
    """A low pass by numerator and denominator as a band pass of the width bw around wo.

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.signal.lp2bp([1.0], [1.0, 1.0], 2.0, 1.0)]
    [[1.0, 0.0], [1.0, 1.0, 4.0]]
    """
    return _substituted(b, a, [1.0, 0.0, _squared(wo)], [bw, 0.0])


def lp2bs(b: ArrayLike, a: ArrayLike, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
          ) -> tuple[Array, Array]:
    """A low pass by numerator and denominator as one that stops the width bw around wo.

    >>> import functrans as ft
    >>> [v.tolist() for v in ft.scipy.signal.lp2bs([1.0], [1.0, 1.0], 2.0, 1.0)]
    [[1.0, 0.0, 4.0], [1.0, 1.0, 4.0]]
    """
    return _substituted(b, a, [bw, 0.0], [1.0, 0.0, _squared(wo)])


# By what they must do ------------------------------------------------------------------------


def iirdesign(wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool = False,
              ftype: str = "ellip", output: str = "ba", fs: float | None = None
              ) -> tuple[Array, ...] | Array:
    """The smallest filter that loses `gpass` dB up to wp, and `gstop` from ws on.

    `ftype` is "ellip", "butter", "cheby1" or "cheby2"; wp and ws are frequencies, or pairs of
    them, as of `buttord`.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.iirdesign(0.2, 0.3, 1.0, 40.0)
    >>> b.shape
    (5,)
    """
    orders: dict[str, Any] = {"butter": buttord, "cheby1": cheb1ord, "cheby2": cheb2ord,
                              "ellip": ellipord}
    one_of("signal.iirdesign", "ftype", ftype, tuple(orders))
    N, Wn = orders[ftype](wp, ws, gpass, gstop, analog, fs)
    inner, outer = (np.atleast_1d(np.asarray(w, float)) for w in (wp, ws))
    rises = bool(inner[0] >= outer[0])
    band = ("lowpass", "highpass", "bandstop", "bandpass")[2 * (inner.size - 1) + rises]
    return iirfilter(N, Wn, gpass, gstop, band, analog, ftype, output, fs)


def iircomb(w0: float, Q: float, ftype: str = "notch", fs: float = 2.0, *,
            pass_zero: bool = False) -> tuple[Array, Array]:
    """The filter that stops ("notch") or passes ("peak") the multiples of w0, a part of fs.

    Each is w0 / Q wide. Those of "peak" are 0, w0, ... with `pass_zero`, else w0 / 2, ...; of
    "notch" the other way.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.iircomb(0.5, 1.0)
    >>> b.shape
    (5,)
    """
    one_of("signal.iircomb", "ftype", ftype, ("notch", "peak"))
    count = int(float(fs) // float(w0)) if w0 else 0
    if not 0 < w0 < fs / 2 or abs(w0 - fs / count) / fs > 1e-14:
        raise ArgumentError(f"functrans.scipy.signal.iircomb: w0 is {shown(w0)}.",
                            where=user_source(), why="fs is a multiple of it, more than two.")
    beta = math.tan(math.pi * w0 / fs / Q * count / 2)
    if ftype == "notch":
        first, last, back = 1 / (1 + beta), 1 / (1 + beta), (1 - beta) / (1 + beta)
    else:
        first, last, back = beta / (1 + beta), -beta / (1 + beta), (1 - beta) / (1 + beta)
    sign = -1.0 if (ftype == "peak") == pass_zero else 1.0
    b, a = np.zeros(count + 1), np.zeros(count + 1)
    b[0], b[-1], a[0], a[-1] = first, sign * last, 1.0, sign * back
    return jnp.asarray(b).astype(default_float()), jnp.asarray(a).astype(default_float())
