"""Loops and branches in compiled programs: their values and derivatives are those of eager runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, tree
from functrans.core.config import use_backend
from functrans.core.errors import FunctransError

rng = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def compiled():
    with use_backend("c"):
        yield


def check(fun, *args, rtol=1e-9):
    """`jit(fun)` compiles, and gives what fun gives without jit."""
    program = ft.jit(fun)
    assert "ft_program" in program.lower(*args).compile().as_text()
    expected, found = tree.leaves(fun(*args)), tree.leaves(program(*args))
    assert len(expected) == len(found)
    for e, f in zip(expected, found, strict=True):
        assert e.dtype == f.dtype
        np.testing.assert_allclose(np.asarray(f), np.asarray(e), rtol=rtol, atol=1e-12)


def text_of(fun, *args):
    return ft.jit(fun).lower(*args).compile().as_text()


def newton(a):
    return lax.while_loop(lambda c: jnp.abs(c * c - a) > 1e-12 * a, lambda c: 0.5 * (c + a / c), a)


def grow(x, w):
    """A loop whose carry is a vector, and the number of its iterations."""
    return lax.while_loop(lambda c: (c[0] * c[0]).sum() < 1e3,
                          lambda c: (w @ c[0] + c[0] * 1.3, c[1] + 1), (x, 0))


def spin(x, n):
    """n iterations on x, of any shape."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) * 0.9 + x),
                          (np.int32(0), x))[1]


def nested(x):
    def outer(c, a):
        inner = lax.while_loop(lambda d: d < 20.0 * a, lambda d: d * d * 0.1 * x + d + 0.3 * a, c)
        return inner * 0.01, c

    c, ys = lax.scan(outer, x, np.arange(1.0, 6.0))
    return c + (ys ** 2).sum()


def choose(x):
    return lax.cond(x.sum() > 0.0, lambda x: lax.fori_loop(0, 60, lambda i, c: jnp.sin(c) + x, x),
                    lambda x: x * 2.0, x)


X = np.arange(8.0) * 0.1
W = rng.normal(size=(8, 8)) * 0.3


@pytest.mark.parametrize("fun, args", [
    (newton, (np.float64(30.0),)),
    (grow, (X, W)),
    (nested, (np.float64(0.5),)),
    (lambda x: lax.fori_loop(0, 100, lambda i, c: c * 0.9 + i, x), (np.float64(1.0),)),
    (lambda x: lax.scan(lambda c, a: (c * a + x, c), x, np.arange(5.0), reverse=True),
     (np.float64(0.3),)),
    (choose, (X,)),
    (choose, (-X,)),
    (lambda i, x: lax.switch(i, [lambda x: x, lambda x: x * x, lambda x: -x], x), (7, X)),
], ids=["while", "while vector", "nested", "fori", "reverse scan", "then", "else", "switch"])
def test_values(fun, args):
    check(fun, *args)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fun, args", [
    (lambda x: newton(x), (np.float64(30.0),)),
    (lambda x: (grow(x, W)[0] ** 2).sum(), (X,)),
    (lambda w: (grow(X, w)[0] ** 2).sum(), (W,)),
    (nested, (np.float64(0.5),)),
    (lambda x: choose(x).sum(), (X,)),
    (lambda x: spin(x, 9).sum(), (X,)),
], ids=["while", "carry", "constant", "nested", "cond", "vector"])
def test_derivatives(fun, args):
    check(ft.grad(fun), *args)
    check(lambda x: ft.jvp(fun, (x,), (x,)), *args)
    check(lambda x: ft.grad(lambda y: ft.grad(fun)(y).sum())(x), *args, rtol=1e-7)


def test_a_loop_that_records_nothing_since_it_does_not_run():
    check(ft.grad(lambda x: (grow(x, W)[0] ** 2).sum()), X * 1e3)
    check(lambda x: grow(x, W), X * 1e3)
    check(lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x), np.zeros(0))
    check(lambda x: lax.fori_loop(3, 3, lambda i, c: c * 2, x), X)


def test_records_grow_with_the_number_of_iterations():
    def fun(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.999 * x),
                              (np.int32(0), x))[1].sum()

    gradient = ft.jit(ft.grad(fun))
    for n in (0, 1, 15, 16, 17, 40, 2000):
        x = np.array([1.0, 1.0005])
        np.testing.assert_allclose(gradient(x, np.int32(n)), (n + 1) * (x * 0.999) ** n, rtol=1e-9)


def test_two_loops_decide_sizes_of_their_own():
    def fun(x):
        return newton(newton(x) + x) * nested(x)

    check(ft.grad(fun), np.float64(0.5))
    check(ft.value_and_grad(lambda x: lax.cond(x > 0, fun, newton, x)), np.float64(0.5))


def test_results_of_decided_sizes_are_evaluated():
    with np.errstate(all="ignore"):
        found = ft.grad(ft.jit(newton))(np.float64(30.0))
    np.testing.assert_allclose(found, 0.5 / np.sqrt(30.0), rtol=1e-9)


def test_concurrent_runs_decide_different_sizes():
    gradient = ft.jit(ft.grad(lambda x, n: spin(x, n).sum()))
    counts = [0, 1, 5, 30, 100, 17]
    expected = [np.asarray(ft.grad(lambda x, n=n: spin(x, n).sum())(X)) for n in counts]
    failures = []

    def work(k):
        for _ in range(50):
            if not np.allclose(gradient(X, np.int32(counts[k])), expected[k], rtol=1e-9):
                failures.append(k)

    gradient(X, np.int32(1))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(counts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# --- lanes


SPREAD = np.exp(rng.uniform(-6, 12, 256))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("lanes", [1, 7, 64, 251, 256])
def test_lanes_of_scalars_stop_at_different_times(lanes):
    check(ft.vmap(newton), SPREAD[:lanes])
    check(ft.grad(lambda x: ft.vmap(newton)(x).sum()), SPREAD[:lanes])
    check(ft.vmap(ft.grad(newton)), SPREAD[:lanes])


@pytest.mark.parametrize("width", [3, 16, 200])
def test_lanes_of_vectors_stop_at_different_times(width):
    x, n = rng.normal(size=(32, width)), rng.integers(0, 20, 32).astype(np.int32)
    check(ft.vmap(spin), x, n)
    check(ft.vmap(spin, (None, 0)), x[0], n)
    check(ft.vmap(ft.vmap(spin, (None, 0)), (0, None)), x[:5], n)
    check(ft.vmap(ft.jit(spin)), x, n)
    check(ft.grad(lambda x: ft.vmap(spin)(x, n).sum()), x)
    check(ft.vmap(ft.grad(lambda x, n: spin(x, n).sum())), x, n)
    check(lambda x: ft.jvp(lambda y: ft.vmap(spin)(y, n), (x,), (x * 0.1,)), x)


def test_lanes_share_a_matrix():
    x = rng.normal(size=(128, 8)) * np.exp(rng.uniform(-4, 1, (128, 1)))
    check(ft.vmap(grow, (0, None)), x, W)
    check(ft.grad(lambda w: (ft.vmap(grow, (0, None))(x, w)[0] ** 2).sum()), W)


@pytest.mark.parametrize("width", [(), (4,), (200,)])
def test_lanes_take_different_branches(width):
    x = rng.normal(size=(128, *width))
    check(ft.vmap(choose), x)
    check(ft.grad(lambda x: ft.vmap(choose)(x).sum()), x)
    check(ft.vmap(ft.grad(lambda x: choose(x).sum())), x)
    check(ft.vmap(ft.vmap(choose)), x.reshape(2, 64, *width))


def test_lanes_switch():
    branches = [lambda x: x, lambda x: lax.fori_loop(0, 50, lambda i, c: jnp.cos(c) * x, x),
                lambda x: lax.fori_loop(0, 30, lambda i, c: jnp.sin(c) + x, x)]
    x, which = 0.3 * rng.normal(size=(128, 4)), rng.integers(0, 3, 128).astype(np.int32)
    check(ft.vmap(lambda i, x: lax.switch(i, branches, x)), which, x)


def test_wide_lanes_are_apart():
    x, n = rng.normal(size=(32, 200)), rng.integers(0, 20, 32).astype(np.int32)
    text = text_of(ft.vmap(spin), x, n)
    assert "while" in text.split("ft_program")[0] and "scan" in text
    assert "scan" not in str(ft.make_jaxpr(ft.vmap(spin))(x, n))  # masks where NumPy evaluates


def test_collectives_keep_lanes_together():
    def fun(x):
        return lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + lax.pmax(x, "i"), c[1] + 1),
                              (x * 0.1, 0))[1]

    check(ft.vmap(fun, axis_name="i"), SPREAD)


# --- loops without a carry, on the threads


def test_iterations_on_threads():
    x = rng.normal(size=(64, 512))
    check(lambda x: lax.map(lambda v: spin(v, 20), x), x)
    assert "_map" in text_of(lambda x: lax.map(lambda v: lax.fori_loop(
        0, 200, lambda i, c: c * 0.9 + v - c.sum(), v), x), x)
    check(ft.grad(lambda x: lax.map(lambda v: spin(v, 20).sum(), x).sum()), x)


# --- callbacks and errors


def test_an_error_in_a_loop_that_records():
    def refuse(v):
        if v > 50.0:
            raise ValueError("too large")
        return v

    def fun(x):
        def body(c):
            seen = ft.pure_callback(refuse, ft.ShapeDtypeStruct((), np.float64),
                                    lax.stop_gradient(c.sum()))
            return c * 1.5 + 0.0 * seen

        return lax.while_loop(lambda c: c.sum() < 100.0, body, x).sum()

    gradient = ft.jit(ft.grad(fun))
    for _ in range(3):
        with pytest.raises((ValueError, FunctransError), match="too large"):
            gradient(np.ones(4))
    np.testing.assert_allclose(gradient(np.full(4, 30.0)), 1.0)


def test_an_error_in_a_branch_in_a_map():
    def refuse(v):
        raise ValueError("never")

    def fun(v):
        return lax.cond(v.sum() > 3.0, lambda v: ft.pure_callback(
            refuse, ft.ShapeDtypeStruct((), np.float64), v.sum()), lambda v: v.sum(), v)

    program = ft.jit(lambda x: lax.map(fun, x))
    np.testing.assert_allclose(program(np.zeros((8, 4))), np.zeros(8))
    with pytest.raises((ValueError, FunctransError), match="never"):
        program(np.ones((8, 4)))


# --- memory


def test_updates_of_the_carry_are_in_place():
    def fun(x):
        return lax.fori_loop(0, 1000, lambda i, c: c.at[i].set(i * 0.5), x)

    x = np.zeros(1000)
    check(fun, x)
    body = text_of(fun, x).split("static int body0")[1].split("static int ft_main")[0]
    assert "memcpy" not in body


def test_carries_that_change_places():
    check(lambda x: lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] + c[1]), (x, x * 2)), X)
    check(lambda x: lax.fori_loop(0, 4, lambda i, c: (c[1].at[i].set(i), c[0]), (x, x * 2)), X)
