"""Linear systems: golden programs of their laws, what is shared, and products with an inverse."""

import itertools
from collections import Counter

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import subjaxprs
from functrans.lax.linalg import triangular_solve
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.triangular_products import solve_by_products
from functrans.lowering.schedule.plans import GPU
from functrans.scipy.linalg import cho_solve, solve_triangular
from functrans.test_util import check_grads
from tests.linalg.matrices import positive
from tests.lowering.test_passes import array, assert_same_values, program_of, simplified, spelled

la = jnp.linalg
A = array(3, 3) + 3 * np.eye(3, dtype=np.float32)
B = array(3, 2)
FLAGS = "conjugate_a=False left_side={} lower=True transpose_a={} unit_diagonal=False"
LEFT, RIGHT = FLAGS.format(True, False), FLAGS.format(False, False)


def below(a, b, **flags):
    return triangular_solve(a, b, lower=True, **flags)


LAWS = {
    "scaled": (lambda a, b: below(a, -(b * 0.5), left_side=True), (A, B),
        f"c = triangular_solve[{LEFT}] a b; d = mul c -0.5 -> d"),
    "scaled_twice": (
        lambda a, b: (below(a, b, left_side=True), below(a, 0.5 * b, left_side=True)), (A, B),
        f"c = triangular_solve[{LEFT}] a b; d = mul c 0.5 -> c d"),
    "divided_by_a_number": (lambda a, b: la.solve(a, b / b.sum()), (A, B),
        "c = reduce_sum[axes=(0,1)] b; d = solve a b; e = div d c -> e"),
    "number_divided_stays": (lambda a, b: la.solve(a, 0.5 / b), (A, B),
        "c = div 0.5 b; d = solve a c -> d"),
    "row_on_the_right": (lambda a, b: below(a, b[:, 0]), (A, B),
        "c = slice[start_indices=(0,0) limit_indices=(3,1) strides=(1,1)] b; d = "
        f"triangular_solve[{FLAGS.format(True, True)}] a c; e = reshape[new_sizes=(3)] d -> e"),
    "transposed": (lambda a, b: below(a, b.T).T, (A, B),
        f"c = triangular_solve[{FLAGS.format(True, True)}] a b -> c"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    actual = spelled(simplified(fun, *args))
    assert [sorted(x.strip("[]") for x in part.replace("[", " ").replace("]", " ").split())
            for part in actual.split(";")] \
        == [sorted(x.strip("[]") for x in part.replace("[", " ").replace("]", " ").split())
            for part in text.split(";")], actual


# --------------------------------------------------------------------------- shared work


def counts(jaxpr):
    found = Counter()
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("cholesky", "lu", "solve", "slogdet", "det", "triangular_solve"):
            found[eqn.primitive.name] += 1
        for body in subjaxprs(eqn):
            found += counts(body)
    return found


def likelihood(p, x, y):
    """The negative log likelihood of a Gaussian process with an RBF kernel and noise."""
    distance = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    kernel = jnp.exp(p[1] - 0.5 * distance * jnp.exp(-2 * p[0])) + jnp.exp(p[2]) * jnp.eye(len(x))
    factor = la.cholesky(kernel)
    alpha = cho_solve((factor, True), y)
    return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diagonal(factor)))


def evidence(p, x, y):
    """Bayesian linear regression."""
    precision = jnp.exp(p[0]) * jnp.eye(x.shape[1]) + jnp.exp(p[1]) * x.T @ x
    mean = jnp.exp(p[1]) * la.solve(precision, x.T @ y)
    return la.slogdet(precision)[1] + jnp.sum((y - x @ mean) ** 2) + mean @ mean


def updated(s, h, v):
    """The gain of a Kalman filter, its innovation and the likelihood of that."""
    gain, innovation = la.solve(s, h), la.solve(s, v)
    return gain, v @ innovation + la.slogdet(s)[1]


def points(n, d=2, dtype=np.float64):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)).astype(dtype), rng.normal(size=n).astype(dtype)


def test_the_likelihood_of_a_process_has_four_triangular_systems():
    args = np.zeros(3), *points(100)
    found = simplified(ft.value_and_grad(likelihood), *args, rtol=1e-9, atol=1e-9)
    assert counts(found) == {"cholesky": 1, "triangular_solve": 4}
    by_products = GPU.simplified(found)
    check_jaxpr(by_products)
    assert counts(by_products) == {"cholesky": 1, "triangular_solve": 1}
    assert_same_values(found, by_products, list(args), 1e-9, 1e-9)


def test_the_evidence_of_a_regression_has_one_factorization():
    args = np.zeros(2), *points(130, 70)
    found = simplified(ft.value_and_grad(evidence), *args, rtol=1e-9, atol=1e-9)
    assert counts(found) == {"lu": 1, "triangular_solve": 4}


@pytest.mark.parametrize("n", [1, 2, 3, 7, 33, 64, 65])
def test_the_same_values_at_all_sizes(n):
    """Of the function, its gradient and its second derivatives, with and without lanes."""
    x, y = points(2 * n, n)
    for fun in (likelihood, evidence):
        p = np.full(3, 0.1)
        args = p, *(points(n) if fun is likelihood else (x, y))
        functions = [fun, ft.grad(fun), ft.vmap(ft.grad(fun), (0, None, None))]
        if n < 9:
            functions.append(ft.hessian(fun))
        for k, f in enumerate(functions):
            given = (np.stack([p, 2 * p]), *args[1:]) if k == 2 else args
            simplified(f, *given, rtol=1e-7, atol=1e-7)
    assert fun is evidence


def test_derivatives_of_shared_systems():
    a, b = positive(n=5), np.ones(5)

    def fun(a, b):
        return (b @ la.solve(a, b), la.solve(a.T, b), la.slogdet(a)[1], la.det(a), la.inv(a))

    check_grads(ft.jit(fun), (a, b), order=2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("singular", [False, True])
def test_one_factorization_for_transposed_systems_and_determinants(singular):
    a = np.random.default_rng(1).normal(size=(2, 70, 70))
    a[0, 3] = 0 if singular else a[0, 3]
    b = np.random.default_rng(2).normal(size=(2, 70, 1))

    def fun(a, b):
        at = jnp.swapaxes(a, -1, -2)
        return (*la.slogdet(a), *la.slogdet(at), la.det(a), la.solve(a, b), la.solve(at, b))

    before, _ = program_of(fun, a, b)
    after = simplify(before)
    assert counts(after) == {"lu": 1, "triangular_solve": 4}
    for x, y in zip(interpret(before, [a, b]), interpret(after, [a, b]), strict=True):
        x, y = (x[1:], y[1:]) if singular and x.ndim == 3 else (x, y)
        np.testing.assert_allclose(y, x, 1e-8)
    if singular:
        assert interpret(after, [a, b])[:2][0][0] == 0
        assert interpret(after, [a, b])[1][0] == -np.inf
        assert not np.isfinite(interpret(after, [a, b])[5][0]).all()


def test_independent_systems_are_joined():
    s, h, v = positive(n=4), np.ones((4, 3)), np.arange(4.0)
    assert counts(simplified(updated, s, h, v)) == {"solve": 1, "slogdet": 1}
    lanes = ft.vmap(updated)
    given = [np.stack([x, 2 * x]) for x in (s, h, v)]
    assert counts(simplified(lanes, *given)) == {"solve": 1, "slogdet": 1}

    def filtered(m, vs):
        def step(c, v):
            a = s * v[0]
            return la.solve(a, c) + la.solve(a, v), None

        return ft.lax.scan(step, m, vs)

    assert counts(simplified(filtered, v, np.ones((9, 4)))) == {"solve": 1}


def test_systems_that_wait_for_each_other_are_not():
    a, b, x = positive(n=3), positive(n=3, seed=1), np.ones((3, 1))

    def chained(a, x):
        return la.solve(a, la.solve(a, x) ** 2)

    def crossed(a, b, x):
        """Either pair can be joined, but not both."""
        first, second = la.solve(a, x), la.solve(b, x ** 2 + 1)
        return la.solve(b, first ** 2), la.solve(a, second ** 2)

    assert counts(simplified(chained, a, x)) == {"solve": 2}
    assert counts(simplified(crossed, a, b, x)) == {"solve": 3}


def test_wide_systems_stay_apart():
    a, b = positive(n=3), np.ones((3, 200))
    assert counts(simplified(lambda a, b: (la.solve(a, b), la.solve(a, b ** 2)), a, b)) \
        == {"solve": 2}


def test_effects_keep_their_place():
    seen = []

    def fun(a, x):
        first = la.solve(a, x)
        ft.debug.callback(lambda v: seen.append(float(v)), first.sum())
        return first, la.solve(a, x ** 2 + 1)

    jaxpr = simplify(program_of(fun, positive(n=3), np.ones((3, 1)))[0])
    assert counts(jaxpr) == {"solve": 2}


# --------------------------------------------------------------------------- products


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n, lead, k", [(65, (), 1), (100, (2,), 3), (129, (), 129), (257, (), 40),
                                        (300, (1, 2), 200)])
def test_systems_as_products(n, lead, k):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(*lead, n, n)) / n + np.eye(n) * rng.uniform(0.5, 2, size=n)
    for left, lower, transpose_a, unit in itertools.product((False, True), repeat=4):
        b = rng.normal(size=(*lead, n, k) if left else (*lead, k, n))
        jaxpr = simplify(ft.make_jaxpr(lambda a, b: triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transpose_a, unit_diagonal=unit))(  # noqa: B023
                a, b).jaxpr)
        found = solve_by_products(jaxpr, lambda *sizes: True)
        check_jaxpr(found)
        (blocks,) = [e for e in found.eqns if e.primitive.name == "triangular_solve"]
        assert blocks.invars[0].aval.shape[-1] <= 64
        assert_same_values(jaxpr, found, [a, b], 1e-11, 1e-11)
        assert solve_by_products(jaxpr, lambda *sizes: False) is jaxpr


def test_only_the_triangle_is_read_and_nan_stays():
    a = np.tril(np.random.default_rng(0).normal(size=(100, 100))) / 9 + np.eye(100)
    noisy = a + np.triu(np.full((100, 100), np.nan), 1)
    b = np.ones((100, 2))
    jaxpr = ft.make_jaxpr(lambda a, b: solve_triangular(a, b, lower=True))(a, b).jaxpr
    found = solve_by_products(simplify(jaxpr), lambda *sizes: True)
    assert_same_values(jaxpr, found, [a, b], 1e-11, 1e-11)
    np.testing.assert_array_equal(interpret(found, [noisy, b])[0], interpret(found, [a, b])[0])
    assert np.isnan(interpret(found, [a * np.nan, b])[0]).all()


def rowwise(factor, b):
    """Substitution as LAPACK does it."""
    x = b.copy()
    for i in range(len(x)):
        x[i] = (x[i] - factor[i, :i] @ x[:i]) / factor[i, i]
    return x


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6])
def test_how_exact_products_are(condition):
    """float32 against float64: the bounds that the module's figures allow."""
    n = 512
    x, _ = points(n)
    kernel = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(-1))
    kernel += np.linalg.eigvalsh(kernel)[-1] / condition * np.eye(n)
    factor = np.linalg.cholesky(kernel.astype(np.float32))
    exact = factor.astype(np.float64)
    for k, most, residual in ((n, 10, 10), (4, 3, 3)):
        b = (exact @ np.random.default_rng(1).normal(size=(n, k))).astype(np.float32)
        jaxpr = simplify(ft.make_jaxpr(lambda a, b: solve_triangular(a, b, lower=True))(
            factor, b).jaxpr)
        want = interpret(jaxpr, [exact, b.astype(np.float64)])[0]
        products = interpret(solve_by_products(jaxpr, lambda *sizes: True), [factor, b])[0]
        off, off_by_products = (np.linalg.norm(x - want) for x in (rowwise(factor, b), products))
        left, left_by_products = (np.linalg.norm(exact @ x - b)
                                  for x in (rowwise(factor, b), products))
        assert off_by_products <= most * off
        assert left_by_products <= residual * left


def test_products_are_taken_where_they_are_faster():
    def solves(n, k, count):
        s = ft.ShapeDtypeStruct
        jaxpr = ft.make_jaxpr(lambda a, b: solve_triangular(a, b, lower=True))(
            s((count, n, n), "float32"), s((count, n, k), "float32")).jaxpr
        return counts(GPU.simplified(simplify(jaxpr)))["triangular_solve"], \
            "dot_general" in str(GPU.simplified(simplify(jaxpr)))

    assert solves(2048, 2048, 1) == solves(2048, 1, 1) == (1, True)
    assert solves(64, 64, 100) == (1, False)
    assert solves(1000, 1, 1000) == (1, False)
