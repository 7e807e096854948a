"""Products with one-hot arrays are gathers and scatters, and the same in value.

Each program runs with contraction algebra "off", "auto" and "always" after all passes, and is
compared with what NumPy makes of it in float64 before any.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import nn, tree
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.lowering.passes.networks import forms
from functrans.lowering.passes.pipeline import simplify
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import gather_p, scatter_add_p

T, K, E, C, D = 7, 2, 3, 5, 4  # tokens, choices, experts, places, features
SIZES = {"t": T, "k": K, "e": E, "c": C, "d": D, "f": 6}
WORDS = "off", "auto", "always"
F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)


def array(rng, names, dtype=F32):
    return rng.standard_normal([SIZES[i] for i in names]).astype(dtype)


def places(rng, names, size):
    """Places with duplicates, some before the first and after the last."""
    return rng.integers(-1, size + 1, [SIZES[i] for i in names]).astype(np.int32)


def staged(fun, args):
    closed = ft.make_jaxpr(fun)(*args)
    return closed.jaxpr.hoist_consts(), [*map(np.asarray, closed.consts),
                                         *map(np.asarray, tree.leaves(args))]


def values(jaxpr, arrays):
    with ft.config.use_backend("reference"):
        return [np.asarray(x).astype(np.float64) for x in interpret(jaxpr, arrays)]


def wide(x):
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype in (F32, BF16) else x


def assert_same(fun, args, tolerance=1e-4):
    """The programs by each setting, of the same values."""
    expected = values(*staged(fun, tree.map(wide, args)))
    jaxpr, arrays = staged(fun, args)
    found = {}
    for word in WORDS:
        found[word] = simplify(jaxpr, algebra=word)
        check_jaxpr(found[word])
        for x, y in zip(expected, values(found[word], arrays), strict=True):
            scale = max(1.0, np.abs(x).max(initial=0))
            np.testing.assert_allclose(y / scale, x / scale, atol=tolerance, err_msg=word)
    return found


def count(jaxpr, *primitives):
    return sum(eqn.primitive in primitives for eqn in jaxpr.eqns)


@pytest.fixture
def everything(monkeypatch):
    """Arrays of any size are worth a decision."""
    monkeypatch.setattr(forms, "LEAST_BYTES", 0)


# ------------------------------------------------------------------------------- spellings

SPELLINGS = {
    "one_hot": lambda i, n: nn.one_hot(i, n),
    "swapped": lambda i, n: (jnp.arange(n) == i[..., None]).astype("float32"),
    "where": lambda i, n: jnp.where(i[..., None] == jnp.arange(n), 1.0, 0.0),
    "integers": lambda i, n: (i[..., None] == jnp.arange(n)).astype("int32").astype("float32"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_product_with_a_one_hot_array_is_a_gather(spelling):
    rng = np.random.default_rng(0)
    indices, table = rng.integers(-1, 33, 16).astype(np.int32), array(rng, "ed")[:1].repeat(32, 0)
    table = table * np.arange(32, dtype=np.float32)[:, None]
    found = assert_same(lambda i, x: SPELLINGS[spelling](i, 32) @ x, (indices, table))["always"]
    assert (count(found, gather_p), count(found, dot_general_p)) == (1, 0)


def test_a_product_with_a_transposed_one_hot_array_is_a_scatter():
    rng = np.random.default_rng(0)
    found = assert_same(lambda i, x: nn.one_hot(i, E).T @ x,
                        (places(rng, "t", E), array(rng, "td")))["always"]
    assert (count(found, scatter_add_p), count(found, dot_general_p)) == (1, 0)


def test_a_product_of_one_hot_arrays_counts_pairs():
    rng = np.random.default_rng(0)
    found = assert_same(lambda i, j: nn.one_hot(i, E).T @ nn.one_hot(j, C),
                        (places(rng, "t", E), places(rng, "t", C)))["always"]
    assert (count(found, scatter_add_p), count(found, dot_general_p)) == (1, 0)


def test_factors_of_a_choice_are_those_of_a_product():
    rng = np.random.default_rng(0)

    def fun(i, w, x):
        chosen = jnp.where(i[:, None] == jnp.arange(E), w[:, None], 0.0)
        return chosen.T @ x

    found = assert_same(fun, (places(rng, "t", E), array(rng, "t"), array(rng, "td")))["always"]
    assert (count(found, scatter_add_p), count(found, dot_general_p)) == (1, 0)


def test_operands_that_nothing_is_read_for(everything):
    """An array of positions, as an operand of a product."""
    x = array(np.random.default_rng(0), "td")
    assert_same(lambda x: x @ jnp.arange(D, dtype="float32"), (x,))


# ------------------------------------------------------------------------------- laws


def einsums(seed, size):
    """Random einsums of `size` one-hot arrays and some others, with their arguments."""
    rng = np.random.default_rng([seed, size])
    places_of, terms, indices = [], [], []
    for outer in ["e", "c", "f"][:size]:
        where = ("t", "tk", "k")[rng.integers(3)]
        places_of.append((where, outer))
        terms.append(where + outer)
        indices.append(places(rng, where, SIZES[outer]))
    used = "".join(dict.fromkeys("".join(terms) + "d"))
    others = ["".join(i for i in used if rng.random() < 0.5) or "d"
              for _ in range(rng.integers(1, 3))]
    everything = "".join(dict.fromkeys("".join([*terms, *others])))
    out = "".join(i for i in everything if rng.random() < 0.45)
    order = rng.permutation(size + len(others))

    def fun(indices, arrays):
        hots = [nn.one_hot(i, SIZES[o]).astype(arrays[0].dtype)
                for i, (_, o) in zip(indices, places_of, strict=True)]
        operands, names = [*hots, *arrays], [*terms, *others]
        return jnp.einsum(",".join(names[n] for n in order) + "->" + out,
                          *[operands[n] for n in order])

    return fun, indices, [array(rng, names) for names in others], rng


@pytest.mark.parametrize("size", (1, 2, 3))
def test_random_einsums(everything, size):
    for seed in range(12):
        fun, indices, arrays, _ = einsums(seed, size)
        assert_same(fun, (indices, arrays))


@pytest.mark.parametrize("size", (1, 2))
def test_gradients_of_random_einsums(everything, size):
    for seed in range(20, 26):
        fun, indices, arrays, rng = einsums(seed, size)
        weights = rng.standard_normal(np.shape(fun(indices, arrays))).astype(F32)
        assert_same(lambda i, xs, w, fun=fun: ft.grad(
            lambda xs: (fun(i, xs) * w).sum() + (fun(i, xs) ** 2).sum())(xs),
            (indices, arrays, weights))


def test_random_einsums_in_bfloat16(everything):
    for seed, size in itertools.product(range(30, 34), (1, 2)):
        fun, indices, arrays, _ = einsums(seed, size)
        arrays = [(x * 4).round().astype(BF16) / BF16.type(4) for x in arrays]
        assert_same(fun, (indices, arrays), 0.05)


# ------------------------------------------------------------------------------- experts


def experts(index, place, gates, x, widen):
    """Tokens go to their places in the buffers of experts and back."""
    masks, slots = nn.one_hot(index, E), nn.one_hot(place, C)
    dispatch = jnp.einsum("tke,tkc->tec", masks, slots)
    combine = jnp.einsum("tk,tke,tkc->tec", gates, masks, slots)
    hidden = jnp.tanh(jnp.einsum("ecd,edf->ecf", jnp.einsum("tec,td->ecd", dispatch, x), widen))
    return jnp.einsum("tec,ecf->tf", combine, hidden)


def problem(seed=0):
    rng = np.random.default_rng(seed)
    return (places(rng, "tk", E), places(rng, "tk", C), array(rng, "tk"), array(rng, "td"),
            array(rng, "edf"))


def test_experts_keep_products_with_weights_alone(everything):
    found = assert_same(experts, problem())["always"]
    assert count(found, gather_p) == 1
    assert count(found, scatter_add_p) == 1
    assert not any(T in v.aval.shape and C in v.aval.shape for eqn in found.eqns
                   for v in eqn.outvars)


def test_gradients_of_experts_make_no_array_of_tokens_and_places(everything):
    def gradients(index, place, *rest):
        return ft.grad(lambda *rest: (experts(index, place, *rest) ** 2).sum(),
                       argnums=(0, 1, 2))(*rest)

    found = assert_same(gradients, problem())["always"]
    assert not any(T in v.aval.shape and C in v.aval.shape for eqn in found.eqns
                   for v in eqn.outvars)


def test_experts_of_each_sample(everything):
    index, place, gates, x, widen = problem()
    many = [np.stack([a, a[::-1]]) for a in (index, place, gates, x)]
    assert_same(ft.vmap(lambda *args: ft.grad(
        lambda g, x: (experts(args[0], args[1], g, x, widen) ** 2).sum(), argnums=(0, 1))(
            *args[2:])), many)


def test_one_choice_by_an_outer_product(everything):
    rng = np.random.default_rng(0)

    def fun(i, j, x):
        dispatch = nn.one_hot(i, E)[:, :, None] * nn.one_hot(j, C)[:, None]
        return jnp.einsum("tec,td->ecd", dispatch, x)

    found = assert_same(fun, (places(rng, "t", E), places(rng, "t", C), array(rng, "td")))["always"]
    assert (count(found, scatter_add_p), count(found, dot_general_p)) == (1, 0)


# ------------------------------------------------------------------------------- costs


@pytest.mark.parametrize("n, clusters, is_atomic, is_scatter", [
    (100000, 16, False, True),  # 0.28 ms on four cores, 0.48 as a product
    (100000, 16, True, False),  # 6,250 additions to each row, one after the other
    (100000, 256, True, True),
    (16, 4, False, False),  # in the cache
])
def test_sums_of_clusters_are_scattered_where_that_is_cheaper(n, clusters, is_atomic, is_scatter):
    jaxpr, _ = staged(lambda i, x: nn.one_hot(i, clusters).T @ x,
                      (np.zeros(n, np.int32), np.zeros((n, 8), F32)))
    found = simplify(jaxpr, algebra="auto", atomic=is_atomic)
    assert count(found, scatter_add_p) == is_scatter
    assert count(found, dot_general_p) == (not is_scatter)


def test_products_over_experts_are_worth_a_gather():
    jaxpr, _ = staged(
        lambda i, j, x: jnp.einsum("tec,td->ecd", jnp.einsum(
            "tke,tkc->tec", nn.one_hot(i, 4), nn.one_hot(j, 40)), x),
        (np.zeros((64, 2), np.int32), np.zeros((64, 2), np.int32), np.zeros((64, 32), F32)))
    for is_atomic in (False, True):
        found = simplify(jaxpr, algebra="auto", atomic=is_atomic)
        assert (count(found, scatter_add_p), count(found, dot_general_p)) == (1, 0)


# ------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("names", [
    "tc,ce,ced->td", "ce,tc,ced->td", "tc,tce,td->ed", "tce,tc,td->ed", "tce,tc,td->ecd",
    "tc,tce,tced->d", "tce,tc,ced->ced", "tc,ce,td->ed"])
def test_places_that_are_selected_by_places(everything, names):
    rng = np.random.default_rng(0)
    *hots, last = names.split("->")[0].split(",")

    def fun(x, *indices):
        operands = [nn.one_hot(i, SIZES[h[-1]]) for i, h in zip(indices, hots, strict=True)]
        return jnp.einsum(names, *operands, x)

    for _ in range(3):
        assert_same(fun, (array(rng, last), *[places(rng, h[:-1], SIZES[h[-1]]) for h in hots]))
