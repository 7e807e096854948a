"""JitFunction: what its key tells apart, what it rebuilds, and what it leaves to Python."""

import gc
import threading
import weakref
from contextvars import ContextVar
from types import SimpleNamespace

import numpy as np
import pytest
from runtime_helpers import Point, arr, counting

import functrans
from functrans import _runtime as rt
from functrans.core import config


def test_jit_hits_and_misses():
    miss, calls = counting(lambda leaves: [leaves[0]._np + 1], ..., [False])
    f = rt.JitFunction(miss)
    x = arr([1.0, 2.0])
    assert f(x) == "missed"
    assert f(x)._np.tolist() == [2, 3]
    assert f(arr([5.0, 6.0]))._np.tolist() == [6, 7]
    assert (len(calls), f.cache_size()) == (1, 1)
    assert calls[0][:2] == ((x,), {})
    different = [
        arr([1.0]),
        arr([[1.0, 2.0]]),
        arr([1, 2], np.int32),
        arr([1.0, 2.0], weak_type=True),
        np.ones(2, np.float32),
        np.float32(1),
        1.0,
        1,
        True,
        1j,
        (x,),
        [x],
        {"a": x},
        {"b": x},
        {1: x},
        (x, None),
        ((x,),),
        arr([1.0, 2.0], np.float16),
        {},
        (),
        [],
        None,
    ]
    for i, y in enumerate(different):
        assert f(y) == "missed", y
        assert f.cache_size() == i + 2
    assert f(a=x) == "missed"
    assert f(b=x) == "missed"
    assert f() == "missed"
    f.cache_clear()
    assert f.cache_size() == 0
    assert f(x) == "missed"


def test_jit_keyword_and_dict_order_do_not_matter():
    miss, calls = counting(list, {"z": ..., "a": [..., None, (...,)]}, [False] * 3)
    f = rt.JitFunction(miss)
    x, y, z = arr([1.0]), arr([2.0]), arr([3.0])
    f(b=x, a={"q": y, "p": z})
    out = f(a={"p": z, "q": y}, b=x)
    assert len(calls) == 1
    assert list(out) == ["a", "z"]  # dicts are rebuilt in the order of their leaves
    assert out["a"][0] is z
    assert out["a"][1] is None
    assert out["a"][2] == (y,)
    assert out["z"] is x
    many = {f"k{i}": arr([float(i)]) for i in range(200)}
    miss, calls = counting(list, dict.fromkeys(many, ...), [False] * 200)
    g = rt.JitFunction(miss)
    g(many)
    result = g(dict(reversed(many.items())))
    assert len(calls) == 1
    assert all(result[k] is v for k, v in many.items())


def test_jit_static_arguments():
    miss, calls = counting(list, ..., [False])
    f = rt.JitFunction(miss, static_argnums=(1, -1), static_argnames=("mode",))
    x = arr([1.0])
    for args, kwargs in (
        ((x, "a", 2), {}),
        ((x, "b", 2), {}),
        ((x, "a", 2.0), {}),
        ((x, "a", True), {}),
        ((x, "a", 2), {"mode": "m"}),
        ((x, "a", 2), {"mode": None}),
        ((x, ("t", 1), 2), {}),
    ):
        assert f(*args, **kwargs) == "missed"
        assert f(*args, **kwargs) is x
    assert calls[-1][2] is not None
    f(x, ["unhashable"], 2)
    assert calls[-1][2] is None

    class Equal:
        def __hash__(self):
            return 3

        def __eq__(self, other):
            return True

    assert f(x, Equal(), 2) == "missed"
    assert f(x, Equal(), 2) is x

    class Broken:
        def __hash__(self):
            return 3

        def __eq__(self, other):
            raise OSError("no equality")

    f(x, Broken(), 2)
    with pytest.raises(OSError, match="no equality"):
        f(x, Broken(), 2)

    class NoHash:
        def __hash__(self):
            raise OSError("no hash")

    with pytest.raises(OSError, match="no hash"):
        f(x, NoHash(), 2)


def test_jit_leaves_what_it_cannot_flatten_to_python():
    miss, calls = counting(list, ..., [False])
    f = rt.JitFunction(miss)

    class Node:
        pass

    loop = []
    loop.append(loop)
    for value in (
        Node(),
        "text",
        {"a": 1, 2: 3},
        {1.5: 1},
        {2**70: 1},
        [Node()],
        np.array(["a"]),
        np.array([None]),
        np.array(0, "M8[s]"),
        np.ones(2, np.dtype("f4").newbyteorder()),
        {1, 2},
        np.zeros(2, "V3"),
    ):
        f(value)
        assert calls[-1][2] is None, value
    with pytest.raises(RecursionError):
        f(loop)
    deep = arr([1.0])
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(RecursionError):
        f(deep)
    while type(deep) is list:
        deep = deep[0]
    previous = rt.set_trace("trace")
    try:
        f(arr([1.0]))
        assert calls[-1][2] is None
    finally:
        rt.set_trace(previous)


def test_jit_registered_nodes():
    class Pair:
        def __init__(self, a, b, note):
            self.a, self.b, self.note = a, b, note

    rt.register_node(Pair, lambda p: ((p.a, p.b), p.note))
    rt.register_node(Point, None)
    miss, calls = counting(list, Point(..., [...]), [False, False])
    f = rt.JitFunction(miss)
    x, y = arr([1.0]), arr([2.0])
    f(Pair(x, y, "n"))
    result = f(Pair(x, y, "n"))
    assert type(result) is Point
    assert result.x is x
    assert result.y == [y]
    assert f(Pair(x, y, "other")) == "missed"
    f(Pair(x, y, []))
    assert calls[-1][2] is None
    assert f(Point(x, y)) == "missed"
    assert f((x, y)) == "missed"
    rt.register_node(Pair, lambda p: 3)
    with pytest.raises(TypeError, match="children"):
        f(Pair(x, y, 1))
    rt.register_node(Pair, lambda p: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        f(Pair(x, y, 1))
    for bad in ((Pair,), (Pair, 3), (int, None), (3, len)):
        with pytest.raises(TypeError):
            rt.register_node(*bad)


def test_jit_outputs():
    x = arr([1.0])

    def made(program, structure, weak):
        f = rt.JitFunction(counting(program, structure, weak)[0])
        f(x)
        return f(x)

    assert made(lambda leaves: (np.float32(2),), ..., [True]).weak_type
    assert made(lambda leaves: [np.ones(3)], ..., [False]).shape == (3,)
    assert made(lambda leaves: leaves, ..., [True]).weak_type
    assert made(lambda leaves: [], (), []) == ()
    assert made(lambda leaves: [], None, []) is None
    assert made(lambda leaves: leaves, lambda outs: ("built", outs), [False]) == ("built", [x])
    for program, error in (
        (lambda leaves: 3, TypeError),
        (lambda leaves: [], ValueError),
        (lambda leaves: leaves * 2, ValueError),
        (lambda leaves: ["a"], TypeError),
        (lambda leaves: 1 / 0, ZeroDivisionError),
    ):
        with pytest.raises(error):
            made(program, ..., [False])
    with pytest.raises(ZeroDivisionError):
        made(lambda leaves: leaves, lambda outs: 1 / 0, [False])
    for structure, weak in (
        (..., []),
        ((...,), [0, 0]),
        ({"a": 3}, []),
        ("x", [0]),
        ({1: ..., "a": ...}, []),
    ):
        with pytest.raises((TypeError, ValueError)):
            made(lambda leaves: leaves, structure, weak)
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        made(list, loop, [])


def test_jit_insert_rejects():
    keys = []
    f = rt.JitFunction(lambda self, args, kwargs, key: keys.append(key))
    f(1.0)
    (key,) = keys
    for bad in (
        (),
        (key,),
        (key, 3, ..., [0]),
        (3, list, ..., [0]),
        (key, list, ..., 3),
        (key, list, ..., [0], 1),
    ):
        with pytest.raises(TypeError):
            f.insert(*bad)
    with pytest.raises(TypeError):
        type(key)()
    for bad in ((1,), (-1,), (0, 0)):  # leaves that the call does not have, or too many
        with pytest.raises(ValueError, match="insert"):
            f.insert(key, list, ..., [False], (), bad)
    for bad in ([0], ("a",)):
        with pytest.raises(TypeError):
            f.insert(key, list, ..., [False], (), bad)
    f.insert(key, lambda leaves: [np.float32(1)], ..., [False])
    f.insert(key, lambda leaves: [np.float32(2)], ..., [False])  # replaces
    assert f.cache_size() == 1
    assert float(f(1.0)) == 2
    for bad in ((), (3,), (len, 3), (len, ("a",)), (len, (), 3), (len, (), ([],))):
        with pytest.raises(TypeError):
            rt.JitFunction(*bad)


def test_jit_epoch_and_settings():
    miss, _calls = counting(list, ..., [False])
    f = rt.JitFunction(miss)
    x = arr([1.0])
    f(x)
    assert f(x) is x
    with config.scope(algebra="off"):
        assert f(x) == "missed"
        assert f(x) is x
        seen = []
        thread = threading.Thread(target=lambda: seen.append(f(x)))
        thread.start()
        thread.join()
        assert seen[0] is x
    assert f(x) is x
    rt.bump_epoch()
    assert f.cache_size() == 0
    assert f(x) == "missed"

    def late(self, args, kwargs, key):
        rt.bump_epoch()
        self.insert(key, list, ..., [False])
        return "missed"

    g = rt.JitFunction(late)
    assert g(x) == "missed"
    assert g(x) == "missed"
    before = config.of_process()
    variable = ContextVar("of a test")
    with pytest.raises(TypeError):
        rt.set_process_config("a", before)
    try:  # what is no Config has no token: nothing is called, and nothing is harmed
        rt.set_process_config(variable, 3)
        with pytest.raises(AttributeError, match="token"):
            f(x)
        variable.set(SimpleNamespace(token="a"))
        with pytest.raises(TypeError):
            f(x)
    finally:
        rt.set_process_config(config._current, before)
    assert f(x) == "missed"


def test_jit_function_behaves_as_a_function():
    miss, calls = counting(list, ..., [False])

    class Model:
        method = rt.JitFunction(miss)

    model = Model()
    assert model.method(1.0) == "missed"
    assert calls[-1][0] == (model, 1.0)
    assert Model.method is Model.__dict__["method"]
    f = rt.JitFunction(miss, context="context")
    assert (f.miss, f.context) == (miss, "context")
    f.__name__, f.anything = "name", 3
    assert f.__dict__ == {"__name__": "name", "anything": 3}

    class Derived(rt.JitFunction):
        def lower(self):
            return "lowered"

    d = Derived(miss)
    x = arr([1.0])
    d(x)
    assert d(x) is x
    assert d.lower() == "lowered"
    d.cycle = d
    reference = weakref.ref(d)
    del d
    calls.clear()
    gc.collect()
    assert reference() is None


def test_jit_is_reentrant():
    x = arr([1.0])

    def program(leaves):
        f.cache_clear()
        gc.collect(0)  # of what is young: a whole collection takes a second here
        return leaves

    f = rt.JitFunction(counting(program, {"a": ...}, [False])[0])
    for _ in range(20):
        assert f(x) == "missed"
        assert f(x) == {"a": x}

    class Clearing:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            g.cache_clear()
            return True

    g = rt.JitFunction(counting(list, ..., [False])[0], (1,))
    for _ in range(20):
        found = g(x, Clearing())
        assert found == "missed" if isinstance(found, str) else np.array_equal(found, x)

    def recursive(self, args, kwargs, key):
        if args[0] > 0:
            return self(args[0] - 1)
        self.insert(key, lambda leaves: [np.float32(leaves[0])], ..., [False])
        return "bottom"

    f = rt.JitFunction(recursive)
    assert f(50) == "bottom"
    assert f(50) == 50


def test_jit_under_threads():
    x = arr(np.arange(1000))
    f = rt.JitFunction(counting(lambda leaves: [leaves[0] + leaves[0]], ..., [False])[0])
    stop = threading.Event()
    failures = []

    def work():
        while not stop.is_set():
            result = f(x)
            if result != "missed" and result._np[1] != 2:
                failures.append(result)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(300):
        f.cache_clear()
        rt.bump_epoch()
    stop.set()
    for t in threads:
        t.join()
    assert not failures


def test_results_that_are_arguments():
    f = functrans.jit(lambda x, y: {"y": y, "x": (x, x)})
    x, y = arr([1.0, 2.0]), arr([3.0], weak_type=True)
    for _ in range(3):  # by Python, and then without it
        found = f(x, y)
        assert [x.tolist() for x in found["x"]] == [[1.0, 2.0]] * 2
        assert (found["y"].tolist(), found["y"].weak_type) == ([3.0], True)
        assert found["x"][0] is not x
        assert found["x"][0]._np is x._np
    one = functrans.jit(lambda x: x)
    assert isinstance(one(np.ones(2)), functrans.Array)
    changed = np.ones(2)
    kept = [one(changed) for _ in range(3)]
    changed[:] = 2  # what is no Array was copied
    assert [k.tolist() for k in kept] == [[1.0, 1.0]] * 3
    assert [float(one(2.5)) for _ in range(3)] == [2.5] * 3
    z = arr([1.0])
    results = [one(z) for _ in range(3)]
    functrans.jit(lambda z: z + 1, donate_argnums=0)(z)
    assert [r.tolist() for r in results] == [[1.0]] * 3
    with pytest.raises(functrans.errors.FunctransError, match="data of this"):
        one(z)
