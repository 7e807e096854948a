"""Distributions made of others: their moments, special arguments, transforms."""

import numpy as np
import pytest
import scipy.stats

import functrans as ft
import functrans.numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError, ShapeError

N = 4000
KEY = random.key(11)
CDFS = {
    "lognormal": (lambda n: random.lognormal(KEY, 0.7, (n,)), scipy.stats.lognorm(0.7).cdf),
    "maxwell": (lambda n: random.maxwell(KEY, (n,)), scipy.stats.maxwell.cdf),
    "generalized_normal": (lambda n: random.generalized_normal(KEY, 1.5, (n,)),
                           scipy.stats.gennorm(1.5).cdf),
    "triangular": (lambda n: random.triangular(KEY, -1.0, 0.0, 3.0, (n,)),
                   scipy.stats.triang(0.25, -1, 4).cdf),
    "wald": (lambda n: random.wald(KEY, 2.0, (n,)), scipy.stats.invgauss(2).cdf),
    "f": (lambda n: random.f(KEY, 3.0, 7.0, (n,)), scipy.stats.f(3, 7).cdf),
    "ball": (lambda n: jnp.linalg.norm(random.ball(KEY, 3, shape=(n,)), axis=-1) ** 3,
             scipy.stats.uniform.cdf),
}


@pytest.mark.parametrize("name", CDFS)
def test_samples_follow_the_distribution_function(name):
    sample, cdf = CDFS[name]
    assert scipy.stats.kstest(np.asarray(sample(N), np.float64), cdf).pvalue > 1e-3


@pytest.mark.parametrize("n, p", [(5, 0.3), (40, 0.02), (100, 0.5), (1000, 0.9)])
def test_binomial_counts(n, p):
    x = np.asarray(random.binomial(KEY, n, p, (N,)))
    assert ((x >= 0) & (x <= n) & (x == np.floor(x))).all()
    law = scipy.stats.binom(n, p)
    assert abs(x.mean() - law.mean()) < 4 * law.std() / N**0.5
    assert abs(x.var() / law.var() - 1) < 0.12
    assert np.abs((x == law.median()).mean() - law.pmf(law.median())) < 0.04


def test_multinomial_counts():
    p = jnp.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    x = np.asarray(random.multinomial(KEY, jnp.array([10, 30]), p, shape=(500, 2, 3)))
    assert (x.sum(-1) == [10, 30]).all() and (x[:, 1, 2] == 0).all()
    np.testing.assert_allclose(x.mean(0), np.array([[1, 2, 7], [15, 15, 0]]), atol=0.5)
    with pytest.raises(ShapeError, match="one probability"):
        random.multinomial(KEY, 3, 0.5)


def test_orthogonal_matrices():
    for n, m in ((3, 3), (2, 4), (4, 2)):
        q = np.asarray(random.orthogonal(KEY, n, (2,), "float64", m=m))
        assert q.shape == (2, n, m)
        gram = q @ q.swapaxes(1, 2) if n <= m else q.swapaxes(1, 2) @ q
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(min(n, m)), gram.shape),
                                   atol=1e-12)
    u = np.asarray(random.orthogonal(KEY, 3, dtype="complex128"))
    np.testing.assert_allclose(u @ u.conj().T, np.eye(3), atol=1e-12)
    with pytest.raises(ShapeError, match="-1 rows"):
        random.orthogonal(KEY, -1)
    with pytest.raises(ArgumentError, match="-2 dimensions"):
        random.ball(KEY, -2)


TRANSFORMED = {
    "lognormal": lambda k, x: random.lognormal(k, x),
    "wald": lambda k, x: random.wald(k, x), "f": lambda k, x: random.f(k, x, x + 1),
    "triangular": lambda k, x: random.triangular(k, -x, 0.1 * x, x),
    "binomial": lambda k, x: random.binomial(k, 20 * x, 0.3),
    "double_sided_maxwell": lambda k, x: random.double_sided_maxwell(k, x, x),
    "ball": lambda k, x: x * random.ball(k, 2)[0],
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_jit_and_vmap_draw_the_same(name):
    draw = TRANSFORMED[name]
    keys, xs = random.split(KEY, 3), jnp.array([0.7, 1.3, 2.0])
    one_by_one = [float(draw(k, x)) for k, x in zip(keys, xs)]
    np.testing.assert_allclose(ft.jit(ft.vmap(draw))(keys, xs), one_by_one, rtol=2e-5)


@pytest.mark.parametrize("name", sorted(set(TRANSFORMED) - {"binomial", "f"}))
def test_samples_move_with_their_parameters(name):
    with ft.default_dtypes("float64", "int64"):
        x, h = 1.3, 1e-6
        slope = ft.grad(lambda x: TRANSFORMED[name](KEY, x))(x)
        ends = [float(TRANSFORMED[name](KEY, x + d)) for d in (h, -h)]
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4)
