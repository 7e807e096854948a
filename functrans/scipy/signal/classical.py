"""Elliptic and Bessel's filters, notches, and the orders that filters need."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, one_of
from functrans.scipy.signal.design import Cutoff, butter, cheby1, cheby2, made
from functrans.scipy.signal.prototypes import Values, Zeros
from functrans.typing import Array, ArrayLike


def _landen(k: float) -> list[float]:
    moduli = [k]
    while moduli[-1] > 1e-16:
        k = moduli[-1]
        moduli.append((k / (1 + math.sqrt(1 - k * k))) ** 2)
    return moduli


def _from_circle(w: Any, moduli: list[float]) -> Any:
    for v in moduli[:0:-1]:
        w = (1 + v) * w / (1 + v * w * w)
    return w


def _complete(k: float) -> float:
    """The complete elliptic integral of the first kind, by the mean of arithmetic and geometry."""
    a, b = 1.0, math.sqrt((1 - k) * (1 + k))
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return math.pi / (2 * a)


def _degree(N: int, k1: float) -> float:
    """The selectivity of an elliptic filter of order N with the discrimination k1, by nomes."""
    other = math.sqrt((1 - k1) * (1 + k1))
    q = math.exp(-math.pi * _complete(other) / _complete(k1) / N)
    m = np.arange(1, 12)
    top = 1 + np.sum(q ** (m * (m + 1.0)))
    bottom = 1 + 2 * np.sum(q ** (m * m + 0.0))
    return float(4 * math.sqrt(q) * (top / bottom) ** 2)


def elliptic(N: int, rp: float, rs: float) -> Zeros:
    """Ripples of rp dB in the pass band, and rs dB down.

    Source: Orfanidis, Lecture Notes on Elliptic Filter Design (2006).
    """
    if N == 0:
        return Zeros(np.zeros(0), np.zeros(0), 10 ** (-rp / 20))
    ep, es = (math.sqrt(math.expm1(r * math.log(10) / 10)) for r in (rp, rs))
    if N == 1:
        return Zeros(np.zeros(0), np.array([-1 / ep]), 1 / ep)
    k1 = ep / es
    k = _degree(N, k1)
    moduli, first = _landen(k), _landen(k1)
    u = np.arange(1, N, 2) / N
    zeros = 1j / (k * _from_circle(np.cos(np.pi / 2 * u), moduli))
    w = 1j / ep
    for before, v in pairwise(first):
        w = 2 * w / ((1 + v) * (1 + np.sqrt(1 - (w * before) ** 2)))
    v0 = np.arcsinh(w.imag) * 2 / np.pi / N
    poles = 1j * _from_circle(np.cos(np.pi / 2 * (u - 1j * v0)), moduli)
    zeros, poles = (np.concatenate([v, v.conj()]) for v in (zeros, poles))
    if N % 2:
        real = 1j * _from_circle(np.sin(np.pi / 2 * 1j * v0), moduli)
        poles = np.append(poles, real.real)
    gain = float((np.prod(-poles) / np.prod(-zeros)).real)
    return Zeros(zeros, poles, gain if N % 2 else gain / math.sqrt(1 + ep * ep))


def bessel_prototype(N: int, norm: str) -> Zeros:
    """Poles are the roots of Bessel's reverse polynomial, of maximally flat delay."""
    if N == 0:
        return Zeros(np.zeros(0), np.zeros(0), 1.0)
    powers = np.array([math.factorial(2 * N - k) // (
        2 ** (N - k) * math.factorial(k) * math.factorial(N - k)) for k in range(N, -1, -1)],
        np.longdouble)
    poles = np.roots(powers.astype(float)).astype(np.clongdouble)
    slope = powers[:-1] * np.arange(N, 0, -1)
    for _ in range(6):  # Newton's steps for the digits that eigenvalues leave
        poles = poles - np.polyval(powers, poles) / np.polyval(slope, poles)
    poles = poles.astype(complex)
    last = float(powers[-1])
    if norm == "delay":
        return Zeros(np.zeros(0), poles, float(np.prod(-poles).real))
    scale = last ** (-1 / N)
    if norm == "mag":
        low, high = 0.0, 1e3 * N
        for _ in range(200):
            w = (low + high) / 2
            if abs(last / np.prod(1j * w - poles)) > math.sqrt(0.5):
                low = w
            else:
                high = w
        scale = 1 / low
    poles = poles * scale
    return Zeros(np.zeros(0), poles, float(np.prod(-poles).real))


def ellip(N: int, rp: float, rs: float, Wn: Cutoff, btype: str = "low", analog: bool = False,
          output: str = "ba", fs: float | None = None) -> tuple[Array, ...] | Array:
    """The elliptic filter of order N with ripples of `rp` dB, and `rs` dB down; see `butter`.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.ellip(1, 3.0, 40.0, 0.5)
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    if not 0 < rp < rs:
        raise ArgumentError(f"functrans.scipy.signal.ellip: rp is {rp}, rs {rs}.",
                            where=user_source(), why="0 < rp < rs.")
    order = known_size("signal.ellip", "N", N, 0)
    return made("ellip", elliptic(order, float(rp), float(rs)), Wn, btype, analog, output, fs)


def bessel(N: int, Wn: Cutoff, btype: str = "low", analog: bool = False, output: str = "ba",
           norm: str = "phase", fs: float | None = None) -> tuple[Array, ...] | Array:
    """Bessel's filter of order N, of flat delay; see `butter`.

    `norm` says what Wn is: "phase" (the middle of the phase), "delay" (the delay is 1 / Wn) or
    "mag" (3 dB down).

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.bessel(1, 0.5)
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    one_of("signal.bessel", "norm", norm, ("phase", "delay", "mag"))
    prototype = bessel_prototype(known_size("signal.bessel", "N", N, 0), norm)
    return made("bessel", prototype, Wn, btype, analog, output, fs)


def iirfilter(N: int, Wn: Cutoff, rp: float | None = None, rs: float | None = None,
              btype: str = "band", analog: bool = False, ftype: str = "butter",
              output: str = "ba", fs: float | None = None) -> tuple[Array, ...] | Array:
    """The filter `ftype`: "butter", "cheby1", "cheby2", "ellip" or "bessel"; see these.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.iirfilter(1, 0.5, btype="low")
    >>> b.round(2).tolist()
    [0.5, 0.5]
    """
    names = {"butterworth": "butter", "chebyshev1": "cheby1", "chebyshev i": "cheby1",
             "chebyshevi": "cheby1", "chebyshev2": "cheby2", "chebyshev ii": "cheby2",
             "chebyshevii": "cheby2", "cauer": "ellip", "elliptic": "ellip"}
    how = names.get(ftype.lower(), ftype.lower())
    one_of("signal.iirfilter", "ftype", how, ("butter", "cheby1", "cheby2", "ellip", "bessel",
                                              "bessel_phase", "bessel_delay", "bessel_mag"))
    needed = {"cheby1": ("rp",), "cheby2": ("rs",), "ellip": ("rp", "rs")}.get(how, ())
    if any({"rp": rp, "rs": rs}[name] is None for name in needed):
        raise ArgumentError(f"functrans.scipy.signal.iirfilter: ftype={ftype!r} needs "
                            f"{' and '.join(needed)}.", where=user_source(), fix="rp=1, rs=40")
    if how.startswith("bessel"):
        norm = how.partition("_")[2] or "phase"
        return bessel(N, Wn, btype, analog, output, norm, fs)
    if how == "butter":
        return butter(N, Wn, btype, analog, output, fs)
    if how == "cheby1":
        return cheby1(N, float(rp or 0), Wn, btype, analog, output, fs)
    if how == "cheby2":
        return cheby2(N, float(rs or 0), Wn, btype, analog, output, fs)
    return ellip(N, float(rp or 0), float(rs or 0), Wn, btype, analog, output, fs)


def iirnotch(w0: float, Q: float, fs: float = 2.0) -> tuple[Array, Array]:
    """The filter of second order that stops w0, in a band of width w0 / Q 3 dB down.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.iirnotch(0.5, 1.0)
    >>> b.round(4).tolist()
    [0.5, -0.0, 0.5]
    """
    return _second_order("iirnotch", w0, Q, fs, lambda gain, c: (
        gain * np.array([1.0, -2 * c, 1.0])))


def iirpeak(w0: float, Q: float, fs: float = 2.0) -> tuple[Array, Array]:
    """The filter of second order that passes w0, in a band of width w0 / Q 3 dB down.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.iirpeak(0.5, 1.0)
    >>> b.round(4).tolist()
    [0.5, 0.0, -0.5]
    """
    return _second_order("iirpeak", w0, Q, fs, lambda gain, c: (
        (1 - gain) * np.array([1.0, 0.0, -1.0])))


def _second_order(name: str, w0: float, Q: float, fs: float,
                  top: Callable[[float, float], Values]) -> tuple[Array, Array]:
    part = 2 * float(w0) / float(fs)
    if not 0 < part < 1:
        raise ArgumentError(f"functrans.scipy.signal.{name}: w0 is {w0}.", where=user_source(),
                            why="it is between 0 and half of the sampling rate.")
    c, beta = math.cos(math.pi * part), math.tan(math.pi * part / Q / 2)
    gain = 1 / (1 + beta)
    values = top(gain, c), np.array([1.0, -2 * gain * c, 2 * gain - 1])
    b, a = (jnp.asarray(v).astype(default_float()) for v in values)
    return b, a


# The least order -----------------------------------------------------------------------------

Order = tuple[int, Any]


def _acosh_order(gpass: float, gstop: float, nat: float) -> float:
    ratio = math.expm1(gstop * math.log(10) / 10) / math.expm1(gpass * math.log(10) / 10)
    return math.acosh(math.sqrt(ratio)) / math.acosh(nat)


def _butter_order(gpass: float, gstop: float, nat: float) -> float:
    ratio = math.expm1(gstop * math.log(10) / 10) / math.expm1(gpass * math.log(10) / 10)
    return math.log10(ratio) / (2 * math.log10(nat))


def _ellip_order(gpass: float, gstop: float, nat: float) -> float:
    k1 = math.sqrt(math.expm1(gpass * math.log(10) / 10) / math.expm1(gstop * math.log(10) / 10))
    k = 1 / nat
    k_other, k1_other = (math.sqrt((1 - v) * (1 + v)) for v in (k, k1))
    return _complete(k) * _complete(k1_other) / (_complete(k_other) * _complete(k1))


_ORDERS: Final[Mapping[str, Callable[[float, float, float], float]]] = MappingProxyType({
    "butter": _butter_order, "cheby": _acosh_order, "ellip": _ellip_order})


def _selectivity(name: str, wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool,
                 fs: float | None, order: Callable[[float, float, float], float]
                 ) -> tuple[str, Values, float, float]:
    """The band, the warped edges of the pass band, that of the low pass, and its order."""
    if not 0 < gpass < gstop:
        raise ArgumentError(f"functrans.scipy.signal.{name}: gpass is {gpass}, gstop {gstop}.",
                            where=user_source(), why="0 < gpass < gstop.")
    edges = [np.atleast_1d(np.asarray(w, float)) * (2 / fs if fs else 1) for w in (wp, ws)]
    if edges[0].shape != edges[1].shape or edges[0].size not in (1, 2) or any(
            (e <= 0).any() or (not analog and (e >= 1).any()) for e in edges):
        raise ArgumentError(f"functrans.scipy.signal.{name}: wp is {wp}, ws {ws}.",
                            where=user_source(), why="both are a frequency or a pair of them, "
                            "between 0 and half of the sampling rate.")
    inner, outer = edges if analog else [np.tan(np.pi * e / 2) for e in edges]
    if inner.size == 1:
        low = bool(inner[0] < outer[0])
        nat = float(outer[0] / inner[0] if low else inner[0] / outer[0])
        return "low" if low else "high", inner, nat, order(gpass, gstop, nat)
    if inner[0] > outer[0]:
        nat = float(np.min(np.abs((outer**2 - inner[0] * inner[1]) / (
            outer * (inner[0] - inner[1])))))
        return "band", inner, nat, order(gpass, gstop, nat)

    inner = inner.copy()
    for side, (low_end, high_end) in enumerate((
            (inner[0], outer[0] - 1e-12), (outer[1] + 1e-12, inner[1]))):
        def of_edge(w: float, side: int = side) -> float:
            return order(gpass, gstop, _nearest_stop(
                np.where(np.arange(2) == side, w, inner), outer))

        inner[side] = _golden(of_edge, low_end, high_end)
    nat = _nearest_stop(inner, outer)
    return "stop", inner, nat, order(gpass, gstop, nat)


def band_stop_obj(wp: float, ind: int, passb: ArrayLike, stopb: ArrayLike, gpass: float,
                  gstop: float, type: str) -> float:
    """The order, not rounded, of a band stop with the edge `ind` of its pass bands moved to wp.

    `type` is "butter", "cheby" or "ellip"; frequencies are analog. It is what `buttord` and its
    kin make least.

    >>> import functrans as ft
    >>> round(ft.scipy.signal.band_stop_obj(2.0, 0, [1.0, 8.0], [3.0, 5.0], 1, 40, "butter"), 3)
    5.591
    """
    one_of("signal.band_stop_obj", "type", type, tuple(_ORDERS))
    one_of("signal.band_stop_obj", "ind", ind, (0, 1))
    if not 0 < gpass < gstop:
        raise ArgumentError(f"functrans.scipy.signal.band_stop_obj: gpass is {gpass}, gstop "
                            f"{gstop}.", where=user_source(), why="0 < gpass < gstop.")
    inner, outer = np.array(passb, float), np.array(stopb, float)
    inner[ind] = wp
    return float(_ORDERS[type](gpass, gstop, _nearest_stop(inner, outer)))


def _nearest_stop(inner: Values, outer: Values) -> float:
    """The edge of the stop band of the low pass that is a band stop with these edges."""
    return float(np.min(np.abs(outer * (inner[0] - inner[1]) / (outer**2 - inner[0] * inner[1]))))


def _golden(f: Callable[[float], float], a: float, b: float) -> float:
    part = (math.sqrt(5) - 1) / 2
    for _ in range(100):
        c, d = b - part * (b - a), a + part * (b - a)
        if f(c) < f(d):
            b = d
        else:
            a = c
    return (a + b) / 2


def _natural(inner: Values, band: str, analog: bool, fs: float | None) -> Any:
    edges = np.sort(np.abs(inner))
    edges = edges if analog else 2 / np.pi * np.arctan(edges)
    edges = edges * (fs / 2 if fs else 1)
    return float(edges[0]) if edges.size == 1 else edges


def buttord(wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool = False,
            fs: float | None = None) -> Order:
    """The order and Wn of the smallest Butterworth's filter that loses `gpass` dB at most in its
    pass band to wp, and `gstop` dB or more from ws on.

    >>> import functrans as ft
    >>> ft.scipy.signal.buttord(0.2, 0.4, 3, 30)[0]
    5
    """
    band, inner, _, exact = _selectivity("buttord", wp, ws, gpass, gstop, analog, fs,
                                         _butter_order)
    N = math.ceil(exact)
    w0 = math.expm1(gpass * math.log(10) / 10) ** (-1 / (2 * N))
    if band == "low":
        edges = w0 * inner
    elif band == "high":
        edges = inner / w0
    elif band == "stop":
        width, root = inner[1] - inner[0], math.sqrt(
            (inner[1] - inner[0]) ** 2 + 4 * w0**2 * inner[0] * inner[1])
        edges = np.array([(width + root) / (2 * w0), (width - root) / (2 * w0)])
    else:
        both = np.array([-w0, w0])
        edges = -both * (inner[1] - inner[0]) / 2 + np.sqrt(
            both**2 / 4 * (inner[1] - inner[0]) ** 2 + inner[0] * inner[1])
    return N, _natural(edges, band, analog, fs)


def _order_at_edges(name: str, wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool,
                    fs: float | None, order: Callable[[float, float, float], float]) -> Order:
    """The order of a filter whose Wn is the edge of its pass band."""
    band, inner, _, exact = _selectivity(name, wp, ws, gpass, gstop, analog, fs, order)
    return math.ceil(exact), _natural(inner, band, analog, fs)


def cheb1ord(wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool = False,
             fs: float | None = None) -> Order:
    """The order and Wn of the smallest `cheby1`; see `buttord`.

    >>> import functrans as ft
    >>> ft.scipy.signal.cheb1ord(0.2, 0.3, 3, 40)[0]
    6
    """
    return _order_at_edges("cheb1ord", wp, ws, gpass, gstop, analog, fs, _acosh_order)


def ellipord(wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool = False,
             fs: float | None = None) -> Order:
    """The order and Wn of the smallest `ellip`; see `buttord`.

    >>> import functrans as ft
    >>> ft.scipy.signal.ellipord(0.2, 0.3, 3, 60)[0]
    5
    """
    return _order_at_edges("ellipord", wp, ws, gpass, gstop, analog, fs, _ellip_order)


def cheb2ord(wp: Cutoff, ws: Cutoff, gpass: float, gstop: float, analog: bool = False,
             fs: float | None = None) -> Order:
    """The order and Wn of the smallest `cheby2`; see `buttord`.

    >>> import functrans as ft
    >>> ft.scipy.signal.cheb2ord(0.2, 0.3, 3, 60)[0]
    8
    """
    band, inner, _, exact = _selectivity("cheb2ord", wp, ws, gpass, gstop, analog, fs,
                                         _acosh_order)
    N = math.ceil(exact)
    ratio = math.expm1(gstop * math.log(10) / 10) / math.expm1(gpass * math.log(10) / 10)
    nat = 1 / math.cosh(math.acosh(math.sqrt(ratio)) / N)
    if band == "low":
        edges = inner / nat
    elif band == "high":
        edges = inner * nat
    else:
        part = nat if band == "stop" else 1 / nat
        width, middle = inner[1] - inner[0], inner[0] * inner[1]
        low = -part / 2 * width + math.sqrt((part * width) ** 2 / 4 + middle)
        edges = np.array([low, middle / low])
    return N, _natural(edges, band, analog, fs)
