"""functrans.scipy.signal beside scipy.signal: convolution, filters, spectra, resampling."""

import warnings

import numpy as np
import pytest
import scipy.signal

import functrans as ft
from functrans.scipy import signal
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

both = Pair(signal, scipy.signal)
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((2, 3, 200))
B, A = [0.2, 0.3, 0.1], [1.5, -0.6, 0.3, 0.1]
SOS = scipy.signal.butter(5, [0.2, 0.5], "bandpass", output="sos")
SHAPES = [((7,), (3,)), ((3,), (7,)), ((5, 6), (2, 3)), ((4, 5, 6), (2, 2, 3)), ((5, 2), (3, 4))]


def drawn(shape, dtype):
    x = (5 * rng.standard_normal(shape)).astype(dtype)
    return x + 1j * rng.standard_normal(shape) if dtype is complex else x


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_convolutions(mode, shapes):
    if mode == "valid" and shapes == SHAPES[-1]:
        with pytest.raises(ft.core.errors.ArgumentError, match="within the other"):
            signal.convolve(*(np.ones(s) for s in shapes), mode)
        return
    for dtype in (np.float64, complex, np.int64):
        x, y = (drawn(s, dtype) for s in shapes)
        for name in ("convolve", "correlate", "fftconvolve", "oaconvolve"):
            both(name, x, y, mode)
        both("convolve", x, y, mode, method="fft", atol=1e-9)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_convolutions_in_the_plane(mode, boundary):
    for shapes in (((7, 6), (3, 2)), ((3, 4), (5, 6))):
        x, y = (drawn(s, np.float64) for s in shapes)
        for name in ("convolve2d", "correlate2d"):
            both(name, x, y, mode, boundary, 2.0 if boundary == "fill" else 0)


def test_long_signals_are_convolved_in_blocks():
    x, y = rng.standard_normal((3, 1000)), rng.standard_normal((1, 30))
    for mode in ("full", "same", "valid"):
        both("oaconvolve", x, y, mode, axes=-1)


def test_filters():
    zi = rng.standard_normal((3, 3))
    both("lfilter", B, A, X)
    both("lfilter", B, A, X, axis=0)
    both("lfilter", B, [2.0], X)
    both("lfilter", B, A, X + 1j * Y)
    both("lfilter", B, A, X, zi=zi)
    both("lfilter", B, [2.0], X, zi=zi[:, :2])
    both("lfilter", rng.standard_normal(40), np.r_[1, rng.standard_normal(39) / 60], X)
    for b, a in ((B, A), (A, B), (A, [2.0])):
        both("lfilter_zi", b, a)
    both("sosfilt", SOS, X)
    both("sosfilt", SOS, X, zi=rng.standard_normal((5, 3, 2)))
    both("sosfilt", SOS, X.T, axis=0, zi=rng.standard_normal((5, 2, 3)))
    both("sosfilt_zi", SOS)
    both("sosfiltfilt", SOS, X)
    both("sosfiltfilt", scipy.signal.butter(5, 0.3, output="sos"), X)
    for padtype in ("odd", "even", "constant", None):
        both("filtfilt", B, A, X, padtype=padtype)
    with pytest.raises(ft.core.errors.ShapeError, match="more than padlen=12"):
        signal.filtfilt(B, A, np.ones(12))


def test_filters_are_differentiated():
    x = X[0, :20]
    check_grads(lambda b, a, x: signal.lfilter(b, a, x), (np.array(B), np.array(A), x), 2)
    check_grads(lambda s, x: signal.sosfilt(s, x), (SOS[:2], x), 1)
    loop = np.stack([signal.lfilter(B, A, v) for v in X])
    same(ft.jit(ft.vmap(lambda v: signal.lfilter(B, A, v)))(X), loop)


def test_coefficients_that_are_written_out_keep_their_digits():
    assert signal.lfilter(B, A, X.astype(np.float32)).dtype == np.float32
    assert signal.lfilter(B, A, X).dtype == np.float64


@pytest.mark.parametrize("kind", ["butter", "cheby1", "cheby2"])
def test_designs(kind):
    ripple = {"butter": (), "cheby1": (1.0,), "cheby2": (30.0,)}[kind]
    bands = (("low", 0.3), ("high", 0.4), ("bandpass", [0.2, 0.5]), ("bandstop", [0.3, 0.6]))
    for band, edges in bands:
        for order in (1, 2, 3, 4, 5):
            for output in ("ba", "sos"):
                both(kind, order, *ripple, edges, band, output=output, rtol=1e-8, atol=1e-8)
    both(kind, 3, *ripple, 2.0, analog=True)
    both(kind, 3, *ripple, 200.0, fs=1000.0, rtol=1e-9)
    with pytest.raises(ft.core.errors.ArgumentError, match="half of the sampling rate"):
        getattr(signal, kind)(3, *ripple, 1.5)


def test_designs_by_windows():
    for options in ({}, {"pass_zero": False}, {"window": "hann"}, {"scale": False},
                    {"width": 0.1}, {"fs": 4.0}):
        both("firwin", 21, 0.4, **options)
        both("firwin", 21, [0.2, 0.6], **options)
    both("firwin", 20, 0.4)
    both("firwin", 21, [0.2, 0.4, 0.7], pass_zero="bandpass")
    with pytest.raises(ft.core.errors.ArgumentError, match="even number"):
        signal.firwin(20, 0.4, pass_zero=False)


def test_responses():
    both("freqz", B, A)
    both("freqz", B, A, worN=np.linspace(0, 3, 7))
    both("freqz", B, A, whole=True, fs=10.0)
    both("freqz", B, A, worN=11, include_nyquist=True)
    both("sosfreqz", SOS)
    both("sos2tf", SOS)
    both("zpk2tf", [1.0, 2.0], [0.5], 3.0)


SPECTRA = [{"nperseg": 200}, {"nperseg": 50}, {"window": "boxcar", "nperseg": 64, "noverlap": 10,
           "nfft": 100}, {"return_onesided": False, "nperseg": 64}, {"scaling": "spectrum",
           "nperseg": 31}, {"detrend": "linear", "nperseg": 64}, {"detrend": False, "nperseg": 64},
           {"window": np.hanning(40)}, {"axis": 0, "nperseg": 2}, {"nperseg": 50,
           "average": "median"}]


@pytest.mark.parametrize("options", SPECTRA, ids=range(len(SPECTRA)))
def test_densities(options):
    both("welch", X, 10.0, **options)
    both("csd", X, Y, 10.0, **options)
    if options in SPECTRA[:2]:
        both("coherence", X, Y, 10.0, **options)
        both("welch", X + 1j * Y, **options)


def test_other_spectra():
    for options in ({}, {"nfft": 100}, {"nfft": 300}, {"window": "hann"}, {"axis": 0}):
        both("periodogram", X, 2.0, **options)
    for mode in ("psd", "complex", "magnitude", "angle", "phase"):
        both("spectrogram", X, 2.0, nperseg=32, mode=mode)
    both("spectrogram", X.T, 2.0, nperseg=32, axis=0)
    both("csd", X[:, :150], Y, nperseg=50)


SHORT = [{"nperseg": 64}, {"nperseg": 50, "noverlap": 30, "nfft": 60}, {"nperseg": 64,
         "boundary": "even"}, {"nperseg": 31, "return_onesided": False}, {"nperseg": 64,
         "scaling": "psd"}, {"nperseg": 64, "detrend": "constant"}]


@pytest.mark.parametrize("options", SHORT, ids=range(len(SHORT)))
def test_short_time_transforms(options):
    both("stft", X, 2.0, **options)
    z = scipy.signal.stft(X[0], 2.0, **options)[2]
    back = {k: v for k, v in options.items() if k in ("nperseg", "noverlap", "nfft", "scaling")}
    both("istft", z, 2.0, input_onesided=options.get("return_onesided", True), **back)
    if "detrend" not in options and "return_onesided" not in options:
        same(signal.istft(z, 2.0, **back)[1][:200], X[0])


def test_axes_of_short_time_transforms():
    both("stft", X.T, 2.0, nperseg=64, axis=0)
    z = scipy.signal.stft(X, nperseg=64)[2]
    for axes, moved in (((0, -1), np.moveaxis(z, -1, 0)), ((-1, 0), np.moveaxis(z, 1, 0))):
        ours = signal.istft(moved, nperseg=64, time_axis=axes[0], freq_axis=axes[1])
        theirs = scipy.signal.istft(moved, nperseg=64, time_axis=axes[0], freq_axis=axes[1])
        same(ours[1], theirs[1])
    with pytest.raises(ft.core.errors.ArgumentError, match="are one"):
        signal.istft(z, time_axis=1, freq_axis=1)
    check_grads(lambda x: signal.stft(x, nperseg=8)[2], (X[0, :20],), 1)


def test_detrend_and_analytic_signals():
    for options in ({}, {"type": "constant"}, {"bp": [50, 120]}):
        both("detrend", X, **options)
    both("detrend", X.T, axis=0, bp=40)
    for n in (200, 199, 220, 150):
        both("hilbert", X, N=n)
    both("hilbert2", X)
    both("hilbert2", X, N=(3, 7))
    with pytest.raises(ft.core.errors.ArgumentError, match="real numbers"):
        signal.hilbert(X + 1j)


@pytest.mark.parametrize("num", [100, 101, 200, 301, 7])
def test_resample(num):
    for x in (X, X[:, :199], X + 1j * Y, (X + 1j * Y)[:, :199]):
        both("resample", x, num, axis=1)
    both("resample", X, num, axis=1, window="hamming")
    both("resample", X, num, axis=1, t=np.arange(200) * 0.1)


@pytest.mark.parametrize("rates", [(3, 2), (2, 3), (1, 4), (5, 1)])
def test_polyphase(rates):
    for padtype in ("constant", "line", "mean", "minimum", "reflect", "wrap", "edge"):
        both("resample_poly", X, *rates, axis=1, padtype=padtype)
    both("resample_poly", X, *rates, axis=1, cval=2.0)
    both("resample_poly", X, *rates, axis=1, window=np.hanning(31))
    for mode in ("constant", "symmetric", "edge", "line", "smooth"):
        both("upfirdn", np.hanning(33), X, *rates, mode=mode)


def test_decimate():
    for options in ({}, {"zero_phase": False}, {"ftype": "fir"},
                    {"ftype": "fir", "zero_phase": False}, {"n": 4}):
        both("decimate", X, 4, rtol=1e-7, atol=1e-7, **options)


def test_smoothing():
    for mode in ("interp", "mirror", "nearest", "wrap", "constant"):
        for size, order, deriv in ((7, 2, 0), (9, 3, 1), (8, 2, 0)):
            both("savgol_filter", X, size, order, deriv=deriv, delta=0.5, mode=mode)
    both("savgol_coeffs", 7, 2, deriv=1, delta=0.3, pos=2, use="dot")
    both("savgol_coeffs", 5, 2, deriv=3)
    both("medfilt", X, (3, 5))
    both("medfilt2d", X, 3)
    both("order_filter", X, np.ones((3, 3)), 2)
    both("wiener", X)
    both("wiener", X[0], 5, noise=0.3)


def test_waves():
    t = np.linspace(-3, 7, 101)
    for part in (0, 0.3, 1):
        both("sawtooth", t, part)
        both("square", t, part)
    both("gausspulse", t, 5.0, retquad=True, retenv=True)
    t = np.linspace(0, 2, 101)
    for method in ("linear", "quadratic", "logarithmic", "hyperbolic"):
        for f1 in (5.0, 1.0, 0.3):
            both("chirp", t, 1.0, 2.0, f1, method, 30)
    both("chirp", t, 1.0, 2.0, 3.0, "quadratic", vertex_zero=False, complex=True)
    both("sweep_poly", t, [1.0, 2.0, 0.5], 20)
    for args in ((5,), ((3, 4), "mid"), ((3, 4), (1, 2)), ((3, 4), 1)):
        both("unit_impulse", *args)


WINDOWS = {"chebwin": (60,), "dpss": (2.5,), "gaussian": (3.0,), "general_cosine":
           ([0.4, 0.5, 0.1],), "general_gaussian": (1.5, 3.0), "general_hamming": (0.7,),
           "kaiser": (8.6,), "kaiser_bessel_derived": (4.0,)}


@pytest.mark.parametrize("name", [n for n in signal.windows.__all__ if n != "get_window"])
def test_windows(name):
    pair = Pair(signal.windows, scipy.signal.windows)
    for size in (1, 2, 12, 13):
        for sym in (True, False):
            if name == "dpss" and size < 12:
                continue
            if name == "kaiser_bessel_derived" and (size % 2 or not sym):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SciPy's, for high attenuations
                pair(name, size, *WINDOWS.get(name, ()), sym=sym)


def test_windows_by_name():
    for window in ("hann", ("kaiser", 5.0), 8.6, "tukey", ("gauss", 2.0), "rect", "sinc",
                   ("exponential", None, 2.0), "taylor"):
        both("get_window", window, 15)
    for window in ("hnan", "kaiser", (3, 4)):
        with pytest.raises(ft.core.errors.ArgumentError, match="there is no window"):
            signal.get_window(window, 15)
    with ft.default_dtypes("float64"):
        for name in ("kaiser", "gaussian", "tukey", "general_hamming"):
            window = getattr(signal.windows, name)
            check_grads(lambda p: window(9, p), (np.float64(0.7),), 1)  # noqa: B023
