"""Kernels of every form that read a dozen rows for all rows of a tile, and columns, too."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import program_of

COUNT = 12


def mixed(y, v, c):
    """Results that need all rows of `v`, and a column."""
    for k in range(COUNT):
        y = jnp.tanh(y * v[k]) + c[:, None]
    return y


def convolution(x, w, v):
    y = ft.lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))
    for k in range(COUNT):
        y = jnp.tanh(y * v[k])
    return y


def loop(h, w, v, c):
    return ft.lax.fori_loop(0, 3, lambda _, h: mixed(h @ w, v, c), h)


FORMS = {
    "product": (lambda x, w, v, c: mixed(x @ w, v, c), "mk kn vn m"),
    "gradient": (lambda x, w, v, c: ft.grad(lambda w: mixed(x @ w, v, c).sum())(w), "mk kn vn m"),
    "batch": (lambda x, w, v, c: ft.vmap(mixed, (0, None, None))(x @ w, v, c), "bmk bkn vn m"),
    "column": (lambda x, w, v, c: mixed(x @ w[:, :1], v[:, :1], c), "mk kn vn m"),
    "two results": (lambda x, w, v, c: ((y := x @ w), mixed(y, v, c)), "mk kn vn m"),
    "sum of rows": (lambda y, v, c: mixed(y, v, c).sum(1), "mn vn m"),
    "sum of columns": (lambda y, v, c: mixed(y, v, c).sum(0), "mn vn m"),
    "softmax": (lambda y, v, c: ft.nn.softmax(mixed(y, v, c)), "mn vn m"),
    "transposed": (lambda y, v, c: mixed(y.T, v, c), "nm vn m"),
    "convolution": (convolution, "bssk ttkn vn"),
    "loop": (loop, "mn nn vn m"),
}
LARGE = {"b": 4, "m": 512, "k": 256, "n": 512, "v": COUNT, "s": 32, "t": 3}
SMALL = {"b": 2, "m": 6, "k": 5, "n": 9, "v": COUNT, "s": 4, "t": 3}


def shapes(letters, sizes):
    return [tuple([sizes[x] for x in word]) for word in letters.split()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [LARGE, SMALL], ids=["large", "small"])
def test_kernels_are_compiled(form, sizes):
    fun, letters = FORMS[form]
    types = [ft.ShapeDtypeStruct(shape, np.float32) for shape in shapes(letters, sizes)]
    compile_kernels(program_of(fun, *types)[1])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", FORMS)
def test_kernels_compute_what_numpy_does(form):
    fun, letters = FORMS[form]
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape).astype("f") for shape in shapes(letters, SMALL)]
    with ft.config.use_backend("reference"):
        expected = ft.tree.leaves(ft.jit(fun)(*args))
    with ft.config.use_backend("triton"):
        found = ft.tree.leaves(ft.jit(fun)(*args))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=0, atol=4e-3)  # TF32
