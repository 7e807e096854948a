"""Arrays and programs on each GPU, and between any two: `pytest -m gpu tests/cuda`."""

import threading
from itertools import product

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 200)).astype("f4")
W = RNG.normal(size=(200, 64)).astype("f4")


def gpus():
    return ft.devices("gpu")


def loss(w, x):
    return (ft.nn.softmax(jnp.tanh(x @ w)) ** 2).sum()


def test_copies_between_any_two():
    for a, b in product(gpus(), gpus()):
        for n in (1, 1000, 1 << 22):  # of a large one the copy goes on when the source is gone
            x = np.arange(n, dtype="f4")
            there = ft.device_put(ft.device_put(x, a) * 2, b)
            assert there.device == b
            np.testing.assert_array_equal(there + 1, x * 2 + 1)


def test_a_program_is_the_same_on_each():
    expected = ft.grad(loss)(W, X)
    gradient = ft.jit(ft.grad(loss))
    for gpu in gpus():
        w, x = ft.device_put(W, gpu), ft.device_put(X, gpu)
        for _ in range(3):  # launches, then replays of a graph
            found = gradient(w, x)
            assert found.device == gpu
            np.testing.assert_allclose(found, expected, 1e-2, 1e-4)


def test_results_of_one_are_arguments_on_another():
    step = ft.jit(lambda x: jnp.sin(x) * 1.5 + x[::-1])
    x = expected = X
    for gpu in gpus() * 4:
        x = step(ft.device_put(x, gpu))
        expected = np.sin(expected) * 1.5 + expected[::-1]
    np.testing.assert_allclose(x, expected, 1e-4, 1e-4)


def test_arguments_on_two_are_an_error():
    for a, b in product(gpus(), gpus()):
        x, y = ft.device_put(X, a), ft.device_put(X, b)
        if a == b:
            np.testing.assert_array_equal(ft.jit(jnp.add)(x, y), X + X)
            continue
        with pytest.raises(ArgumentError, match="device_put"):
            ft.jit(jnp.add)(x, y)


def test_the_default_device_of_a_scope():
    for gpu in gpus():
        with ft.config.default_device(gpu):
            bits = ft.random.bits(ft.random.key(3), (1000,))
            assert jnp.zeros(3).device == bits.device == gpu
        with ft.config.default_device("cpu"):
            np.testing.assert_array_equal(bits, ft.random.bits(ft.random.key(3), (1000,)))


def test_memory_is_counted_where_it_is():
    for gpu in gpus():
        before = [g.memory_stats()["bytes_in_use"] for g in gpus()]
        x = ft.block_until_ready(ft.device_put(np.zeros(1 << 20, "f4"), gpu))
        after = [g.memory_stats()["bytes_in_use"] for g in gpus()]
        assert [b - a for a, b in zip(before, after, strict=True)] == [
            x.nbytes if g == gpu else 0 for g in gpus()]
        del x


def test_sharing_keeps_the_gpu():
    for gpu in gpus():
        x = ft.device_put(X, gpu)
        y = jnp.from_dlpack(x)
        assert y.device == gpu
        np.testing.assert_array_equal(y, X)


def test_sorts_and_factors_on_each():
    a = W.T @ W + 64 * np.eye(64, dtype="f4")
    f = ft.jit(lambda a, x: (jnp.sort(x, 0), jnp.linalg.cholesky(a), jnp.fft.fft(x[0]).real))
    for gpu in gpus():
        ordered, factor, transformed = f(ft.device_put(a, gpu), ft.device_put(X, gpu))
        np.testing.assert_array_equal(ordered, np.sort(X, 0))
        np.testing.assert_allclose(factor, np.linalg.cholesky(a), 1e-3, 1e-3)
        np.testing.assert_allclose(transformed, np.fft.fft(X[0]).real, 1e-3, 1e-3)


def test_a_thread_for_each():
    gradient = ft.jit(ft.grad(loss))
    expected = np.asarray(ft.grad(loss)(W, X))
    failures = []

    def work(gpu):
        try:
            w, x = ft.device_put(W, gpu), ft.device_put(X, gpu)
            for _ in range(50):
                np.testing.assert_allclose(gradient(w, x), expected, 1e-2, 1e-4)
        except Exception as error:  # shown below, where pytest sees it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in gpus() * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
