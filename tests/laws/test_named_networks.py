"""Networks at real sizes whose schedules have failed or may: each compiled for C."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as n
from functrans.lowering.c.lower import lower as lower_to_c
from tests.laws.network_layers import ACTIVATIONS

SIZES = {"4096x512": (4096, 512), "1024x512": (1024, 512), "64x100x256": (64, 100, 256),
         "511x1000": (511, 1000)}


def typed(*shape, dtype="float32"):
    return ft.ShapeDtypeStruct(shape, dtype)


def c_text(fun, *args):
    lowered = ft.lower(fun, *args, target="cpu")
    program = lower_to_c(lowered.jaxpr, lowered.donated)
    return program.text.text


def activation_of(text):
    return eval(f"lambda x: {text}", {"n": n, "nn": nn, "lax": lax})


@pytest.mark.one_in(6)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_a_layer(activation, size):
    act, features = activation_of(activation), SIZES[size][-1]

    def loss(x, w, b):
        x = act(x @ w + b)
        return n.mean(x * x)

    assert c_text(ft.value_and_grad(loss, (0, 1, 2)), typed(*SIZES[size]),
                  typed(features, features), typed(features))


@pytest.mark.parametrize("activation", ["nn.gelu(x)", "nn.hard_tanh(x)", "nn.softplus(x)",
                                        "nn.mish(x)"])
@pytest.mark.parametrize("size", SIZES)
def test_gradients_of_a_layer_beside_its_input(activation, size):
    act, features = activation_of(activation), SIZES[size][-1]
    loss = lambda w, x: n.mean(n.tanh(x + act(x @ w)))
    assert c_text(ft.value_and_grad(loss, (0, 1)), typed(features, features), typed(*SIZES[size]))


def test_gradients_of_twelve_layers():
    def loss(params, x):
        for w, b in params:
            x = nn.gelu(x @ w + b)
        return n.mean(x * x)

    params = [(typed(512, 512), typed(512))] * 12
    assert c_text(ft.grad(loss), params, typed(4096, 512))


def test_gradients_after_a_recurrence():
    def loss(w, u, v, x):
        def cell(h, x):
            h = n.tanh(x @ w + h @ u)
            return h, h

        h = lax.scan(cell, n.zeros((64, 256), x.dtype), n.moveaxis(x, 1, 0))[1]
        return n.mean(n.square(h + nn.gelu(h @ v)))

    square = typed(256, 256)
    assert c_text(ft.grad(loss, (0, 1, 2)), square, square, square, typed(64, 100, 256))


@pytest.mark.parametrize("activation", ["nn.gelu(x)", "nn.hard_tanh(x)", "nn.softplus(x)"])
@pytest.mark.parametrize("shape", [(128, 64, 256), (128, 256)])
def test_norms_of_the_gradients_of_samples(activation, shape):
    act = activation_of(activation)

    def loss(params, x):
        w, b, v = params
        x = act(x @ w + b)
        return n.mean(n.tanh(x + act(x @ v)))

    params = (typed(256, 256), typed(256), typed(256, 256))
    assert c_text(ft.per_sample.norms(loss), params, typed(*shape))


@pytest.mark.parametrize("activation", ["nn.gelu(x)", "nn.hard_tanh(x)"])
def test_results_of_a_layer(activation):
    """The smallest sizes at which the epilogue of the product has two loops and asks ahead."""
    act = activation_of(activation)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4096, 256)).astype(np.float32)
    w = (rng.standard_normal((256, 256)) / 16).astype(np.float32)
    grad = ft.value_and_grad(lambda w, x: n.mean(n.square(x + act(x @ w))), (0, 1))
    found, expected = [], []
    for backend, outs in (("c", found), ("reference", expected)):
        with ft.config.use_backend(backend):
            outs += map(np.asarray, ft.tree.leaves(ft.jit(grad)(w, x)))
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5 * np.abs(e).max())


@pytest.mark.parametrize("activation", ["nn.gelu(x)", "nn.hard_tanh(x)"])
def test_gradients_of_a_layer_of_named_sizes(activation):
    act = activation_of(activation)
    loss = lambda w, x: n.mean(n.tanh(x + act(x @ w)))
    assert c_text(ft.grad(loss, (0, 1)), typed(512, 512), typed(ft.dim("B"), 512))
