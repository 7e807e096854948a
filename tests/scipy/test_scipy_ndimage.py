"""functrans.scipy.ndimage beside scipy.ndimage: filters, ranks, splines, maps."""

import numpy as np
import pytest
import scipy.ndimage

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import ndimage
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

both = Pair(ndimage, scipy.ndimage)
rng = np.random.default_rng(0)
X, X3 = rng.standard_normal((7, 9)), rng.standard_normal((4, 5, 6))
MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]
PLACES = rng.uniform(-6, 14, (2, 40))
# SciPy's own splines of these modes are not through the values, by up to 1e-5 on short axes
ROUGH = {"reflect": 3e-3, "grid-mirror": 3e-3, "nearest": 1e-6}


@pytest.mark.parametrize("mode", MODES)
def test_correlations(mode):
    for weights, origin in (([1.0, 2.0, 3.0], 0), ([1.0, 2.0, 3.0], 1), ([1.0, 2.0, 3.0], -1),
                            ([1.0, 2.0, 3.0, 4.0], 0), ([1.0, 2.0, 3.0, 4.0], -1)):
        both("correlate1d", X, weights, 0, mode=mode, cval=1.5, origin=origin)
        both("convolve1d", X, weights, mode=mode, cval=1.5, origin=origin)
    kernel = rng.standard_normal((3, 4))
    for name in ("correlate", "convolve"):
        both(name, X, kernel, mode=mode, cval=1.0)
        both(name, X, kernel[:, :3], mode=mode, origin=(1, -1))


@pytest.mark.parametrize("mode", MODES)
def test_smooth_filters(mode):
    for order in (0, 1, 2, 3):
        both("gaussian_filter", X, 1.3, order, mode=mode, cval=0.7)
    both("gaussian_filter", X3, (1.0, 0, 0.5), mode=mode)
    both("gaussian_filter1d", X, 1.3, 0, radius=2, mode=mode)
    both("uniform_filter", X, (3, 4), mode=mode, cval=0.3)
    both("uniform_filter1d", X, 4, 0, mode=mode, origin=1)
    for name in ("sobel", "prewitt"):
        both(name, X3, 1, mode=mode, cval=0.4)
    both("laplace", X3, mode=mode)
    both("gaussian_laplace", X, 1.1, mode=mode)
    both("gaussian_gradient_magnitude", X, 1.1, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_ranks(mode):
    whole = (10 * X).astype(int)
    for name in ("median_filter", "minimum_filter", "maximum_filter"):
        both(name, X, size=(3, 4), mode=mode, cval=0.1)
        both(name, X, footprint=np.array([[1, 0, 1], [0, 1, 1]]), mode=mode)
        both(name, whole, 3, mode=mode, origin=1)
    both("rank_filter", X, -2, size=3, mode=mode)
    both("percentile_filter", X, 30, size=3, mode=mode)
    both("minimum_filter1d", X, 3, 0, mode=mode)
    both("maximum_filter1d", X, 4, mode=mode)


SPLINES = ["reflect", "mirror", "nearest", "grid-wrap", "wrap", "constant", "grid-constant",
           "grid-mirror"]


@pytest.mark.parametrize("mode", SPLINES)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5])
def test_maps(order, mode):
    atol = ROUGH.get(mode, 1e-9) if order > 1 else 1e-9
    known = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode) if order < 2 \
        else mode
    same(ndimage.map_coordinates(X, list(PLACES), order, mode, 0.8),
         scipy.ndimage.map_coordinates(X, PLACES, order=order, mode=known, cval=0.8), atol=atol)
    both("shift", X, (1.3, -2.4), order=order, mode=mode, cval=0.5, atol=atol)
    both("affine_transform", X, np.array([[0.9, 0.2], [-0.3, 1.1]]), (1.03, -0.52), order=order,
         mode=mode, output_shape=(6, 5), atol=atol)
    both("rotate", X3, 31, order=order, mode=mode, atol=atol)
    if order in (1, 3):
        both("zoom", X, (1.7, 0.6), order=order, mode=mode, atol=atol)
        both("rotate", X, -47, reshape=False, order=order, mode=mode, atol=atol)
        if mode not in ("constant", "wrap"):
            both("zoom", X, 1.7, order=order, mode=mode, grid_mode=True, atol=atol)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_splines_go_through_the_values(order):
    grid = np.meshgrid(np.arange(7.0), np.arange(9.0), indexing="ij")
    for mode in ("mirror", "reflect", "grid-wrap", "constant"):
        same(ndimage.map_coordinates(X, grid, order, mode), X, atol=1e-13)
    for mode in ("mirror", "grid-wrap"):
        both("spline_filter", X, order, mode=mode)


def test_quarters_and_matrices():
    both("rotate", X, 90)
    both("rotate", X3, 180, axes=(0, 2), order=1)
    both("affine_transform", X, [0.5, 2.0])
    both("affine_transform", X, np.array([[0.9, 0.2, 1], [-0.3, 1.1, 2], [0, 0, 1]]))
    same(ndimage.center_of_mass(X), scipy.ndimage.center_of_mass(X))


def test_integers_are_rounded():
    x = np.arange(5)
    out = ndimage.map_coordinates(x, [np.array([0.4, 0.5, 2.5])], 1)
    assert out.dtype == x.dtype and out.tolist() == [0, 1, 3]


def test_derivatives():
    at = np.array([0.3, 2.6, 4.4])
    check_grads(lambda x, a: ndimage.map_coordinates(x, [a, a * 0.7 + 1], 3, "mirror"), (X, at), 1)
    check_grads(lambda x, a: ndimage.rotate(x, a, reshape=False, order=1, mode="mirror"),
                (X, np.array(20.0)), 1)
    check_grads(lambda x, s: ndimage.gaussian_filter(x, s, radius=3), (X, np.array(1.2)), 1)
    loop = np.stack([ndimage.gaussian_filter(x, 1.0) for x in X3])
    same(ft.jit(ft.vmap(lambda x: ndimage.gaussian_filter(x, 1.0)))(X3), loop)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="sigma is traced"):
        ft.jit(lambda s: ndimage.gaussian_filter1d(X, s))(1.0)
    with pytest.raises(ArgumentError, match="angle is traced"):
        ft.jit(lambda a: ndimage.rotate(X, a))(1.0)
    with pytest.raises(ShapeError, match="each axis has one"):
        ndimage.map_coordinates(X, [np.ones(3)], 1)
    with pytest.raises(ArgumentError, match="order"):
        ndimage.map_coordinates(X, PLACES, 6)
    with pytest.raises(ArgumentError, match="size or footprint"):
        ndimage.median_filter(X)
    with pytest.raises(ArgumentError, match="mode"):
        ndimage.correlate1d(X, [1.0], mode="edge")
    with pytest.raises(ArgumentError, match="output"):
        ndimage.correlate1d(X, [1.0], output=X)
