"""Samplers: distributions by their moments and quantiles, laws, derivatives, and errors."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import functrans as ft
from functrans import random
from functrans.core.errors import ArgumentError, DTypeError, ShapeError

N = 20000
KEY = random.key(20260101)


@pytest.fixture(autouse=True, params=["threefry2x32", "philox"])
def each_generator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test with a key of each."""
    monkeypatch.setattr(sys.modules[__name__], "KEY", random.key(20260101, impl=request.param))


# name: (draw, mean, standard deviation)
MOMENTS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "uniform": (lambda k: random.uniform(k, (N,), minval=-1.0, maxval=3.0), 1.0, 4 / 12**0.5),
    "normal": (lambda k: random.normal(k, (N,)), 0.0, 1.0),
    "exponential": (lambda k: random.exponential(k, (N,)), 1.0, 1.0),
    "gumbel": (lambda k: random.gumbel(k, (N,)), 0.57722, math.pi / 6**0.5),
    "laplace": (lambda k: random.laplace(k, (N,)), 0.0, 2**0.5),
    "logistic": (lambda k: random.logistic(k, (N,)), 0.0, math.pi / 3**0.5),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (N,)), 2 * (math.pi / 2) ** 0.5, 1.3102),
    "pareto": (lambda k: random.pareto(k, 5.0, (N,)), 1.25, 0.32275),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 2.0, (N,)), 1.77245, 0.92650),
    "truncated": (lambda k: random.truncated_normal(k, 0.0, 9.0, (N,)), 0.79788, 0.60281),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), 0.3, 0.45826),
    "bernoulli high": (lambda k: random.bernoulli(k, 0.3, (N,), mode="high"), 0.3, 0.45826),
    "rademacher": (lambda k: random.rademacher(k, (N,)), 0.0, 1.0),
    "randint": (lambda k: random.randint(k, (N,), 0, 11), 5.0, 10**0.5),
    "geometric": (lambda k: random.geometric(k, 0.25, (N,)), 4.0, 12**0.5),
    "poisson": (lambda k: random.poisson(k, 3.5, (N,)), 3.5, 3.5**0.5),
    "poisson large": (lambda k: random.poisson(k, 400.0, (N,)), 400.0, 20.0),
    "gamma small": (lambda k: random.gamma(k, 0.3, (N,)), 0.3, 0.3**0.5),
    "gamma": (lambda k: random.gamma(k, 7.0, (N,)), 7.0, 7.0**0.5),
    "gamma float64": (lambda k: random.gamma(k, 7.0, (N,), "float64"), 7.0, 7.0**0.5),
    "beta": (lambda k: random.beta(k, 2.0, 3.0, (N,)), 0.4, 0.2),
    "chisquare": (lambda k: random.chisquare(k, 3.0, (N,)), 3.0, 6**0.5),
    "t": (lambda k: random.t(k, 12.0, (N,)), 0.0, 1.2**0.5),
    "dirichlet": (lambda k: random.dirichlet(k, np.float32([1, 2, 1]), (N,))[:, 1], 0.5, 0.2236),
    "choice p": (lambda k: random.choice(k, 2, (N,), p=np.float32([0.2, 0.8])), 0.8, 0.4),
    "categorical": (
        lambda k: random.categorical(k, np.log(np.float32([0.2, 0.8])), shape=(N,)), 0.8, 0.4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    draw, mean, deviation = MOMENTS[name]
    x = np.asarray(draw(KEY), np.float64)
    assert x.shape == (N,)
    assert abs(x.mean() - mean) < 4.5 * deviation / N**0.5
    assert abs(x.std() - deviation) < 0.06 * deviation


def test_cauchy_quantiles() -> None:
    x = np.asarray(random.cauchy(KEY, (N,)))
    np.testing.assert_allclose(np.quantile(x, [0.25, 0.5, 0.75]), [-1, 0, 1], atol=0.05)


def test_normal_quantiles_and_complex_parts() -> None:
    x = np.asarray(random.normal(KEY, (N,)))
    expected = [-1.959964, -0.674490, 0.0, 0.674490, 1.959964]
    np.testing.assert_allclose(np.quantile(x, [0.025, 0.25, 0.5, 0.75, 0.975]), expected, atol=0.06)
    z = np.asarray(random.normal(KEY, (N,), "complex64"))
    assert abs(z.real.var() - 0.5) < 0.02 and abs(z.imag.var() - 0.5) < 0.02
    assert abs(np.corrcoef(z.real, z.imag)[0, 1]) < 0.03


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method: str) -> None:
    mean, cov = np.float32([1, -2]), np.float32([[2.0, 0.8], [0.8, 1.0]])
    x = np.asarray(random.multivariate_normal(KEY, mean, cov, (N,), method=method))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.08)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_stays_inside(dtype: str) -> None:
    x = np.asarray(random.uniform(KEY, (N,), dtype)).astype(np.float64)
    assert x.min() >= 0 and x.max() < 1 and abs(x.mean() - 0.5) < 0.01
    y = np.asarray(random.uniform(KEY, (N,), dtype, -2, 3)).astype(np.float64)
    assert y.min() >= -2 and y.max() <= 3


def test_defaults_follow_the_scope() -> None:
    with ft.default_dtypes("float64", "int64"):
        assert random.uniform(KEY).dtype == np.float64
        assert random.randint(KEY, (), 0, 9).dtype == np.int64
        assert random.bits(KEY).dtype == np.uint64
    assert random.uniform(KEY).dtype == np.float32
    assert random.bits(KEY).dtype == np.uint32


def test_samples_do_not_depend_on_jit_or_on_neighbours() -> None:
    """The same numbers eager and compiled; a longer sample begins with the shorter one."""
    for draw in (random.normal, random.uniform, random.bits):
        eager = np.asarray(draw(KEY, (6,)))
        np.testing.assert_array_equal(np.asarray(ft.jit(lambda k, d=draw: d(k, (6,)))(KEY)), eager)
        np.testing.assert_array_equal(np.asarray(draw(KEY, (60,)))[:6], eager)
    eager = np.asarray(random.gamma(KEY, np.float32([0.2, 3.0])))
    compiled = ft.jit(lambda k: random.gamma(k, np.float32([0.2, 3.0])))(KEY)
    np.testing.assert_array_max_ulp(np.asarray(compiled), eager, 4)


def test_vmap_is_a_loop_over_keys_and_parameters() -> None:
    keys = random.split(KEY, 3)
    a = np.float32([0.2, 1.0, 8.0])
    draws: list[Callable[[Any, Any], Any]] = [
        lambda k, a: random.gamma(k, a, (4,)),
        lambda k, a: random.poisson(k, 5 * a, (4,)),
        lambda k, a: random.uniform(k, (4,), maxval=a),
        lambda k, a: random.randint(k, (4,), 0, ft.numpy.floor(100 * a)),
        lambda k, a: random.permutation(k, 5),
        lambda k, a: random.choice(k, 5, (3,), replace=False),
        lambda k, a: random.categorical(k, a * ft.numpy.arange(4.0)),
    ]
    for draw in draws:
        rows = [np.asarray(draw(k, x)) for k, x in zip(keys, a, strict=True)]
        np.testing.assert_array_equal(np.asarray(ft.vmap(draw)(keys, a)), np.stack(rows))


def test_permutations_and_choices_without_replacement_repeat_nothing() -> None:
    assert sorted(random.permutation(KEY, 1000).tolist()) == list(range(1000))
    table = np.arange(12).reshape(3, 4)
    rows = np.asarray(random.permutation(KEY, table))
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, table.tolist()))
    single = np.asarray(random.permutation(KEY, table, axis=1, independent=True))
    assert (np.sort(single, 1) == table).all()
    chosen = random.choice(KEY, 50, (5, 6), replace=False)
    assert len(set(np.ravel(chosen).tolist())) == 30
    weights = np.float32([1, 0, 1, 1])
    picked = random.choice(KEY, np.array([10, 20, 30, 40]), (3,), replace=False, p=weights)
    assert sorted(picked.tolist()) == [10, 30, 40]
    several = np.asarray(random.categorical(KEY, np.zeros((2, 5), np.float32), shape=(5, 2),
                                            replace=False))
    assert (np.sort(several, 0) == np.arange(5)[:, None]).all()
    assert random.choice(KEY, 3, (0,)).shape == (0,)


def test_randint_reaches_both_ends_of_narrow_and_wide_dtypes() -> None:
    x = np.asarray(random.randint(KEY, (N,), 0, 256, "uint8"))
    assert (x.min(), x.max()) == (0, 255)
    x = np.asarray(random.randint(KEY, (N,), -500, 500, "int8"))
    assert (x.min(), x.max()) == (-128, 127)
    x = np.asarray(random.randint(KEY, (N,), -(2**63), 2**63, "int64"))
    assert x.min() < -(2**62) and x.max() > 2**62
    x = np.asarray(random.randint(KEY, (9,), 4, 4))
    assert (x == 4).all()


def quantile_derivative(a: float, x: float) -> float:
    """dx/da at a fixed probability, from mpmath's incomplete gamma function."""
    with mpmath.workdps(40):
        cdf = mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a)
        density = mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
        return float(-cdf / density)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 2.5, 30.0])
def test_gamma_moves_with_its_parameter_at_fixed_probability(a: float) -> None:
    shape = (6,)
    alphas = ft.numpy.full(shape, a, "float64")
    x, slope = ft.jvp(
        lambda v: random.gamma(KEY, v, dtype="float64"), (alphas,), (ft.numpy.ones_like(alphas),)
    )
    expected = [quantile_derivative(a, float(value)) for value in x]
    np.testing.assert_allclose(np.asarray(slope), expected, rtol=1e-9)
    logs, log_slope = ft.jvp(
        lambda v: random.loggamma(KEY, v, dtype="float64"), (alphas,), (ft.numpy.ones_like(alphas),)
    )
    np.testing.assert_allclose(np.exp(np.asarray(logs)), np.asarray(x), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(log_slope), np.array(expected) / np.asarray(x), rtol=1e-9)


def test_gradients_through_samples() -> None:
    a = ft.numpy.asarray(np.float32([0.5, 2.0, 9.0]))
    total = ft.grad(lambda v: random.gamma(KEY, v).sum())(a)
    _, slope = ft.jvp(lambda v: random.gamma(KEY, v), (a,), (ft.numpy.ones_like(a),))
    np.testing.assert_allclose(np.asarray(total), np.asarray(slope), rtol=1e-6)
    under_jit = ft.jit(ft.grad(lambda v: random.gamma(KEY, v).sum()))(a)
    np.testing.assert_allclose(np.asarray(under_jit), np.asarray(total), rtol=1e-5)
    # E[gamma] = a, so that the mean derivative is 1
    mean = ft.grad(lambda v: random.gamma(KEY, v, (4000,)).mean())(3.0)
    assert abs(float(mean) - 1.0) < 0.05
    assert float(ft.grad(lambda s: random.normal(KEY) * s)(2.0)) == float(random.normal(KEY))
    low = ft.grad(lambda m: random.uniform(KEY, minval=m, maxval=5.0))(1.0)
    assert abs(float(low) - (1 - float(random.uniform(KEY)))) < 1e-6
    assert np.isfinite(float(ft.grad(lambda v: random.beta(KEY, v, 2.0))(0.7)))
    weights = ft.grad(lambda v: random.dirichlet(KEY, v)[0])(a)
    assert np.isfinite(np.asarray(weights)).all()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(DTypeError, match="uniform samples floating dtypes, not int32"):
        random.uniform(KEY, dtype="int32")
    with pytest.raises(TypeError, match="randint samples integer dtypes, not float32"):
        random.randint(KEY, (), 0, 1, "float32")
    with pytest.raises(DTypeError, match="bits samples unsigned dtypes, not int8"):
        random.bits(KEY, dtype="int8")
    with pytest.raises(ShapeError, match=r"gamma: parameters of shape \(3,\) do not broadcast to "):
        random.gamma(KEY, np.ones(3, np.float32), (2,))
    with pytest.raises(ValueError, match=r"\(3,\), \(2,\) do not broadcast to each other"):
        random.beta(KEY, np.ones(3, np.float32), np.ones(2, np.float32))
    with pytest.raises(DTypeError, match="the probability p is int32"):
        random.bernoulli(KEY, 1)
    with pytest.raises(ArgumentError, match="mode 'huge' of bernoulli"):
        random.bernoulli(KEY, 0.5, mode="huge")
    with pytest.raises(ArgumentError, match="mode 'huge' of gumbel"):
        random.gumbel(KEY, mode="huge")
    with pytest.raises(ArgumentError, match="5 samples without replacement from 3 elements"):
        random.choice(KEY, 3, (5,), replace=False)
    with pytest.raises(ShapeError, match=r"probabilities have shape \(2,\), for 3 elements"):
        random.choice(KEY, 3, (5,), p=np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match="4 samples without replacement from 3"):
        random.categorical(KEY, np.zeros(3, np.float32), shape=(4,), replace=False)
    with pytest.raises(ShapeError, match="axis 2 is not one of the 1 axes"):
        random.permutation(KEY, np.arange(3), axis=2)
    with pytest.raises(ShapeError, match="does not fit the mean of shape"):
        random.multivariate_normal(KEY, np.zeros(3, np.float32), np.eye(2, dtype=np.float32))
    with pytest.raises(ArgumentError, match="'lu' is none of"):
        random.multivariate_normal(KEY, np.zeros(2, np.float32), np.eye(2, dtype=np.float32),
                                   method="lu")
