"""Convolution, filters, spectra, windows and resampling, with the names of scipy.signal."""

from functrans.core.errors import publish
from functrans.scipy.signal import windows
from functrans.scipy.signal.analog import (
    besselap,
    bilinear_zpk,
    buttap,
    cheb1ap,
    cheb2ap,
    ellipap,
    iircomb,
    iirdesign,
    lp2bp,
    lp2bp_zpk,
    lp2bs,
    lp2bs_zpk,
    lp2hp,
    lp2hp_zpk,
    lp2lp,
    lp2lp_zpk,
)
from functrans.scipy.signal.chirp_z import CZT, ZoomFFT, czt, czt_points, zoom_fft
from functrans.scipy.signal.classical import (
    band_stop_obj,
    bessel,
    buttord,
    cheb1ord,
    cheb2ord,
    ellip,
    ellipord,
    iirfilter,
    iirnotch,
    iirpeak,
)
from functrans.scipy.signal.convolution import (
    choose_conv_method,
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
    oaconvolve,
)
from functrans.scipy.signal.design import butter, cheby1, cheby2, firwin, firwin_2d, gammatone
from functrans.scipy.signal.detrending import detrend
from functrans.scipy.signal.dual_windows import closest_STFT_dual_window
from functrans.scipy.signal.envelopes import envelope
from functrans.scipy.signal.equiripple import minimum_phase, remez
from functrans.scipy.signal.filtering import (
    filtfilt,
    lfilter,
    lfilter_zi,
    lfiltic,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from functrans.scipy.signal.forms import (
    BadCoefficients,
    bilinear,
    firls,
    firwin2,
    freqs,
    freqz_zpk,
    group_delay,
    kaiser_atten,
    kaiser_beta,
    kaiserord,
    normalize,
    sos2zpk,
    tf2sos,
    tf2zpk,
    zpk2sos,
)
from functrans.scipy.signal.fractions import invres, invresz, residue, residuez, unique_roots
from functrans.scipy.signal.peaks import (
    argrelextrema,
    argrelmax,
    argrelmin,
    find_peaks,
    peak_prominences,
    peak_widths,
)
from functrans.scipy.signal.pole_placement import place_poles
from functrans.scipy.signal.resampling import (
    decimate,
    hilbert,
    hilbert2,
    resample,
    resample_poly,
    upfirdn,
)
from functrans.scipy.signal.responses import freqz, freqz_sos, sos2tf, sosfreqz, zpk2tf
from functrans.scipy.signal.ridges import find_peaks_cwt
from functrans.scipy.signal.sequences import (
    check_COLA,
    check_NOLA,
    correlation_lags,
    deconvolve,
    lombscargle,
    max_len_seq,
    vectorstrength,
)
from functrans.scipy.signal.short_time import istft, stft
from functrans.scipy.signal.short_time_class import ShortTimeFFT
from functrans.scipy.signal.simulations import (
    bode,
    dbode,
    dfreqresp,
    dimpulse,
    dlsim,
    dstep,
    findfreqs,
    freqresp,
    freqs_zpk,
    impulse,
    lsim,
    step,
)
from functrans.scipy.signal.smoothing import (
    medfilt,
    medfilt2d,
    order_filter,
    savgol_coeffs,
    savgol_filter,
    wiener,
)
from functrans.scipy.signal.spectral import coherence, csd, periodogram, spectrogram, welch
from functrans.scipy.signal.spline_filters import (
    cspline1d,
    cspline1d_eval,
    cspline2d,
    gauss_spline,
    qspline1d,
    qspline1d_eval,
    qspline2d,
    sepfir2d,
    spline_filter,
    symiirorder1,
    symiirorder2,
)
from functrans.scipy.signal.system_classes import (
    StateSpace,
    TransferFunction,
    ZerosPolesGain,
    dlti,
    lti,
)
from functrans.scipy.signal.systems import (
    abcd_normalize,
    cont2discrete,
    ss2tf,
    ss2zpk,
    tf2ss,
    zpk2ss,
)
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
    "CZT", "BadCoefficients", "ShortTimeFFT", "StateSpace", "TransferFunction",
    "ZerosPolesGain", "ZoomFFT", "abcd_normalize", "argrelextrema", "argrelmax", "argrelmin",
    "band_stop_obj", "bessel", "besselap", "bilinear", "bilinear_zpk", "bode", "buttap",
    "butter", "buttord", "cheb1ap", "cheb1ord", "cheb2ap", "cheb2ord", "cheby1", "cheby2",
    "check_COLA", "check_NOLA", "chirp", "choose_conv_method", "closest_STFT_dual_window",
    "coherence", "cont2discrete", "convolve", "convolve2d", "correlate", "correlate2d",
    "correlation_lags", "csd", "cspline1d", "cspline1d_eval", "cspline2d", "czt", "czt_points",
    "dbode", "decimate", "deconvolve", "detrend", "dfreqresp", "dimpulse", "dlsim", "dlti",
    "dstep", "ellip", "ellipap", "ellipord", "envelope", "fftconvolve", "filtfilt",
    "find_peaks", "find_peaks_cwt", "findfreqs", "firls", "firwin", "firwin2", "firwin_2d",
    "freqresp", "freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "gammatone",
    "gauss_spline", "gausspulse", "get_window", "group_delay", "hilbert", "hilbert2", "iircomb",
    "iirdesign", "iirfilter", "iirnotch", "iirpeak", "impulse", "invres", "invresz", "istft",
    "kaiser_atten", "kaiser_beta", "kaiserord", "lfilter", "lfilter_zi", "lfiltic",
    "lombscargle", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk", "lp2hp", "lp2hp_zpk", "lp2lp",
    "lp2lp_zpk", "lsim", "lti", "max_len_seq", "medfilt", "medfilt2d", "minimum_phase",
    "normalize", "oaconvolve", "order_filter", "peak_prominences", "peak_widths", "periodogram",
    "place_poles", "qspline1d", "qspline1d_eval", "qspline2d", "remez", "resample",
    "resample_poly", "residue", "residuez", "savgol_coeffs", "savgol_filter", "sawtooth",
    "sepfir2d", "sos2tf", "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz",
    "spectrogram", "spline_filter", "square", "ss2tf", "ss2zpk", "step", "stft", "sweep_poly",
    "symiirorder1", "symiirorder2", "tf2sos", "tf2ss", "tf2zpk", "unique_roots", "unit_impulse",
    "upfirdn", "vectorstrength", "welch", "wiener", "windows", "zoom_fft", "zpk2sos", "zpk2ss",
    "zpk2tf",
]

publish(globals(), __all__)
