"""`precision=` of products: given as in JAX, kept by transforms and passes, used by GPU kernels."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError
from functrans.core.jaxpr import subjaxprs
from functrans.lowering.passes.pipeline import simplify

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 8)).astype("f"), RNG.normal(size=(8, 6)).astype("f")
DIMS = (((1,), (0,)), ((), ()))
HIGHEST = lax.Precision.HIGHEST

PRODUCTS = {
    "dot": lambda p: jnp.dot(X, Y, precision=p), "matmul": lambda p: jnp.matmul(X, Y, precision=p),
    "einsum": lambda p: jnp.einsum("ij,jk->ki", X, Y, precision=p),
    "tensordot": lambda p: jnp.tensordot(X, Y, 1, precision=p),
    "vdot": lambda p: jnp.vdot(X, Y, precision=p),
    "inner": lambda p: jnp.inner(X, Y.T, precision=p),
    "vecdot": lambda p: jnp.vecdot(X, Y.T, precision=p),
    "lax.dot": lambda p: lax.dot(jnp.asarray(X), jnp.asarray(Y), precision=p),
    "lax.dot_general": lambda p: lax.dot_general(X, Y, DIMS, p),
    "conv": lambda p: lax.conv_general_dilated(X[None, :, :], X[:, :, None][:, :6], (1,), "VALID",
                                               precision=p)}


def precisions_of(jaxpr):
    """The names of those of products, None where a product has none."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("dot_general", "conv_general_dilated"):
            given = eqn.params.get("precision")
            found.append(None if given is None else given.name)
        for inner in subjaxprs(eqn):
            found += precisions_of(inner)
    return found


def test_programs_show_precisions_that_are_given():
    assert "precision=HIGHEST" in str(ft.make_jaxpr(lambda: PRODUCTS["dot"]("highest"))())
    assert "precision" not in str(ft.make_jaxpr(lambda: PRODUCTS["dot"](None))())


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_show_the_precision_that_they_were_given(name):
    product = PRODUCTS[name]
    assert precisions_of(ft.make_jaxpr(lambda: product("highest"))().jaxpr) == ["HIGHEST"]
    assert precisions_of(ft.make_jaxpr(lambda: product(None))().jaxpr) == [None]
    np.testing.assert_array_equal(product("high"), product(None))


@pytest.mark.parametrize("given, found", [
    ("default", "DEFAULT"), ("tensorfloat32", "DEFAULT"), ("bfloat16", "DEFAULT"),
    ("high", "HIGH"), ("float32", "HIGHEST"), (lax.Precision.HIGH, "HIGH"),
    (("default", "highest"), "HIGHEST"), ((lax.Precision.HIGH, None), "HIGH")])
def test_words_and_pairs(given, found):
    assert precisions_of(ft.make_jaxpr(lambda: PRODUCTS["dot"](given))().jaxpr) == [found]


@pytest.mark.parametrize("wrong", ["exact", 3, ("high",), ("high", "low")])
def test_other_words_are_refused(wrong):
    with pytest.raises(ArgumentError, match="is no precision"):
        PRODUCTS["einsum"](wrong)


def loss(x, y):
    return jnp.sin(jnp.matmul(x, y, precision="highest")).sum()


TWICE = np.stack([X, X]), np.stack([Y, Y])
TRANSFORMED = {
    "grad": (ft.grad(loss, (0, 1)), (X, Y)), "hessian": (ft.hessian(loss), (X, Y)),
    "jvp": (lambda x, y: ft.jvp(loss, (x, y), (x, y)), (X, Y)),
    "vmap of one": (ft.vmap(loss, (0, None)), (TWICE[0], Y)), "vmap": (ft.vmap(loss), TWICE),
    "vmap of grad": (ft.vmap(ft.grad(loss), (None, 0)), (X, TWICE[1])),
    "jit": (ft.jit(loss), (X, Y)),
    "checkpoint": (ft.grad(ft.checkpoint(loss)), (X, Y))}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_keep_it(name):
    fun, args = TRANSFORMED[name]
    assert set(precisions_of(ft.make_jaxpr(fun)(*args).jaxpr)) == {"HIGHEST"}


def test_convolutions_keep_it_in_their_gradients():
    def total(x, w):
        return (lax.conv_general_dilated(x, w, (1,), "SAME", precision="high") ** 2).sum()

    fun = ft.vmap(ft.grad(total, (0, 1)))
    jaxpr = ft.make_jaxpr(fun)(X[:, None, None, :], Y[:6, None, None, :3]).jaxpr
    assert len(precisions_of(jaxpr)) >= 3
    assert set(precisions_of(jaxpr)) == {"HIGH"}


def simplified(fun, *args):
    return simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts())


def test_laws_of_contractions_keep_it():
    def moved(x, y):
        product = jnp.einsum("ij,kj->ki", x.reshape(6, 8), y.T, precision="highest")
        return product.T.sum(0)

    assert set(precisions_of(simplified(moved, X, Y))) == {"HIGHEST"}


def test_narrow_operands_that_are_converted_keep_it():
    def wide(x, y):
        return jnp.matmul(x.astype("float32"), y.astype("float32"), precision="highest")

    jaxpr = simplified(wide, jnp.asarray(X, "bfloat16"), jnp.asarray(Y, "bfloat16"))
    assert precisions_of(jaxpr) == ["HIGHEST"]


def test_contracted_networks_have_the_highest_of_their_products():
    def per_sample(x, y):
        gradients = jnp.einsum("bi,bo->bio", x, y, precision="default")
        return jnp.einsum("bio,bio->b", gradients, gradients, precision="highest"), \
            jnp.einsum("bio,b->io", gradients, x[:, 0], precision="high")

    big = RNG.normal(size=(32, 64)).astype("f")
    with ft.config.algebra("always"):
        assert set(precisions_of(simplified(per_sample, big, big))) == {"HIGH"}


def test_sums_of_products_in_loops_keep_it():
    def total(xs, ys):
        def step(carry, pair):
            x, y = pair
            return carry + jnp.matmul(x.T, y, precision="highest"), None

        return lax.scan(step, jnp.zeros((8, 6)), (xs, ys))[0]

    jaxpr = simplified(total, np.stack([X] * 4), np.stack([X[:, :6]] * 4))
    assert precisions_of(jaxpr) == ["HIGHEST"]


@pytest.mark.parametrize("given, words", [
    (None, "tf32"), ("default", "tf32"), ("high", "tf32x3"), ("highest", "ieee")])
def test_kernels_for_gpus_multiply_with_it(given, words):
    big = RNG.normal(size=(64, 64)).astype("f")
    with ft.config.use_backend("triton"):
        compiled = ft.jit(lambda x, y: jnp.matmul(x, y, precision=given)).lower(big, big).compile()
    assert set(re.findall(r"input_precision='(\w+)'", compiled.as_text())) == {words}


def test_the_setting_is_of_products_without_their_own():
    big = RNG.normal(size=(64, 64)).astype("f")

    def both(x, y):
        return jnp.matmul(x, y) + jnp.matmul(y, x, precision="high")

    for setting, words in (("float32", "ieee"), (HIGHEST, "ieee"), ("tensorfloat32", "tf32")):
        with ft.config.use_backend("triton"), ft.config.matmul_precision(setting):
            text = ft.jit(both).lower(big, big).compile().as_text()
        assert set(re.findall(r"input_precision='(\w+)'", text)) == {words, "tf32x3"}


def test_a_scope_inside_of_a_function_is_of_what_is_traced_there():
    """Whatever the setting is where the program is compiled, and for derivatives, too."""
    big = RNG.normal(size=(64, 64)).astype("f")

    def loop(x, y):
        return ft.lax.fori_loop(0, 2, lambda _, z: jnp.matmul(z, y), x)

    def inside(x, y):
        with ft.default_matmul_precision("highest"):
            return ft.vmap(ft.grad(lambda x: jnp.sum(jnp.sin(loop(x[None], y)))))(x)

    def default_inside(x, y):
        with ft.default_matmul_precision("default"):
            return jnp.matmul(x, y)

    assert set(precisions_of(ft.make_jaxpr(inside)(big, big).jaxpr)) == {"HIGHEST"}
    _, pullback = ft.vjp(inside, big, big)
    assert set(precisions_of(ft.make_jaxpr(pullback)(big).jaxpr)) == {"HIGHEST"}
    with ft.config.matmul_precision("highest"):
        assert precisions_of(ft.make_jaxpr(ft.jit(default_inside))(big, big).jaxpr) == ["DEFAULT"]
    with ft.config.use_backend("triton"):
        text = ft.jit(lambda x, y: inside(x, y) + jnp.matmul(x, y)).lower(
            big, big).compile().as_text()
    assert {"ieee", "tf32"} >= set(re.findall(r"input_precision='(\w+)'", text)) >= {"tf32"}


def test_attention_has_the_highest_of_its_products():
    q = RNG.normal(size=(2, 64, 2, 16)).astype("f")

    def attention(q, k, v):
        weights = ft.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4, -1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v, precision="highest")

    with ft.config.use_backend("triton"):
        text = ft.jit(attention).lower(q, q, q).compile().as_text()
    assert set(re.findall(r"input_precision='(\w+)'", text)) == {"ieee"}
