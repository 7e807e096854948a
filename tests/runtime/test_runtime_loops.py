"""Operators and EagerOp: inner loops called directly, and when the fallback runs."""

import copy
import gc
import inspect
import operator
import threading
import weakref

import numpy as np
import pytest
from runtime_helpers import INTEGERS, NATIVE, Array, arr, forbidden

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt

_BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]


def numpy_agrees(op, kind):
    """The operators that take the fast path for a dtype kind."""
    if op in (operator.and_, operator.or_, operator.xor):
        return kind in "biu"
    if op in (operator.lshift, operator.rshift):
        return kind in "iu"
    if op in (operator.floordiv, operator.mod):
        return kind in "iuf"
    if op is operator.truediv:
        return kind in "fc"
    if op is operator.pow:
        return kind == "f"
    if op is operator.sub:
        return kind != "b"
    if op in (operator.lt, operator.le, operator.gt, operator.ge):
        return kind != "c"
    return True


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("op", _BINARY)
def test_binary_operators_equal_numpy(op, dtype):
    if not numpy_agrees(op, np.dtype(dtype).kind):
        return
    rng = np.random.default_rng(0)

    # quotients by the integer 0 are those of test_integer_division
    least = 1 if op is operator.floordiv and np.dtype(dtype).kind in "iu" else 0

    def draw(shape):
        return (rng.integers(least, 2 if dtype is np.bool_ else 7, shape)).astype(dtype)

    shapes = [
        ((5,), (5,)),
        ((), ()),
        ((2, 3), (3,)),
        ((2, 1), (1, 3)),
        ((), (4,)),
        ((0,), (0,)),
        ((2, 3), ()),
        ((3, 1, 2), (4, 1)),
    ]
    for left, right in shapes:
        a, b = draw(left), draw(right)
        with np.errstate(all="ignore"):
            expected = op(a, b)
        got = op(rt.wrap(a.copy()), rt.wrap(b.copy()))
        assert type(got) is Array
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got._np, expected)


@pytest.mark.parametrize("order", ["C", "F", "reversed", "every other", "transposed", "row"])
def test_layouts(order):
    data = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    view = {
        "C": data,
        "F": np.asfortranarray(data),
        "reversed": data[::-1, ::-1],
        "every other": data[::2, ::2],
        "transposed": data.T,
        "row": data[:1],
    }[order]
    x = rt.wrap(view)
    np.testing.assert_array_equal((x + x)._np, view + view)
    np.testing.assert_array_equal((-x)._np, -view)
    np.testing.assert_array_equal((x * 2)._np, view * np.float32(2))
    c = rt.wrap(np.ascontiguousarray(view))
    np.testing.assert_array_equal((x * c)._np, view * view)
    np.testing.assert_array_equal((c - x)._np, np.zeros_like(view))


def test_misaligned_and_swapped_data():
    raw = np.zeros(4 * 5 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32)
    misaligned[:] = np.arange(5)
    np.testing.assert_array_equal((rt.wrap(misaligned) + rt.wrap(misaligned))._np, 2 * np.arange(5))
    swapped = np.arange(5, dtype=np.dtype(np.float32).newbyteorder())
    assert float(rt.wrap(swapped)[1]) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("scalar", [2, 2.5, -1, 1 << 40, float("inf"), 1e300])
def test_python_scalars_take_the_dtype_of_an_inexact_array(dtype, scalar):
    data = np.array([1, 2, 3], dtype)
    with np.errstate(all="ignore"):
        expected = (data + dtype(scalar), dtype(scalar) - data)
    for got, want in zip((rt.wrap(data) + scalar, scalar - rt.wrap(data)), expected):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got._np, want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_scalars_at_the_limits(dtype):
    info = np.iinfo(dtype)
    op = rt.EagerOp(np.maximum, lambda *args: "fallback", "maximum")
    x = rt.wrap(np.zeros(2, dtype))
    for value, fast in (
        (info.min, True),
        (info.max, info.max < 2**63),
        (info.max + 1, False),
        (info.min - 1, False),
        (1.5, False),
        (True, False),
        (1j, False),
    ):
        result = op(x, value)
        assert isinstance(result, Array) == fast, value
        if fast:
            assert result._np.tolist() == [max(0, value)] * 2


def test_power_and_square():
    x = arr([1.0, 2.0, 3.0])
    assert (x**2)._np.tolist() == [1, 4, 9]
    assert (x**0.5)._np.tolist() == np.sqrt(x._np).tolist()
    assert (2.0**x)._np.tolist() == [2, 4, 8]
    with pytest.raises(TypeError):
        pow(x, 2, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_matmul_equals_numpy(dtype):
    rng = np.random.default_rng(0)
    shapes = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((1, 2, 3), (5, 3, 4)),
        ((2, 5, 2, 3), (3, 4)),
    ]
    for left, right in shapes:
        a, b = rng.normal(size=left).astype(dtype), rng.normal(size=right).astype(dtype)
        got = rt.wrap(a) @ rt.wrap(b)
        assert got.shape == (a @ b).shape
        np.testing.assert_allclose(got._np, a @ b, rtol=1e-5, atol=1e-5)
    a = rng.normal(size=(4, 6)).astype(dtype)
    x, y = rt.wrap(a), rt.wrap(a.T)
    np.testing.assert_allclose((x @ y)._np, a @ a.T, rtol=1e-5)
    np.testing.assert_allclose(
        (rt.wrap(a[:, ::2]) @ rt.wrap(a[:3]))._np, a[:, ::2] @ a[:3], rtol=1e-4, atol=1e-5
    )


def test_large_arrays_run_without_the_gil_and_equal_numpy():
    data = np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
    x = rt.wrap(data.copy())
    results = [None] * 4

    def work(i):
        results[i] = (x + x) * x

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        np.testing.assert_array_equal(r._np, (data + data) * data)


def test_warnings_are_neither_raised_nor_left_behind():
    """Warnings are errors in this suite, and flags of our loops must not reach NumPy's checks."""
    zero, one = arr([0.0, 1.0]), arr([1.0, 1.0])
    with np.errstate(all="raise"):
        for _ in range(3):
            assert np.isinf((one / zero)._np[0])
            assert np.isnan((zero / zero)._np[0])
            assert np.isinf((arr([3e38]) * 10.0)._np[0])
            np.add(np.ones(2), np.ones(2))
            np.float32(1) + np.float32(2)
            np.ones(3).astype(np.int32)
            np.linalg.inv(np.eye(3))
            np.linalg.cholesky(np.eye(3))
            np.ones(4).sum()
    with pytest.raises(FloatingPointError), np.errstate(all="raise"):
        np.ones(2) / np.zeros(2)


def test_eager_op_runs_the_loop_or_the_fallback():
    seen = []

    def fallback(*args, **kwargs):
        """Sine."""
        seen.append((args, kwargs))
        return "fallback"

    op = rt.EagerOp(np.sin, fallback, "sin", "The sine.")
    assert (op.__name__, op.__qualname__, op.__doc__) == ("sin", "sin", "The sine.")
    assert op.__wrapped__ is fallback is op.fallback
    assert op.ufunc is np.sin
    assert "sin" in repr(op)
    x = arr([0.0, 1.0])
    np.testing.assert_array_equal(op(x)._np, np.sin(x._np))
    assert not seen
    cases = [
        ((1.0,), {}),
        ((), {}),
        ((x, x), {}),
        ((x,), {"k": 1}),
        ((np.ones(2),), {}),
        ((arr([1], np.int32),), {}),
        ((arr([1], np.float16),), {}),
        ((rt.wrap(np.ones(1), True),), {}),
    ]
    for args, kwargs in cases:
        assert op(*args, **kwargs) == "fallback"
        assert seen[-1] == (args, kwargs)
    op.fallback = lambda *args: 7
    assert op(1.0) == 7
    for bad in (3, None):
        with pytest.raises(TypeError):
            op.fallback = bad
    with pytest.raises(TypeError):
        del op.fallback


def test_eager_op_kinds_and_broadcast():
    op = rt.EagerOp(np.power, lambda *args: "fallback", "power", kinds="f", broadcast=False)
    f, i = arr([1.0, 2.0]), arr([1, 2], np.int32)
    assert isinstance(op(f, f), Array)
    assert op(i, i) == "fallback"
    assert isinstance(op(f, arr(2.0)), Array)
    assert isinstance(op(arr(2.0), f), Array)
    assert op(arr([[1.0], [2.0]]), f) == "fallback"
    assert op(arr([1.0]), f) == "fallback"
    with pytest.raises(ValueError):
        rt.EagerOp(np.power, len, "power", kinds="xyz")


def test_eager_op_weak_operands():
    op = rt.EagerOp(np.add, lambda *args: "fallback", "add")
    strong, weak = arr([1.0]), arr(1.0, weak_type=True)
    assert op(weak, weak) == "fallback"
    assert op(weak, 1.0) == "fallback"
    assert op(1.0, 1.0) == "fallback"
    assert not op(strong, weak).weak_type
    assert op(strong, arr(1, np.int32)) == "fallback"


def test_eager_op_several_outputs_and_odd_ufuncs():
    op = rt.EagerOp(np.modf, forbidden, "modf")
    fraction, whole = op(arr([1.5, 2.25]))
    assert (fraction._np.tolist(), whole._np.tolist()) == ([0.5, 0.25], [1, 2])
    strided = rt.wrap(np.arange(10, dtype=np.float32)[::2])
    fraction, whole = op(strided)
    assert whole._np.tolist() == [0, 2, 4, 6, 8]
    gufunc = rt.EagerOp(np.matmul, lambda *args: "fallback", "matmul")
    assert gufunc(arr([1.0]), arr([1.0])) == "fallback"
    user = rt.EagerOp(np.frompyfunc(lambda x: x, 1, 1), lambda *args: "fallback", "python")
    assert user(arr([1.0])) == "fallback"
    isnan = rt.EagerOp(np.isnan, forbidden, "isnan")
    assert isnan(arr([np.nan, 1]))._np.tolist() == [True, False]


def test_exceptions_of_loops_and_fallbacks_arrive():
    power = rt.EagerOp(np.power, forbidden, "power")
    with pytest.raises(ValueError, match="negative"):
        power(arr([2], np.int32), arr([-1], np.int32))
    op = rt.EagerOp(np.sin, lambda x: 1 / 0, "sin")
    with pytest.raises(ZeroDivisionError):
        op(1.0)
    for bad in ((), (1, 2, 3), (np.sin, 3, "sin"), (np.sin, len, 3)):
        with pytest.raises(TypeError):
            rt.EagerOp(*bad)


def test_eager_op_behaves_as_a_function():
    op = rt.EagerOp(np.sin, lambda x: x, "forbidden")
    op.__module__, op.__qualname__ = __name__, "forbidden"
    op.note = 3
    assert op.note == 3
    assert weakref.ref(op)() is op
    assert copy.deepcopy(op) is op
    assert inspect.signature(op).parameters.keys() == {"x"}
    op.cycle = op
    reference = weakref.ref(op)
    del op
    gc.collect()
    assert reference() is None


def test_an_active_trace_sends_everything_to_the_fallback():
    op = rt.EagerOp(np.sin, lambda x: "fallback", "sin")
    x = arr([1.0])
    marker = object()
    assert rt.get_trace() is None
    previous = rt.set_trace(marker)
    try:
        assert rt.get_trace() is marker
        assert op(x) == "fallback"
        other = []
        thread = threading.Thread(target=lambda: other.append(rt.get_trace()))
        thread.start()
        thread.join()
        assert other == [None]
    finally:
        assert rt.set_trace(previous) is marker
    assert rt.get_trace() is None
    assert isinstance(op(x), Array)
