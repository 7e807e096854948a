"""One program for every size: names, guards, and what makes a function compile again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError


def rows(n, columns=4):
    return np.arange(n * columns, dtype=np.float32).reshape(n, columns) / 7


def compilations(jitted):
    return len(ft.explain_retrace(jitted))


def check(fun, *args, jitted):
    """The jitted function gives what the plain one gives."""
    actual = jitted(*args)
    with ft.disable_jit():
        expected = fun(*map(jnp.asarray, args))
    for a, e in zip(ft.tree.leaves(actual), ft.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (e.shape, e.dtype, e.weak_type)
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=2e-5, atol=2e-5)


def scaled(x):
    return jnp.tanh(x) / x.shape[0]


def test_the_second_size_makes_an_axis_symbolic():
    f = ft.jit(scaled)
    for n in (3, 5, 9, 4, 100):
        check(scaled, rows(n), jitted=f)
    assert compilations(f) == 2


def test_sizes_0_and_1_have_programs_of_their_own():
    f = ft.jit(scaled)
    for n in (0, 1, 5, 0, 1, 9, 12):
        check(scaled, rows(n), jitted=f)
    assert compilations(f) == 4


def test_named_sizes_compile_once():
    f = ft.jit(scaled, dynamic_shapes={"x": {0: "B"}})
    for n in (3, 5, 9):
        check(scaled, rows(n), jitted=f)
    assert compilations(f) == 1


def test_a_bound_admits_size_1():
    f = ft.jit(scaled, dynamic_shapes={"x": {0: ft.dim("B", min=1)}})
    for n in (3, 1, 9):
        check(scaled, rows(n), jitted=f)
    assert compilations(f) == 1


def test_with_the_setting_off_every_shape_has_a_program():
    f = ft.jit(scaled)
    with ft.config.dynamic_shapes("off"):
        for n in (3, 5, 9):
            check(scaled, rows(n), jitted=f)
    assert compilations(f) == 3
    with pytest.raises(ValueError, match="auto"):
        ft.config.dynamic_shapes("on")


def test_axes_that_change_together_have_one_name():
    f = ft.jit(lambda x, y: x + y)
    for n in (3, 5, 9):
        f(rows(n), rows(n))
    assert compilations(f) == 2
    with pytest.raises(ft.core.errors.ShapeError, match=r"\(7, 4\), \(9, 4\)"):
        f(rows(7), rows(9))


def test_a_batch_as_large_as_another_size_is_not_special():
    def layer(x, w, b):
        return x @ w + b
    f = ft.jit(layer, dynamic_shapes={"x": {0: "B"}})
    for n in (6, 4, 3, 8):
        check(layer, rows(n), rows(4, 6), np.ones(6, np.float32), jitted=f)
    assert compilations(f) == 1


def test_decisions_become_guards():
    def parts(x):
        if x.shape[0] > 10:
            x = x * 2
        if x.shape[0] % 2:
            x = x + 1
        return x
    f = ft.jit(parts, dynamic_shapes=({0: "B"},))
    for n in (3, 5, 9, 4, 8, 20, 22, 21, 7):
        check(parts, rows(n), jitted=f)
    assert compilations(f) == 4
    table = ft.explain_retrace(f)
    assert [str(g.relation) for g in table.compilations[0].sized.guards] == \
        ["B <= 10", "Ne(Mod(B, 2), 0)"]
    assert "if x.shape[0] % 2" in str(table)
    assert table.reasons[1][0].startswith("program 1 is for Mod(B, 2) != 0, asked at ")
    assert table.reasons[1][0].endswith("now B = 4")


def test_a_comparison_with_a_number_specializes_to_it():
    def special(x):
        return x * 2 if x.shape[0] == 4 else x
    f = ft.jit(special, dynamic_shapes=({0: "B"},))
    for n in (4, 5, 6, 4, 7):
        check(special, rows(n), jitted=f)
    assert compilations(f) == 2
    assert "B == 4" in str(ft.explain_retrace(f).compilations[0].merged[0])


@pytest.mark.parametrize("fun", [
    lambda x: sum(x[i] * i for i in range(x.shape[0])),
    lambda x: sum(row for row in x),
    lambda x: x * len(x),
    lambda x: x * int(x.shape[0]),
    lambda x: x * float(x.shape[0]),
    lambda x: x * np.zeros(x.shape, np.float32),
], ids=["range", "iteration", "len", "int", "float", "numpy"])
def test_what_needs_the_value_is_specialized(fun):
    f = ft.jit(fun, dynamic_shapes=({0: "B"},))
    for n in (3, 5, 3, 5):
        check(fun, rows(n), jitted=f)
    assert compilations(f) == 2


def test_an_exception_that_python_swallows_does_not_hide_a_guard():
    def careful(x):
        try:
            return x * int(x.shape[0])
        except Exception:
            return x
    f = ft.jit(careful, dynamic_shapes=({0: "B"},))
    for n in (3, 5):
        check(careful, rows(n), jitted=f)


ARITHMETIC = {
    "reshape": lambda x: x.reshape(-1) * 2,
    "reshape_twice": lambda x: x.reshape(-1, 2).sum(0),
    "slices": lambda x: (x[1:], x[:-1], x[: x.shape[0] // 2], x[x.shape[0] // 2:], x[::-1]),
    "arange": lambda x: x + jnp.arange(x.shape[0])[:, None],
    "arange_of_sums": lambda x: jnp.arange(2 * x.shape[0] + 1),
    "linspace": lambda x: (jnp.linspace(0, 3, x.shape[0]), jnp.linspace(x[0], x[-1], x.shape[0])),
    "choice": lambda x: (ft.random.choice(ft.random.key(0), x.shape[0], (3,)),
                         ft.random.choice(ft.random.key(0), x[:, 0], (3,))),
    "permutation_of_a_size": lambda x: ft.random.permutation(ft.random.key(0), x.shape[0]),
    "arange_from": lambda x: jnp.arange(1, x.shape[0] + 1, dtype="float32"),
    "arange_by": lambda x: (jnp.arange(0, x.shape[0], 3), jnp.arange(x.shape[0], 0, -2)),
    "arange_down": lambda x: jnp.arange(x.shape[0] - 1, -1, -1),
    "mean": lambda x: jnp.mean(x, 0),
    "float": lambda x: x / x.shape[0] ** 0.5 + 1.5 * x.shape[0] - x.shape[0] / 2,
    "division": lambda x: x.sum() * (1 / x.shape[0]) + x.shape[0] // 2 * jnp.ones(2),
    "builtin_max": lambda x: jnp.zeros(max(x.shape[0], 3)),
    "builtin_min": lambda x: x[: min(x.shape[0], 3)],
    "concatenate": lambda x: jnp.concatenate([x, x[:2], jnp.ones((x.shape[0] + 1, 4))]),
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, x.shape[0]))),
    "gather": lambda x: x[jnp.arange(x.shape[0])[::-1]],
    "sort": lambda x: (jnp.sort(-x, 0), jnp.argsort(-x, 0)),
    "random": lambda x: x + ft.random.normal(ft.random.key(0), x.shape),
    "einsum": lambda x: jnp.einsum("bi,bj->ij", x, x),
    "batched_einsum": lambda x: jnp.einsum("bi,ci->bc", x, x * 2),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), x),
    "fori_loop": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(4)),
    "cond": lambda x: lax.cond(x.sum() > 3, lambda a: a * 2, lambda a: a, x),
    "vmap": lambda x: ft.vmap(lambda r: ft.nn.softmax(r) * r.sum())(x),
    "vmap_of_axis_1": lambda x: ft.vmap(jnp.cumsum, 1)(x),
    "per_sample": lambda x: ft.vmap(ft.grad(lambda r: (jnp.tanh(r) ** 2).sum()))(x),
    "grad": lambda x: ft.grad(lambda a: (jnp.sin(a) * a).mean())(x),
    "jvp": lambda x: ft.jvp(jnp.tanh, (x,), (jnp.ones_like(x),)),
    "nested_jit": lambda x: ft.jit(lambda a: a * 2 if a.shape[0] > 6 else a)(x) + 1,
    "split": lambda x: jnp.split(x, 2, axis=1),
    "split_at": lambda x: jnp.split(x, [1, x.shape[0] // 2 + 1, -1]),
    "split_keys": lambda x: ft.random.key_data(ft.random.split(ft.random.key(0), x.shape[0])),
    "stack": lambda x: jnp.stack([x, x + 1]),
    "tile": lambda x: jnp.tile(x, (2, 1)),
    "repeat": lambda x: jnp.repeat(x, 2, axis=0),
    "roll": lambda x: jnp.roll(x, 1, axis=0),
    "roll_by_a_size": lambda x: (jnp.roll(x, x.shape[0] // 2, 0), jnp.roll(x, x.shape[0] + 1)),
    "numpy_sqrt": lambda x: (x / np.sqrt(x.shape[0]), np.sqrt(x.shape[0]) * x),
    "covariance": lambda x: jnp.cov(jnp.concatenate([x, -x]).T),
    "where": lambda x: jnp.where(x > 1, x, 0),
    "at_set": lambda x: x.at[x.shape[0] - 1].set(9.0),
    "triangle": lambda x: jnp.tril(x @ x.T),
    "var": lambda x: jnp.var(x, axis=0),
    "squeeze": lambda x: jnp.squeeze(x[:, :1]),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 0), 0),
    "median": lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.3, axis=0)),
    "permutation": lambda x: ft.random.permutation(ft.random.key(0), x),
    "nonzero": lambda x: jnp.nonzero(x[:, 0] > 1, size=3),
    "mapped_length": lambda x: ft.vmap(lambda i: i * 2)(jnp.arange(x.shape[0])),
}


def test_bounds_decide_products_of_sizes():
    B, D = ft.dim("B", min=2, max=9), ft.dim("D", min=3, multiple_of=2)
    assert B * D > 7
    assert B**3 <= 729
    assert B * D - 6 >= 2
    with pytest.raises(ft.core.errors.ConcretizationError, match=r"B\*D > 8"):
        bool(B * D > 8)


def test_exact_quotients_give_the_size_back():
    B, D = ft.dim("B"), ft.dim("D", multiple_of=4)
    assert 4 * (D // 4) == D and D // 4 * B * 4 == B * D and D // 2 + D // 2 == D
    assert 3 * (D // 3) != D and 4 * (B // 4) != B and 8 * (D // 8) != D
    assert (2 * (D // 4)).substitute({"D": 8}) == 4

    def heads(x):
        return x.reshape(B, 4, D // 4).reshape(B, D)

    assert ft.eval_shape(heads, ft.ShapeDtypeStruct((B, D), "float32")).shape == (B, D)



def test_ranges_of_named_sizes():
    x = ft.ShapeDtypeStruct((ft.dim("B", min=2), 3), "float32")
    shape = ft.eval_shape(lambda x: jnp.arange(1, x.shape[0], 2), x).shape
    assert [n.substitute({"B": b}) for n in shape for b in (2, 3, 6)] == [1, 1, 3]
    with pytest.raises(ArgumentError, match=r"takes integers, got start 0\.5"):
        ft.eval_shape(lambda x: jnp.arange(0.5, x.shape[0]), x)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_sizes_are_ints_where_shapes_are_made(name):
    fun = ARITHMETIC[name]
    f = ft.jit(fun, dynamic_shapes=({0: "B"},))
    for n in (4, 8, 6, 7, 2, 1):
        check(fun, rows(n), jitted=f)
    assert not any(c.failure for c in ft.explain_retrace(f).compilations)
    assert compilations(f) <= 4  # size 1, and a guard or two


def test_names_that_must_agree():
    f = ft.jit(lambda x, y: x + y.sum(), dynamic_shapes={"x": {0: "B"}, 1: {1: "B"}})
    f(rows(3), rows(2, 3))
    with pytest.raises(ArgumentError, match=r"B is 4 in argument x \(axis 0\), and argument "
                                            r"y \(axis 1\) has 3"):
        f(rows(4), rows(2, 3))


def test_expressions_of_names():
    f = ft.jit(lambda x, y: (jnp.concatenate([x, x]) * y).sum(0),
               dynamic_shapes={"x": {0: "B"}, "y": {0: "2 * B"}})
    for n in (3, 5):
        f(rows(n), rows(2 * n))
    assert compilations(f) == 1
    with pytest.raises(ArgumentError, match=r"so 2\*B is 6, and argument y \(axis 0\) has 5"):
        f(rows(3), rows(5))


def test_trees_of_names():
    f = ft.jit(lambda p, x: x @ p["w"][0], dynamic_shapes=(
        {"w": [{1: "D"}]}, {0: "B"}))
    for n, d in ((3, 5), (6, 7)):
        f({"w": [rows(4, d)], "b": rows(3)}, rows(n))
    assert compilations(f) == 1


def test_keyword_and_static_arguments():
    f = ft.jit(lambda x, k, *, y: x * k + y.sum(), static_argnums=1,
               dynamic_shapes={"x": {0: "B"}, "y": {0: "N"}})
    for n in (3, 4):
        f(rows(n), 2, y=rows(n + 1))
    f(rows(5), 3, y=rows(2))
    assert compilations(f) == 2
    assert ft.explain_retrace(f).reasons[1] == (
        "the static argument 1 is 3, and in program 1 2",)


@pytest.mark.parametrize(("given", "words"), [
    ({"z": {0: "B"}}, "no parameter 'z'"), ({3: {0: "B"}}, "argument 3"), (5, "dict"),
])
def test_wrong_names_of_arguments(given, words):
    with pytest.raises(ArgumentError, match=words):
        ft.jit(scaled, dynamic_shapes=given)


@pytest.mark.parametrize(("given", "words"), [
    ({"x": {0: "B +"}}, "is no size"), ({"x": {5: "B"}}, "axis 5"), ({"x": "B"}, "an array"),
    ({"x": {0: 3}}, "names an axis 3"),
])
def test_wrong_names_of_axes(given, words):
    with pytest.raises(ArgumentError, match=words):
        ft.jit(scaled, dynamic_shapes=given)(rows(3))


def test_wrong_keys_of_a_tree_of_names():
    def f(params, x):
        return params["w"] * x

    args = {"w": rows(3), "unused": None}, rows(3)
    with pytest.raises(ArgumentError, match=r"(?s)sizes of 'q' in argument params.*'w', 'unus"):
        ft.jit(f, dynamic_shapes={"params": {"q": {0: "B"}}})(*args)
    named = ft.jit(f, dynamic_shapes={"params": {"w": {0: "B"}, "unused": {0: "B"}}})
    assert named(*args).shape == rows(3).shape
    with pytest.raises(ArgumentError, match=r"for argument x, which is an array"):
        ft.jit(f, dynamic_shapes={"x": "B"})(*args)
    with pytest.raises(ArgumentError, match="its parameters are params, x"):
        ft.jit(f, dynamic_shapes={"y": {0: "B"}})


def test_static_arguments_have_no_sizes():
    for static in ({"static_argnums": 1}, {"static_argnames": "k"}):
        with pytest.raises(ArgumentError, match="names k, which is a static argument"):
            ft.jit(lambda x, k: x * k, dynamic_shapes={"k": {0: "B"}}, **static)


def test_promises_are_checked():
    f = ft.jit(scaled, dynamic_shapes={"x": {0: ft.dim("B", min=4, max=16, multiple_of=4)}})
    f(rows(8))
    for n, words in ((2, "at least 4"), (20, "at most 16"), (10, "a multiple of 4")):
        with pytest.raises(ArgumentError, match=words):
            f(rows(n))


def test_promises_decide_comparisons():
    B = ft.dim("B", min=4, max=16, multiple_of=4)
    assert B > 3
    assert not B > 16
    assert 2 * B <= 32
    assert B % 2 == 0
    with pytest.raises(ft.core.errors.ConcretizationError, match="B > 8"):
        bool(B > 8)


def test_impossible_promises():
    for wrong in ({"min": 5, "max": 4}, {"min": -1}, {"multiple_of": 0}, {"min": 1.5},
                  {"max": "8"}, {"multiple_of": None}):
        with pytest.raises(ArgumentError):
            ft.dim("B", **wrong)
    with pytest.raises(ArgumentError):
        ft.dim("2B")


def test_formulas_of_costs():
    B, D = ft.dim("B"), ft.dim("D")
    program = ft.lower(lambda x: (x * 2).sum(), ft.ShapeDtypeStruct((B, D), "float32"),
                       target="cpu").compile()
    flops = program.cost_analysis()["flops"]
    assert flops.substitute({B: 3, D: 5}) == flops.substitute({"B": 3, "D": 5}) == 30
    assert f"{flops:,} and {B:d}" == "2*B*D and B"
    for needs_a_value in (int, float, range, lambda n: n / 1e9):
        with pytest.raises(ft.core.errors.ConcretizationError, match="no value here") as error:
            needs_a_value(flops)
        assert 'size.substitute({"B": 4})' in str(error.value)


@pytest.mark.parametrize("shape", [("B", 3), "B D", (None, 3), (-1, 3), (2.5,)])
def test_what_is_no_shape(shape):
    with pytest.raises(ArgumentError, match=r"a size is an int from 0 on or has a name") as error:
        ft.ShapeDtypeStruct(shape, "float32")
    assert 'functrans.dim("B")' in str(error.value)


def test_code_for_known_sizes_only_stays_specialized():
    def padded(x):
        if not isinstance(x.shape[0], int):
            raise TypeError("only ints")
        return x * 2
    f = ft.jit(padded)
    for n in (3, 4, 5):
        check(padded, rows(n), jitted=f)
    assert compilations(f) == 3
    assert "only ints" in str(ft.explain_retrace(f))


def padded_columns(x):
    if not isinstance(x.shape[1], int):
        raise TypeError("only ints")
    return x * x.shape[0]


@pytest.mark.parametrize("fun", [
    padded_columns,
    lambda x: x @ np.eye(x.shape[1], dtype=np.float32),
    lambda x: jnp.stack([x[:, k] for k in range(x.shape[1])]),
], ids=["type", "numpy", "range"])
def test_only_the_axis_that_needs_it_stays_specialized(fun):
    f = ft.jit(fun)
    for shape in ((3, 4), (5, 6), (7, 6), (4, 6), (9, 8), (7, 8), (3, 8)):
        check(fun, rows(*shape), jitted=f)
    assert compilations(f) == 3
    takes = [c.sized.shapes for c in ft.explain_retrace(f).compilations]
    assert [str(s) for s in takes[1:]] == ["((s0, 6),)", "((s0, 8),)"]


def test_the_reason_for_a_specialized_axis_is_told():
    f = ft.jit(padded_columns, dynamic_shapes=({0: "B", 1: "D"},))
    f(rows(3))
    assert "no program for the other sizes: TypeError: only ints" in str(ft.explain_retrace(f))


def test_errors_of_names_and_ints_are_raised_once():
    traced = []

    def wrong(x, y):
        traced.append(x.shape)
        return x.reshape(y.shape[0], 3) + y

    f = ft.jit(wrong, dynamic_shapes=({0: "B"}, {0: "N", 1: "D"}))
    with pytest.raises(ft.core.errors.ShapeError):
        f(rows(4), rows(5))
    assert len(traced) <= 3


def test_errors_are_those_of_the_sizes_at_hand():
    f = ft.jit(lambda x: x.reshape(4, -1))
    f(rows(4)), f(rows(8))
    with pytest.raises(ft.core.errors.ShapeError, match="9"):
        f(rows(9, 3))


def test_programs_of_named_sizes_are_lowered():
    f = ft.jit(scaled, dynamic_shapes={"x": {0: "B"}})
    lowered = f.lower(rows(3))
    assert str(lowered.jaxpr.in_avals[-1]) == "f32[B,4]"
    compiled = lowered.compile()
    for n in (3, 7):
        np.testing.assert_allclose(compiled(rows(n)), scaled(jnp.asarray(rows(n))), rtol=1e-6)
    with pytest.raises(ArgumentError, match="compiled for"):
        compiled(rows(3, 5))


def test_what_a_function_was_compiled_for():
    f = ft.jit(lambda x, k: x * k, static_argnames="k")
    f(rows(3), k=2)
    f(rows(3).astype(np.int32), k=2)
    f(jnp.float32(1), k=2)
    f(1.0, k=2)
    with ft.config.use_backend("reference"):
        f(rows(3), k=2)
    reasons = [r[0] for r in ft.explain_retrace(f).reasons]
    assert reasons[0] == "the first call"
    assert reasons[1] == "argument x is int32, and in program 1 float32"
    assert reasons[2] == "argument x has 0 axes, and in program 2 2"
    assert reasons[3] == "argument x is weakly typed, as a Python number, and in program 3 " \
        "strongly typed"
    assert reasons[4] == "the setting backend is 'reference', and in program 1 'auto'"
    with pytest.raises(ArgumentError, match="jitted"):
        ft.explain_retrace(scaled)


def test_the_structure_of_arguments_is_told():
    f = ft.jit(lambda p: ft.tree.leaves(p)[0])
    f({"a": rows(2)})
    f([rows(2)])
    assert "the structure of the arguments" in ft.explain_retrace(f).reasons[1][0]


def test_inner_traces_make_guards_in_each_outer_program():
    inner = ft.jit(lambda a: a * 2 if a.shape[0] > 6 else a)
    f = ft.jit(lambda x: inner(x), dynamic_shapes=({0: "B"},))
    g = ft.jit(lambda x: inner(x) + 1, dynamic_shapes=({0: "B"},))
    for n in (3, 9, 4, 12):
        np.testing.assert_allclose(f(rows(n)), rows(n) * (2 if n > 6 else 1))
    for n in (12, 3, 9, 4):
        np.testing.assert_allclose(g(rows(n)), rows(n) * (2 if n > 6 else 1) + 1)


LIMITS = st.integers(2, 12)


@settings(max_examples=25, deadline=None)
@given(limit=LIMITS, divisor=st.integers(2, 4), other=LIMITS,
       sizes=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=6))
def test_any_guards_at_any_sizes(limit, divisor, other, sizes):
    def fun(x, y):
        b, n = x.shape[0], y.shape[0]
        out = x.sum() + y.sum() * 2
        if b > limit:
            out = out + b
        if b + n >= other:
            out = out * 2
        if b % divisor == 0:
            out = out - n
        if b == n:
            out = out + (x * y).sum()
        return out + x.reshape(-1)[: n // 2].sum()
    f = ft.jit(fun)
    for b, n in sizes:
        check(fun, rows(b, 1)[:, 0], rows(n, 1)[:, 0], jitted=f)
