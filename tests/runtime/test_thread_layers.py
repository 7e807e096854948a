"""Threads of OpenMP in place of our own: the same results, to the bit, also after a fork."""

import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from tests.forks import holds_in_child

X = np.random.default_rng(0).standard_normal((300, 700)).astype("f")


@ft.jit
def program(x):
    """A product, rows, columns, a sort, a sum of all, and loops."""
    rows = jnp.exp(x - x.max(1, keepdims=True))
    steps = ft.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) * 0.9 + i, x)
    return x @ x.T, rows / rows.sum(1, keepdims=True), x.sum(0), jnp.sort(x), steps.sum(), x.std()


def values():
    return [np.asarray(out) for out in program(X)]


@pytest.fixture
def four_threads():
    with ft.config.threads(count=4):
        yield


def test_both_layers_give_the_same_bits(four_threads):
    expected = values()
    with ft.config.threads("openmp"):
        assert ft.config.thread_layer() == "openmp"
        for _ in range(3):
            for a, b in zip(values(), expected, strict=True):
                np.testing.assert_array_equal(a, b)
    assert ft.config.thread_layer() == "functrans"


def test_several_python_threads(four_threads):
    expected, wrong = values(), []

    def work():
        for _ in range(5):
            wrong.extend(k for k, (a, b) in enumerate(zip(values(), expected, strict=True))
                         if not (a == b).all())

    with ft.config.threads("openmp"):
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong


def test_a_child_of_fork_has_threads_of_its_own(four_threads):
    expected = values()

    def same_on_own_threads():
        same = all((a == b).all() for a, b in zip(values(), expected, strict=True))
        return same and ft.config.thread_layer() == "functrans"

    with ft.config.threads("openmp"):
        values()
        # it would wait forever for threads that did not come along
        assert holds_in_child(same_on_own_threads, seconds=20)


def test_settings():
    before = ft.config.num_threads()
    with ft.config.threads("functrans", 3):
        assert ft.config.num_threads() == 3
        ft.config.threads(count=2)
        assert ft.config.num_threads() == 2
    assert ft.config.num_threads() == before
    with pytest.raises(ArgumentError, match="'functrans' or 'openmp', not 'tbb'"):
        ft.config.threads("tbb")
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        ft.config.threads(count=0)
