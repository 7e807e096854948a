"""Peaks, classical filters and their forms, uneven samples, beside scipy.signal."""

import itertools

import numpy as np
import pytest
import scipy.signal

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.scipy import signal
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(0)
both = Pair(signal, scipy.signal)
LINES = {"smooth": np.cumsum(rng.standard_normal(80)),
         "flat": np.repeat(rng.permutation(20), rng.integers(1, 4, 20)) + 0.0,
         "one": np.ones(5), "two": np.array([1.0, 2.0]), "empty": np.zeros(0),
         "ends": np.array([3.0, 1, 2, 1, 3])}
ASKED = [{}, {"height": 0.5}, {"height": (None, 2.0)}, {"threshold": (0.2, 1.5)}, {"distance": 5},
         {"prominence": 1.0}, {"prominence": (0.5, 3), "wlen": 9}, {"width": 2, "rel_height": 0.7},
         {"plateau_size": 1}, {"plateau_size": (2, 3)},
         {"height": 0, "threshold": 0, "distance": 2.5, "prominence": 0.3, "width": (0.5, 20),
          "plateau_size": 1}]


@pytest.mark.parametrize("line", LINES)
def test_find_peaks(line):
    x = LINES[line]
    for asked in ASKED:
        places, found = signal.find_peaks(x, **asked)
        known, theirs = scipy.signal.find_peaks(x, **asked)
        assert places.tolist() == known.tolist(), asked
        assert set(found) == set(theirs)
        for name in theirs:
            same(found[name], theirs[name], what=(asked, name))


def test_find_peaks_of_a_size():
    lines = np.stack([LINES["smooth"], LINES["smooth"][::-1]])
    asked = {"prominence": 1.0, "height": -2.0, "distance": 3}
    places, found = ft.jit(ft.vmap(lambda x: signal.find_peaks(x, size=12, **asked)))(lines)
    for i, line in enumerate(lines):
        known, theirs = scipy.signal.find_peaks(line, **asked)
        n = len(known)
        assert 0 < n < 12
        assert places[i].tolist() == [*known, *[-1] * (12 - n)]
        for name in theirs:
            same(found[name][i, :n], theirs[name], what=name)
            assert not np.asarray(found[name][i, n:]).any()
    with pytest.raises(ArgumentError, match="size=10"):
        ft.jit(signal.find_peaks)(lines[0])
    assert signal.find_peaks(np.ones(2), size=3, height=0)[0].tolist() == [-1, -1, -1]
    known = scipy.signal.find_peaks(lines[0])[0]
    high = np.full(80, -100.0)
    assert signal.find_peaks(lines[0], height=high)[0].tolist() == known.tolist()

    def of(x):
        found = signal.find_peaks(x, size=12, prominence=1.0, width=0)[1]
        return found["prominences"], found["widths"]

    check_grads(of, (lines[0],), 1)


def test_prominences_and_widths():
    x = LINES["smooth"]
    peaks = scipy.signal.find_peaks(x)[0]
    for wlen in (None, 7):
        both("peak_prominences", x, peaks, wlen)
        both("peak_widths", x, peaks, 0.3, wlen=wlen)
    for order, mode in ((1, "clip"), (2, "wrap")):
        table = np.stack([x, x[::-1]])
        both("argrelmax", table, 1, order, mode)
        both("argrelmin", table, 1, order, mode)
        both("argrelextrema", x, np.greater_equal, 0, order, mode)
    assert ft.jit(lambda x: signal.argrelmax(x, size=2))(LINES["ends"])[0].tolist() == [2, -1]


def responds(ours, theirs, what, analog=False):
    """Filters of one response: orders of sections may differ."""
    w = np.linspace(0.01, 3, 50)
    ours = [np.asarray(v) for v in ours]
    if analog:
        found, known = (scipy.signal.freqs_zpk(*f, w)[1] for f in (ours, theirs))
    else:
        found, known = (scipy.signal.freqz_zpk(*f, w)[1] for f in (ours, theirs))
    np.testing.assert_allclose(found, known, rtol=1e-7, atol=1e-9, err_msg=str(what))


@pytest.mark.parametrize("N", [1, 2, 5, 8])
def test_designs(N):
    with ft.default_dtypes("float64"):
        for btype, edges, analog in (("low", 0.3, False), ("high", 0.4, True),
                                     ("bandpass", [0.2, 0.5], False), ("stop", [0.3, 0.6], False)):
            for name, args in (("ellip", (0.7, 45.0)), ("bessel", ())):
                found = getattr(signal, name)(N, *args, edges, btype, analog, "zpk")
                known = getattr(scipy.signal, name)(N, *args, edges, btype, analog, "zpk")
                responds(found, known, (name, btype), analog)
        for norm in ("delay", "mag"):
            responds(signal.bessel(N, 1.3, analog=True, output="zpk", norm=norm),
                     scipy.signal.bessel(N, 1.3, analog=True, output="zpk", norm=norm), norm, True)
    for ftype in ("butter", "cheby1", "cheby2", "ellip", "bessel"):
        both("iirfilter", N, [0.3, 0.5], 1, 40, ftype=ftype, rtol=1e-6, atol=1e-6)
    with pytest.raises(ArgumentError, match="needs rp and rs"):
        signal.iirfilter(3, 0.3, btype="low", ftype="ellip")


def test_orders():
    pairs = [(0.2, 0.3), (0.4, 0.25), ([0.2, 0.4], [0.1, 0.55]), ([0.1, 0.6], [0.25, 0.45])]
    for name in ("buttord", "cheb1ord", "cheb2ord", "ellipord"):
        for wp, ws in pairs:
            for options in ({}, {"fs": 3.0}, {"analog": True}):
                found = getattr(signal, name)(wp, ws, 1, 40, **options)
                known = getattr(scipy.signal, name)(wp, ws, 1, 40, **options)
                same(found, known, 1e-4, 1e-4, (name, wp, options))


def test_forms():
    b, a = scipy.signal.butter(5, [0.2, 0.4], "bandpass")
    z, p, k = scipy.signal.tf2zpk(b, a)
    with ft.default_dtypes("float64"):
        responds(signal.tf2zpk(b, a), (z, p, k), "zpk")
        for sos in (signal.tf2sos(b, a), signal.zpk2sos(z, p, k)):
            responds(scipy.signal.sos2zpk(np.asarray(sos)), (z, p, k), "sos")
        sos = scipy.signal.butter(4, 0.3, output="sos")
        responds(signal.sos2zpk(sos), scipy.signal.sos2zpk(sos), "sos2zpk")
    both("bilinear", [1.0, 2.0], [1.0, 0.5, 3.0], 1.7)
    both("freqs", [1.0, 2.0], [1.0, 0.5, 3.0], np.linspace(0, 3, 7))
    both("freqz_zpk", z, p, k, 16)
    both("group_delay", (b, a), np.linspace(0.1, 3, 16), rtol=1e-6, atol=1e-6)
    both("normalize", [2.0, 4.0], [2.0, 1.0])
    both("iirnotch", 0.3, 20.0)
    both("iirpeak", 0.3, 20.0, fs=3.0)
    for args in ((65, 0.1), (20, 0.3)):
        same(signal.kaiserord(*args), scipy.signal.kaiserord(*args))
    for a in (10, 30, 70):
        assert signal.kaiser_beta(a) == pytest.approx(scipy.signal.kaiser_beta(a))
    assert signal.kaiser_atten(30, 0.1) == pytest.approx(scipy.signal.kaiser_atten(30, 0.1))


def test_fir_designs():
    for size, antisymmetric in ((31, False), (30, False), (31, True), (30, True)):
        gain = [0.0, 1, 1, 0] if antisymmetric else [1.0, 1, 0, 0]
        gain = [0.0, 1, 1, 1] if antisymmetric and size == 30 else gain
        both("firwin2", size, [0.0, 0.3, 0.5, 1.0], gain, antisymmetric=antisymmetric)
    both("firwin2", 31, [0.0, 0.5, 0.5, 1.0], [1.0, 1, 0, 0], window=None)
    both("firls", 15, [0, 0.3, 0.4, 1.0], [1, 1, 0, 0], weight=[1, 5])
    both("firls", 15, [0, 10, 12, 30], [0, 1, 1, 0], fs=60)
    check_grads(lambda g: signal.firwin2(9, [0.0, 0.5, 1.0], g), (np.array([1.0, 0.7, 0.1]),), 1)


def test_uneven_samples():
    x = np.sort(rng.random(40)) * 10
    y, w = np.sin(2 * x) + 0.3, np.linspace(0.5, 4, 9)
    for mean, norm in itertools.product((False, True), (False, True)):
        both("lombscargle", x, y, w, floating_mean=mean, normalize=norm)
    both("lombscargle", x, y, w, weights=rng.random(40))
    check_grads(lambda x, y: signal.lombscargle(x, y, w[:3]), (x[:9], y[:9]), 1)
    for period in (1.3, [0.7, 2.0]):
        both("vectorstrength", x, period)


def test_parts_of_spectra():
    x = rng.standard_normal((3, 13)) + 1j * rng.standard_normal((3, 13))
    for m, w, a in ((None, None, 1 + 0j), (5, None, 1 + 0j), (20, 0.98 * np.exp(-0.1j), 0.9j)):
        both("czt", x, m, w, a, axis=1, rtol=1e-9, atol=1e-9)
        if w is not None:
            both("czt_points", m, w, a)
    both("zoom_fft", x.real, [0.2, 0.7], 9, rtol=1e-9, atol=1e-9)
    both("zoom_fft", x.T, 0.4, 5, fs=3.0, endpoint=True, axis=0, rtol=1e-9, atol=1e-9)


def test_sequences():
    for n, m, mode in itertools.product((5, 6), (3, 8), ("full", "same", "valid")):
        both("correlation_lags", n, m, mode)
    both("deconvolve", np.convolve([1.0, 2, 3], [2.0, 0.5]) + 0.1, [2.0, 0.5])
    both("deconvolve", [1.0], [2.0, 0.5])
    for nbits in (2, 5, 8, 12):
        both("max_len_seq", nbits)
    for args in (("hann", 8, 4), ("hann", 9, 4), ("boxcar", 8, 3), (np.arange(8.0), 8, 2)):
        assert signal.check_COLA(*args) == scipy.signal.check_COLA(*args)
        assert signal.check_NOLA(*args) == scipy.signal.check_NOLA(*args)
    assert jnp.asarray(signal.max_len_seq(4)[0]).sum() == 8
