"""Golden programs of contraction algebra, each the same in value as the program that it is of.

The setting is "always", but for what the cost decides.
"""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.lowering.passes.pipeline import simplify
from tests.lowering.test_passes import array, assert_same_values, program_of, spelled

B, T, I, O = 3, 2, 5, 4  # samples, positions, inputs, outputs
X, Y = array(B, I), array(B, O)
XT, YT = array(B, T, I), array(B, T, O)
C, V = array(B), array(I, O)
PLACES = np.array([[0, 2], [2, 2], [1, -1]], np.int32)
IMAGES, KERNEL, COTANGENTS = array(B, 6, 6, 2), array(3, 3, 2, 4), array(B, 4, 4, 4)


def outer(x, y):
    return x[:, :, None] * y[:, None, :]


def products(x, y):
    return jnp.einsum("bti,bto->bio", x, y)


def rows(g):
    return g.reshape(len(g), -1)


def norms(g):
    return (rows(g) ** 2).sum(1)


def table(e, size=7, mode="clip"):
    """For each sample, rows added into zeros at the places of its positions."""
    return ft.vmap(lambda i, e: jnp.zeros((size, O)).at[i].add(e, mode=mode))(PLACES, e)


def kernels(x, y):
    """The gradient of a kernel for each image and cotangent."""
    def one(x, y):
        def convolution(w):
            return lax.conv_general_dilated(x[None], w, (1, 1), "VALID",
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return ft.vjp(convolution, KERNEL)[1](y[None])[0]
    return ft.vmap(one)(x, y)


def in_a_loop(x, y):
    def step(total, sample):
        return total + norms(outer(*sample)), None
    return lax.scan(step, jnp.zeros(B), (jnp.stack([x, -x]), jnp.stack([y, y])))[0]


PROGRAMS = {
    "weighted_sum": (lambda x, y, c: (outer(x, y) * c[:, None, None]).sum(0), (X, Y, C),
        "d = broadcast_in_dim[shape=(3,4) broadcast_dimensions=(0)] c; e = mul b d; f = "
        "dot_general[dimension_numbers=(((0),(0)),((),()))] a e -> f"),
    "weighted_sum_of_positions": (
        lambda x, y, c: jnp.tensordot(c, products(x, y), axes=1),
        (XT, YT, C),
        "d = broadcast_in_dim[shape=(3,2,4) broadcast_dimensions=(0)] c; e = mul b d; f = "
        "dot_general[dimension_numbers=(((0,1),(0,1)),((),()))] a e -> f"),
    "norms": (lambda x, y: norms(outer(x, y)), (X, Y),
        "c = mul b b; d = reduce_sum[axes=(1)] c; e = mul a a; f = reduce_sum[axes=(1)] e; g = "
        "mul d f -> g"),
    "norms_of_transposed": (lambda x, y: norms(outer(x, y).transpose(0, 2, 1)), (X, Y),
        "c = mul b b; d = reduce_sum[axes=(1)] c; e = mul a a; f = reduce_sum[axes=(1)] e; g = "
        "mul d f -> g"),
    "norms_of_positions": (lambda x, y: norms(products(x, y)), (XT, YT),
        "c = dot_general[dimension_numbers=(((2),(2)),((0),(0)))] b b; d = "
        "dot_general[dimension_numbers=(((2),(2)),((0),(0)))] a a; e = mul c d; f = "
        "reduce_sum[axes=(1,2)] e -> f"),
    "norms_in_bfloat16": (
        lambda x, y: norms(outer(x, y).astype("float32")),
        (X.astype(ml_dtypes.bfloat16), Y.astype(ml_dtypes.bfloat16)),
        "c = convert_element_type[new_dtype=float32] b; d = mul c c; e = reduce_sum[axes=(1)] d; "
        "f = convert_element_type[new_dtype=float32] a; g = mul f f; h = reduce_sum[axes=(1)] g; "
        "i = mul e h -> i"),
    "norms_of_joined": (lambda x, y: norms(jnp.concatenate([rows(outer(x, y)), y], 1)), (X, Y),
        "c = mul b b; d = reduce_sum[axes=(1)] c; e = mul a a; f = reduce_sum[axes=(1)] e; g = "
        "mul d f; h = add g d; i = max h 0.0 -> i"),
    "norms_of_shared": (lambda x, y, z: norms(outer(x, y) + products(z, z[:, :, :O])), (X, Y, XT),
        "d = slice[start_indices=(0,0,0) limit_indices=(3,2,4) strides=(1,1,1)] c; e = mul b b; f "
        "= reduce_sum[axes=(1)] e; g = mul a a; h = reduce_sum[axes=(1)] g; i = mul f h; j = "
        "dot_general[dimension_numbers=(((2),(1)),((0),(0)))] d b; k = "
        "dot_general[dimension_numbers=(((2),(1)),((0),(0)))] c a; l = mul j k; m = "
        "reduce_sum[axes=(1)] l; n = mul m 2.0; o = add i n; p = "
        "dot_general[dimension_numbers=(((2),(2)),((0),(0)))] d d; q = "
        "dot_general[dimension_numbers=(((2),(2)),((0),(0)))] c c; r = mul p q; s = "
        "reduce_sum[axes=(1,2)] r; t = add o s; u = max t 0.0 -> u"),
    "norms_of_tables": (lambda e: norms(table(e)), (YT,),
        "c = lt a 0; d = add a 7; e = select_n c a d; f = max e 0; g = min f 6; h = "
        "broadcast_in_dim[shape=(3,2,2) broadcast_dimensions=(0,1)] g; i = "
        "broadcast_in_dim[shape=(3,2,2) broadcast_dimensions=(0,2)] g; j = eq h i; k = "
        "convert_element_type[new_dtype=float32] j; l = "
        "dot_general[dimension_numbers=(((2),(2)),((0),(0)))] b b; m = mul k l; n = "
        "reduce_sum[axes=(1,2)] m -> n"),
    "norms_of_tables_that_drop": (lambda e: norms(table(e, 3, "drop")), (YT,),
        "c = lt a 0; d = add a 3; e = select_n c a d; f = broadcast_in_dim[shape=(3,2,2) "
        "broadcast_dimensions=(0,1)] e; g = broadcast_in_dim[shape=(3,2,2) "
        "broadcast_dimensions=(0,2)] e; h = eq f g; i = ge e 0; j = lt e 3; k = and i j; l = "
        "broadcast_in_dim[shape=(3,2,2) broadcast_dimensions=(0,1)] k; m = and h l; n = "
        "convert_element_type[new_dtype=float32] m; o = "
        "dot_general[dimension_numbers=(((2),(2)),((0),(0)))] b b; p = mul n o; q = "
        "reduce_sum[axes=(1,2)] p -> q"),
    "norms_in_a_loop": (in_a_loop, (X, Y),
        "c = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0.0; d = neg a; e = "
        "reshape[new_sizes=(1,3,5)] a; f = reshape[new_sizes=(1,3,5)] d; g = "
        "concatenate[dimension=0] e f; h = reshape[new_sizes=(1,3,4)] b; i = "
        "concatenate[dimension=0] h h; j = scan[jaxpr={d = mul c c; e = reduce_sum[axes=(1)] d; f "
        "= mul b b; g = reduce_sum[axes=(1)] f; h = mul e g; i = add a h -> i} length=2 "
        "reverse=False unroll=1 num_consts=0 num_carry=1] c g i -> j"),
    "squares": (lambda x, y: (outer(x, y) ** 2).sum(0), (X, Y),
        "c = mul b b; d = mul a a; e = dot_general[dimension_numbers=(((0),(0)),((),()))] d c -> "
        "e"),
    "variance": (lambda x, y: outer(x, y).var(0), (X, Y),
        "c = dot_general[dimension_numbers=(((0),(0)),((),()))] a b; d = div c 3.0; e = mul b b; "
        "f = mul a a; g = dot_general[dimension_numbers=(((0),(0)),((),()))] f e; h = mul c d; i "
        "= mul h -2.0; j = add g i; k = mul d d; l = mul k 3.0; m = add j l; n = max m 0.0; o = "
        "div n 3.0 -> o"),
    "gram": (lambda x, y: rows(outer(x, y)) @ rows(outer(x, y)).T, (X, Y),
        "c = dot_general[dimension_numbers=(((1),(1)),((),()))] b b; d = "
        "dot_general[dimension_numbers=(((1),(1)),((),()))] a a; e = mul c d -> e"),
    "inner_products": (lambda x, y, v: (outer(x, y) * v).sum((1, 2)), (X, Y, V),
        "d = dot_general[dimension_numbers=(((1),(0)),((),()))] a c; e = mul b d; f = "
        "reduce_sum[axes=(1)] e -> f"),
    "sum_of_tables": (lambda e, c: jnp.tensordot(c, table(e), axes=1), (YT, C),
        "d = lt a 0; e = add a 7; f = select_n d a e; g = reshape[new_sizes=(3,2,1)] f; h = "
        "broadcast_in_dim[shape=(3,2,4) broadcast_dimensions=(0)] c; i = mul b h; j = "
        "broadcast_in_dim[shape=(7,4) broadcast_dimensions=()] 0.0; k = "
        "scatter_add[dimension_numbers={update_window_dims=(2,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,)} mode=CLIP indices_are_sorted=False "
        "unique_indices=False] j g i -> k"),
    "sum_of_kernels": (
        lambda x, y, c: jnp.tensordot(c, kernels(x, y), axes=1),
        (IMAGES, COTANGENTS, C),
        "e = broadcast_in_dim[shape=(3,4,4,4) broadcast_dimensions=(0)] d; f = mul c e; g = "
        "conv_general_dilated[dimension_numbers=((3,0,1,2),(3,0,1,2),(2,3,0,1)) group_axes=None "
        "window_strides=(1,1) padding=((0,0),(0,0)) lhs_dilation=(1,1) rhs_dilation=(1,1) "
        "preferred_element_type=None] b f -> g"),
    "sum_of_parts": (
        lambda x, y, c: jnp.tensordot(c, jnp.pad(outer(x, y), ((0, 0), (1, 0), (0, 2))), 1),
        (X, Y, C),
        "d = broadcast_in_dim[shape=(3,4) broadcast_dimensions=(0)] c; e = mul b d; f = "
        "dot_general[dimension_numbers=(((0),(0)),((),()))] a e; g = "
        "pad[padding_config=((0,0,0),(0,2,0))] f 0.0; h = transpose[permutation=(1,0)] g; i = "
        "pad[padding_config=((0,0,0),(1,0,0))] h 0.0; j = transpose[permutation=(1,0)] i -> j"),
    "needed_whole": (lambda x, y: (lambda g: (g, norms(g)))(outer(x, y)), (X, Y),
        "c = broadcast_in_dim[shape=(3,5,4) broadcast_dimensions=(0,1)] a; d = "
        "broadcast_in_dim[shape=(3,5,4) broadcast_dimensions=(0,2)] b; e = mul c d; f = mul e e; "
        "g = reduce_sum[axes=(1,2)] f -> e g"),
    "not_a_network": (lambda x, y: jnp.tanh(outer(x, y)).sum(0), (X, Y),
        "c = broadcast_in_dim[shape=(3,5,4) broadcast_dimensions=(0,1)] a; d = "
        "broadcast_in_dim[shape=(3,5,4) broadcast_dimensions=(0,2)] b; e = mul c d; f = tanh e; g "
        "= reduce_sum[axes=(0)] f -> g"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_contracted_programs(name):
    fun, args, text = PROGRAMS[name]
    before, consts = program_of(fun, *args)
    after = simplify(before, algebra="always")
    check_jaxpr(after)
    assert spelled(after).split() == text.split()
    assert all(eqn.source is not None for eqn in after.eqns)
    assert [v.aval for v in after.outvars] == [v.aval for v in before.outvars]
    tolerance = 4e-3 if name.endswith("bfloat16") else 2e-5
    assert_same_values(before, after, [*consts, *map(np.asarray, args)], tolerance, tolerance)


# ------------------------------------------------------------------------------- decisions


def decided(fun, *args):
    """The decisions of a program, and which sizes its equations have."""
    decisions = []
    before, consts = program_of(fun, *args)
    after = simplify(before, algebra="auto", decisions=decisions)
    assert_same_values(before, after, [*consts, *map(np.asarray, args)], 1e-4, 1e-4)
    assert simplify(after, algebra="auto") is after
    return decisions, {v.aval.shape for eqn in after.eqns for v in eqn.outvars}


def test_few_positions_take_gram_matrices_and_many_the_gradients():
    few = array(8, 4, 64), array(8, 4, 48)
    (decision,), shapes = decided(lambda x, y: norms(products(x, y)), *few)
    assert decision.is_contracted
    assert (8, 4, 4) in shapes
    assert (8, 64, 48) not in shapes
    many = array(8, 96, 64), array(8, 96, 48)
    (decision,), shapes = decided(lambda x, y: norms(products(x, y)), *many)
    assert not decision.is_contracted
    assert (8, 96, 96) not in shapes
    assert (8, 64, 48) in shapes


def test_a_materialised_gradient_is_used_where_there_is_one():
    x, y = array(32, 64), array(32, 48)
    _, shapes = decided(lambda x, y: (lambda g: (g, g.sum(0)))(outer(x, y)), x, y)
    assert (32, 64, 48) in shapes


def test_what_stays_in_the_cache_is_left_alone():
    x, y = array(3, 5), array(3, 4)
    decisions, shapes = decided(lambda x, y: norms(outer(x, y)), x, y)
    assert decisions == []
    assert (3, 5, 4) in shapes


def test_a_decision_tells_both_figures_and_the_line():
    x, y = array(32, 64), array(32, 48)
    (decision,), _ = decided(lambda x, y: norms(outer(x, y)), x, y)
    text = str(decision)
    assert "test_networks.py:" in text
    assert "f32[32,64,48] for reduce_sum f32[32]: never made (from factors: 7.23 kFLOP" in text
    assert "materialised: 295 kFLOP" in text
    compiled = ft.jit(lambda x, y: norms(outer(x, y))).lower(x, y).compile()
    assert text.split(": ", 1)[1].split(": never made")[1] in compiled.as_text()


def test_the_setting_is_heeded_by_every_backend():
    x, y = array(32, 64), array(32, 48)
    for backend in ("c", "reference"):
        sizes = []
        for word in ("auto", "off"):
            with ft.config.use_backend(backend), ft.config.algebra(word):
                compiled = ft.jit(lambda x, y: norms(outer(x, y))).lower(x, y).compile()
                sizes.append("f32[32,64,48] = " in compiled.as_text())
        assert sizes == [False, True]


def test_a_compiled_function_keeps_its_setting(monkeypatch):
    x, y = array(32, 64), array(32, 48)
    with ft.config.algebra("off"):
        compiled = ft.jit(lambda x, y: norms(outer(x, y))).lower(x, y).compile()
    asked = []
    fitting = ft.transforms.jit.fitting
    executable_of = fitting.executable_of
    monkeypatch.setattr(fitting, "executable_of", lambda *args, **known: asked.append(
        ft.config.current().algebra) or executable_of(*args, **known))
    compiled(x, y)
    assert set(asked) == {"off"}


def test_memory_of_a_clipped_mean():
    x, y = array(64, 256), array(64, 128)

    def clipped(x, y):
        g = outer(x, y)
        return jnp.tensordot(jnp.minimum(1.0, 3.0 / jnp.sqrt(norms(g))), g, 1)

    def peak(fun):
        return ft.jit(fun).lower(x, y).compile().memory_analysis()["peak"]

    assert peak(clipped) <= 2 * peak(lambda x, y: x.T @ y)
    with ft.config.algebra("off"):
        assert peak(clipped) > 20 * peak(lambda x, y: x.T @ y)


def test_symbolic_sizes():
    def clipped(x, y):
        g = outer(x, y)
        return jnp.tensordot(jnp.minimum(1.0, 3.0 / jnp.sqrt((g * g).sum((1, 2)))), g, 1)

    n = ft.Dim("n")
    specs = [ft.ShapeDtypeStruct((n, 64), "float32"), ft.ShapeDtypeStruct((n, 48), "float32")]
    before = ft.make_jaxpr(clipped)(*specs).jaxpr
    after = simplify(before, algebra="auto")
    check_jaxpr(after)
    assert not any(len(v.aval.shape) == 3 for eqn in after.eqns for v in eqn.outvars)
    for size in (0, 1, 7):
        assert_same_values(before, after, [array(7, 64)[:size], array(7, 48)[:size]], 1e-5, 1e-5)
