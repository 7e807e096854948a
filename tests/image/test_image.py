"""functrans.image beside jax.image, whose results are in data/image.json (jax 0.10.2, float64)."""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.image import ResizeMethod, resize, scale_and_translate
from functrans.test_util import check_grads

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "image.json").read_text())
X = np.array(GOLDEN["image"])
METHODS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
# widths of kernels are float32 in jax
CLOSE = {"rtol": 1e-7, "atol": 1e-7}


@pytest.mark.parametrize("case", GOLDEN["resize"], ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_resize(case):
    method, shape, antialias, expected = case
    np.testing.assert_allclose(resize(X, shape, method, antialias), expected, **CLOSE)


@pytest.mark.parametrize("case", GOLDEN["scale_and_translate"],
                         ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_scale_and_translate(case):
    method, antialias, scale, move, expected = case

    def moved(scale, move):
        return scale_and_translate(X, (5, 6), (0, 1), scale, move, method, antialias)

    args = np.array(scale), np.array(move)
    np.testing.assert_allclose(moved(*args), expected, **CLOSE)
    np.testing.assert_allclose(ft.jit(moved)(*args), expected, **CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_and_lanes(method):
    check_grads(lambda x: resize(x, (2, 7), method), (X,), 1)
    many = np.stack([X, X[::-1]])
    lanes = ft.vmap(lambda x: resize(x, (3, 3), method))(many)
    np.testing.assert_allclose(lanes, resize(many, (2, 3, 3), method), rtol=1e-12, atol=1e-12)
    constant = resize(np.ones((4, 5)), (7, 2), method)
    np.testing.assert_allclose(constant, np.ones((7, 2)), rtol=1e-12)


def test_dtypes_and_methods():
    assert resize(X.astype(np.float32), (2, 2), "linear").dtype == np.float32
    assert resize(X.astype(np.int32), (2, 2), "nearest").dtype == np.int32
    assert resize(X.astype(np.int32), (2, 2), "linear").dtype == np.float32
    for names, method in ((("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
                          (("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC)):
        assert {ResizeMethod.from_string(n) for n in names} == {method}
    np.testing.assert_array_equal(resize(X, (2, 2), ResizeMethod.AREA), resize(X, (2, 2), "area"))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="there is no method 'linaer'"):
        resize(X, (2, 2), "linaer")
    with pytest.raises(ShapeError, match="the same axes"):
        resize(X, (2,), "linear")
    one, zero = np.ones(1), np.zeros(1)
    with pytest.raises(ArgumentError, match="'nearest'"):
        scale_and_translate(X, (4, 5), (0,), one, zero, "nearest")
    with pytest.raises(ShapeError, match="2 spatial_dims"):
        scale_and_translate(X, (4, 5), (0, 1), one, zero, "linear")
    with pytest.raises(ShapeError, match="axis 1 goes from 5 to 7"):
        scale_and_translate(X, (4, 7), (0,), one, zero, "linear")
    with pytest.raises(ArgumentError, match="one axis twice"):
        scale_and_translate(X, (4, 5), (0, -2), np.ones(2), np.zeros(2), "linear")
