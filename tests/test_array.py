"""The Array class and the operators, methods and conversions that it shares with tracers."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.dtypes import result_type
from functrans.core.errors import (
    ArgumentError,
    BackendError,
    ConcretizationError,
    DTypeError,
    ImmutableArrayError,
    LeakedTracerError,
    NonArrayError,
    ShapeError,
)

X = jnp.asarray(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32))


def eager_staged_mapped(fun: Callable[..., Any], *args: Any) -> list[Any]:
    """Results of `fun` on arrays, on staging tracers, under jvp, and in one lane of a vmap."""
    arrays = [jnp.asarray(a) for a in args]
    lane = ft.vmap(fun)(*[a[None] for a in arrays])
    return [fun(*arrays), ft.jit(fun)(*arrays), ft.tree.map(lambda x: x[0], lane)]


# printing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "text"), [
    (np.array([1.0, 2.0], np.float32), "Array([1., 2.], dtype=float32)"),
    (np.array([[1, 2], [3, 4]]), "Array([[1, 2],\n       [3, 4]], dtype=int64)"),
    (np.array(True), "Array(True, dtype=bool)"),
    (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float64)"),
    (np.zeros(0, np.int8), "Array([], dtype=int8)"),
    (np.arange(3).astype(ml_dtypes.bfloat16), "Array([0., 1., 2.], dtype=bfloat16)"),
    (np.array([1 + 2j], np.complex64), "Array([1.+2.j], dtype=complex64)"),
])
def test_repr(x: np.ndarray, text: str) -> None:
    assert repr(jnp.asarray(x)) == text


def test_repr_of_weak_and_long_arrays() -> None:
    assert repr(jnp.asarray(1.0)) == "Array(1., dtype=float32, weak_type=True)"
    long = repr(jnp.arange(10_000))
    assert "..." in long and long.endswith("dtype=int32)") and len(long) < 200
    assert max(map(len, repr(jnp.linspace(0, 1, 40)).splitlines())) <= 80


def test_str_and_format() -> None:
    assert str(X[0]) == "[1. 2. 3.]"
    assert f"{X[0, 1]:.3f}" == "2.000"
    assert f"{X[0]}" == "[1. 2. 3.]"
    assert f"{jnp.asarray(7):>5d}" == "    7"
    with pytest.raises(ArgumentError, match=r"'.3f' is for one number.* shape \(2, 3\)"):
        format(X, ".3f")


def test_html() -> None:
    html = X._repr_html_()
    assert html.count("<tr>") == 2 and html.count("<td") == 6 and "f32[2,3]" in html
    assert "<pre>Array" in jnp.zeros((2, 2, 2))._repr_html_()


def test_repr_of_a_tracer_names_its_type() -> None:
    seen = []
    ft.jit(lambda x: seen.append(repr(x)) or x)(X)
    assert "f32[2,3]" in seen[0]


# operators -----------------------------------------------------------------------------------

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


def compare(op: Callable[..., Any], x: Any, y: Any, rtol: float = 1e-6) -> None:
    """The operator on arrays and tracers against NumPy, with the promoted dtype."""
    with np.errstate(all="ignore"):
        expected = op(np.asarray(x), np.asarray(y))
    known = [isinstance(v, np.ndarray) for v in (x, y)]
    args = [v for v, k in zip((x, y), known, strict=True) if k]

    def fun(*arrays: Any) -> Any:
        given = iter(arrays)
        return op(*[next(given) if k else v for v, k in zip((x, y), known, strict=True)])

    for got in eager_staged_mapped(fun, *args):
        assert got.shape == expected.shape
        np.testing.assert_allclose(np.asarray(got), expected, rtol=rtol)
        if op in (operator.add, operator.mul):
            assert got.dtype == result_type(x, y)
        if op in COMPARISONS:
            assert got.dtype == bool


@pytest.mark.one_in(3)
@pytest.mark.parametrize("op", BINARY + COMPARISONS, ids=lambda f: f.__name__)
def test_binary_operators(op: Callable[..., Any]) -> None:
    x = np.array([[1.5, 2.0, 3.0], [0.5, 5.0, 7.0]], np.float32)
    row, scalar = np.array([1.0, 2.0, 4.0], np.float32), np.array(2.0, np.float32)
    for y in (x + 1, row, scalar, 2.0, 2, np.float64(0.5), np.array([1, 2, 3])):
        compare(op, x, y, 1e-5)
        compare(op, y, x, 1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("op", BINARY[:3] + BITS + [operator.floordiv, operator.mod],
                         ids=lambda f: f.__name__)
def test_integer_operators(op: Callable[..., Any]) -> None:
    x, y = np.array([-7, 7, 3], np.int32), np.array([2, -2, 5], np.int32)
    for other in (y, 3, np.int32(3)):
        compare(op, x, other)
        compare(op, other, x)


@pytest.mark.parametrize("op", BITS, ids=lambda f: f.__name__)
def test_boolean_operators(op: Callable[..., Any]) -> None:
    a, b = np.array([True, True, False]), np.array([True, False, False])
    compare(op, a, b)
    compare(op, a, True)


def test_shifts_divmod_matmul_and_unary() -> None:
    n = np.array([1, 5, 200], np.int32)
    compare(operator.lshift, n, 2)
    compare(operator.rshift, n, np.array([0, 1, 3], np.int32))
    x = np.array([[1.0, -2.0], [3.5, 4.0]], np.float32)
    compare(operator.matmul, x, x)
    compare(operator.matmul, x, x[0])
    for got in eager_staged_mapped(lambda x: divmod(x, 1.5), x):
        for g, e in zip(got, divmod(x, 1.5), strict=True):
            np.testing.assert_allclose(np.asarray(g), e)
    for op, y in ((operator.neg, x), (operator.pos, x), (abs, x), (operator.invert, n),
                  (operator.invert, n > 3), (operator.neg, n), (abs, n - 10)):
        for got in eager_staged_mapped(op, y):
            np.testing.assert_array_equal(np.asarray(got), op(y))


def test_numpy_on_the_left_gives_arrays() -> None:
    for op in BINARY + COMPARISONS:
        for left in (np.ones((2, 3), np.float32), np.float32(2)):
            assert isinstance(op(left, X), ft.Array), op
            jaxpr = ft.make_jaxpr(lambda x, left=left, op=op: op(left, x))(X)
            assert jaxpr.out_avals[0].shape == (2, 3), op


def test_a_python_scalar_is_a_literal_of_the_arrays_dtype() -> None:
    assert str(ft.make_jaxpr(lambda x: 2 * x)(X)) == (
        "{ lambda ; a:f32[2,3]. let b:f32[2,3] = mul 2.0:f32[] a in (b,) }")
    half = jnp.ones(2, "bfloat16")
    assert (half * 2.5).dtype == half.dtype
    assert (jnp.arange(2) * 2.5).dtype == np.float32


def test_foreign_operands_are_refused_as_python_does() -> None:
    for other in ("text", [1.0, 2.0, 3.0], None, object()):
        with pytest.raises(TypeError, match=r"unsupported operand|got a list"):
            X + other
        assert (other == X) is False and (other != X) is True
        with pytest.raises(TypeError):
            ft.jit(lambda x, other=other: x + other)(X)


def test_augmented_assignment_makes_a_new_array() -> None:
    x = before = jnp.zeros(2)
    x += 1
    assert before.tolist() == [0, 0] and x.tolist() == [1, 1]


# methods -------------------------------------------------------------------------------------

METHODS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sum", (), {}), ("sum", (0,), {}), ("sum", (), {"axis": 1, "keepdims": True}),
    ("mean", (), {}), ("mean", (1,), {}), ("max", (0,), {}), ("min", (), {}), ("prod", (), {}),
    ("std", (0,), {}), ("var", (), {"ddof": 1}), ("any", (), {}), ("all", (0,), {}),
    ("argmax", (), {}), ("argmin", (1,), {}), ("cumsum", (1,), {}), ("cumprod", (), {}),
    ("ptp", (), {}), ("round", (1,), {}), ("clip", (2.0, 4.0), {}), ("reshape", (3, -1), {}),
    ("reshape", ((6,),), {}), ("reshape", (3, 2), {"order": "F"}), ("ravel", (), {}),
    ("flatten", (), {}), ("transpose", (), {}), ("transpose", (1, 0), {}),
    ("transpose", ((1, 0),), {}), ("swapaxes", (0, 1), {}), ("squeeze", (), {}),
    ("repeat", (2, 1), {}), ("diagonal", (), {}), ("trace", (), {}), ("conj", (), {}),
    ("conjugate", (), {}), ("copy", (), {}), ("argsort", (0,), {}), ("take", ([1, 0], 1), {}),
    ("dot", (np.ones(3, np.float32),), {}), ("astype", ("int32",), {}), ("view", ("int32",), {}),
    ("view", ("uint8",), {}), ("searchsorted", (2.5,), {}), ("compress", ([True, False],), {}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "args", "options"), METHODS, ids=lambda v: str(v)[:20])
def test_methods_are_numpy_s(name: str, args: Any, options: Any) -> None:
    x = np.asarray(X)
    if name == "searchsorted":
        x = x[0]
    if name in ("argsort", "ptp", "take", "compress"):
        expected = getattr(np, name)(*((args[0], x) if name == "compress" else (x, *args)),
                                     **({"axis": 0} if name == "compress" else {}))
        options = {"axis": 0} if name == "compress" else options
    else:
        expected = getattr(x, name)(*args, **options)
    given = tuple(np.asarray(a) if isinstance(a, list) else a for a in args)
    for got in eager_staged_mapped(lambda x: getattr(x, name)(*given, **options), x):
        assert got.shape == np.shape(expected), name
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)


def test_sort_returns_a_sorted_array() -> None:
    for got in eager_staged_mapped(lambda x: x.sort(), np.array([3.0, 1.0, 2.0])):
        assert got.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["T", "mT", "real", "imag", "flat"])
def test_properties(name: str) -> None:
    x = np.array([[1 + 2j, 3], [4, 5j]], np.complex64)
    expected = np.asarray(list(x.flat)) if name == "flat" else getattr(x, name)
    for got in eager_staged_mapped(lambda x: getattr(x, name), x):
        np.testing.assert_array_equal(np.asarray(got), expected)


def test_facts_of_arrays_and_tracers() -> None:
    seen = []

    def look(x: Any) -> Any:
        seen.append((x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, len(x), x.device))
        return x

    ft.jit(look)(X)
    look(X)
    assert seen[0] == seen[1] == ((2, 3), np.float32, 2, 6, 24, 4, 2, ft.devices()[0])
    assert X.block_until_ready() is X and X.devices() == {X.device}


def test_view_needs_whole_elements() -> None:
    with pytest.raises(ShapeError, match="whole elements of 8 bytes"):
        X.view("float64")
    assert jnp.arange(4, dtype="int16").view("int64").shape == (1,)


def test_items_and_lists() -> None:
    assert X[0, 1].item() == 2.0 and X.item(4) == 5.0
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]] and X.tobytes() == np.asarray(X).tobytes()


# Python's questions --------------------------------------------------------------------------


def test_conversions_of_arrays() -> None:
    assert bool(jnp.asarray(2)) and int(jnp.asarray(3.7)) == 3 and float(X[0, 0]) == 1.0
    assert complex(jnp.asarray(1j)) == 1j and [10, 20, 30][jnp.asarray(1)] == 20
    assert list(range(jnp.asarray(3))) == [0, 1, 2] and len(X) == 2
    assert 5 in X and 9 not in X
    assert [row.tolist() for row in X] == X.tolist()
    with pytest.raises(ValueError, match=r"\.any\(\) or \.all\(\)"):
        bool(X)
    with pytest.raises(TypeError, match="len"):
        len(X[0, 0])


ASKED: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda x: 1 if x > 0 else 2, r"bool\(\) of a traced bool\[\]", "functrans.lax.cond"),
    (lambda x: x and 1, r"bool\(\)", "functrans.numpy.where"),
    (lambda x: int(x), r"int\(\)", r"x\.astype\(int\)"),
    (lambda x: float(x), r"float\(\)", r"x\.astype\(float\)"),
    (lambda x: complex(x), r"complex\(\)", r"x\.astype\(complex\)"),
    (lambda x: [1, 2][x.astype(int)], "an index of a traced array i32", "fori_loop"),
    (lambda x: range(x.astype(int)), "an index", r"functrans\.lax\.fori_loop\(0, n, f, x\)"),
    (lambda x: np.asarray(x), "a NumPy array of a traced", "functrans.numpy has NumPy's"),
    (lambda x: np.array([x, 1.0]), "a NumPy array", "pure_callback"),
    (lambda x: x.item(), "a Python value", "functrans.debug.print"),
    (lambda x: x.tolist(), "a Python value", "return it from the function"),
    (lambda x: f"{x:.2f}", "formatted text", "functrans.debug.print"),
    (lambda x: 2.0 in jnp.stack([x, x]), r"bool\(\)", "functrans.numpy.where"),
]


@pytest.mark.parametrize(("ask", "what", "fix"), ASKED, ids=[a[1][:16] + str(i) for i, a in
                                                           enumerate(ASKED)])
def test_asking_a_traced_value(ask: Callable[[Any], Any], what: str, fix: str) -> None:
    for transform in (ft.jit, lambda f: lambda x: ft.vmap(f)(x[None])):
        with pytest.raises(ConcretizationError, match=what) as error:
            transform(ask)(jnp.asarray(2.0))
        text = str(error.value)
        assert "test_array.py" in text and fix.replace("\\", "") in text


def test_where_the_traced_value_was_made() -> None:
    def branch(x: Any) -> Any:
        positive = x.sum() > 0
        if positive:
            return x
        return -x

    with pytest.raises(ConcretizationError, match=r"made at .*\(positive = x.sum\(\) > 0\)") as e:
        ft.jit(branch)(X)
    assert "if positive:" in str(e.value) and "static_argnums" in str(e.value)
    with pytest.raises(ConcretizationError, match="all lanes, whose values differ") as e:
        ft.vmap(branch)(X)
    assert "static_argnums" not in str(e.value)


def test_an_array_as_a_condition_names_any_and_all() -> None:
    with pytest.raises(ConcretizationError, match=r"x\.any\(\) or x\.all\(\) first"):
        ft.jit(lambda x: 1 if x > 0 else 2)(X)


def test_values_are_known_under_grad() -> None:
    def f(x: Any) -> Any:
        assert int(x) == 3 and f"{x:.1f}" == "3.0" and x.item() == 3.0
        return x * 2 if x > 0 else x

    assert float(ft.grad(f)(jnp.asarray(3.0))) == 2.0
    with pytest.raises(ConcretizationError, match="a NumPy array"):  # it would lose the derivative
        ft.grad(lambda x: np.asarray(x).sum())(3.0)
    with pytest.raises(ConcretizationError, match="that is differentiated"):
        ft.grad(lambda x: x * float(x))(3.0)


def test_iteration_unpacks_tracers() -> None:
    def f(x: Any) -> Any:
        first, second = x
        return first * second + sum(row.sum() for row in x)

    np.testing.assert_allclose(np.asarray(ft.jit(f)(X)), np.asarray(f(X)))
    with pytest.raises(TypeError, match=r"iteration over a traced f32\[\], which has no axis"):
        ft.jit(lambda x: list(x.sum()))(X)


def test_leaked_tracers_are_named() -> None:
    kept = []
    ft.jit(lambda x: kept.append(x * 2) or x)(X)
    for use in (lambda x: x + 1, bool, float, np.asarray):
        with pytest.raises(LeakedTracerError, match="escaped"):
            use(kept[0])


def test_neither_arrays_nor_tracers_are_hashable() -> None:
    for use in (lambda x: hash(x), lambda x: {x: 1}):
        with pytest.raises(TypeError, match="unhashable"):
            use(X)
        with pytest.raises(TypeError, match="unhashable"):
            ft.jit(lambda x, use=use: use(x))(X)


# immutability and memory ---------------------------------------------------------------------


@pytest.mark.parametrize(("index", "value", "fix"), [
    (0, 1, r"x = x\.at\[0\]\.set\(1\)"), ((slice(1, None), 2), 0.5, r"x\.at\[1:, 2\]\.set\(0.5\)"),
    (..., "v", r"x\.at\[\.\.\.\]\.set\(values\)"), (slice(None, None, -1), 3, r"x\.at\[::-1\]"),
    ((None, 0), 1, r"x\.at\[None, 0\]")], ids=str)
def test_assignment_is_refused_with_the_at_spelling(index: Any, value: Any, fix: str) -> None:
    def assign(x: Any) -> Any:
        x[index] = value
        return x

    for run in (assign, ft.jit(assign)):
        with pytest.raises(ImmutableArrayError, match=fix) as error:
            run(X)
        assert "test_array.py" in str(error.value) and "x[index] = value" in str(error.value)


def test_deletion_is_refused() -> None:
    with pytest.raises(ImmutableArrayError, match=r"del x\[0\]"):
        del X[0]


def test_numpy_input_is_copied() -> None:
    for make in (jnp.asarray, jnp.array, ft.device_put):
        source = np.zeros(3, np.float32)
        x = make(source)
        source[0] = 1
        assert x.tolist() == [0, 0, 0]
    frozen = np.asarray(X)
    assert not frozen.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        frozen[0, 0] = 5


def test_array_protocol() -> None:
    assert np.asarray(X, np.float64).dtype == np.float64
    assert np.array(X, copy=True).flags.writeable
    assert np.shares_memory(np.asarray(X), np.asarray(X))
    with pytest.raises(ValueError, match="avoid copy"):
        np.array(X, np.int8, copy=False)


def test_buffer_protocol() -> None:
    view = memoryview(X)
    assert view.readonly and view.shape == (2, 3) and view.format == "f"
    assert bytes(view) == X.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", ml_dtypes.bfloat16, "complex128"])
def test_pickle_and_copy(dtype: Any) -> None:
    x = jnp.asarray(np.arange(6).reshape(2, 3).astype(dtype))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(x, protocol))
        assert type(again) is ft.Array and again.dtype == x.dtype and again.shape == x.shape
        np.testing.assert_array_equal(np.asarray(again), np.asarray(x))
    for y in (copy.copy(x), copy.deepcopy([x])[0], x.copy()):  # donating one leaves the other
        assert y is not x and y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def test_pickle_keeps_weakness() -> None:
    assert pickle.loads(pickle.dumps(jnp.asarray(1.0))).weak_type


def test_weak_references() -> None:
    x = jnp.zeros(3)
    ref = weakref.ref(x)
    assert ref() is x
    del x
    assert ref() is None


def test_the_class_is_not_called_and_has_no_attributes() -> None:
    with pytest.raises(TypeError, match=r"functrans\.numpy\.array"):
        ft.Array()
    with pytest.raises(AttributeError):
        X.note = 1


# DLPack and devices --------------------------------------------------------------------------


def test_dlpack_out_and_in_without_copies() -> None:
    out = np.from_dlpack(X)
    assert np.shares_memory(out, np.asarray(X)) and not out.flags.writeable
    source = np.arange(4.0)
    x = ft.dlpack.from_dlpack(source)
    assert isinstance(x, ft.Array) and np.shares_memory(np.asarray(x), source)
    assert source.flags.writeable  # the other library's array stays as it was
    assert not np.shares_memory(np.asarray(ft.dlpack.from_dlpack(source, copy=True)), source)
    assert ft.dlpack.from_dlpack(X) is X
    assert X.__dlpack_device__() == (1, 0)


def test_dlpack_of_something_else() -> None:
    with pytest.raises(NonArrayError, match="takes an object with __dlpack__, and got a list"):
        ft.dlpack.from_dlpack([1, 2])

    class OnGpu:
        def __dlpack__(self, **options: Any) -> Any:
            raise AssertionError("memory of another device is refused before it is asked for")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    with pytest.raises(BackendError, match=r"device \(2, 0\)"):
        ft.dlpack.from_dlpack(OnGpu())


def test_devices() -> None:
    cpu = ft.devices()[0]
    assert repr(cpu) == "cpu:0" and cpu == ft.Device("cpu") and ft.devices("cpu") == [cpu]
    put = ft.device_put({"a": 1.0, "b": [np.ones(2), X]}, cpu)
    assert all(isinstance(leaf, ft.Array) for leaf in ft.tree.leaves(put))
    assert ft.device_put(X, "cpu") is X and X.to_device(cpu) is X
    got = ft.device_get(put)
    assert isinstance(got["b"][1], np.ndarray) and ft.block_until_ready(put) is put
    for use in (lambda: ft.devices("tpu"), lambda: ft.device_put(X, "gpu:1")):
        with pytest.raises(BackendError, match="there is no device"):
            use()


# plain NumPy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fun", [
    lambda x: np.sin(x), lambda x: np.sum(x, axis=0), lambda x: np.einsum("ij,kj->ik", x, x),
    lambda x: np.concatenate([x, x]), lambda x: np.where(x > 2, x, 0.0), lambda x: np.add(x, 1)])
def test_numpy_functions_take_arrays_and_tracers(fun: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for got in eager_staged_mapped(fun, np.asarray(X)):
            assert isinstance(got, ft.Array)
            np.testing.assert_allclose(np.asarray(got), fun(np.asarray(X)), rtol=1e-6)


def test_array_namespace() -> None:
    assert X.__array_namespace__() is jnp


def test_conversion_to_what_is_no_dtype() -> None:
    with pytest.raises(DTypeError):
        X.astype("text")


def test_tracers_are_arrays() -> None:
    def seen(x: Any) -> Any:
        match x:
            case ft.Array():
                return x * 2 if isinstance(x, ft.Array) else 0 * x
        return 0 * x

    xs = jnp.arange(3.0)
    want = (2 * xs).tolist()
    for change in (seen, ft.jit(seen), ft.vmap(seen), ft.checkpoint(seen), ft.jit(ft.vmap(seen)),
                   lambda x: ft.linearize(seen, x)[0], lambda x: ft.jvp(seen, (x,), (x,))[1],
                   lambda x: ft.linear_transpose(seen, x)(x)[0],
                   lambda x: ft.lax.map(seen, x), lambda x: ft.lax.cond(True, seen, seen, x)):
        assert change(xs).tolist() == want
    assert ft.grad(lambda x: seen(x).sum())(xs).tolist() == [2.0] * 3
    for other in (1.0, np.ones(2), np.float32(1), [xs], None, ft.ShapeDtypeStruct((), "float32")):
        assert not isinstance(other, ft.Array)
    assert issubclass(ft.Array, ft.Array) and type(xs) is ft.Array


def test_traced_values_can_be_copied() -> None:
    def f(x: Any) -> Any:
        tree = copy.deepcopy({"a": [x, (x, 1)]})
        return copy.copy(x) * tree["a"][0] * tree["a"][1][0]

    for change in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        assert float(change(2.0)) == 12.0
    assert ft.vmap(f)(jnp.arange(3.0)).tolist() == [0.0, 1.0, 8.0]
