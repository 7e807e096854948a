"""Functions of SciPy and scikit-learn that write into arrays, in a process of its own.

They read SCIPY_ARRAY_API once. `python scipy_programs.py` prints a line of JSON: of each program
what is wrong under numpy_code, or "".
"""

import json
import os
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.signal as signal
import sklearn.metrics as metrics
from sklearn import config_context
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import functrans as ft
from functrans.test_util import check_grads

rng = np.random.default_rng(0)
X, Y = rng.uniform(0.1, 2, (2, 12))
M = rng.standard_normal((12, 5))
GUESS, LABELS = rng.integers(0, 2, (2, 30))


def standardised(m):
    return StandardScaler().fit(m).transform(m)


def at_uneven_points(y):
    points = np.linspace(0, 1, len(y))
    points[1:-1] **= 2
    return integrate.cumulative_simpson(y, x=points)


# of each: the function, its arguments, and whether derivatives and jit go through it
PROGRAMS = {
    "hilbert": (lambda x: signal.hilbert(x).imag, (X,), "grad jit"),
    "resample": (lambda x: signal.resample(x, 17), (X,), "grad jit"),
    "cumulative_simpson": (integrate.cumulative_simpson, (X,), "grad jit"),
    "cumulative_simpson at points": (at_uneven_points, (X,), "grad"),
    "PchipInterpolator": (lambda x, y: interpolate.PchipInterpolator(x, y)(x), (np.sort(X), Y), ""),
    "Akima1DInterpolator": (lambda x, y: interpolate.Akima1DInterpolator(x, y)(x),
                            (np.sort(X), Y), ""),
    "StandardScaler": (standardised, (M,), "grad"),
    "MinMaxScaler": (lambda m: MinMaxScaler().fit(m).transform(m), (M,), "grad"),
    "r2_score": (metrics.r2_score, (X, Y), ""),
    "f1_score": (metrics.f1_score, (GUESS, LABELS), ""),
}


def problem(function, arguments, transforms):
    """What is wrong with a program, or ""."""
    wanted = function(*arguments)
    pure = ft.numpy_code(lambda *args: function(*args))
    runs = [pure, ft.jit(pure)] if "jit" in transforms else [pure]
    try:
        for run in runs:
            got = run(*arguments)
            if isinstance(wanted, np.ndarray) and not isinstance(got, ft.Array):
                return f"is a {type(got).__name__}"
            if not np.allclose(np.asarray(got), wanted, rtol=1e-8, atol=1e-10):
                return f"{got} is not {wanted}"
        if "grad" in transforms:
            check_grads(pure, arguments, order=1, modes=("rev",))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with config_context(array_api_dispatch=True):
        print(json.dumps({name: problem(*program) for name, program in PROGRAMS.items()}))
