"""Leaks and abuse: references stay balanced, wrong arguments never crash."""

import contextlib
import gc
import itertools
import pickle
import random
import sys

import numpy as np
from runtime_helpers import Array, Point, arr

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt


def test_references_are_balanced():
    x, y = arr([1.0, 2.0]), arr([[1.0], [2.0]])
    key, value = "some key of a dict", arr([3.0])
    static = ("static", object())

    def miss(self, args, kwargs, key):
        if key is not None:
            program = lambda leaves: [leaves[0], leaves[1]]
            self.insert(key, program, {"u": ..., "v": (...,)}, [False, True])

    f = rt.JitFunction(miss, (2,))
    unary = rt.EagerOp(np.negative, lambda v: v, "neg")
    pair = rt.EagerOp(np.modf, lambda v: v, "modf")

    def once():
        f(x, {key: value}, static)
        f(x, {key: value}, static)
        f([x, object()], 1, 2)
        x + x, x + y, x * 2.0, 2 - x, x[0], x[::2], list(x), x == x, x @ x, y[0:1], -x, x**2
        assert (x.shape, x.dtype, x.size, x.weak_type) and x._np is not None and x.aval
        unary(x), unary(3), pair(x), pair(rt.wrap(np.ones((4, 4), np.float32)[::2]))
        np.asarray(x), memoryview(x), np.from_dlpack(x), pickle.loads(pickle.dumps(x))
        rt.user_frames(5)
        rt.set_trace(rt.set_trace(None))
        for bad in (
            lambda: f.insert(1),
            lambda: x.__array__(3, 4, 5),
            lambda: rt.empty((10**14,), "f8"),
        ):
            with contextlib.suppress(TypeError, MemoryError):
                bad()
        f.cache_clear()

    watched = [
        x,
        y,
        key,
        value,
        static,
        x._np,
        np.dtype(np.float32),
        np.dtype(np.float64),
        once.__code__,
        None,
        True,
        unary,
        pair,
        f,
        Array,
    ]
    for _ in range(50):
        once()
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    blocks = sys.getallocatedblocks()
    in_use = rt.memory_stats()["in_use"]
    for _ in range(1000):
        once()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    for w, a, b in zip(watched, before, after):
        assert abs(b - a) < 100, w
    assert rt.memory_stats()["in_use"] - in_use < 10000
    assert sys.getallocatedblocks() - blocks < 500


def test_wrong_arguments_never_crash():
    """Every function and method of the module with arguments of many kinds: exceptions only."""

    class Hostile:
        def __getattr__(self, name):
            raise OSError("hostile")

        def __len__(self):
            return -1

        def __iter__(self):
            raise OSError("hostile")

        def __index__(self):
            raise OSError("hostile")

        def __array__(self, *args, **kwargs):
            raise OSError("hostile")

    class Sub(Array.__base__):
        pass

    x = arr([[1.0, 2.0], [3.0, 4.0]])
    values = [
        None,
        0,
        -1,
        2**100,
        1.5,
        "text",
        b"bytes",
        (),
        [],
        {},
        {"add": 1},
        x,
        arr(1.0),
        arr([]),
        arr(np.zeros((0, 3))),
        np.zeros(3),
        np.zeros(2, "O"),
        np.float64(2),
        Sub._wrap(np.ones(2)),
        Hostile(),
        Array,
        int,
        slice(None),
        slice("a", "b"),
        slice(2**100),
        ...,
        len,
        Point(1, 2),
        [[[]]],
        "float32",
        np.dtype("f4"),
        rt.wrap(np.ones(2, "M8[s]")),
        rt.wrap(np.zeros(2, "U3")),
        rt.wrap(np.ones(3, np.float16)),
        1j,
        True,
    ]
    keep = {
        "set_array_type",
        "set_operator_fallbacks",
        "set_error_filter",
        "set_trace",
        "set_internal_prefixes",
        "set_process_config",
        "set_thread_share",
        "JitKey",
    }
    targets = [getattr(rt, n) for n in dir(rt) if not n.startswith("__") and n not in keep]
    targets += [
        rt.EagerOp(np.add, lambda *a, **k: 0, "add"),
        rt.EagerOp(rt.threefry2x32, len, "t"),
        rt.JitFunction(lambda *a: 0),
        rt.JitFunction(lambda *a: 0, (0, -1, 10**15), ("k",)),
    ]
    methods = [
        n
        for n in dir(Array.__base__)
        if callable(getattr(Array.__base__, n, None))
        and n
        not in (
            "__class__",
            "__init_subclass__",
            "__subclasshook__",
            "__delattr__",
            "__setattr__",
            "__getattribute__",
            "__new__",
            "__init__",
        )
    ]
    random.seed(0)

    def attempt(function, *args, **kwargs):
        with contextlib.suppress(Exception):  # what is raised is not the point
            function(*args, **kwargs)

    for target in targets:
        attempt(target)
        for a in values:
            attempt(target, a)
            attempt(target, k=a)
            for b in random.sample(values, 6):
                attempt(target, a, b)
                attempt(target, a, b, random.choice(values), random.choice(values))
    for name, a in itertools.product(methods, [v for v in values if isinstance(v, Array.__base__)]):
        method = getattr(a, name)
        attempt(method)
        for b in values:
            attempt(method, b)
            attempt(method, b, random.choice(values))
    op = rt.EagerOp(np.add, lambda *a, **k: 0, "add")
    for a, b in itertools.product(values, values):
        attempt(op, a, b)
    assert rt.get_trace() is None
