"""The array type: attributes, conversions, data that leaves, first-axis indexing."""

import copy
import inspect
import operator
import os
import pickle
import weakref

import numpy as np
import pytest
from runtime_helpers import NATIVE, Array, arr, run_python

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt


@pytest.mark.parametrize("dtype", [*NATIVE, np.float16])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_attributes_mirror_the_ndarray(shape, dtype):
    data = np.ones(shape, dtype)
    x = rt.wrap(data.copy())
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize) == (
        data.shape,
        data.dtype,
        data.ndim,
        data.size,
        data.nbytes,
        data.itemsize,
    )
    assert x.weak_type is False
    assert type(x._np) is np.ndarray
    assert not x._np.flags.writeable


def test_wrap_accepts_numpy_scalars_and_subclasses():
    assert rt.wrap(np.float32(2)).shape == ()
    matrix = np.ones((2, 2)).view(type("Sub", (np.ndarray,), {}))
    assert type(rt.wrap(matrix)._np) is np.ndarray
    assert rt.wrap(np.zeros(2), weak_type=True).weak_type
    assert rt.wrap(np.zeros(2), True).weak_type
    assert type(Array._wrap(np.zeros(2))) is Array


@pytest.mark.parametrize("args", [(), ([1.0],), (1.0,), (None,), (np.zeros(1), True, 3)])
def test_wrap_rejects(args):
    with pytest.raises(TypeError):
        rt.wrap(*args)
    with pytest.raises(TypeError):
        rt.wrap(*args, weak=True)


def test_no_constructor_and_no_hash():
    with pytest.raises(TypeError, match="array"):
        Array()
    with pytest.raises(TypeError):
        object.__new__(Array)
    with pytest.raises(TypeError, match="unhashable"):
        hash(arr([1]))


def test_weak_references_copy_and_pickle():
    x = arr([[1, 2], [3, 4]], weak_type=True)
    reference = weakref.ref(x)
    for y in (copy.copy(x), copy.deepcopy([x])[0]):
        assert y is not x and y.weak_type and y._np is x._np
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert type(y) is Array
        assert y.weak_type
        np.testing.assert_array_equal(y._np, x._np)
    del x
    assert reference() is None


def test_unpickled_array_does_not_lie_on_the_pickled_buffer():
    buffers = []
    data = pickle.dumps(arr(np.arange(100)), protocol=5, buffer_callback=buffers.append)
    backing = [bytearray(b.raw()) for b in buffers]
    y = pickle.loads(data, buffers=backing)
    for b in backing:
        b[:] = bytes(len(b))
    np.testing.assert_array_equal(y._np, np.arange(100))


def test_registered_type_is_checked_and_carries_no_collector_header():
    out = run_python("""
        class Early(rt.ArrayBase):
            __slots__ = ()
        x = Early._wrap(np.zeros(2))
        for bad in (int, 3, rt.ArrayBase(1) if False else object):
            try: rt.set_array_type(bad)
            except TypeError: print("type")
        class Dict(rt.ArrayBase): pass
        try: rt.set_array_type(Dict)
        except TypeError: print("slots")
        try: rt.set_array_type(Early)
        except RuntimeError: print("instances")
        del x
        rt.set_array_type(Early)
        y = rt.wrap(np.zeros(2))
        import gc
        print(type(y).__name__, gc.is_tracked(y))
        class Sub(Early): pass
        z = Sub._wrap(np.ones(2)); z.note = z
        del z; gc.collect()
        class Other(rt.ArrayBase): __slots__ = ()
        rt.set_array_type(Other)
        print(type(rt.wrap(np.zeros(1))).__name__, type(y).__name__)
        del y; gc.collect()
        try: rt.wrap(np.zeros(1)) @ 3
        except RuntimeError as e: print(e)
    """).splitlines()
    assert out[:6] == ["type", "type", "type", "slots", "instances", "Early False"]
    assert out[6] == "Other Early"
    assert "set_operator_fallbacks" in out[7]


@pytest.mark.parametrize("table", [3, {"nothing": len}, {3: len}, {"add": 3}])
def test_operator_fallbacks_are_checked(table):
    with pytest.raises((TypeError, ValueError)):
        rt.set_operator_fallbacks(table)


def test_conversion_to_python_scalars():
    assert bool(arr([[2.0]])) is True
    assert int(arr(3.7)) == 3
    assert float(arr(3)) == 3.0
    assert complex(arr(1 + 2j, np.complex64)) == 1 + 2j
    assert operator.index(arr(5, np.int8)) == 5
    assert [10, 20][arr(1, np.int32)] == 20
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match=r"shape \(1,\)"):
            convert(arr([1.0]))
    with pytest.raises(TypeError, match="integer"):
        operator.index(arr(1.0))
    for values in ([], [1, 2]):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(arr(values))
    with pytest.raises(TypeError):
        float(arr(1j, np.complex64))


def test_asarray_is_a_read_only_view_and_array_a_copy():
    x = arr(np.arange(6).reshape(2, 3))
    view = np.asarray(x)
    assert np.shares_memory(view, x._np)
    assert not view.flags.writeable
    with pytest.raises(ValueError):
        view.flags.writeable = True
    fresh = np.array(x)
    assert fresh.flags.writeable
    assert not np.shares_memory(fresh, x._np)
    assert np.asarray(x, dtype=np.int64).dtype == np.int64


def test_array_protocol_arguments():
    x = arr([1, 2, 3])
    direct = x.__array__()
    assert np.shares_memory(direct, x._np)
    assert not direct.flags.writeable
    with pytest.raises(ValueError):
        direct.flags.writeable = True
    assert x.__array__(np.float64, copy=True).flags.writeable
    assert x.__array__(copy=True).flags.writeable
    assert x.__array__(dtype="int32").dtype == np.int32
    with pytest.raises(ValueError, match="copy"):
        x.__array__(np.int32, copy=False)
    with pytest.raises(TypeError):
        x.__array__(np.int32, True, 3)
    with pytest.raises(TypeError):
        x.__array__(order="C")
    with pytest.raises(TypeError):
        x.__array__("no such dtype")


def test_buffer_protocol_is_read_only():
    x = arr(np.arange(6).reshape(2, 3))
    view = memoryview(x)
    assert view.readonly
    assert view.shape == (2, 3)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(BufferError, match="immutable"):
        (inspect.types.SimpleNamespace, os.readv)[1](0, [x])


def test_dlpack():
    x = arr(np.arange(6).reshape(2, 3))
    assert x.__dlpack_device__() == (1, 0)
    y = np.from_dlpack(x)
    np.testing.assert_array_equal(y, x._np)
    assert not y.flags.writeable
    assert "dltensor" in repr(x.__dlpack__())  # consumers from before DLPack 1.0
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    del x
    np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3))
    with pytest.raises(TypeError):
        arr([1]).__dlpack__(3)
    with pytest.raises(BufferError):
        arr([1]).__dlpack__(dl_device=(2, 0))


def test_indexing_the_first_axis():
    data = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    x = rt.wrap(data.copy())
    for key in (
        0,
        3,
        -1,
        -4,
        slice(None),
        slice(1, 3),
        slice(None, None, -1),
        slice(3, 0, -2),
        slice(2, 2),
        slice(-100, 100),
        slice(100, 200),
    ):
        got = x[key]
        assert type(got) is Array
        np.testing.assert_array_equal(got._np, data[key])
        assert not got._np.flags.writeable
    big = rt.wrap(np.arange(10000.0))
    for key in (slice(5, None), slice(None, None, 3), slice(None, None, -1), 17):
        np.testing.assert_array_equal(big[key]._np, np.arange(10000.0)[key])
    assert rt.wrap(np.arange(3), True)[0].weak_type
    with pytest.raises(ValueError, match="zero"):
        x[::0]


def test_iteration_and_length():
    data = np.arange(6, dtype=np.int32).reshape(3, 2)
    x = rt.wrap(data.copy())
    assert len(x) == 3
    assert [row._np.tolist() for row in x] == data.tolist()
    iterator = iter(x)
    next(iterator)
    assert operator.length_hint(iterator) == 2
    assert iter(iterator) is iterator
    for function in (len, iter):
        with pytest.raises(TypeError):
            function(arr(1.0))
    with pytest.raises(TypeError):
        type(iterator)()
