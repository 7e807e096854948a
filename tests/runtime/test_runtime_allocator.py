"""The caching allocator and the capture of user frames."""

import math
import random
import threading
import weakref

import numpy as np
import pytest
from runtime_helpers import run_python

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt


def test_empty_is_aligned_and_writable():
    for shape, dtype in (((), "f4"), ((3,), "i1"), ((0, 3), "f8"), ((1000, 7), "c16"), (5, "f4")):
        a = rt.empty(shape, dtype)
        assert a.ctypes.data % 64 == 0
        assert a.flags.writeable
        assert a.flags.c_contiguous
        assert a.dtype == np.dtype(dtype)
        a[...] = 1
    assert rt.empty([2, np.int64(3)], np.float32).shape == (2, 3)


@pytest.mark.parametrize(
    "shape",
    [(10**13,), (2**62,), (2**63 - 1, 2**63 - 1), (2**40, 2**40, 0, 3), (10**6, 10**6, 10**6)],
)
def test_impossible_sizes_are_a_memory_error_with_the_bytes(shape):
    if 0 in shape:
        with pytest.raises((MemoryError, ValueError)):
            rt.empty(shape, np.float64)
        return
    with pytest.raises(MemoryError) as info:
        rt.empty(shape, np.float64)
    assert str(8 * math.prod(shape)) in str(info.value)
    assert str(shape) in str(info.value)
    assert "float64" in str(info.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ((-1,), "f4"),
        ((1,), "O"),
        ((1,), "no dtype"),
        ((1.5,), "f4"),
        ("ab", "f4"),
        ((2**70,), "f4"),
        ((1,) * 70, "f4"),
        ((1,),),
        (3, "V0"),
        ((1,), None),
        (None, "f4"),
    ],
)
def test_empty_rejects(arguments):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        rt.empty(*arguments)


def test_out_of_memory_in_an_operator_is_an_exception():
    wide = rt.wrap(np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 24, 1), (0, 0)))
    tall = rt.wrap(np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1, 1 << 24), (0, 0)))
    with pytest.raises(MemoryError, match=str(4 << 48)):
        wide + tall


def test_memory_is_reused_and_given_back():
    rt.clear_memory_cache()
    before = rt.memory_stats()
    a = rt.empty((1 << 20,), np.float32)
    address = a.ctypes.data
    held = rt.memory_stats()
    assert held["in_use"] - before["in_use"] >= 4 << 20
    del a
    assert rt.memory_stats()["cached"] >= 4 << 20
    b = rt.empty((1 << 20,), np.float32)
    assert b.ctypes.data == address
    assert rt.memory_stats()["hits"] == before["hits"] + 1
    del b
    rt.clear_memory_cache()
    assert rt.memory_stats()["cached"] == 0
    stats = rt.memory_stats()
    assert stats["peak"] >= stats["in_use"]
    assert 64 << 20 <= stats["limit"] <= 4 << 30


def test_small_arrays_are_recycled_whole():
    rt.clear_memory_cache()
    x = rt.wrap(np.arange(8, dtype=np.float32))
    before = rt.memory_stats()
    made = [x + 1 for _ in range(300)]  # more than wait
    addresses = {m._np.ctypes.data for m in made}
    assert len(addresses) == 300
    del made
    assert rt.memory_stats()["in_use"] == before["in_use"]
    again = [x + 2, x * 3]
    assert {a._np.ctypes.data for a in again} <= addresses
    assert [a.tolist() for a in again] == [list(range(2, 10)), list(range(0, 24, 3))]
    assert rt.memory_stats()["hits"] >= before["hits"] + 2
    for other in (x.reshape(2, 4), x.reshape(8, 1), x.astype(np.int32)):
        assert (other + 1).shape == other.shape
        assert (other + 1).dtype == other.dtype
    del again
    rt.clear_memory_cache()
    assert rt.memory_stats()["cached"] == 0


@pytest.mark.parametrize("hold", [np.asarray, memoryview, np.from_dlpack, lambda y: y._np,
                                  lambda y: np.asarray(y)[2:5]])
def test_what_others_hold_is_not_recycled(hold):
    x = rt.wrap(np.arange(8, dtype=np.float32))
    y = x + 1
    held = hold(y)
    before = np.array(held)
    del y
    made = [x * 0 - n for n in range(100)]
    np.testing.assert_array_equal(held, before)
    assert not any(np.may_share_memory(held, m._np) for m in made)
    assert not made[0]._np.flags.writeable


def test_recycled_arrays_have_no_weak_references_and_no_types_left():
    x = rt.wrap(np.arange(4, dtype=np.float32))
    y = x + 1
    _ = y.aval
    gone = []
    reference = weakref.ref(y, gone.append)
    inner = weakref.ref(y._np)
    del y
    assert gone == [reference]
    z = x > 1
    assert (z.dtype, z.weak_type, z.aval.dtype) == (np.dtype(bool), False, np.dtype(bool))
    y = x + 1
    assert inner() is None
    assert y.aval.shape == (4,)
    assert not weakref.getweakrefs(y)


def test_resize_in_place_goes_through_the_allocator():
    for before, after in ((3, 4), (10, 100000), (100000, 10), (5, 0), (0, 5)):
        a = rt.empty((before,), np.int64)
        a[:] = np.arange(before)
        a.resize((after,), refcheck=False)
        n = min(before, after)
        assert a[:n].tolist() == list(range(n))
        assert a[n:].tolist() == [0] * (after - n)


def test_allocator_under_threads():
    failures = []

    def work(seed):
        rng = random.Random(seed)
        live = []
        for i in range(2000):
            size = rng.choice([1, 8, 100, 1000, 5000, 70000])
            a = rt.empty((size,), np.int64)
            a[:] = i
            live.append((a, i))
            if len(live) > 20:
                b, value = live.pop(rng.randrange(len(live)))
                if not (b == value).all():
                    failures.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_works_in_a_forked_child():
    out = run_python("""
        import os, threading, warnings
        warnings.simplefilter("ignore")  # forking with threads is the point
        stop = False
        def churn():
            while not stop:
                rt.empty((1000,), np.float32)
        threads = [threading.Thread(target=churn) for _ in range(2)]
        for t in threads: t.start()
        rt.set_trace("parent")
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                a = rt.empty((1 << 18,), np.float32)
                a[:] = 1
                x = rt.wrap(a)
                ok = (x + x)._np.sum() == 2 << 18 if rt.set_trace(None) == "parent" else False
                rt.clear_memory_cache()
                os._exit(0 if ok else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop = True
        for t in threads: t.join()
        print("done")
    """)
    assert out == "done"


def test_user_frames_are_innermost_first_and_resolve_to_lines():
    def inner():
        return rt.user_frames(3)

    def outer():
        return inner()

    frames = outer()
    assert [code.co_name for code, _ in frames[:2]] == ["inner", "outer"]
    code, lasti = frames[0]
    line = list(code.co_positions())[lasti // 2][0]
    assert line == inner.__code__.co_firstlineno + 1
    assert len(rt.user_frames()) == 1
    assert rt.user_frames(0) == ()
    assert rt.user_frames(-5) == ()
    assert len(rt.user_frames(limit=10**9)) > 3


def test_user_frames_in_generators_and_comprehensions():
    def generate():
        yield rt.user_frames(2)

    (frames,) = list(generate())
    assert frames[0][0].co_name == "generate"
    frames = next(rt.user_frames(1) for _ in range(1))
    line = list(frames[0][0].co_positions())[frames[0][1] // 2][0]
    assert line is not None
    assert sorted([1], key=lambda _: len(rt.user_frames(2))) == [1]


@pytest.mark.parametrize("args", [("a",), (1, 2), (None,), (1.5,), (2**70,)])
def test_user_frames_rejects(args):
    with pytest.raises((TypeError, OverflowError)):
        rt.user_frames(*args)


def test_internal_prefixes():
    out = run_python("""
        def call(source, name):
            scope = {"rt": rt}
            exec(compile(source, name, "exec"), scope)
            return scope
        package = call("def f(): return rt.user_frames(5)", "/package/deep/module.py")
        user = call("def g(f): return f()", "/home/user.py")
        rt.set_internal_prefixes(["/package/", "/other/"])
        print([c.co_filename for c, _ in user["g"](package["f"])])
        for bad in (3, [3], ["a"] * 17, None, ["\\ud800"]):
            try: rt.set_internal_prefixes(bad)
            except (TypeError, ValueError): print("refused")
        print(len(user["g"](package["f"])))
        rt.set_internal_prefixes([])
        print(len(user["g"](package["f"])))
        odd = call("def f(): return rt.user_frames(1)", "\\ud800")
        print(len(odd["f"]()))
    """).splitlines()
    assert out == ["['/home/user.py', '<string>']", *["refused"] * 5, "2", "3", "1"]
