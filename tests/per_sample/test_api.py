"""functrans.per_sample against Python loops over samples, in float64, under every transform."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, per_sample
from functrans.core import errors

B = 7
WIDTH = 4


def apply(params, x):
    """A network whose first weight is used twice, with scalars, vectors and matrices."""
    w = params["layers"][0]["w"]
    h = jnp.tanh(x @ w + params["layers"][0]["b"])
    h = jnp.tanh(h @ w) * params["scale"]
    return h @ params["layers"][1]["w"]


def loss(params, inputs, label):
    """Two leaves in one argument, and an integer label."""
    scores = apply(params, inputs["x"]) * inputs["gain"]
    return -ft.nn.log_softmax(scores)[label]


def make(seed=0, dtype=np.float64, samples=B):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape)).astype(dtype)

    params = {"layers": [{"w": draw(WIDTH, WIDTH), "b": draw(WIDTH)}, {"w": draw(WIDTH, 3)}],
              "scale": draw()}
    batch = ({"x": draw(samples, WIDTH), "gain": draw(samples)},
             jnp.asarray(rng.integers(0, 3, samples)))
    return params, batch


def sample(batch, i):
    return ft.tree.map(lambda x: x[i], batch)


def loop(params, batch, fun=loss, count=B):
    """The gradients of single samples, one after the other: lists of float64 leaves."""
    return [[np.asarray(g, np.float64)
             for g in ft.tree.leaves(ft.grad(fun)(params, *sample(batch, i)))]
            for i in range(count)]


def flat(gradients):
    """[B, p]"""
    return np.stack([np.concatenate([x.reshape(-1) for x in g]) for g in gradients])


def vector(result):
    return np.concatenate([np.asarray(x, np.float64).reshape(-1) for x in ft.tree.leaves(result)])


def like(params, seed=5):
    rng = np.random.default_rng(seed)
    return ft.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape)).astype(p.dtype), params)


WEIGHTS = np.random.default_rng(3).normal(size=B)
MASK = np.arange(B) % 3 != 0


def clip(g, bound):
    return g * np.minimum(1, bound / np.linalg.norm(g, axis=-1, keepdims=True))


def clip_leaves(gradients, bounds):
    return np.stack([np.concatenate([clip(x.reshape(-1), b) for x, b in zip(g, bounds)])
                     for g in gradients])


def expected_noise_scale(g):
    trace = g.var(0, ddof=1).sum()
    square = (g.mean(0) ** 2).sum() - trace / len(g)
    return np.array([trace / square, trace, square])


BOUNDS = {"layers": 0.5, "scale": 0.1}
# name: the function of (params, *batch), and what it is of the list of gradients of samples
CASES = {
    "grads": (lambda **k: per_sample.grads(loss, **k),
              lambda g: np.concatenate([np.stack(x).reshape(-1) for x in zip(*g)])),
    "norms": (lambda **k: per_sample.norms(loss, **k),
              lambda g: np.linalg.norm(flat(g), axis=1)),
    "norms by leaf": (lambda **k: per_sample.norms(loss, by_leaf=True, **k),
                      lambda g: np.array([[np.sqrt((x**2).sum()) for x in leaf]
                                          for leaf in zip(*g)]).reshape(-1)),
    "clipped_mean": (lambda **k: per_sample.clipped_mean(loss, 0.9, **k),
                     lambda g: clip(flat(g), 0.9).mean(0)),
    "clipped_mean, masked": (
        lambda **k: lambda *a: per_sample.clipped_mean(loss, 0.9, **k)(*a, weights=MASK),
        lambda g: clip(flat(g), 0.9)[MASK].mean(0)),
    "clipped_mean, padded": (
        lambda **k: lambda *a: per_sample.clipped_mean(
            loss, 0.9, expected_batch_size=3.3, **k)(*a, weights=MASK.astype(np.float32)),
        lambda g: clip(flat(g), 0.9)[MASK].sum(0) / 3.3),
    "clipped_mean per leaf": (lambda **k: per_sample.clipped_mean(loss, 0.3, per_leaf=True, **k),
                              lambda g: clip_leaves(g, [0.3] * 4).mean(0)),
    "clipped_mean by prefix": (
        lambda **k: per_sample.clipped_mean(loss, BOUNDS, per_leaf=True, **k),
        lambda g: clip_leaves(g, [0.5, 0.5, 0.5, 0.1]).mean(0)),
    "clipped_mean_and_norms": (
        lambda **k: per_sample.clipped_mean_and_norms(loss, 0.9, **k),
        lambda g: np.concatenate([clip(flat(g), 0.9).mean(0), np.linalg.norm(flat(g), axis=1)])),
    "weighted_sum": (lambda **k: lambda p, *b: per_sample.weighted_sum(loss, **k)(p, WEIGHTS, *b),
                     lambda g: WEIGHTS @ flat(g)),
    "variance": (lambda **k: per_sample.variance(loss, **k), lambda g: flat(g).var(0)),
    "mean_and_variance": (
        lambda **k: per_sample.mean_and_variance(loss, ddof=1, **k),
        lambda g: np.concatenate([flat(g).mean(0), flat(g).var(0, ddof=1)])),
    "fisher_diagonal": (lambda **k: per_sample.fisher_diagonal(loss, **k),
                        lambda g: (flat(g) ** 2).mean(0)),
    "noise_scale": (lambda **k: per_sample.noise_scale(loss, **k),
                    lambda g: expected_noise_scale(flat(g))),
    "inner_products": (
        lambda **k: lambda p, *b: per_sample.inner_products(loss, **k)(p, like(p), *b),
        lambda g: flat(g) @ vector(like(make()[0]))),
    "gram": (lambda **k: per_sample.gram(loss, **k), lambda g: (flat(g) @ flat(g).T).reshape(-1)),
}


@pytest.fixture(scope="module")
def problem():
    params, batch = make()
    return params, batch, loop(params, batch)


@pytest.mark.parametrize("chunk_size", [None, 1, 3, 100])
@pytest.mark.parametrize("case", CASES)
def test_is_a_loop_over_samples(case, chunk_size, problem):
    params, batch, gradients = problem
    make_function, expected = CASES[case]
    result = vector(make_function(chunk_size=chunk_size)(params, *batch))
    np.testing.assert_allclose(result, expected(gradients), rtol=1e-10, atol=1e-13)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("algebra, chunk_size", [("always", None), ("off", None), ("auto", 3)])
def test_under_jit(case, algebra, chunk_size, problem):
    params, batch, gradients = problem
    make_function, expected = CASES[case]
    with ft.config.algebra(algebra):
        result = vector(ft.jit(make_function(chunk_size=chunk_size))(params, *batch))
    np.testing.assert_allclose(result, expected(gradients), rtol=1e-9, atol=1e-13)


OTHERS = [make(seed) for seed in (1, 2)]


@pytest.mark.parametrize("case", CASES)
def test_under_an_outer_vmap(case):
    """Two networks, each with its batch."""
    make_function, expected = CASES[case]
    params, batch = ft.tree.map(lambda *xs: jnp.stack(xs), *OTHERS)
    chunk_size = 3 if "clipped" in case else None
    result = ft.vmap(make_function(chunk_size=chunk_size))(params, *batch)
    for i, (p, b) in enumerate(OTHERS):
        if case == "inner_products":
            expected = lambda g, p=p: flat(g) @ vector(like(p))
        np.testing.assert_allclose(vector(sample(result, i)), expected(loop(p, b)),
                                   rtol=1e-9, atol=1e-13)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", ["norms", "clipped_mean", "clipped_mean per leaf", "variance",
                                  "noise_scale", "gram"])
def test_inside_loops(case):
    """Two batches in a scan; the parameters are what it closes over."""
    make_function, expected = CASES[case]
    params, batch = make()
    batches = ft.tree.map(lambda x: jnp.stack([x, x[::-1]]), batch)
    _, results = ft.jit(lambda p, bs: lax.scan(
        lambda c, b: (c, make_function()(p, *b)), 0, bs))(params, batches)
    for i in range(2):
        np.testing.assert_allclose(vector(sample(results, i)),
                                   expected(loop(params, sample(batches, i))), rtol=1e-9)


def test_descent_in_a_fori_loop():
    params, batch = make()
    mean = per_sample.clipped_mean(loss, 0.5)

    def step(_, p):
        return ft.tree.map(lambda x, g: x - 0.1 * g, p, mean(p, *batch))

    result = ft.jit(lambda p: lax.fori_loop(0, 3, step, p))(params)
    for _ in range(3):
        move = clip(flat(loop(params, batch)), 0.5).mean(0)
        params = ft.tree.map(lambda x, m: x - 0.1 * m, params, unvector(move, params))
    np.testing.assert_allclose(vector(result), vector(params), rtol=1e-9)


def unvector(values, params):
    leaves, structure = ft.tree.flatten(params)
    parts = np.split(values, np.cumsum([x.size for x in leaves])[:-1])
    return ft.tree.unflatten(structure, [v.reshape(x.shape) for v, x in zip(parts, leaves)])


# ------------------------------------------------------------------------------ pairs and kernels


def test_gram_of_two_batches(problem):
    params, batch, gradients = problem
    _, other = make(8, samples=5)
    expected = flat(gradients) @ flat(loop(params, other, count=5)).T
    for chunk_size in (None, 2, 5):
        result = per_sample.gram(loss, chunk_size=chunk_size)(params, *batch, other=other)
        np.testing.assert_allclose(result, expected, rtol=1e-10)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("outputs", ["trace", "full"])
@pytest.mark.parametrize("shape", [(), (3,), (3, 1)])
def test_ntk(shape, outputs, chunk_size):
    params, (inputs, _) = make()
    _, (others, _) = make(8, samples=5)

    def f(params, x):
        return apply(params, x).reshape(3, 1) if len(shape) == 2 else (
            apply(params, x) if shape else apply(params, x)[0])

    def jacobians(xs):
        return np.stack([np.concatenate(
            [np.asarray(j).reshape(*shape, -1) for j in ft.tree.leaves(ft.jacrev(f)(params, x))],
            axis=-1).reshape(math.prod(shape), -1) for x in xs])

    kernel = per_sample.ntk(f, outputs=outputs, chunk_size=chunk_size)
    for function, other in ((kernel, None), (ft.jit(kernel), others["x"])):
        j1 = jacobians(inputs["x"])
        j2 = j1 if other is None else jacobians(other)
        full = np.einsum("aip,bjp->abij", j1, j2)
        expected = full.reshape(len(j1), len(j2), *shape, *shape) if outputs == "full" else (
            np.einsum("abii->ab", full) / math.prod(shape))
        result = function(params, inputs["x"], other)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-9)


# ------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize("per_leaf, max_norm, sensitivity", [
    (False, 2.0, 2.0), (True, 2.0, 2.0 * math.sqrt(4)),
    (True, BOUNDS, math.sqrt(3 * 0.5**2 + 0.1**2))])
def test_noise_has_the_stated_deviation(per_leaf, max_norm, sensitivity):
    """Exactly: the noise is that of a key per leaf, in the order of leaves."""
    params, batch = make()
    mean = per_sample.clipped_mean(loss, max_norm, per_leaf=per_leaf)(params, *batch)
    key = ft.random.key(4)
    for chunk_size in (None, 3):
        noisy = per_sample.clipped_mean(loss, max_norm, per_leaf=per_leaf, noise_multiplier=1.5,
                                        chunk_size=chunk_size)(params, *batch, key=key)
        for x, y, k in zip(ft.tree.leaves(mean), ft.tree.leaves(noisy), ft.random.split(key, 4)):
            noise = np.asarray(ft.random.normal(k, x.shape, x.dtype))
            np.testing.assert_allclose(y - x, 1.5 * sensitivity * noise / B, rtol=1e-9)


def test_noise_is_divided_by_the_expected_size():
    params = {"w": jnp.zeros(20_000)}
    noisy = per_sample.clipped_mean(lambda p, x: (p["w"] * x).sum(), 3.0, noise_multiplier=2.0,
                                    expected_batch_size=10)
    zeros = noisy(params, jnp.zeros(4), key=ft.random.key(0), weights=jnp.ones(4))["w"]
    assert float(zeros.std()) == pytest.approx(3.0 * 2.0 / 10, rel=0.02)
    assert abs(float(zeros.mean())) < 0.02
    again = noisy(params, jnp.zeros(4), key=ft.random.key(1), weights=jnp.ones(4))["w"]
    assert not np.allclose(zeros, again)


def test_a_key_without_noise_is_not_used():
    params, batch = make()
    mean = per_sample.clipped_mean(loss, 1.0)
    np.testing.assert_array_equal(vector(mean(params, *batch)),
                                  vector(mean(params, *batch, key=ft.random.key(0))))


def test_bound_and_noise_may_be_traced():
    params, batch = make()
    key = ft.random.key(1)

    @ft.jit
    def adaptive(bound, noise):
        mean = per_sample.clipped_mean(loss, bound, noise_multiplier=noise, expected_batch_size=8)
        return mean(params, *batch, key=key)

    expected = per_sample.clipped_mean(loss, 0.7, noise_multiplier=1.1, expected_batch_size=8)
    result = adaptive(np.float32(0.7), 1.1)
    assert all(x.dtype == np.float64 for x in ft.tree.leaves(result))
    np.testing.assert_allclose(vector(result), vector(expected(params, *batch, key=key)), rtol=1e-6)


# ---------------------------------------------------------------------------------- kinds of input


def test_arguments_that_are_shared():
    """in_axes as in vmap: None, an axis that is not the first, a tuple of prefixes."""
    w = jnp.asarray(np.arange(3.0))
    xs, shift = np.random.default_rng(0).normal(size=(3, 5)), np.array([1.0, 2.0, 3.0])

    def shifted(w, x, s):
        return ((w * x["x"] + s) ** 2).sum()

    expected = [np.asarray(ft.grad(shifted)(w, {"x": xs[:, i]}, shift)) for i in range(5)]
    for chunk_size in (None, 2):
        for axes in [({"x": 1}, None), (-1, None), [1, None]]:
            got = per_sample.grads(shifted, in_axes=axes, chunk_size=chunk_size)(
                w, {"x": xs}, shift)
            np.testing.assert_allclose(got, expected)
    everywhere = per_sample.norms(lambda w, x: (w * x).sum(), in_axes=1)(w, xs)
    np.testing.assert_allclose(everywhere, np.linalg.norm(xs, axis=0))


def test_keys_are_an_argument():
    """A key for each sample, as dropout takes it."""
    def dropped(w, x, key):
        return (w * x * ft.random.bernoulli(key, 0.5, x.shape)).sum() ** 2

    w, xs, keys = jnp.ones(3), jnp.asarray(np.ones((4, 3))), ft.random.split(ft.random.key(0), 4)
    expected = [np.linalg.norm(ft.grad(dropped)(w, xs[i], keys[i])) for i in range(4)]
    for chunk_size in (None, 2):
        got = per_sample.norms(dropped, chunk_size=chunk_size)(w, xs, keys)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_bfloat16_is_accumulated_in_float32():
    params, xs = jnp.ones((64, 64), "bfloat16"), jnp.ones((300, 64), "bfloat16")

    def linear(w, x):
        return (x @ w).sum() * 0.125

    for transform in (lambda f: f, ft.jit):
        norms = transform(per_sample.norms(linear))(params, xs)
        assert norms.dtype == np.float32
        np.testing.assert_allclose(norms, 8.0, rtol=1e-6)  # in bfloat16 the sum stops at 256 / 64
        total = transform(per_sample.weighted_sum(linear))(params, np.ones(300), xs)
        assert total.dtype == params.dtype
        np.testing.assert_allclose(np.asarray(total, np.float32), 37.5, rtol=1e-2)
        mean = transform(per_sample.clipped_mean(linear, 4.0, noise_multiplier=1e-6))(
            params, xs, key=ft.random.key(0))
        assert mean.dtype == params.dtype
        np.testing.assert_allclose(np.asarray(mean, np.float32), 0.0625, rtol=1e-2)
        assert per_sample.gram(linear)(params, xs[:2]).dtype == np.float32


def test_leaves_of_different_dtypes_keep_them():
    params = {"a": jnp.ones(2, "float32"), "b": jnp.ones(2, "float64"),
              "c": jnp.ones((), "bfloat16")}
    xs = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)

    def mixed(p, x):
        return (p["a"] * x).sum() + (p["b"] * x).sum() + (p["c"] * x[0]).sum()

    dtypes = {"a": np.float32, "b": np.float64, "c": params["c"].dtype}
    key = ft.random.key(0)
    for result in [per_sample.grads(mixed)(params, xs), per_sample.variance(mixed)(params, xs),
                   per_sample.clipped_mean(mixed, np.float64(1.0), noise_multiplier=np.float64(1),
                                           expected_batch_size=3.0)(params, xs, key=key),
                   per_sample.clipped_mean(mixed, 1.0)(params, xs, weights=np.ones(3)),
                   per_sample.weighted_sum(mixed)(params, np.ones(3), xs)]:
        assert {k: v.dtype for k, v in result.items()} == dtypes


def test_numpy_and_python_numbers_are_parameters():
    assert float(per_sample.norms(lambda w, x: w * x)(2.0, np.array([3.0]))[0]) == 3.0
    result = per_sample.clipped_mean(lambda w, x: w * x, 1.0)(np.float64(2), np.array([3.0]))
    assert float(result) == 1.0


# ------------------------------------------------------------------------------------------- edges


def dot(w, x):
    return (w * x).sum()


def test_no_samples():
    w, none = jnp.ones(3), jnp.zeros((0, 3))
    for transform in (lambda f: f, ft.jit):
        for chunk_size in (None, 2):
            assert transform(per_sample.grads(dot, chunk_size=chunk_size))(w, none).shape == (0, 3)
            assert transform(per_sample.norms(dot))(w, none).shape == (0,)
            assert transform(per_sample.inner_products(dot))(w, w, none).shape == (0,)
            assert transform(per_sample.gram(dot, chunk_size=chunk_size))(w, none).shape == (0, 0)
            zeros = transform(per_sample.weighted_sum(dot))(w, jnp.zeros(0), none)
            assert zeros.tolist() == [0, 0, 0]
        # a Poisson sample may be empty
        mean = transform(per_sample.clipped_mean(dot, 1.0, expected_batch_size=8))
        assert mean(w, none).tolist() == [0, 0, 0]
    for function in (per_sample.clipped_mean(dot, 1.0), per_sample.variance(dot),
                     per_sample.fisher_diagonal(dot)):
        with pytest.raises(errors.AxisSizeError, match="0 samples, at least 1 are needed"):
            function(w, none)


def test_one_sample():
    w, x = jnp.ones(3), jnp.array([[3.0, 4.0, 0.0]])
    assert per_sample.norms(dot)(w, x).tolist() == [5.0]
    np.testing.assert_allclose(per_sample.clipped_mean(dot, 1.0)(w, x), [0.6, 0.8, 0], rtol=1e-6)
    assert per_sample.variance(dot)(w, x).tolist() == [0, 0, 0]
    assert per_sample.gram(dot)(w, x).tolist() == [[25.0]]


def test_only_padding():
    mean = per_sample.clipped_mean(dot, 1.0)
    assert mean(jnp.ones(3), jnp.ones((2, 3)), weights=jnp.zeros(2)).tolist() == [0, 0, 0]


def test_gradients_of_norm_zero():
    w, xs = jnp.ones(3), jnp.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    np.testing.assert_allclose(per_sample.clipped_mean(dot, 1.0)(w, xs), [0.3, 0.4, 0], rtol=1e-6)
    assert per_sample.norms(dot)(w, xs).tolist() == [0.0, 5.0]
    through_norms = ft.grad(lambda xs: per_sample.norms(dot)(w, xs).sum())(xs)
    np.testing.assert_allclose(through_norms, [[0, 0, 0], [0.6, 0.8, 0]], rtol=1e-6)
    through_mean = ft.grad(lambda xs: per_sample.clipped_mean(dot, 1.0)(w, xs)[0])(xs)
    np.testing.assert_allclose(through_mean, [[0.5, 0, 0], [0.064, -0.048, 0]], atol=1e-6)


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_derivatives(chunk_size):
    """Gradient penalties, and clipped means inside of another gradient."""
    params, batch = make()
    inputs, labels = batch

    def penalty(params, x):
        batch = {**inputs, "x": x}, labels
        norms = per_sample.norms(loss, chunk_size=chunk_size)(params, *batch)
        clipped = per_sample.clipped_mean(loss, 1.0, chunk_size=chunk_size)(params, *batch)
        return ((norms - 1) ** 2).mean() + sum(x.sum() for x in ft.tree.leaves(clipped))

    ft.test_util.check_grads(penalty, (params, inputs["x"]), order=1, modes=("rev",))


@pytest.mark.parametrize("bound", [1e-30, 1e30, math.inf])
def test_extreme_bounds(bound):
    w, xs = jnp.ones(3), jnp.array([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]])
    expected = clip(np.asarray(xs), bound).mean(0) if bound < 1 else np.asarray(xs).mean(0)
    np.testing.assert_allclose(per_sample.clipped_mean(dot, bound)(w, xs), expected, rtol=1e-6)


def test_gradients_that_are_not_finite():
    w = jnp.ones(2)
    for bad in (math.nan, math.inf):
        xs = jnp.array([[bad, 1.0], [1.0, 1.0]])
        mean = per_sample.clipped_mean(dot, 1.0)(w, xs, weights=jnp.array([0.0, 1.0]))
        assert math.isnan(mean[0]) and float(mean[1]) == pytest.approx(0.5**0.5)
    huge = jnp.array([[1e30, 1e30], [1.0, 1.0]])  # finite, but not their squares
    np.testing.assert_allclose(per_sample.clipped_mean(dot, 1.0)(w, huge), 0.5**0.5 / 2, rtol=1e-6)


def test_the_variance_is_not_negative():
    xs = jnp.full((1000, 3), 0.1)
    for chunk_size in (None, 64):
        result = np.asarray(per_sample.variance(dot, chunk_size=chunk_size)(jnp.ones(3), xs))
        assert (result >= 0).all() and (result < 1e-6).all()


def test_noise_scale_is_unbiased():
    """Averaged over many batches, each part is that of the population."""
    rng = np.random.default_rng(0)
    means, deviations = np.array([1.0, 0.5]), np.array([1.0, 2.0])
    batches = jnp.asarray(means + deviations * rng.normal(size=(4000, 8, 2)))
    w = jnp.asarray(np.ones(2))
    estimates = ft.vmap(lambda xs: per_sample.noise_scale(dot)(w, xs))(batches)
    assert float(estimates.trace_covariance.mean()) == pytest.approx(5.0, rel=0.03)
    assert float(estimates.squared_mean.mean()) == pytest.approx(1.25, rel=0.05)


# the weights of the other ones are an array of known length
@pytest.mark.parametrize("case", [name for name in CASES if name not in (
    "weighted_sum", "clipped_mean, masked", "clipped_mean, padded")])
def test_a_number_of_samples_that_is_not_known(case):
    make_function, _ = CASES[case]
    params, batch = make()
    shapes = ft.eval_shape(make_function(), params, *batch)
    size = ft.Dim("b")
    symbolic = ft.eval_shape(make_function(), params, *ft.tree.map(
        lambda x: ft.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype), batch))
    for x, y in zip(ft.tree.leaves(shapes), ft.tree.leaves(symbolic), strict=True):
        assert y.shape == tuple(size if n == B else n for n in x.shape) and y.dtype == x.dtype


def test_names():
    assert per_sample.norms(loss).__name__ == "norms_loss"
    assert per_sample.clipped_mean(loss, 1.0).__name__ == "clipped_mean_loss"


# ------------------------------------------------------------------------------------------ errors

W, X, Y = jnp.ones(3), jnp.ones((4, 3)), jnp.ones(4)


def pair(w, x, y):
    return ((w * x).sum() - y) ** 2


WRONG = {
    "length": (lambda: per_sample.norms(pair)(W, X, Y[:2]), errors.AxisSizeError,
               r"norms of pair: batch argument 0 is f32\[4,3\] with 4 samples, batch argument 1 is "
               r"f32\[2\] with 2"),
    "length inside": (lambda: per_sample.norms(lambda w, b: w.sum())(W, {"x": X, "y": Y[:2]}),
                      errors.AxisSizeError, r"batch argument 0\['y'\] is f32\[2\] with 2"),
    "no axis": (lambda: per_sample.grads(pair)(W, X, 1.0), errors.ShapeError,
                r"batch argument 1 is f32\[\] and has no axis 0 of samples"),
    "no batch": (lambda: per_sample.norms(lambda w: w.sum())(W), errors.AxisSizeError,
                 "no argument of the batch is mapped"),
    "in_axes": (lambda: per_sample.norms(pair, in_axes=(None, 0, 0))(W, X, Y),
                errors.ArgumentError, "in_axes has 3 entries, but the batch has 2 arguments"),
    "loss": (lambda: per_sample.norms(lambda w, x: w * x)(W, X), errors.NonScalarGradError,
             r"returned f32\[3\]"),
    "no function": (lambda: per_sample.norms(W), errors.ArgumentError,
                    r"per_sample.norms takes a function"),
    "integers": (lambda: per_sample.norms(pair)({"w": jnp.arange(3)}, X, Y),
                 errors.IntegerGradError, r"params\['w'\] is i32\[3\], which is not floating"),
    "complex": (lambda: per_sample.norms(pair)(W.astype("complex64"), X, Y), errors.DTypeError,
                "which is not floating"),
    "no params": (lambda: per_sample.norms(pair)({}, X, Y), errors.ArgumentError,
                  "params has no leaves"),
    "text": (lambda: per_sample.norms(pair)({"w": "a"}, X, Y), errors.NonArrayError,
             r"params\['w'\] is 'a'"),
    "chunk": (lambda: per_sample.variance(pair, chunk_size=0), errors.ArgumentError,
              "variance: chunk_size must be a positive int, got 0"),
    "bound": (lambda: per_sample.clipped_mean(pair, 0.0), errors.ArgumentError,
              "max_norm must be positive, got 0.0"),
    "nan bound": (lambda: per_sample.clipped_mean(pair, math.nan), errors.ArgumentError,
                  "max_norm must be positive, got nan"),
    "bounds": (lambda: per_sample.clipped_mean(pair, {"w": -1.0}, per_leaf=True),
               errors.ArgumentError, r"max_norm\['w'\] must be positive, got -1.0"),
    "tree of bounds": (lambda: per_sample.clipped_mean(pair, {"w": 1.0}), errors.ArgumentError,
                       "per_leaf=True clips every leaf by itself"),
    "bound is text": (lambda: per_sample.clipped_mean(pair, "1"), errors.ArgumentError,
                      "max_norm must be a number, got '1'"),
    "array of bounds": (lambda: per_sample.clipped_mean(pair, Y), errors.ArgumentError,
                        "max_norm must be a number, got Array"),
    "no prefix": (lambda: per_sample.clipped_mean(pair, {"v": 1.0}, per_leaf=True)({"w": W}, X, Y),
                  errors.TreeMismatchError,
                  "clipped_mean: max_norm: its structure is no prefix of the structure of params"),
    "infinite noise": (lambda: per_sample.clipped_mean(pair, math.inf, noise_multiplier=1.0),
                       errors.ArgumentError, "max_norm is infinite"),
    "noise": (lambda: per_sample.clipped_mean(pair, 1.0, noise_multiplier=-1.0),
              errors.ArgumentError, "noise_multiplier must be finite and not negative, got -1.0"),
    "expected": (lambda: per_sample.clipped_mean(pair, 1.0, expected_batch_size=0),
                 errors.ArgumentError, "expected_batch_size must be finite and positive, got 0"),
    "key": (lambda: per_sample.clipped_mean(pair, 1.0, noise_multiplier=1.0)(W, X, Y),
            errors.ArgumentError, "noise needs a key"),
    "private size": (lambda: per_sample.clipped_mean(pair, 1.0, noise_multiplier=1.0)(
        W, X, Y, key=ft.random.key(0), weights=Y), errors.ArgumentError,
        "weights and noise need expected_batch_size"),
    "weights": (lambda: per_sample.weighted_sum(pair)(W, Y[:3], X, Y), errors.ShapeError,
                r"weights is f32\[3\], but the batch has 4 samples"),
    "mask": (lambda: per_sample.clipped_mean(pair, 1.0)(W, X, Y, weights=X), errors.ShapeError,
             r"weights is f32\[4,3\], but the batch has 4 samples"),
    "ddof": (lambda: per_sample.variance(pair, ddof=4)(W, X, Y), errors.AxisSizeError,
             "4 samples, at least 5 are needed"),
    "one sample": (lambda: per_sample.noise_scale(pair)(W, X[:1], Y[:1]), errors.AxisSizeError,
                   "1 samples, at least 2 are needed"),
    "direction": (lambda: per_sample.inner_products(pair)(W, {"w": W}, X, Y),
                  errors.TreeMismatchError, "inner_products: direction has the wrong structure"),
    "direction's shape": (lambda: per_sample.inner_products(pair)(W, Y, X, Y), errors.ShapeError,
                          r"direction is f32\[4\], but params is f32\[3\]"),
    "other": (lambda: per_sample.gram(dot)(W, X, other=X), errors.ArgumentError,
              "other must be a tuple"),
    "outputs": (lambda: per_sample.ntk(dot, outputs="all"), errors.ArgumentError,
                "outputs is 'all'"),
    "several outputs": (lambda: per_sample.ntk(lambda w, x: (w, x))(W, X),
                        errors.NonScalarGradError, "returned a tuple, not one array"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert type(caught.value) is kind
    assert "test_api.py" in str(caught.value.where)
