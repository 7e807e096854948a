"""Splines, envelopes, ridges, pole placement and prepared transforms beside scipy.signal."""

import itertools
import warnings

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
IMAGE = rng.standard_normal((30, 40))


def test_splines_of_samples():
    x, places = rng.standard_normal(40), rng.uniform(-150, 150, 50)
    for name in ("cspline1d", "qspline1d"):
        both(name, x)
        both(name + "_eval", x, places)
        both(name + "_eval", x, places, 2.0, -1.0)
    both("gauss_spline", places / 50, 3)
    both("sepfir2d", IMAGE, rng.random(5), rng.random(3))
    both("sepfir2d", 1j * IMAGE, rng.random(5), rng.random(3))
    for args in ((0.7, 0.2), (0.3, -0.3)):
        both("symiirorder1", IMAGE, *args, 1e-12)
    both("symiirorder2", IMAGE, 0.2, 0.9, 1e-18, atol=1e-8)
    for price in (0.0, 0.1):  # where SciPy stops at its precision
        both("cspline2d", IMAGE, price, 1e-8, atol=1e-3)
    both("qspline2d", IMAGE, 0.0, 1e-10, atol=1e-8)
    both("spline_filter", IMAGE, 1.0, rtol=1e-2, atol=1e-2)


def test_smoothing_is_a_filter_of_the_mirrored_signal():
    for n, r, omega in ((20, 0.4, 0.9), (5, 0.9, 2.0), (2, 0.5, 0.0), (3, 0.7, np.pi), (4, 0, 1)):
        x = rng.standard_normal(n)
        a = [1, -2 * r * np.cos(omega), r * r]
        long = np.pad(x, 400, mode="symmetric")
        once = scipy.signal.lfilter([sum(a)], a, long)
        twice = scipy.signal.lfilter([sum(a)], a, once[::-1])[::-1]
        same(signal.symiirorder2(x, r, omega), twice[400:-400], what=(n, r))
        once = scipy.signal.lfilter([1], [1, -r], long)
        twice = scipy.signal.lfilter([0.3], [1, -r], once[::-1])[::-1]
        same(signal.symiirorder1(x, 0.3, r), twice[400:-400], what=(n, r))
    x = rng.standard_normal(5)
    same(signal.cspline1d_eval(signal.cspline1d(x), np.arange(5.0)), x)
    assert signal.cspline1d(np.array([3.0])).tolist() == [3.0]
    with pytest.raises(ArgumentError, match="known at tracing"):
        ft.jit(signal.cspline1d)(x, 1.0)


def test_derivatives_and_transforms_of_splines():
    x, places = rng.standard_normal(12), rng.uniform(-3, 15, 5)

    def value(x, places):
        return signal.cspline1d_eval(signal.cspline1d(x, 0.3), places)

    check_grads(value, (x, places), 2)
    same(ft.jit(value)(x, places), value(x, places))
    rows = rng.standard_normal((3, 12))
    same(ft.vmap(value, (0, None))(rows, places), jnp.stack([value(r, places) for r in rows]))


# beside those where SciPy takes a slice that ends or starts at 0 for an empty or a whole one
BANDS = [(1, None), (None, None), (2, 4), (-3, -1), (-3, 2), (-2, None), (None, 2)]


@pytest.mark.parametrize("is_complex", [False, True])
def test_envelope(is_complex):
    for n, band, n_out, residual in itertools.product(
            (8, 9), BANDS, (None, 6, 20), ("lowpass", "all", None)):
        x = rng.standard_normal((2, n, 2)) + is_complex * 1j * rng.standard_normal((2, n, 2))
        x = x if is_complex else x.real
        both("envelope", x, band, n_out=n_out, residual=residual, axis=1, squared=n_out == 6)
    angle = np.arange(16) * np.pi / 4
    x = 3 + np.cos(angle) + np.cos(2 * angle)
    parts = np.stack([abs(3 + np.exp(1j * angle)), np.cos(2 * angle)])
    same(signal.envelope(x, (0, 3), residual="all"), parts)
    check_grads(lambda x: signal.envelope(x, (1, 3)), (rng.standard_normal(8),), 1)
    for wrong in ((3, 1), (0, 99), 3, (0.5, 2)):
        with pytest.raises(ArgumentError, match="bp_in"):
            signal.envelope(x, wrong)


def test_prepared_transforms():
    x = rng.standard_normal((3, 9, 2))
    for args in ((9,), (9, 5), (9, 20, 0.98 * np.exp(-0.1j), 0.9j)):
        ours, theirs = signal.CZT(*args), scipy.signal.CZT(*args)
        same(ours(x, axis=1), theirs(x, axis=1))
        same(ft.jit(lambda made, x: made(x, axis=-2))(ours, x), theirs(x, axis=1))
        same(ours.points(), theirs.points())
    for args, options in (((9, [0.2, 0.7]), {}), ((9, 0.4, 5), {"fs": 3.0, "endpoint": True}),
                          ((9, [0.9, 0.1], 12), {})):
        ours, theirs = signal.ZoomFFT(*args, **options), scipy.signal.ZoomFFT(*args, **options)
        same(ours(x, axis=1), theirs(x, axis=1))
        assert (ours.f1, ours.f2, ours.fs) == (theirs.f1, theirs.f2, theirs.fs)
    check_grads(lambda r: jnp.abs(signal.czt(x[0, :, 0], 4, r * np.exp(-0.1j))),
                (np.array(0.9),), 1)


def test_ridges():
    for x in (np.cumsum(rng.standard_normal(120)), np.sin(np.arange(0, 15, 0.1))):
        for options in ({}, {"min_snr": 2}, {"gap_thresh": 1, "min_length": 2},
                        {"noise_perc": 30, "window_size": 11}, {"max_distances": np.arange(1, 9)}):
            both("find_peaks_cwt", x, np.arange(1, 9), **options)
        both("find_peaks_cwt", x, [2.5, 3.5, 5.0])
    with pytest.raises(ArgumentError, match="find_peaks"):
        ft.jit(lambda x: signal.find_peaks_cwt(x, [1, 2]))(x)


A = np.array([[1.38, -0.2077, 6.715, -5.676], [-0.5814, -4.29, 0, 0.675],
              [1.067, 4.273, -6.654, 5.893], [0.048, 4.273, 1.343, -2.104]])
B = np.array([[0, 5.679], [1.136, 1.136], [0, 0], [-3.146, 0]])
REAL, PAIR = [-0.2, -0.5, -5.0566, -8.6659], [-0.5 + 1j, -5.0, -8.6659, -0.5 - 1j]


@pytest.mark.parametrize("case", [(B, REAL, "YT"), (B, REAL, "KNV0"), (B, PAIR, "YT"),
                                  (B, [-1, -1, -2, -2.0], "YT"), (B[:, :1], REAL, "YT"),
                                  (B[:, :1], PAIR, "YT"), (np.eye(4), PAIR, "YT")])
def test_pole_placement(case):
    inputs, poles, method = case
    ours = signal.place_poles(A, inputs, poles, method, rtol=1e-6, maxiter=200)
    theirs = scipy.signal.place_poles(A, inputs, poles, method, rtol=1e-6, maxiter=200)
    same(ours.computed_poles, theirs.computed_poles, 1e-6, 1e-6)
    same(ours.requested_poles, theirs.requested_poles)
    same(ours.gain_matrix, theirs.gain_matrix, 1e-2, 1e-2)
    sizes = [abs(np.linalg.det(v.X / np.linalg.norm(v.X, axis=0))) for v in (ours, theirs)]
    assert sizes[0] > 0.99 * sizes[1]


def test_pole_placement_moves_with_its_system():
    check_grads(lambda a, b: signal.place_poles(a, b, REAL).gain_matrix, (A, B[:, :1]), 1)

    def poles(a):
        return jnp.poly(a - B @ signal.place_poles(a, B, REAL).gain_matrix)

    same(ft.jacfwd(poles)(A), np.zeros((5, 4, 4)), atol=1e-8)  # which stay where they are
    for wrong in (lambda: signal.place_poles(A, B, REAL[:3]), lambda: signal.place_poles(
            A, B, [-1, -1, -1, -2]), lambda: signal.place_poles(A, B, [1j, 1, 2, 3]),
            lambda: signal.place_poles(A, B, PAIR, "KNV0"),
            lambda: ft.jit(lambda a: signal.place_poles(a, B, REAL).gain_matrix)(A),
            lambda: signal.place_poles(np.diag([1.0, 2]), np.array([[1.0], [0]]), [-1, -2])):
        with pytest.raises(ValueError, match="place_poles"):
            wrong()
    with pytest.warns(UserWarning, match="still changes"):
        signal.place_poles(A, B, REAL, rtol=1e-14, maxiter=1)


def test_designs_and_choices():
    for freq, fs in ((440, 16000), (0.3, None), (100, 44100)):
        both("gammatone", freq, "iir", fs=fs, rtol=1e-6)
        both("gammatone", freq, "fir", fs=fs)
        both("gammatone", freq, "fir", 6, 20, fs)
    both("firwin_2d", (5, 4), ("hamming", ("kaiser", 4.0)), fc=0.4)
    both("firwin_2d", (5, 4), "hamming", fc=0.4, fs=3.0, circular=True)
    for name, ind in itertools.product(("butter", "cheby", "ellip"), (0, 1)):
        both("band_stop_obj", [2.0, 7.0][ind], ind, np.array([1.0, 8]), np.array([3.0, 5]), 1, 40,
             name)
    both("normalize", [[1.0, 2], [3, 4]], [0, 0, 2.0, 1])
    with pytest.warns(signal.BadCoefficients):
        found = signal.normalize([0, 1e-16, 1.0], [2.0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(found, scipy.signal.normalize([0, 1e-16, 1.0], [2.0, 1]))
    ones = np.ones(5000)
    assert signal.choose_conv_method(ones, ones) == "fft"
    assert signal.choose_conv_method(ones.astype(int), ones.astype(int)) == "direct"
    method, times = signal.choose_conv_method(ones[:40], ones[:3], "same", measure=True)
    assert times.keys() == {"fft", "direct"} and times[method] == min(times.values())


def test_ends_of_signals():
    b, a = scipy.signal.butter(3, 0.3)
    x = rng.standard_normal((3, 24))
    for irlen, axis in itertools.product((None, 4, 40), (-1, -2)):
        turned = x if axis == -1 else x.T
        both("filtfilt", b, a, turned, axis, method="gust", irlen=irlen)
    both("filtfilt", [2.0], [3.0], x, method="gust")
    both("filtfilt", [1.0, 2, 3], [1.0], x + 1j, method="gust")
    check_grads(lambda x: signal.filtfilt(b, a, x, method="gust"), (x[0, :8],), 1)
    for mode, n in itertools.product(("antisymmetric", "antireflect"), (2, 24)):
        for h in ([1.0, 2, 3], rng.random(40)):
            both("upfirdn", h, x[:, :n], 2, 3, mode=mode)
    rows = x + 1j * x[::-1]
    both("resample_poly", rows, 3, 2, 1, padtype="antireflect")
    for n, num in itertools.product((5, 8), (2, 31)):
        both("resample", rows[:, :n], num, axis=1, window="hann")
    assert signal.resample_poly(np.zeros((0, 24)), 3, 2, axis=0).shape == (0, 24)
