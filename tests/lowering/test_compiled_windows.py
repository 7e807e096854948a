"""Pooling with any windows, and its derivatives: compiled code does what NumPy does.

More examples than a test run has time for: FUNCTRANS_EXAMPLES=1000 pytest on this file.
"""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import lax
from functrans.primitives.window import window_argmax_p, window_argmin_p
from tests.lowering.test_compiled_movement import assert_same

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
FOLDS = {"sum": lax.reduce_window_sum, "max": lax.reduce_window_max, "min": lax.reduce_window_min}


@st.composite
def cases(draw):
    """An array of small whole numbers, perhaps with NaN, a reduction, and windows that fit."""
    rank = draw(st.integers(1, 3))
    per_axis = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]
    shape = [draw(st.sampled_from((1, 2, 5, 8, 21))) for _ in range(rank)]
    window = [draw(st.sampled_from((1, 2, 3, 7))) for _ in range(rank)]
    strides, holes, spread = per_axis(1, 3), per_axis(1, 2), per_axis(1, 2)
    pads = [(draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in range(rank)]
    for d in range(rank):  # every axis holds one window
        whole = (shape[d] - 1) * holes[d] + 1 + sum(pads[d])
        window[d] = max(1, min(window[d], (whole - 1) // spread[d] + 1))
        if whole < 1:
            pads[d] = (0, 0)
    fold = draw(st.sampled_from(sorted(FOLDS)))
    dtype = draw(st.sampled_from(("float32", "float64", "int32", "uint8")))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.integers(0, 9, shape).astype(dtype)
    if dtype[0] == "f" and draw(st.booleans()):
        x[rng.random(shape) < 0.1] = np.nan
    return x, fold, {"window_dimensions": tuple(window), "window_strides": tuple(strides),
                     "padding": tuple(pads), "base_dilation": tuple(holes),
                     "window_dilation": tuple(spread)}


@given(cases())
@settings(max_examples=MANY or 20, deadline=None, derandomize=not MANY, database=None,
          print_blob=False, suppress_health_check=list(HealthCheck))
def test_windows(case):
    x, fold, params = case

    def fun(a):
        out = FOLDS[fold](a, *params.values())
        found = [out]
        if a.dtype.name in ("float32", "float64", "int32"):
            found += [p.bind(a, **params) for p in (window_argmax_p, window_argmin_p)]
        if a.dtype.name.startswith("float"):
            pooled, pulled = ft.vjp(lambda b: FOLDS[fold](b, *params.values()), a)
            found += [pooled, *pulled(out * 2), ft.jvp(
                lambda b: FOLDS[fold](b, *params.values()), (a,), (a + 1,))[1]]
        return found

    with ft.config.use_backend("c"):
        compiled = ft.jit(fun)(x)
        mapped = ft.jit(ft.vmap(fun))(np.stack([x, x[::-1]]))
    for actual, expected in zip(compiled, fun(ft.numpy.asarray(x)), strict=True):
        assert_same(actual, expected)
    for actual, expected in zip(mapped, fun(ft.numpy.asarray(x[::-1])), strict=True):
        assert_same(actual[1], expected)
