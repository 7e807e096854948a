"""Convolutions with a few features to a group are sums of their taps, like any element."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.lowering.triton.steps.spec import Launch
from tests.triton.emulated import check

RNG = np.random.default_rng(0)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def normal(*shape, dtype="float32"):
    return np.asarray(RNG.normal(size=shape).astype("f4"), getattr(ft.numpy, dtype))


def convolution(channels, **options):
    def f(x, w):
        return lax.conv_general_dilated(x, w, feature_group_count=channels,
                                        **{"dimension_numbers": LAYOUT, **options})
    return f


def gradients(f):
    return lambda x, w: ft.grad(lambda x, w: (f(x, w).astype("float32") ** 2).sum(), (0, 1))(x, w)


CASES = {
    "7 x 7": ({"window_strides": (1, 1), "padding": "SAME"}, (7, 7), 1, "float32"),
    "half": ({"window_strides": (1, 1), "padding": "SAME"}, (3, 3), 1, "bfloat16"),
    "strides": ({"window_strides": (2, 1), "padding": "VALID"}, (3, 5), 1, "float32"),
    "dilation": ({"window_strides": (1, 1), "padding": ((2, 1), (0, 2)), "rhs_dilation": (2, 1)},
                 (3, 2), 1, "float32"),
    "two of each": ({"window_strides": (1, 2), "padding": "SAME"}, (3, 3), 2, "float32"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES)
def test_taps_are_summed_without_tensor_cores(case):
    options, window, more, dtype = CASES[case]
    f = convolution(6, **options)
    x, w = normal(2, 9, 8, 6, dtype=dtype), normal(*window, 1, 6 * more, dtype=dtype)
    tolerance = 2e-2 if dtype == "bfloat16" else 1e-4
    for fun in (f, gradients(f)):
        text = "".join(check(fun, x, w, tolerance=tolerance).sources)
        assert "def convolution" not in text and "tl.dot" not in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES)
def test_all_taps_of_a_filter_are_summed_in_one_walk(case):
    """Of pictures whose sums are long: each operand is read once, not once for each tap."""
    options, window, more, dtype = CASES[case]
    f = convolution(3, **options)
    shape = (4, 66, 69, 3) if max(options["window_strides"]) > 1 else (2, 50, 52, 3)
    x, w = normal(*shape, dtype=dtype), normal(*window, 1, 3 * more, dtype=dtype)
    gradient = lambda x, w: ft.grad(lambda w: f(ft.numpy.tanh(x), w).astype("float32").sum())(w)
    program = check(gradient, x, w, tolerance=2e-2 if dtype == "bfloat16" else 1e-4)
    walks = [s for s in program.steps if isinstance(s, Launch) and s.moved > x.nbytes]
    assert len(walks) <= 2 and sum(s.moved for s in walks) <= 8 * x.nbytes


@pytest.mark.parametrize("layout", ["channels first", "as rows"])
def test_sums_of_taps_in_other_layouts(layout):
    names = {"channels first": ("NCHW", "OIHW", "NCHW"), "as rows": ("CNW", "IWO", "CNW")}[layout]
    f = convolution(3, window_strides=(1,) * (len(names[0]) - 2), padding="SAME",
                    dimension_numbers=names)
    x, w = (normal(3, 3, 41, 43), normal(3, 1, 3, 5)) if layout == "channels first" else (
        normal(3, 8, 600), normal(1, 3, 3))
    check(gradients(f), x, w, tolerance=1e-4)


def test_channels_first_and_three_axes():
    f = convolution(4, window_strides=(1, 1, 1), padding="SAME",
                    dimension_numbers=("NCDHW", "OIDHW", "NCDHW"))
    x, w = normal(2, 4, 5, 4, 6), normal(4, 1, 3, 3, 3)
    for fun in (f, gradients(f)):
        assert "tl.dot" not in "".join(check(fun, x, w, tolerance=1e-4).sources)
