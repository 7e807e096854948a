"""Filters of the user's functions, regions and brute distances beside scipy.ndimage."""

import numpy as np
import pytest
import scipy.ndimage

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.scipy import ndimage
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(0)
both = Pair(ndimage, scipy.ndimage)
SHAPES = [(9,), (6, 7), (4, 5, 3)]
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")


@pytest.mark.parametrize("shape", SHAPES)
def test_functions_of_the_user(shape):
    x = rng.standard_normal(shape)
    ones = (2,) * len(shape)

    def written(line, out):
        out[...] = line[:-3] + 2 * line[3:]

    for mode in MODES:
        same(ndimage.generic_filter1d(x, lambda v: v[:-3] + 2 * v[3:], 4, 0, mode=mode, cval=1.0,
                                      origin=-1),
             scipy.ndimage.generic_filter1d(x, written, 4, 0, mode=mode, cval=1.0, origin=-1))
        same(ndimage.generic_gradient_magnitude(x, ndimage.sobel, mode=mode),
             scipy.ndimage.generic_gradient_magnitude(x, scipy.ndimage.sobel, mode=mode))
        more = {"cval": 2.0} if mode == "constant" else {}
        same(ndimage.vectorized_filter(x, jnp.mean, size=3, mode=mode, **more),
             scipy.ndimage.vectorized_filter(x, np.mean, size=3, mode=mode, **more))
        same(ndimage.vectorized_filter(x, jnp.max, size=ones, origin=-1, mode=mode, **more),
             scipy.ndimage.vectorized_filter(x, np.max, size=ones, origin=-1, mode=mode, **more))
    footprint = rng.random((3,) * len(shape)) > 0.4
    for options in ({"footprint": footprint}, {"size": 3, "mode": "valid"}, {"size": 3, "axes": 0}):
        same(ndimage.vectorized_filter(x, jnp.median, **options),
             scipy.ndimage.vectorized_filter(x, np.median, **options), what=options)


def test_derivatives_and_errors_of_filters():
    x = rng.standard_normal((4, 5))
    same(ndimage.vectorized_filter(x, jnp.mean, size=(3, 2), axes=(1, 0)),
         scipy.ndimage.vectorized_filter(x, np.mean, size=(3, 2), axes=(1, 0)))
    check_grads(lambda x: ndimage.vectorized_filter(x, jnp.std, size=3), (x,), 1)
    check_grads(lambda x: ndimage.generic_gradient_magnitude(x, ndimage.prewitt), (x,), 1)
    for wrong in (lambda: ndimage.generic_filter1d(x, lambda line, out: None, 3),
                  lambda: ndimage.vectorized_filter(x, jnp.mean),
                  lambda: ndimage.vectorized_filter(x, jnp.mean, size=3, cval=1.0),
                  lambda: ndimage.fourier_ellipsoid(np.ones((2,) * 4), 1.0)):
        with pytest.raises(ArgumentError, match="ndimage"):
            wrong()
    for wrong in (lambda: ndimage.generic_filter1d(x, lambda line: line, 3),
                  lambda: ndimage.vectorized_filter(x, jnp.mean, size=9, mode="valid")):
        with pytest.raises(ShapeError, match="ndimage"):
            wrong()


@pytest.mark.parametrize("shape", SHAPES)
def test_distances_and_ellipsoids(shape):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    both("fourier_ellipsoid", x, 2.5)
    both("fourier_ellipsoid", x.real, [1.5] * len(shape), 10, -1)
    mask = rng.random(shape) > 0.3
    for metric in ("euclidean", "taxicab", "chessboard"):
        both("distance_transform_bf", mask, metric, return_indices=True)
    both("distance_transform_bf", mask, sampling=2.5, return_indices=True)
    both("distance_transform_bf", mask, return_distances=False, return_indices=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_regions(shape):
    x, labels = rng.standard_normal(shape), rng.integers(0, 4, shape)
    for more in ((), (labels,), (labels, 2)):
        both("histogram", x, -1, 1, 5, *more)
    rows = np.stack(scipy.ndimage.histogram(x, -1, 1, 5, labels, [1, 3]))
    same(ft.jit(lambda x: ndimage.histogram(x, -1, 1, 5, labels, [1, 3]))(x), rows)
    found, known = (m.value_indices(labels, ignore_value=1) for m in (ndimage, scipy.ndimage))
    assert found.keys() == known.keys()
    for value in known:
        same(found[value], known[value])


def costs(image, seeds):
    """Of each label the least largest step of a path to each element, from its markers."""
    found = {}
    for label in np.unique(seeds[seeds != 0]):
        cost = np.where(seeds == label, 0, 1000)
        for _ in range(image.size):
            before = cost.copy()
            for axis in range(image.ndim):
                for step in (1, -1):
                    near, other = np.roll(cost, step, axis), np.roll(image.astype(int), step, axis)
                    edge = [slice(None)] * image.ndim
                    edge[axis] = 0 if step == 1 else -1
                    near[tuple(edge)] = 1000
                    through = np.maximum(near, np.abs(other - image))
                    cost = np.where(seeds == 0, np.minimum(cost, through), cost)
            if (cost == before).all():
                break
        found[int(label)] = cost
    return found


def test_watersheds_are_cheapest():
    both("watershed_ift", np.array([[0, 0, 9, 1, 0]], np.uint8), np.array([[1, 0, 0, 0, -2]]))
    for shape in ((6, 7), (3, 4, 5)):
        image = rng.integers(0, 20, shape).astype(np.uint16)
        seeds = np.where(rng.random(shape) > 0.9, rng.integers(-3, 4, shape), 0)
        labels = np.asarray(ndimage.watershed_ift(image, seeds))
        # a path goes through elements whose label is its own, and costs no more than another's
        of_each = costs(image, seeds)
        least = np.min(list(of_each.values()), axis=0)
        chosen = np.choose(np.searchsorted(sorted(of_each), labels),
                           [of_each[i] for i in sorted(of_each)])
        assert (chosen == least)[seeds == 0].all()
        assert (labels == seeds)[seeds != 0].all()
    structure = np.ones((3, 3))
    both("watershed_ift", np.zeros((2, 3), np.uint8), np.array([[1, 0, 0], [0, 0, 0]]), structure)
    with pytest.raises(DTypeError, match="uint8"):
        ndimage.watershed_ift(np.ones((2, 2)), np.ones((2, 2), int))
    with pytest.raises(DTypeError, match="integers"):
        ndimage.value_indices(np.ones(2))
    with pytest.raises(ArgumentError, match="before jit"):
        ft.jit(lambda x: ndimage.watershed_ift(x, x))(np.ones(2, np.uint8))


def test_some_axes_and_empty_arrays():
    x, footprint = rng.standard_normal((5, 6, 4)), np.array([[0, 1, 0], [1, 1, 1]])
    for name in ("maximum_filter", "minimum_filter", "median_filter"):
        both(name, x, size=3, axes=(0,))
        both(name, x, size=(2, 3), axes=(0, 2), origin=(0, 1), mode="wrap")
        both(name, x, footprint=footprint, axes=(0, 2), mode="nearest")
    both("rank_filter", x, -2, size=3, axes=(-1,))
    both("percentile_filter", x, 30, size=(3, 2), axes=(1, 2))
    both("correlate", x, np.arange(6.0).reshape(2, 3), axes=(2, 0), origin=(0, -1))
    both("convolve", x, np.arange(3.0), axes=1, mode="wrap")
    both("gaussian_gradient_magnitude", x + 1j * x[::-1], 1.0)
    empty = np.zeros((0, 4))
    for name, args in (("gaussian_filter", (1.0,)), ("uniform_filter", (3,)), ("sobel", ()),
                       ("median_filter", (3,)), ("maximum_filter", (3,)), ("laplace", ()),
                       ("correlate", (np.ones((2, 3)),))):
        both(name, empty, *args)
