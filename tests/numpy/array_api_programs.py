"""SciPy and scikit-learn on our arrays, in a process of its own: they read SCIPY_ARRAY_API once.

`python array_api_programs.py` computes each program with NumPy's arrays and with ours, and prints a
line of JSON: the names of those that agree and are arrays of ours, and why others are not.
"""

import json
import os
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.cluster.vq as vq
import scipy.fft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
import sklearn.metrics as metrics
import sklearn.metrics.pairwise as pairwise
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KernelCenterer, LabelEncoder

import functrans.numpy as jnp

rng = np.random.default_rng(0)
X, Y = rng.uniform(0.1, 2, (2, 20))
UNIT = rng.uniform(0.05, 0.95, 20)
M = rng.standard_normal((12, 5))
IMAGE = rng.standard_normal((16, 16))


def along_rows(function):
    return lambda m: function(m, axis=1)


def first_two(function):
    return lambda *arguments: tuple(function(*arguments))[:2]


FILTER = signal.butter(3, 0.3)
SAMPLES = rng.standard_normal((60, 4))
TARGET = SAMPLES @ np.array([1.0, 2, -1, 0.5])
LABELS = (TARGET > 0).astype(np.int64)

SCIPY = {
    # an argument each, two, and arrays of other shapes
    **{f"special.{f}": (getattr(special, f), X) for f in (
        "gammaln", "erf", "erfc", "i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "expit", "entr")},
    **{f"special.{f}": (getattr(special, f), UNIT) for f in ("ndtri", "logit")},
    **{f"special.{f}": (getattr(special, f), X, Y) for f in (
        "gammainc", "gammaincc", "xlogy", "rel_entr", "betaln", "chdtr")},
    "special.stdtrit": (special.stdtrit, X, UNIT),
    **{f"special.{f}": (along_rows(getattr(special, f)), M) for f in (
        "logsumexp", "softmax", "log_softmax")},
    **{f"stats.{f}": (getattr(stats, f), X) for f in (
        "gmean", "hmean", "skew", "kurtosis", "variation", "sem", "zscore", "circmean", "iqr",
        "circvar", "circstd", "entropy", "rankdata")},
    "stats.zmap": (stats.zmap, X, Y),
    **{f"stats.{f}": (first_two(getattr(stats, f)), X, Y) for f in (
        "pearsonr", "ttest_ind", "ttest_rel", "mannwhitneyu", "wilcoxon", "bartlett")},
    **{f"stats.{f}": (first_two(getattr(stats, f)), X) for f in (
        "skewtest", "normaltest", "jarque_bera", "mode")},
    **{f"fft.{f}": (getattr(scipy.fft, f), IMAGE) for f in (
        "fft", "ifft", "rfft", "hfft", "fft2", "fftn", "dct", "fftshift")},
    **{f"signal.{f}": (getattr(signal, f), X, Y) for f in (
        "convolve", "correlate", "fftconvolve", "oaconvolve")},
    "signal.detrend": (signal.detrend, X),
    "signal.lfilter": (signal.lfilter, *FILTER, X),
    "signal.filtfilt": (signal.filtfilt, *FILTER, X),
    "signal.savgol_filter": (lambda x: signal.savgol_filter(x, 5, 2, mode="nearest"), X),
    "cluster.whiten": (vq.whiten, M),
    "cluster.vq": (vq.vq, M, M[:3]),
    "cluster.kmeans": (lambda o, c: vq.kmeans(o, c)[0], M, M[:3]),
    "integrate.trapezoid": (integrate.trapezoid, IMAGE),
    "integrate.cumulative_trapezoid": (integrate.cumulative_trapezoid, X),
    **{f"ndimage.{f}": (getattr(ndimage, f), IMAGE) for f in ("sobel", "laplace")},
    "ndimage.gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 2.0), IMAGE),
    "ndimage.median_filter": (lambda x: ndimage.median_filter(x, 3), IMAGE),
    "interpolate.CubicSpline": (lambda x, y: interpolate.CubicSpline(x, y)(x), np.sort(X), Y),
}
SKLEARN = {
    "PCA": (lambda x: PCA(2, svd_solver="full").fit(x).transform(x), SAMPLES),
    "RidgeCV": (lambda x, y: RidgeCV().fit(x, y).predict(x), SAMPLES, TARGET),
    "KernelCenterer": (lambda k: KernelCenterer().fit(k).transform(k), SAMPLES @ SAMPLES.T),
    "LabelEncoder": (lambda c: LabelEncoder().fit_transform(c), LABELS),
    "train_test_split": (lambda x: train_test_split(x, random_state=0)[0], SAMPLES),
    **{f: (getattr(metrics, f), TARGET, TARGET**2) for f in (
        "mean_squared_error", "mean_absolute_error", "max_error", "median_absolute_error",
        "mean_pinball_loss", "d2_tweedie_score")},
    **{f: (getattr(metrics, f), LABELS, LABELS[::-1].copy()) for f in (
        "accuracy_score", "zero_one_loss", "confusion_matrix", "balanced_accuracy_score")},
    "roc_auc_score": (metrics.roc_auc_score, LABELS, SAMPLES[:, 0]),
    **{f: (getattr(pairwise, f), SAMPLES, SAMPLES[:5]) for f in (
        "euclidean_distances", "rbf_kernel", "polynomial_kernel", "linear_kernel")},
}


def problem(function, *arguments):
    """Why the program is not right on our arrays, or ""."""
    wanted = function(*arguments)
    try:
        got = function(*map(jnp.asarray, arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    pair = (got, wanted) if isinstance(wanted, tuple) else ((got,), (wanted,))
    for ours, numpys in zip(*pair, strict=True):
        if isinstance(numpys, np.ndarray) and not isinstance(ours, jnp.asarray(0.0).__class__):
            return f"is a {type(ours).__name__}"
        if not np.allclose(np.asarray(ours), numpys, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"{ours} is not {numpys}"
    return ""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with config_context(array_api_dispatch=True):
        found = {name: problem(*program) for name, program in {**SCIPY, **SKLEARN}.items()}
    print(json.dumps(found))
