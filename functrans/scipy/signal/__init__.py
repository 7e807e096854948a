"""Convolution, filters, spectra, windows and resampling, with the names of scipy.signal."""

from functrans.core.errors import publish
from functrans.scipy.signal import windows
from functrans.scipy.signal.convolution import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
    oaconvolve,
)
from functrans.scipy.signal.design import butter, cheby1, cheby2, firwin
from functrans.scipy.signal.detrending import detrend
from functrans.scipy.signal.filtering import (
    filtfilt,
    lfilter,
    lfilter_zi,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from functrans.scipy.signal.resampling import (
    decimate,
    hilbert,
    hilbert2,
    resample,
    resample_poly,
    upfirdn,
)
from functrans.scipy.signal.responses import freqz, freqz_sos, sos2tf, sosfreqz, zpk2tf
from functrans.scipy.signal.short_time import istft, stft
from functrans.scipy.signal.smoothing import (
    medfilt,
    medfilt2d,
    order_filter,
    savgol_coeffs,
    savgol_filter,
    wiener,
)
from functrans.scipy.signal.spectral import coherence, csd, periodogram, spectrogram, welch
from functrans.scipy.signal.waveforms import (
    chirp,
    gausspulse,
    sawtooth,
    square,
    sweep_poly,
    unit_impulse,
)
from functrans.scipy.signal.windows import get_window

__all__ = [
    "butter", "cheby1", "cheby2", "chirp", "coherence", "convolve", "convolve2d", "correlate",
    "correlate2d", "csd", "decimate", "detrend", "fftconvolve", "filtfilt", "firwin", "freqz",
    "freqz_sos", "gausspulse", "get_window", "hilbert", "hilbert2", "istft", "lfilter",
    "lfilter_zi", "medfilt", "medfilt2d", "oaconvolve", "order_filter", "periodogram", "resample",
    "resample_poly", "savgol_coeffs", "savgol_filter", "sawtooth", "sos2tf", "sosfilt",
    "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram", "square", "stft", "sweep_poly",
    "unit_impulse", "upfirdn", "welch", "wiener", "windows", "zpk2tf",
]

publish(globals(), __all__)
