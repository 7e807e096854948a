"""ShortTimeFFT and dual windows beside scipy.signal."""

import itertools

import numpy as np
import pytest
import scipy.signal

import functrans as ft
from functrans.core.errors import ArgumentError
from functrans.scipy import signal
from functrans.scipy.signal import ShortTimeFFT
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
HANN = scipy.signal.get_window("hann", 8)
WINDOWS = {"hann": HANN, "ends": np.array([0, 0, 0, 1, 1, 0, 0.0]), "tail": np.eye(7)[0],
           "one": np.ones(1), "middle": np.array([0, 1.0, 0]), "random": rng.random(7) + 0.1}
NUMBERS = ("p_min", "k_min", "m_num_mid", "lower_border_end", "invertible", "delta_t", "delta_f",
           "f_pts", "fac_magnitude", "fac_psd", "T", "f")
OF_LENGTHS = ("p_max", "k_max", "upper_border_begin", "p_num", "t", "p_range")


@pytest.mark.parametrize("window", WINDOWS)
def test_slices_and_points(window):
    win = WINDOWS[window]
    with ft.default_dtypes("float64"):
        for hop in (1, 2, 5, 8):
            ours, theirs = ShortTimeFFT(win, hop, 2.0), scipy.signal.ShortTimeFFT(
                win.copy(), hop, 2.0)
            for name in NUMBERS:
                same(getattr(ours, name), getattr(theirs, name), what=(hop, name))
            for n, name in itertools.product((len(win) - len(win) // 2, 11, 12, 20), OF_LENGTHS):
                same(getattr(ours, name)(n), getattr(theirs, name)(n), what=(hop, n, name))
            for k in (-5, 0, 3):
                assert ours.nearest_k_p(k) == theirs.nearest_k_p(k)
                assert ours.nearest_k_p(k, False) == theirs.nearest_k_p(k, False)


MODES = [{"fft_mode": "onesided"}, {"fft_mode": "onesided2X", "scale_to": "psd", "mfft": 13},
         {"fft_mode": "onesided2X", "scale_to": "magnitude", "phase_shift": None},
         {"fft_mode": "twosided", "phase_shift": 2, "mfft": 12},
         {"fft_mode": "centered", "phase_shift": -3}]


@pytest.mark.parametrize("mode", range(len(MODES)))
def test_transforms(mode):
    options, x = MODES[mode], rng.standard_normal((2, 23))
    with ft.default_dtypes("float64"):
        ours = ShortTimeFFT(WINDOWS["random"], 3, 2.0, **options)
        theirs = scipy.signal.ShortTimeFFT(WINDOWS["random"].copy(), 3, 2.0, **options)
        z = theirs.stft(x)
        for how in ({}, {"padding": "odd", "k_offset": 3}, {"padding": "edge", "p0": -1, "p1": 3},
                    {"padding": "even", "k_offset": -2, "p0": 1, "p1": 4}):
            same(ours.stft(x, **how), theirs.stft(x, **how), what=how)
        same(ours.stft_detrend(x.T, "linear", axis=0), theirs.stft_detrend(x.T, "linear", axis=0))
        same(ours.spectrogram(x), theirs.spectrogram(x))
        same(ours.spectrogram(x, x[::-1], "constant"), theirs.spectrogram(x, x[::-1], "constant"))
        for k0, k1 in ((0, None), (0, 23), (3, 15), (-2, 12)):
            same(ours.istft(z, k0, k1), theirs.istft(z, k0, k1), what=(k0, k1))
        turned = theirs.stft(x.T, axis=0)
        same(ours.istft(turned, f_axis=0, t_axis=2), theirs.istft(turned, f_axis=0, t_axis=2))
        if options["fft_mode"] != "twosided":
            for how in itertools.product(("tf", "ft"), (True, False)):
                same(ours.extent(30, *how), theirs.extent(30, *how))

        def there_and_back(made, x):
            return made.istft(made.stft(x), k1=23)

        # the object is a tree: it goes through jit, and its windows have derivatives
        same(ft.jit(there_and_back)(ours, x), x)
        same(ft.vmap(ours.stft)(x), z)
        check_grads(lambda w, x: ShortTimeFFT(w, 3, 2.0, **options).spectrogram(x),
                    (WINDOWS["random"], x[0, :9]), 1)


def test_dual_windows():
    others = {"fft_mode": "twosided"}
    for win in (scipy.signal.get_window("hann", 14, False)[1:-1],
                rng.random(9) + 1j * rng.random(9)):
        for hop in (1, 2, 5):
            for scaled in (True, False):
                same(signal.closest_STFT_dual_window(win, hop, scaled=scaled),
                     scipy.signal.closest_STFT_dual_window(win, hop, scaled=scaled))
            for scale_to in (None, "unitary", "psd"):
                ours, theirs = (kind.from_win_equals_dual(win, hop, 1.0, scale_to=scale_to,
                                                          **others)
                                for kind in (ShortTimeFFT, scipy.signal.ShortTimeFFT))
                same((ours.win, ours.dual_win), (theirs.win, theirs.dual_win))
            same(ShortTimeFFT.from_dual(win, hop, 1.0, **others).win,
                 scipy.signal.ShortTimeFFT.from_dual(win, hop, 1.0, **others).win)
    with ft.default_dtypes("float64"):
        same(ShortTimeFFT.from_window(("tukey", 0.3), 2.0, 16, 12, scale_to="psd").win,
             scipy.signal.ShortTimeFFT.from_window(("tukey", 0.3), 2.0, 16, 12, scale_to="psd").win)
    check_grads(lambda w, d: signal.closest_STFT_dual_window(w, 2, d), (rng.random(5) + 0.5,
                                                                        rng.random(5)), 1)


def test_what_is_refused():
    made = ShortTimeFFT(np.ones(8), 4, 1.0)
    assert not ShortTimeFFT(HANN, 8, 1.0).invertible
    for wrong in (lambda: ShortTimeFFT(HANN, 8, 1.0).dual_win, lambda: made.stft(1j * np.ones(9)),
                  lambda: made.istft(made.stft(np.ones(20)), 3, 4), lambda: made.stft(np.ones(3)),
                  lambda: made.stft(np.ones(20), 5, 3), lambda: ShortTimeFFT(HANN, 0, 1.0),
                  lambda: ShortTimeFFT("hann", 2, 1.0), lambda: ShortTimeFFT(HANN, 2, 0.0),
                  lambda: ShortTimeFFT(HANN, 2, 1.0, mfft=4),
                  lambda: ShortTimeFFT(HANN, 2, 1.0, fft_mode="onesided2X"),
                  lambda: made.scale_to("power"), lambda: made.stft(np.ones(20), padding="wrap"),
                  lambda: signal.closest_STFT_dual_window(np.ones(3), 4),
                  lambda: setattr(made, "phase_shift", 8)):
        with pytest.raises(ArgumentError, match=r"ShortTimeFFT|dual_window"):
            wrong()
    made.T, made.mfft, made.phase_shift, made.fft_mode = 0.5, 9, None, "centered"
    assert (made.fs, made.f_pts, made.hop) == (2.0, 9, 4)
