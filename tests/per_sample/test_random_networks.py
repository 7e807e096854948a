"""Reductions of per-sample gradients of random networks are right, however they are computed.

Each program runs with contraction algebra "off", "auto" and "always", and is compared with what
NumPy makes of the same program in float64 before any pass. An error is measured in roundings of the
dtype, times what the result is naturally measured by: a power of the norms of the gradients.

More examples than a test run has time for: FUNCTRANS_EXAMPLES=5000 pytest on this file, with
another seed each time.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, tree
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from tests.per_sample.consumers import CONSUMERS, PLACES, SPELLINGS, Program, programs
from tests.per_sample.networks import (
    BFLOAT16,
    EMBEDDINGS,
    FLOAT32,
    FLOAT64,
    LAYERS,
    OTHER,
    Layer,
    Network,
    networks,
    problem,
)

WORDS = "off", "auto", "always"
EXAMPLES = 40
COMPILED = 15
MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
LEAST = 0.5  # outputs and targets are about 1: a gradient that is less is a difference of such
# roundings that a result may be off by
ROUNDINGS = {FLOAT64: 1e4, FLOAT32: 1e3, BFLOAT16: 30.0}


def examples(count):
    phases = tuple(Phase) if MANY else (Phase.generate,)
    return settings(max_examples=MANY or count, deadline=None, derandomize=not MANY, database=None,
                    print_blob=False, phases=phases, suppress_health_check=list(HealthCheck))


def staged(fun, args):
    closed = ft.make_jaxpr(fun)(*args)
    return closed.jaxpr.hoist_consts(), [*map(np.asarray, closed.consts),
                                         *map(np.asarray, tree.leaves(args))]


def wide(x):
    return np.asarray(x).astype(np.float64)


def by_numpy(jaxpr, arrays):
    """The values of a program, with those of the calls in it, without any pass."""
    with ft.config.use_backend("reference"):
        return interpret(jaxpr, arrays)


class Expected:
    """The result of a program on a network in float64, and what its errors are measured by."""

    def __init__(self, network, program):
        exact = problem(network, FLOAT64, exactly=True)
        args = exact.params, exact.xs, exact.ys

        def fun(params, xs, ys):
            return (program.on(exact)(params, xs, ys),
                    Program("vmap", "norm_power", program.place).on(exact)(params, xs, ys))

        jaxpr, arrays = staged(fun, args)
        *self.leaves, norms = by_numpy(jaxpr, arrays)
        norms = np.maximum(norms, LEAST)
        consumer = CONSUMERS[program.consumer]
        if consumer.rows and program.place in ("plain", "jit", "checkpoint"):
            self.scales = [norms.reshape(-1, *[1] * (e.ndim - 1)) ** consumer.degree
                           for e in self.leaves]
        else:
            size = max([norms.max() ** consumer.degree,
                        *(abs(e).max(initial=0.0) for e in self.leaves)])
            self.scales = [size] * len(self.leaves)

    def roundings(self, actual, eps):
        """The largest error in roundings."""
        worst = 0.0
        for a, e, scale in zip(actual, self.leaves, self.scales, strict=True):
            assert a.shape == e.shape
            errors = abs(wide(a) - e) / (eps * scale)
            assert np.all(np.isfinite(errors))
            worst = max(worst, float(errors.max(initial=0.0)))
        return worst


def precision(network, dtype):
    """The dtype that the program rounds to where it rounds most."""
    casts = any(layer.name.startswith("cast") for layer in network.layers)
    return max(dtype, OTHER[dtype], key=lambda d: -d.itemsize) if casts else dtype


def eps_of(dtype):
    return float(jnp.finfo(dtype).eps)


def evaluated(jaxpr, arrays, algebra):
    """What NumPy makes of the simplified program, which is checked."""
    with ft.config.algebra(algebra):
        after = simplify(jaxpr)
    check_jaxpr(after)
    assert simplify(after, algebra="off") is after
    assert [v.aval for v in after.outvars] == [v.aval for v in jaxpr.outvars]
    return by_numpy(after, arrays)


def check(network, program, dtype, words=WORDS):
    """Returns the largest errors, in roundings."""
    expected = Expected(network, program)
    given = problem(network, dtype)
    jaxpr, arrays = staged(program.on(given), (given.params, given.xs, given.ys))
    assert all(v.aval.dtype == dtype for v in jaxpr.outvars)
    return [accepted(expected, evaluated(jaxpr, arrays, word), precision(network, dtype), word)
            for word in words]


def accepted(expected, actual, dtype, what):
    error = expected.roundings(actual, eps_of(dtype))
    assert error <= ROUNDINGS[dtype], f"{what}: off by {error:.3g} roundings of {dtype}"
    return error


def compiled(network, program, dtype, algebra):
    given = problem(network, dtype)
    with ft.config.use_backend("c"), ft.config.algebra(algebra):
        return tree.leaves(ft.jit(program.on(given))(given.params, given.xs, given.ys))


def network_of(layer="dense_layer", embedding="", packing="dict", time=2, width=3):
    return Network(embedding, (Layer(layer, 2),), "dense", 2, "squares", packing, width, time, 3, 0)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer(layer):
    check(network_of(layer), Program("vmap", "norm_power", "plain"), FLOAT64, ["always"])
    check(network_of(layer, time=5), Program("vmap", "variance", "plain"), FLOAT32, ["always"])


@pytest.mark.parametrize("embedding", list(filter(None, EMBEDDINGS)))
def test_every_embedding(embedding):
    for time in (1, 5):
        check(network_of(embedding=embedding, packing="flat", time=time),
              Program("vmap", "squared_product", "plain"), FLOAT64, ["always"])


@pytest.mark.one_in(6)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_consumer(consumer):
    for layer, dtype in ("dense_layer", FLOAT64), ("tied_twice", FLOAT32):
        check(network_of(layer), Program("vmap", consumer, "plain"), dtype, ["always"])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("consumer", ["norm_joined", "clipped_tensordot", "variance", "kept"])
def test_every_spelling(spelling, consumer):
    check(network_of(), Program(spelling, consumer, "plain"), FLOAT64, ["always"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("consumer", ["norm_product", "clipped_broadcast", "pairs", "penalty"])
def test_every_place(place, consumer):
    check(network_of(), Program("vmap", consumer, place), FLOAT64, ["always"])


@examples(EXAMPLES)
@given(networks(), programs(), st.sampled_from([FLOAT64, FLOAT32, FLOAT32]))
def test_random_networks(network, program, dtype):
    note(str(dtype))
    check(network, program, dtype)


@examples(EXAMPLES // 4)
@given(networks(longest=2), programs())
def test_random_networks_in_bfloat16(network, program):
    check(network, program, BFLOAT16)


@examples(COMPILED)
@given(networks(longest=3), programs(), st.sampled_from([FLOAT64, FLOAT32, BFLOAT16]))
def test_compiled_networks(network, program, dtype):
    expected = Expected(network, program)
    for word in WORDS:
        accepted(expected, compiled(network, program, dtype, word), precision(network, dtype), word)


def test_a_loop_of_unknown_length_is_compiled():
    compiled(network_of("until"), Program("vmap", "norm_power", "plain"), FLOAT64, "off")


@pytest.mark.parametrize("dtype, subscripts", [("bfloat16", "ij,ij->"), ("float32", "ij,jk->ik")])
def test_a_product_is_repeated(dtype, subscripts):
    def repeated(w):
        out = jnp.einsum(subscripts, w, w)
        return jnp.broadcast_to(out, (64, *out.shape))

    w = jnp.ones((3, 3), dtype)
    np.testing.assert_array_equal(wide(ft.jit(repeated)(w)), wide(repeated(w)))


@pytest.mark.parametrize("product", [
    lambda w: lax.dot(w, w, preferred_element_type="float32"),
    lambda w: jnp.einsum("ij,jk->ik", w, w, preferred_element_type="float32"),
    lambda w: ft.nn.dot_product_attention(w[None, None], w[None, None], w[None, None])])
def test_a_product_with_a_wider_result_has_a_gradient(product):
    w = jnp.ones((2, 2), "bfloat16")
    assert ft.grad(lambda w: product(w).sum())(w).dtype == BFLOAT16


WRONG = {  # what is computed, what it is mistaken for
    "another divisor": ("variance_ddof", "variance"),
    "no mean subtracted": ("fisher", "variance"),
    "no sum over samples of a pair": ("norm_of_mean", "fisher_trace"),
    "a column instead of the diagonal": ("first", "squared_power"),
    "clipped by leaf": ("clipped_leaves", "clipped_broadcast"),
    "not clipped": ("mean", "clipped_tensordot"),
    "not divided": ("sum", "mean"),
    "another sample": ("neighbours", "squared_product"),
    "outputs not summed": ("kernel_blocks", "kernel"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32], ids=str)
def test_a_wrong_result_is_refused(wrong, dtype):
    consumer, other = WRONG[wrong]
    network = network_of("attention", time=5)
    given = problem(network, dtype)
    jaxpr, arrays = staged(Program("vmap", consumer, "plain").on(given),
                           (given.params, given.xs, given.ys))
    with pytest.raises(AssertionError):
        accepted(Expected(network, Program("vmap", other, "plain")),
                 evaluated(jaxpr, arrays, "off"), dtype, wrong)


@pytest.mark.parametrize("dtype, part", [(FLOAT64, 1e-9), (FLOAT32, 1e-3), (BFLOAT16, 0.3)])
def test_a_small_error_is_refused(dtype, part):
    expected = Expected(network_of(), Program("vmap", "norm_power", "plain"))
    accepted(expected, expected.leaves, dtype, "")
    with pytest.raises(AssertionError, match="off by"):
        accepted(expected, [(1.0 + part) * e for e in expected.leaves], dtype, "")
    with pytest.raises(AssertionError):
        accepted(expected, [e * np.nan for e in expected.leaves], dtype, "")
