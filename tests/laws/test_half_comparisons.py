"""Gradients in half precision where what is equal to a result decides: not lost to rounding."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as n
from tests.laws.network_checks import distances

RNG = np.random.default_rng(0)
W = (RNG.standard_normal((33, 24)) / 6).astype(np.float32)
V = (RNG.standard_normal((24, 24)) / 5).astype(np.float32)
X = RNG.standard_normal((300, 33)).astype(np.float32)

CHOICES = {
    "clip": lambda x: n.clip(x, -0.5, 0.5),
    "maximum": lambda x: n.maximum(x, n.roll(x, 1, -1)),
    "minimum": lambda x: n.minimum(x, n.roll(x, 1, 0)),
    "cummax": lambda x: lax.cummax(x, 1),
    "cummin_down": lambda x: lax.cummin(x, 0),
    "max": lambda x: n.max(x, -1),
    "min_down": lambda x: n.min(x, 0),
    "centred_max": lambda x: n.max(x - n.mean(x, 0), -1),
    "sort": lambda x: n.sort(x, -1)[:, :7],
    "top_k": lambda x: lax.top_k(x, 3)[0],
    "median": lambda x: n.median(x, -1),
    "max_pooling": lambda x: lax.reduce_window_max(x, (1, 4), (1, 4), "VALID"),
    "relu6": nn.relu6,
    "hard_tanh": nn.hard_tanh,
}


IN_TRITON = ("clip", "cummax", "max", "relu6")  # the interpreter is slow


@pytest.mark.one_in(6)
@pytest.mark.parametrize("backend, choice, dtype", [
    *[("c", c, t) for c in CHOICES for t in ("bfloat16", "float16")],
    *[("triton", c, "bfloat16") for c in IN_TRITON]])
def test_gradients_through_choices(backend, choice, dtype):
    rows = len(X) if backend == "c" else 24

    def loss(w, v, x):
        x = n.tanh(nn.standardize(x @ w, axis=0) @ v)
        return n.sum(n.square(CHOICES[choice](x) - 1)) / 100

    def gradients(backend, dtype):
        with ft.config.use_backend(backend):
            found = ft.jit(ft.grad(loss, (0, 1, 2)))(*[a.astype(dtype) for a in (W, V, X[:rows])])
        return [np.asarray(g).astype(np.float64) for g in found]

    expected = gradients("reference", "float64")
    found = distances(gradients(backend, dtype), expected)
    known = distances(gradients("reference", dtype), expected)
    for far, of_numpy in zip(found, known, strict=True):
        assert far <= 3 * of_numpy + 0.2, (found, known)  # ties; what is lost is 0.5 to 1


@pytest.mark.parametrize("backend, dtype", [("c", "bfloat16"), ("c", "float16"),
                                            ("triton", "bfloat16")])
def test_places_are_those_of_the_values_that_are_stored(backend, dtype):
    def fun(x, w):
        y = n.tanh(x @ w)
        return y, n.argmax(y, -1), n.sum(n.where(y == n.max(y, -1, keepdims=True), 1, 0), -1)

    with ft.config.use_backend(backend):
        y, place, count = map(np.asarray, ft.jit(fun)(X[:24].astype(dtype), W.astype(dtype)))
    y = y.astype(np.float32)
    np.testing.assert_array_equal(place, np.argmax(y, -1))
    np.testing.assert_array_equal(count, np.sum(y == y.max(-1, keepdims=True), -1))
