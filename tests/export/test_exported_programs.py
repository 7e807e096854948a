"""Exported programs give what their functions give, after a trip through bytes."""

import importlib
import pkgutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
import functrans.primitives
from functrans.core.errors import ArgumentError, ExportError, FailedCheckError
from functrans.core.primitive import Primitive
from functrans.export import deserialize, export
from functrans.export.parameters import OPTIONAL, PARAMETERS, PRIMITIVES

X = np.linspace(-1.5, 2.0, 12, dtype=np.float32).reshape(3, 4)


def through_bytes(fun, *args, **options):
    exported = export(ft.jit(fun), **options)(*args)
    return deserialize(exported.serialize())


def assert_same(got, expected):
    left, right = map(ft.tree.leaves, (got, expected))
    assert ft.tree.structure(got) == ft.tree.structure(expected)
    for a, b in zip(left, right, strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def all_primitives():
    modules = [functrans.primitives, ft.transforms.jit.primitive]
    for info in pkgutil.walk_packages(functrans.primitives.__path__, "functrans.primitives."):
        modules.append(importlib.import_module(info.name))
    return {p.name: p for m in modules for p in vars(m).values() if isinstance(p, Primitive)}


def test_every_primitive_has_its_place():
    outside = {n for n, p in all_primitives().items() if PRIMITIVES.get(n) is not p}
    assert outside == {"pure_callback", "io_callback", "debug_callback", "psum", "pmax", "pmin",
                       "pvary", "all_gather", "all_to_all", "psum_scatter", "ppermute",
                       "axis_index", "shard_map", "sharding_constraint", "checked", "ref_get",
                       "ref_set"}
    assert {*PARAMETERS, *OPTIONAL} <= {*PRIMITIVES.values()}
    assert len(PRIMITIVES) == len({*PRIMITIVES.values()})
    assert {p.name for p in PARAMETERS.without} - outside == {"custom_vjp_linear"}
    assert all(OPTIONAL[p] <= PARAMETERS[p].keys() for p in OPTIONAL)


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_primitives(name):
    primitive = PRIMITIVES[name]
    for sample in primitive.samples():
        fun = partial(primitive.bind, **sample.params)
        with ft.config.use_backend("reference"):
            loaded = through_bytes(fun, *sample.args)
            assert loaded.as_text() == str(ft.jit(fun).lower(*sample.args).jaxpr)
            assert_same(loaded.call(*sample.args), ft.jit(fun)(*sample.args))


def loops(x):
    def body(carry, row):
        return carry + jnp.sin(row), ft.lax.cond(row[0] > 0, jnp.sum, lambda r: r[1] / 2, row)

    last, ys = ft.lax.scan(body, jnp.zeros(4), x)
    n, _ = ft.lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 1.1), (0, x))
    return {"last": last, "ys": [ys, n]}


def test_control_flow():
    loaded = through_bytes(loops, X)
    assert_same(loaded.call(X), ft.jit(loops)(X))
    total = lambda f: lambda x: sum(jnp.sum(v) for v in ft.tree.leaves(f(x)))
    assert_same(ft.grad(total(loaded.call))(X), ft.grad(total(ft.jit(loops)))(X))


def test_a_gradient_through_a_while_loop():
    def power(x):
        return ft.lax.while_loop(lambda s: s.sum() < 100, lambda s: s * s + 1, x).sum()

    fun = ft.grad(power)
    loaded = through_bytes(fun, X)
    assert_same(loaded.call(X), ft.jit(fun)(X))


def test_policies_of_checkpoint():
    policies = ft.checkpoint_policies
    for policy in (None, policies.dots_saveable, policies.save_only_these_names("h")):
        inner = ft.checkpoint(lambda x: jnp.sin(ft.checkpoint_name(x @ x.T, "h")).sum(),
                              policy=policy)
        loaded = through_bytes(inner, X)
        assert_same(ft.grad(loaded.call)(X), ft.grad(ft.jit(inner))(X))
    with pytest.raises(ExportError, match="policy"):
        through_bytes(ft.checkpoint(jnp.sin, policy=lambda *a, **k: True), X)


@ft.custom_jvp
def tripled(x):
    return 2 * x


@tripled.defjvp
def _(primals, tangents):
    return tripled(primals[0]), 3 * tangents[0] * primals[0]


@ft.custom_vjp
def quintupled(x):
    return 2 * x


quintupled.defvjp(lambda x: (2 * x, x), lambda x, ct: (5 * jnp.sin(x) * ct,))


@pytest.mark.parametrize("fun", [tripled, quintupled])
def test_rules_to_the_order_asked_for(fun):
    scalar = lambda x: fun(x) * 1.0
    for order in range(3):
        derivative, expected = through_bytes(scalar, 1.5, vjp_order=order).call, ft.jit(scalar)
        for _ in range(order):
            derivative, expected = ft.grad(derivative), ft.grad(expected)
            assert_same(derivative(1.5), expected(1.5))
        if order < 2 and fun is tripled:  # whose rule calls it again
            with pytest.raises(ExportError, match="vjp_order"):
                ft.grad(derivative)(1.5)


def test_composes_with_transforms():
    fun = lambda x: ft.nn.gelu(x @ x.T).sum()
    loaded = through_bytes(fun, X, vjp_order=1)
    batch = np.stack([X, 2 * X])
    for transform in (ft.jit, ft.grad, ft.vmap, lambda f: ft.vmap(ft.grad(f)),
                      lambda f: ft.jit(ft.grad(lambda x: f(x) ** 2))):
        arg = batch if transform(fun).__name__.startswith("vmap") else X
        got, expected = transform(loaded.call)(arg), transform(ft.jit(fun))(arg)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)
    again = through_bytes(loaded.call, X)
    assert_same(again.call(X), loaded.call(X))


def test_symbolic_sizes_and_their_bounds():
    B = ft.dim("B", min=2, max=8, multiple_of=2)
    fun = lambda x, y: (jnp.concatenate([x, y]).reshape(2, -1), x.mean(0))
    spec = ft.ShapeDtypeStruct((B, 3), "float32"), ft.ShapeDtypeStruct((B, 3), "float32")
    loaded = through_bytes(fun, *spec)
    assert loaded.sizes == {"B": (2, 8, 2)}
    assert str(loaded.in_avals[0]) == "f32[B,3]"
    for n in (2, 4, 8):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        assert_same(loaded.call(x, x + 1), ft.jit(fun)(x, x + 1))
        assert_same(ft.jit(loaded.call)(x, x + 1), ft.jit(fun)(x, x + 1))
        mapped = ft.vmap(loaded.call)(x[None], x[None])
        np.testing.assert_array_equal(mapped[1][0], fun(x, x)[1])
    for n in (0, 3, 10):
        with pytest.raises(ArgumentError, match=f"size B is {n}"):
            loaded.call(np.zeros((n, 3), "f"), np.zeros((n, 3), "f"))
    with pytest.raises(ArgumentError, match="B = 2"):
        loaded.call(np.zeros((2, 3), "f"), np.zeros((4, 3), "f"))
    with pytest.raises(ArgumentError, match="exported for a f32"):
        loaded.call(np.zeros((2, 3)), np.zeros((2, 3)))


def test_expressions_of_sizes():
    B = ft.dim("B", min=4)
    fun = lambda x: (jnp.pad(x, (1, 2)), x[: x.shape[0] // 2], x[1:] * x[:-1])
    loaded = through_bytes(fun, ft.ShapeDtypeStruct((B,), "float32"))
    for n in (4, 7):
        x = np.arange(n, dtype=np.float32)
        assert_same(loaded.call(x), ft.jit(fun)(x))


def test_what_python_decided_on_sizes_is_a_constraint():
    def fun(x):
        return x * 2 if 2 * x.shape[0] > 7 else x * 3

    jitted = ft.jit(fun, dynamic_shapes={"x": {0: "B"}})
    loaded = deserialize(export(jitted)(np.zeros((5, 2), np.float32)).serialize())
    assert str(loaded.in_avals[0]) == "f32[B,2]"
    assert "2*B > 7" in map(str, loaded.constraints)
    for n in (4, 9):
        x = np.ones((n, 2), np.float32)
        np.testing.assert_array_equal(loaded.call(x), 2 * x)
        np.testing.assert_array_equal(ft.jit(loaded.call)(x), 2 * x)
    with pytest.raises(ArgumentError, match="exported for 2\\*B > 7, called with B = 3"):
        loaded.call(np.ones((3, 2), np.float32))


def test_constants_of_all_dtypes():
    names = ("bool", "int8", "uint64", "bfloat16", "float16", "float8_e4m3fn", "complex64")
    values = [jnp.asarray(np.arange(6).reshape(2, 3)).astype(n) for n in names]
    fun = lambda x: (values, x)
    assert_same(through_bytes(fun, X).call(X), fun(jnp.asarray(X)))


def test_the_source_is_not_needed(tmp_path):
    weights = jnp.asarray(X)
    exported = export(lambda x: ft.nn.softmax(jnp.tanh(x @ weights.T)))(X)
    ft.export.save(exported, tmp_path / "f.ftx")
    np.save(tmp_path / "x.npy", X)
    code = ("import functrans as ft, numpy as np; f = ft.export.load('f.ftx'); "
            "np.save('y.npy', np.asarray(f.call(np.load('x.npy'))))")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), exported.call(X))


def test_the_same_function_gives_the_same_bytes():
    fun = lambda x: loops(x)["last"]
    assert export(fun)(X).serialize() == export(ft.jit(fun))(X).serialize()


def test_kernels_come_along():
    exported = through_bytes(lambda x: jnp.exp(x) + 1, X, targets=["cpu", "cuda:90"])
    assert exported.targets == ("cpu", "cuda:90")
    assert "int ft_program(" in exported.kernels["cpu"][0].source
    (kernel,) = exported.kernels["cuda:90"]
    assert kernel.code.startswith(b"\x7fELF") and ".target sm_90" in kernel.ptx


def test_what_cannot_be_exported_names_the_line():
    def calls_back(x):
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3, 4), "float32"), x)

    with pytest.raises(ExportError, match="pure_callback cannot be exported") as error:
        export(calls_back)(X)
    assert "calls_back\n" in str(error.value)

    @ft.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    with pytest.raises(ExportError, match="Pair"):
        export(lambda p: p.x)(Pair(X))


def test_other_arguments():
    loaded = through_bytes(lambda p: p["a"] + 1, {"a": X})
    with pytest.raises(ft.core.errors.TreeMismatchError):
        loaded.call({"b": X})
    with pytest.raises(ArgumentError, match=r"as argument 0 at \['a'\], called with"):
        loaded.call({"a": np.ones(7, np.int8)})


@pytest.mark.parametrize(("wrong", "words"), [
    (lambda path: ft.export.save("program.ftx", export(jnp.sin)(X)), "save takes an exported"),
    (lambda path: ft.export.save(ft.jit(jnp.sin), path), "save takes an exported"),
    (lambda path: deserialize(str(path)), r"export\.load\(path\)"),
    (lambda path: export(jnp.sin, targets="cpu"), r"targets=\['cpu'\]"),
])
def test_wrong_arguments_name_the_right_ones(tmp_path, wrong, words):
    with pytest.raises(ArgumentError, match=words):
        wrong(tmp_path / "program.ftx")


def test_checks_stop_loaded_programs():
    def root(x):
        ft.check((x >= 0).all(), "no root of {x:.2f}", x=x.min())
        return jnp.sqrt(x)

    loaded = through_bytes(root, X)
    assert_same(loaded.call(X * X), ft.jit(root)(X * X))
    for call in (loaded.call, ft.jit(loaded.call)):
        with pytest.raises(FailedCheckError, match=r"no root of -1\.00"):
            call(-jnp.ones_like(X))


def test_messages_of_checks_name_values_and_nothing_else():
    def checks(message):
        return lambda x: ft.check(x > 0, message, x=x)

    for message in ("{x.__class__}", "{x[0]}", "{x:1000000000}", "{x:{x}}", "{x:1000000000} {",
                    "two\nlines"):
        with pytest.raises(ExportError, match="of a check cannot be exported"):
            export(checks(message))(1.0)
    for message in ("{x}", "{x:+.3f} {y} {", "nothing"):
        assert message in through_bytes(checks(message), 1.0).as_text()
