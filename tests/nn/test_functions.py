"""Softmax and its relatives, against golden numbers (jax 0.10), formulas, and at extremes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

nn = ft.nn
GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "nn.json").read_text())
M, B, CT = (np.array(GOLDEN[k]) for k in ("m", "b", "ct"))
MASK = np.array(GOLDEN["mask"])
AXES = {"-1": -1, "0": 0, "(0, 1)": (0, 1), "None": None}
CASES: dict[str, Any] = {
    "softmax where": lambda m: nn.softmax(m, where=MASK),
    "log_softmax where": lambda m: nn.log_softmax(m, where=MASK),
    "logsumexp where": lambda m: nn.logsumexp(m, axis=1, where=MASK),
    "logmeanexp where": lambda m: nn.logmeanexp(m, axis=1, where=MASK),
    "standardize where": lambda m: nn.standardize(m, where=MASK),
    "logsumexp b keepdims": lambda m: nn.logsumexp(m, axis=1, b=np.abs(B), keepdims=True),
    "logsumexp sign 0": lambda m: nn.logsumexp(m, axis=1, b=B, return_sign=True)[0],
    "logsumexp sign 1": lambda m: nn.logsumexp(m, axis=1, b=B, return_sign=True)[1],
    "log1mexp": lambda m: nn.log1mexp(jnp.abs(m) + 0.1),
    "glu": nn.glu, "glu 1": lambda m: nn.glu(m, axis=1)}
for _name in ("softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"):
    for _text, _axis in AXES.items():
        CASES[f"{_name} {_text}"] = partial(getattr(nn, _name), axis=_axis)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", sorted(GOLDEN["functions"]))
def test_golden_values_and_gradients(name: str) -> None:
    f, golden = CASES[name], GOLDEN["functions"][name]
    value = np.asarray(f(M))
    assert list(value.shape) == golden["shape"]
    expected = np.array([np.nan if v is None else v for v in golden["value"]])
    got = np.where(np.isfinite(value), value, np.nan).ravel()
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)

    def loss(m: Any) -> Any:
        out = f(m)
        return (jnp.where(jnp.isfinite(out), out, 0) * np.resize(CT, value.shape)).sum()

    np.testing.assert_allclose(np.asarray(ft.grad(loss)(M)), golden["grad"], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(np.asarray(ft.jit(f)(M)), value, rtol=1e-12)
    stacked = np.stack([M, M[::-1]])
    np.testing.assert_allclose(np.asarray(ft.vmap(f)(stacked))[1], np.asarray(f(M[::-1])),
                               rtol=1e-12)


@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp,
                               nn.standardize])
def test_second_derivatives(f: Any) -> None:
    gradient = ft.grad(lambda m: (f(m) * np.resize(CT, np.shape(f(m))) ** 2).sum())
    t = np.random.default_rng(0).normal(size=M.shape)
    _, second = ft.jvp(gradient, (M,), (t,))
    steps = (np.asarray(gradient(M + 1e-6 * t)) - np.asarray(gradient(M - 1e-6 * t))) / 2e-6
    np.testing.assert_allclose(np.asarray(second), steps, rtol=1e-5, atol=1e-7)


def test_no_overflow() -> None:
    x = np.array([1e4, -1e4, 1e4], np.float32)
    np.testing.assert_allclose(np.asarray(nn.softmax(x)), [0.5, 0, 0.5])
    np.testing.assert_allclose(np.asarray(nn.log_softmax(x)),
                               [-np.log(2), -2e4 - np.log(2), -np.log(2)], rtol=1e-6)
    assert float(nn.logsumexp(x)) == pytest.approx(1e4 + np.log(2))
    for f in (nn.softmax, nn.log_softmax, nn.logsumexp):
        assert np.isfinite(np.asarray(ft.grad(lambda x, f=f: f(x).ravel()[0])(x))).all()


def test_rows_of_minus_infinity() -> None:
    x = np.full(3, -np.inf)
    assert float(nn.logsumexp(x)) == -np.inf
    assert np.asarray(ft.grad(nn.logsumexp)(x)).tolist() == [0, 0, 0]
    mixed = np.array([-np.inf, 1.0, 1.0])
    np.testing.assert_allclose(np.asarray(ft.grad(nn.logsumexp)(mixed)), [0, 0.5, 0.5])
    np.testing.assert_allclose(np.asarray(nn.softmax(mixed)), [0, 0.5, 0.5])


@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_masked_elements_do_not_matter(f: Any) -> None:
    """Whatever a mask hides, NaN included, changes neither the result nor the gradient."""
    hidden = np.where(MASK, M, np.nan)
    loss = lambda m: jnp.where(jnp.isfinite(f(m, axis=-1, where=MASK)),
                               f(m, axis=-1, where=MASK), 0).sum()
    np.testing.assert_array_equal(np.asarray(f(hidden, axis=-1, where=MASK)),
                                  np.asarray(f(M, axis=-1, where=MASK)))
    slope = np.asarray(ft.grad(loss)(hidden))
    assert (slope[~MASK] == 0).all() and np.isfinite(slope).all()


def test_masks_that_hide_everything() -> None:
    none = np.zeros(4, bool)
    assert np.asarray(nn.softmax(M, where=none)).tolist() == np.zeros((3, 4)).tolist()
    assert np.isneginf(np.asarray(nn.log_softmax(M, where=none))).all()
    assert np.isneginf(np.asarray(nn.logsumexp(M, where=none)))
    slope = ft.grad(lambda m: nn.softmax(m, where=none).sum())(M)
    assert (np.asarray(slope) == 0).all()


def test_initial_changes_nothing() -> None:
    np.testing.assert_allclose(np.asarray(nn.softmax(M, where=MASK, initial=5.0)),
                               np.asarray(nn.softmax(M, where=MASK)), rtol=1e-12)


def test_signs_and_zero_weights() -> None:
    a, b = np.array([0.0, 800.0, np.inf]), np.array([-1.0, 0.0, 0.0])
    value, sign = nn.logsumexp(a, b=b, return_sign=True)
    assert (float(value), float(sign)) == (0.0, -1.0)
    assert np.isnan(float(nn.logsumexp(a, b=b)))


def test_complex_logsumexp() -> None:
    z = np.array([1 + 2j, 0.5 - 1j])
    np.testing.assert_allclose(np.asarray(nn.logsumexp(z)), np.log(np.exp(z).sum()))


def test_standardize_with_a_large_mean() -> None:
    x = np.array([1e4, 1e4 + 1, 1e4 + 2], np.float32)
    np.testing.assert_allclose(np.asarray(nn.standardize(x)), [-1.2247, 0, 1.2247], atol=1e-3)
    given = np.asarray(nn.standardize(M, mean=1.0, variance=4.0, epsilon=0.0))
    np.testing.assert_allclose(given, (M - 1) / 2)
    fast = nn.standardize(M, algorithm="fast")
    np.testing.assert_allclose(np.asarray(fast), np.asarray(nn.standardize(M)), rtol=1e-9)
    assert nn.normalize is nn.standardize
    with pytest.raises(ValueError, match="slow"):
        nn.standardize(M, algorithm="slow")


def test_one_hot() -> None:
    x = np.array([[0, 2], [3, -1]])
    expected = np.array([[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]])
    hot = nn.one_hot(x, 3)
    assert hot.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(hot), expected)
    for axis in (0, 1, -2, -3):
        np.testing.assert_array_equal(np.asarray(nn.one_hot(x, 3, axis=axis)),
                                      np.moveaxis(expected, -1, axis))
    assert nn.one_hot(1, 3, dtype=np.int8).dtype == np.int8
    assert nn.one_hot(np.array(1), 3).tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(np.asarray(ft.vmap(lambda i: nn.one_hot(i, 3))(x)), expected)


def test_log1mexp_is_accurate_at_both_ends() -> None:
    x = np.array([1e-10, 1e-3, 0.5, np.log(2), 1.0, 40.0])
    with mpmath.workdps(50):
        expected = [float(mpmath.log(1 - mpmath.exp(-mpmath.mpf(v)))) for v in x.tolist()]
    np.testing.assert_allclose(np.asarray(nn.log1mexp(x)), expected, rtol=1e-13)
    assert np.isfinite(np.asarray(ft.grad(lambda x: nn.log1mexp(x).sum())(x))).all()
