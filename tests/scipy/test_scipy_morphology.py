"""Morphology, connected parts and measurements beside scipy.ndimage."""

import numpy as np
import pytest
import scipy.ndimage

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import ndimage
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

both = Pair(ndimage, scipy.ndimage)
rng = np.random.default_rng(0)
MASK = rng.random((9, 11)) < 0.6
X = rng.integers(0, 9, (7, 8)) + 0.0
SHAPES = [None, np.ones((3, 3)), np.array([[1, 0, 1], [0, 1, 1]]), np.array([[1, 1]])]
LABELS = rng.integers(0, 4, X.shape)


@pytest.mark.parametrize("name", ["binary_erosion", "binary_dilation", "binary_opening",
                                  "binary_closing"])
def test_masks(name):
    for shape in SHAPES:
        for options in ({}, {"iterations": 2}, {"border_value": 1}):
            both(name, MASK, shape, **options)
        both(name, MASK, np.ones((3, 4)), origin=(1, -1))
    if name in ("binary_erosion", "binary_dilation"):
        both(name, MASK, iterations=-1)
        both(name, MASK, mask=rng.random(MASK.shape) < 0.5)


def test_other_masks():
    both("binary_fill_holes", MASK)
    both("binary_fill_holes", MASK, np.ones((3, 3)))
    both("binary_propagation", np.pad([[1]], (4, 4)), mask=MASK[:9, :9])
    for first, second in ((None, None), (np.array([[1, 0], [0, 1]]), None),
                          (np.array([[1, 0, 0]]), np.array([[0, 0, 1]]))):
        both("binary_hit_or_miss", MASK, first, second)
    for rank, steps in ((1, 1), (2, 2), (3, 2)):
        both("generate_binary_structure", rank, steps)
    both("iterate_structure", scipy.ndimage.generate_binary_structure(2, 1), 3)
    with pytest.raises(ShapeError, match="the same axes"):
        ndimage.binary_erosion(MASK, np.ones(3))


@pytest.mark.parametrize("name", [
    "grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
    "morphological_laplace", "white_tophat", "black_tophat"])
def test_grey_values(name):
    both(name, X, size=(3, 2))
    both(name, X, size=3, mode="wrap")
    both(name, X, footprint=np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0]]), mode="constant", cval=3.0)
    both(name, X, structure=np.array([[0.5, 1.0, 0.0]]))
    if name in ("grey_erosion", "grey_dilation"):
        both(name, X, size=(3, 4), origin=(1, -1))
    with pytest.raises(ArgumentError, match="needs size"):
        getattr(ndimage, name)(X)
    distinct = rng.permutation(20).reshape(4, 5) + 0.0
    check_grads(lambda x: getattr(ndimage, name)(x, size=2), (distinct,), 1)


def test_distances():
    for mask in (MASK, rng.random((4, 5, 6)) < 0.9):
        for sampling in (None, 0.7, tuple(np.arange(1.0, mask.ndim + 1))):
            both("distance_transform_edt", mask, sampling)
        for metric in ("chessboard", "taxicab"):
            both("distance_transform_cdt", mask, metric)
    with ft.default_dtypes("float64"):
        far, where = ndimage.distance_transform_edt(MASK, return_indices=True)
    steps = np.asarray(where) - np.indices(MASK.shape)
    same(np.sqrt((steps**2).sum(axis=0)), far)
    assert not MASK[tuple(np.asarray(where))].any()
    assert np.isinf(np.asarray(ndimage.distance_transform_edt(np.ones(3)))).all()
    assert ndimage.distance_transform_cdt(np.ones(3)).tolist() == [-1] * 3


def spiral(n):
    """One part that is as long as can be."""
    x = np.zeros((n, n), int)
    place, way = np.array([0, 0]), np.array([0, 1])
    x[0, 0] = 1
    for _ in range(n * n // 2 + n):
        ahead, beyond = place + way, place + 2 * way
        if (ahead < 0).any() or (ahead >= n).any() or (
                (beyond >= 0).all() and (beyond < n).all() and x[tuple(beyond)]):
            way = np.array([way[1], -way[0]])
            ahead = place + way
            if (ahead < 0).any() or (ahead >= n).any() or x[tuple(ahead)]:
                break
        place = ahead
        x[tuple(place)] = 1
    return x


def test_labels():
    for x in (MASK, spiral(17), 1 - spiral(17), rng.random((4, 5, 6)) < 0.4, np.zeros((3, 3)),
              np.ones((3, 3)), np.zeros((0, 3))):
        both("label", x)
        both("label", x, np.ones((3,) * x.ndim))
    many = np.stack([MASK, ~MASK])
    found = ft.jit(ft.vmap(ndimage.label))(many)
    for i in range(2):
        same((found[0][i], found[1][i]), scipy.ndimage.label(many[i]))
    with pytest.raises(ShapeError, match="the same from both sides"):
        ndimage.label(MASK, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert ndimage.find_objects(LABELS) == scipy.ndimage.find_objects(LABELS)
    with pytest.raises(ArgumentError, match="labels are traced"):
        ft.jit(lambda x: len(ndimage.find_objects(x)))(LABELS)


@pytest.mark.parametrize("name", [
    "sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
    "minimum_position", "maximum_position", "center_of_mass", "extrema"])
def test_measurements(name):
    distinct = rng.permutation(56).reshape(7, 8) + 0.0

    def flat(tree):
        return np.concatenate([np.ravel(np.asarray(v, float)) for v in ft.tree.leaves(tree)])

    for args in ((), (LABELS,), (LABELS, 2), (LABELS, [3, 1]), (LABELS[0], np.array([0, 2, 3]))):
        ours = getattr(ndimage, name)(distinct, *args)
        theirs = getattr(scipy.ndimage, name)(distinct, *args)
        same(flat(ours), flat(theirs), what=args)
    if "position" not in name and name != "extrema":
        def of(x):
            return jnp.stack(ft.tree.leaves(getattr(ndimage, name)(x, LABELS, [3, 1])))

        check_grads(of, (distinct,), 1)
        same(ft.jit(lambda x, i: ndimage.sum_labels(x, LABELS, i))(distinct, np.array([1, 3])),
             scipy.ndimage.sum_labels(distinct, LABELS, [1, 3]))
    with pytest.raises(ArgumentError, match="index without labels"):
        getattr(ndimage, name)(distinct, index=1)


def test_functions_of_labels():
    both("labeled_comprehension", X, LABELS, [1, 3, 9], lambda x: x.sum(), float, -1)
    with pytest.raises(ArgumentError, match="labels are traced"):
        ft.jit(lambda i: ndimage.labeled_comprehension(X, i, [1], jnp.sum, float, 0))(LABELS)


def test_filters_of_spectra():
    spectrum = np.fft.fft2(X)
    for name, value in (("fourier_gaussian", 1.3), ("fourier_uniform", (2, 3)),
                        ("fourier_shift", (1.5, -0.3))):
        both(name, spectrum, value)
        both(name, np.fft.rfft2(X), value, n=8)
    both("generic_filter", X, lambda v: v.max() - v.mean(), size=3)
    both("geometric_transform", X, lambda place: (place[0] * 0.9 + 0.2, place[1] * 0.7),
         rtol=1e-8, atol=1e-8)
