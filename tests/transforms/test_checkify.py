"""Errors as values: what is found, in every transform, and what is said of it."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import (
    ArgumentError,
    FailedCheckError,
    NotFiniteError,
    OutOfBoundsError,
)
from functrans.experimental import checkify

X = np.array([1.0, -2.0, 3.0])
RUNS = pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])


def several(x):
    checkify.check(x.sum() > 0, "{} must be positive, as {other}", x.sum(), other=3)
    return jnp.log(x)[jnp.array(5)]


@RUNS
@pytest.mark.parametrize(("errors", "x", "kind", "text"), [
    (checkify.user_checks, X, None, ""),
    (checkify.user_checks, -X, FailedCheckError, r"-2.0 must be positive, as 3"),
    (checkify.nan_checks, X, NotFiniteError, "log gave NaN in 1 of 3"),
    (checkify.index_checks, X, OutOfBoundsError, "index 5 is out of bounds"),
    (checkify.all_checks, X, NotFiniteError, "log gave NaN"),
    (checkify.all_checks, -X, FailedCheckError, "must be positive"),
    (checkify.float_checks, 0 * X + 1, None, ""),
])
def test_kinds(run, errors, x, kind, text):
    error, out = run(checkify.checkify(several, errors))(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(out, np.log(x)[2])
    if kind is None:
        assert error.get() is None and error.get_exception() is None
        error.throw()
    else:
        assert type(error.get_exception()) is kind
        with pytest.raises(kind, match=text):
            error.throw()


@RUNS
def test_divisions_by_zero(run):
    error, _ = run(checkify.checkify(lambda x: 1 / x, checkify.div_checks))(X * 0)
    assert "div gave infinities in 3 of 3" in error.get()
    error, _ = run(checkify.checkify(lambda x: 0 / x, checkify.div_checks))(X)
    assert error.get() is None


@RUNS
@pytest.mark.parametrize(("f", "x", "text"), [
    (lambda x: ft.lax.fori_loop(0, 5, lambda i, c: jnp.log(c) - 1, x), 3.0, "iteration 2"),
    (lambda x: ft.lax.while_loop(lambda c: c > -9, lambda c: jnp.sqrt(c) - 2, x), 4.0, "iteration"),
    (lambda x: ft.lax.cond(x > 0, jnp.log, jnp.sqrt, x), -3.0, "sqrt gave NaN"),
    (ft.grad(lambda x: jnp.sqrt(x * 0)), 2.0, "the backward pass"),
    (ft.vmap(jnp.log), X, "1 of 3"),
    (ft.jit(jnp.log), -1.0, "log gave NaN"),
])
def test_what_is_inside(run, f, x, text):
    error, _ = run(checkify.checkify(f, checkify.float_checks))(x)
    assert text in error.get()


@RUNS
def test_elements_of_vmap_have_errors_of_their_own(run):
    f = checkify.checkify(lambda x, y: jnp.log(x) * y, checkify.nan_checks)
    error, out = run(ft.vmap(f, (0, None)))(X, 2.0)
    assert "a is f64[] -2" in error.get()
    np.testing.assert_allclose(out[::2], 2 * np.log(X[::2]))
    error, _ = run(ft.vmap(f, (0, None)))(abs(X), 2.0)
    assert error.get() is None


def test_errors_are_handed_on():
    def inner(x):
        error, out = checkify.checkify(jnp.log, checkify.nan_checks)(x)
        checkify.check_error(error)
        return out

    with pytest.raises(NotFiniteError, match="log gave NaN"):
        inner(-1.0)
    error, _ = ft.jit(checkify.checkify(inner))(-1.0)
    assert "a checkified function found an error" in error.get()
    error, out = ft.jit(checkify.checkify(inner))(1.0)
    assert error.get() is None and out == 0
    assert checkify.init_error().get() is None


def test_debug_checks_are_for_checkified_functions():
    def f(x):
        checkify.debug_check(x > 0, "not positive")
        return x

    assert f(-1.0) == -1
    error, _ = checkify.checkify(f)(-1.0)
    assert "not positive" in error.get()


def test_questions_too_early_and_other_kinds():
    def asks(x):
        error, out = checkify.checkify(jnp.log, checkify.nan_checks)(x)
        return error.get(), out

    with pytest.raises(ArgumentError, match="is traced"):
        ft.jit(asks)(1.0)
    with pytest.raises(ArgumentError, match="errors="):
        checkify.checkify(jnp.log, "everything")


@RUNS
def test_a_value_may_be_a_tree(run):
    def f(tree):
        checkify.check(tree["a"].sum() > 0, "of {tree} and {n}", tree=tree, n=3)
        checkify.check(tree["a"].sum() < 9, "too much", tree=tree)
        return tree["a"]

    error, _ = run(checkify.checkify(f))({"a": jnp.array([-1.0]), "b": (2.0,)})
    assert error.get().startswith("of {'a': Array([-1.]), 'b': (Array(2.0),)} and 3")
    assert run(checkify.checkify(f))({"a": jnp.array([1.0]), "b": ()})[0].get() is None


def test_messages_have_the_words_of_jax():
    error, _ = checkify.checkify(lambda x, i: x[i], checkify.index_checks)(jnp.ones(2), 10)
    assert "out-of-bounds" in error.get()
    error, _ = checkify.checkify(lambda x, y: x / y, checkify.div_checks)(jnp.ones(2), 0)
    assert "division by zero" in error.get()


@RUNS
def test_keys_among_the_values(run):
    def f(key):
        checkify.check(ft.random.key_data(key)[1] > 9, "a key: {key}", key=key)
        return ft.random.normal(key)

    error, _ = run(checkify.checkify(f))(ft.random.key(3))
    assert error.get().startswith("a key:") and "key<fry>[]" in error.get()
