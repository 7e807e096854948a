"""Samples whose values are in tests/data/random.json: name, how to draw, allowed distance in ULP.

`r` is the random module; keys and parameters are NumPy's, so that any implementation of the same
interface can be asked. Distances above zero are for transcendental functions, which are rounded
differently by different libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SHAPE = (3, 4)
ROW = np.array([0.05, 0.5, 1.0, 30.0], np.float32)
CHANCES = np.array([0.05, 0.3, 0.5, 0.9], np.float32)
LOGITS = np.log(np.linspace(0.1, 1, 24, dtype=np.float32).reshape(2, 3, 4))
SMALL = np.arange(12, dtype=np.int32).reshape(3, 4)
LARGE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
COV = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)


class Case(NamedTuple):
    draw: Callable[[Any, Any], Any]
    ulp: int = 0


CASES: dict[str, Case] = {
    "key": Case(lambda r, k: r.key_data(k)),
    "split": Case(lambda r, k: r.key_data(r.split(k))),
    "split 2d": Case(lambda r, k: r.key_data(r.split(k, (2, 3)))),
    "fold_in": Case(lambda r, k: r.key_data(r.fold_in(k, 4000000000))),
    "split of split": Case(lambda r, k: r.key_data(r.split(r.split(k, 3)[1], 2))),
    "bits": Case(lambda r, k: r.bits(k, SHAPE)),
    "bits scalar": Case(lambda r, k: r.bits(k)),
    "bits 8": Case(lambda r, k: r.bits(k, SHAPE, "uint8")),
    "bits 16": Case(lambda r, k: r.bits(k, SHAPE, "uint16")),
    "bits 64": Case(lambda r, k: r.bits(k, SHAPE, "uint64")),
    "bits many": Case(lambda r, k: np.bitwise_xor.reduce(np.asarray(r.bits(k, (100000,))))),
    "uniform": Case(lambda r, k: r.uniform(k, SHAPE)),
    "uniform empty": Case(lambda r, k: r.uniform(k, (0, 3))),
    "uniform float16": Case(lambda r, k: r.uniform(k, SHAPE, "float16")),
    "uniform bfloat16": Case(lambda r, k: r.uniform(k, SHAPE, "bfloat16")),
    "uniform float64": Case(lambda r, k: r.uniform(k, SHAPE, "float64")),
    "uniform bounds": Case(lambda r, k: r.uniform(k, SHAPE, "float32", 0.1, 0.7)),
    "uniform whole bounds": Case(lambda r, k: r.uniform(k, SHAPE, "float32", -3, 5)),
    "uniform rows": Case(lambda r, k: r.uniform(k, SHAPE, "float32", ROW, np.float32(40))),
    "uniform float64 bounds": Case(lambda r, k: r.uniform(k, SHAPE, "float64", 0.1, 0.7), 1),
    "normal": Case(lambda r, k: r.normal(k, SHAPE), 0),
    "normal scalar": Case(lambda r, k: r.normal(k), 0),
    "normal float16": Case(lambda r, k: r.normal(k, SHAPE, "float16"), 1),
    "normal bfloat16": Case(lambda r, k: r.normal(k, SHAPE, "bfloat16"), 1),
    "normal float64": Case(lambda r, k: r.normal(k, SHAPE, "float64"), 8),
    "normal complex64": Case(lambda r, k: r.normal(k, SHAPE, "complex64"), 4),
    "truncated_normal": Case(lambda r, k: r.truncated_normal(k, -1.0, 2 * ROW, SHAPE), 64),
    "exponential": Case(lambda r, k: r.exponential(k, SHAPE), 2),
    "gumbel": Case(lambda r, k: r.gumbel(k, SHAPE), 64),
    "gumbel high": Case(lambda r, k: r.gumbel(k, SHAPE, mode="high"), 64),
    "laplace": Case(lambda r, k: r.laplace(k, SHAPE), 2),
    "logistic": Case(lambda r, k: r.logistic(k, SHAPE), 8),
    "cauchy": Case(lambda r, k: r.cauchy(k, SHAPE), 4),
    "rayleigh": Case(lambda r, k: r.rayleigh(k, ROW, SHAPE), 4),
    "pareto": Case(lambda r, k: r.pareto(k, ROW, SHAPE), 64),
    "weibull_min": Case(lambda r, k: r.weibull_min(k, 2.0, 1.5, SHAPE), 8),
    "multivariate_normal": Case(
        lambda r, k: r.multivariate_normal(k, np.array([1, 2], np.float32), COV, (3,)), 16
    ),
    "bernoulli": Case(lambda r, k: r.bernoulli(k, 0.3, SHAPE)),
    "bernoulli high": Case(lambda r, k: r.bernoulli(k, np.float32(0.3), SHAPE, mode="high")),
    "bernoulli rows": Case(lambda r, k: r.bernoulli(k, ROW, SHAPE)),
    "rademacher": Case(lambda r, k: r.rademacher(k, SHAPE)),
    "rademacher float32": Case(lambda r, k: r.rademacher(k, SHAPE, "float32")),
    "randint": Case(lambda r, k: r.randint(k, SHAPE, -7, 1000)),
    "randint whole": Case(lambda r, k: r.randint(k, SHAPE, -(2**31), 2**31 - 1)),
    "randint empty": Case(lambda r, k: r.randint(k, SHAPE, 5, 2)),
    "randint floats": Case(lambda r, k: r.randint(k, SHAPE, 0.5, 9.7)),
    "randint uint8": Case(lambda r, k: r.randint(k, SHAPE, 0, 256, "uint8")),
    "randint int8": Case(lambda r, k: r.randint(k, SHAPE, -500, 500, "int8")),
    "randint int64": Case(lambda r, k: r.randint(k, SHAPE, -(10**15), 10**17, "int64")),
    "randint uint32": Case(lambda r, k: r.randint(k, SHAPE, 5, 2**31 - 1, "uint32")),
    "randint rows": Case(
        lambda r, k: r.randint(k, SHAPE, np.arange(4), np.array([9, 90, 900, 2]), "int16")
    ),
    "categorical": Case(lambda r, k: r.categorical(k, LOGITS)),
    "categorical axis": Case(lambda r, k: r.categorical(k, LOGITS, axis=1)),
    "categorical shape": Case(lambda r, k: r.categorical(k, LOGITS, axis=1, shape=(3, 2, 4))),
    "categorical different": Case(
        lambda r, k: r.categorical(k, LOGITS, shape=(2, 2, 3), replace=False)
    ),
    "permutation": Case(lambda r, k: r.permutation(k, 20)),
    "permutation long": Case(lambda r, k: np.asarray(r.permutation(k, 5000))[::500]),
    "permutation axis": Case(lambda r, k: r.permutation(k, SMALL, 1)),
    "permutation independent": Case(
        lambda r, k: r.permutation(k, SMALL, 1, independent=True)
    ),
    "choice": Case(lambda r, k: r.choice(k, 10, (6,))),
    "choice axis": Case(lambda r, k: r.choice(k, LARGE, (2, 2), axis=1)),
    "choice different": Case(lambda r, k: r.choice(k, 10, (2, 3), replace=False)),
    "choice p": Case(lambda r, k: r.choice(k, 4, (6,), p=ROW / ROW.sum())),
    "choice p different": Case(
        lambda r, k: r.choice(k, SMALL.T, (2,), replace=False, p=ROW)
    ),
    "geometric": Case(lambda r, k: r.geometric(k, 0.2, SHAPE)),
    "poisson": Case(lambda r, k: r.poisson(k, np.array([0, 0.5, 9, 200], np.float32), SHAPE)),
    "gamma": Case(lambda r, k: r.gamma(k, ROW, SHAPE), 256),
    "gamma float64": Case(lambda r, k: r.gamma(k, ROW, SHAPE, "float64"), 256),
    "loggamma": Case(lambda r, k: r.loggamma(k, ROW, SHAPE), 256),
    "beta": Case(lambda r, k: r.beta(k, ROW, np.float32(2), SHAPE), 256),
    "dirichlet": Case(lambda r, k: r.dirichlet(k, ROW, (3,)), 256),
    "chisquare": Case(lambda r, k: r.chisquare(k, ROW, SHAPE), 256),
    "t": Case(lambda r, k: r.t(k, ROW, SHAPE), 256),
    "ball": Case(lambda r, k: r.ball(k, 3, shape=(2,)), 256),
    "ball of another norm": Case(lambda r, k: r.ball(k, 3, 1.5, (2,)), 256),
    "binomial": Case(lambda r, k: r.binomial(k, np.array([3, 50, 400, 9], np.float32), CHANCES,
                                             SHAPE)),
    "binomial of integers": Case(lambda r, k: r.binomial(k, np.int32(30), CHANCES)),
    "binomial special": Case(
        lambda r, k: r.binomial(k, np.array([-1, np.inf, np.nan, 5], np.float32),
                                np.array([0.5, 0.2, 0.2, np.nan], np.float32))),
    "multinomial": Case(lambda r, k: r.multinomial(k, np.float32(100), CHANCES / 2)),
    "multinomial rows": Case(
        lambda r, k: r.multinomial(k, np.array([5, 100], np.float32), CHANCES, shape=(2, 4))),
    "double_sided_maxwell": Case(
        lambda r, k: r.double_sided_maxwell(k, np.float32(1.5), np.float32(2), SHAPE), 16),
    "double_sided_maxwell rows": Case(
        lambda r, k: r.double_sided_maxwell(k, ROW, np.float32(2)), 64),
    "f": Case(lambda r, k: r.f(k, ROW, ROW[::-1] + 2), 512),
    "generalized_normal": Case(lambda r, k: r.generalized_normal(k, 1.5, SHAPE), 256),
    "lognormal": Case(lambda r, k: r.lognormal(k, ROW, SHAPE), 64),
    "lognormal scalar": Case(lambda r, k: r.lognormal(k), 4),
    "maxwell": Case(lambda r, k: r.maxwell(k, SHAPE), 4),
    "orthogonal": Case(lambda r, k: np.round(np.asarray(r.orthogonal(k, 3)), 4)),
    "orthogonal wide": Case(lambda r, k: np.round(np.asarray(r.orthogonal(k, 2, (2,), m=3)), 4)),
    "orthogonal tall": Case(lambda r, k: np.round(np.asarray(r.orthogonal(k, 3, m=2)), 4)),
    "triangular": Case(
        lambda r, k: r.triangular(k, np.float32(-1), ROW, np.float32(40), SHAPE), 64),
    "wald": Case(lambda r, k: r.wald(k, ROW, SHAPE), 4096),
}
SEEDS = (0, 42, 2**31 - 1)
