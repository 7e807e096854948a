"""Program: buffers, symbolic sizes, host calls, errors, lifetimes, and what jit makes of it."""

import ctypes
import gc
import pathlib
import signal
import sys
import threading
import traceback
import weakref

import ml_dtypes
import numpy as np
import pytest
from program_helpers import ADD_ONE, CALL_HOST, OUT8, SPEC8, compile_c, make_program
from runtime_helpers import Array, arr

from functrans import _runtime as rt

X = np.arange(8, dtype=np.float32)


def test_leaves_of_every_kind(tmp_path):
    run = make_program(tmp_path, ADD_ONE)
    spaced = np.zeros(16, np.float32)
    spaced[::2] = X
    for leaf in (X, arr(X), X.astype(np.float64), X.astype(np.int64), spaced[::2],
                 rt.wrap(spaced[::2]), X.astype(">f4"), np.frombuffer(b"0" + X.tobytes(), "u1")[1:]
                 .view(np.float32), list(X), X.astype(ml_dtypes.bfloat16), X.view(np.recarray)):
        (out,) = run([leaf])
        assert type(out) is np.ndarray
        assert (out.dtype, out.flags.writeable, out.ctypes.data % 64) == (np.float32, True, 0)
        assert np.array_equal(out, X + 1)
    assert np.array_equal(X, np.arange(8))


def test_scalars(tmp_path):
    source = "PROGRAM { *(DTYPE *)b[1] = *(DTYPE *)b[0] + 1; return 0; }"
    for dtype, name in ((np.float32, "float"), (np.int32, "int"), (np.uint8, "unsigned char"),
                        (np.float64, "double")):
        run = make_program(tmp_path, f"#define DTYPE {name}\n" + source, [(dtype, ())],
                           [(dtype, (), -1)])
        leaves = [3, np.int64(3), np.array(3), arr(3), np.float64(3), True]
        if np.dtype(dtype).kind == "f":
            leaves += [3.0, np.bool_(True)]
        for leaf in leaves:
            (out,) = run([leaf])
            assert (out.dtype, out.shape) == (dtype, ())
            assert out == int(leaf) + 1
    with pytest.raises(OverflowError):
        run = make_program(tmp_path, "#define DTYPE int\n" + source, [(np.int32, ())],
                           [(np.int32, (), -1)])
        run([2**40])
    with pytest.raises((TypeError, ValueError)):
        run(["text"])


def test_wrong_calls(tmp_path):
    run = make_program(tmp_path, ADD_ONE)
    with pytest.raises(TypeError, match="1 inputs was called with 2 leaves"):
        run([X, X])
    with pytest.raises(TypeError, match=r"input 0 .* shape \[8\], not \(9,\)"):
        run([np.zeros(9, np.float32)])
    with pytest.raises(TypeError, match=r"not \(1, 8\)"):
        run([X[None]])
    for call in (lambda: run(), lambda: run([X], 1), lambda: run([X], a=1), lambda: run(3)):
        with pytest.raises(TypeError):
            call()


def test_constants_and_arena(tmp_path):
    source = """
    PROGRAM {
      if (arena == 0 || (i64)arena % 64) return 1;
      float *t = (float *)arena;
      for (int i = 0; i < 8; i++) t[i] = F32(0)[i] * F32(1)[i];
      for (int i = 0; i < 8; i++) F32(2)[i] = t[i] + arena[ARENA - 1] * 0;
      return 0;
    }
    """
    for size in (64, 4096, 4160, 1 << 20):
        run = make_program(tmp_path, f"#define ARENA {size}\n" + source, arena_bytes=size,
                           constants=[np.arange(16, dtype=np.float32)[::2]])
        assert np.array_equal(run([X])[0], X * np.arange(0, 16, 2))
    run = make_program(tmp_path, "PROGRAM { return arena != 0; }")
    run([X])
    run = make_program(tmp_path, ADD_ONE, arena_bytes=1 << 60)
    with pytest.raises(MemoryError, match="temporaries"):
        run([X])


SYMBOLIC = """
void ft_shapes(const i64 *s, i64 *dims, i64 *arena) {
  dims[0] = s[0] + s[1], dims[1] = 2, dims[2] = s[0], *arena = s[1] == 7 ? -1 : 4 * s[0];
}
PROGRAM {
  float *out = F32(2);
  for (i64 i = 0; i < sizes[0]; i++) ((float *)arena)[i] = F32(0)[i];
  for (i64 i = 0; i < sizes[0]; i++) *out++ = ((float *)arena)[i], *out++ = 1;
  for (i64 i = 0; i < sizes[1]; i++) *out++ = F32(1)[i], *out++ = 2;
  for (i64 i = 0; i < sizes[0]; i++) F32(3)[i] = sizes[0];
  return 0;
}
"""


def test_symbolic_sizes(tmp_path):
    spec = (np.float32, (None,))
    outputs = [(np.float32, (None, 2), -1), (np.float32, (None,), -1)]
    run = make_program(tmp_path, SYMBOLIC, [spec, spec], outputs, sizes=[(0, 0), (1, 0)])
    for n, m in ((3, 2), (0, 0), (0, 5), (1000, 1), (5, 0)):
        x, y = np.random.rand(n).astype("f"), np.random.rand(m).astype("f")
        joined, filled = run([x, y])
        assert np.array_equal(joined[:, 0], np.concatenate([x, y]))
        assert np.array_equal(filled, np.full(n, n))
    with pytest.raises(SystemError, match="negative"):
        run([np.zeros(1, "f"), np.zeros(7, "f")])
    fixed = [(np.float32, (None, 3), -1), (np.float32, (None,), -1)]
    with pytest.raises(ValueError, match="2 elements along axis 1"):
        make_program(tmp_path, SYMBOLIC, [spec, spec], fixed, sizes=[(0, 0), (1, 0)])([x, y])
    with pytest.raises(ValueError, match="need ft_shapes"):
        make_program(tmp_path, ADD_ONE, [spec], [(np.float32, (None,), -1)])


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("borrows", [False, True])
def test_host_calls(tmp_path, heavy, borrows):
    seen = []

    def double(x):
        seen.append((x.flags.writeable, x.dtype, x.shape, x.tolist()))
        return [x * 2]

    run = make_program(tmp_path, CALL_HOST, heavy=heavy,
                       hosts=[(double, [SPEC8], [SPEC8], borrows)])
    assert np.array_equal(run([X])[0], 2 * X)
    assert seen == [(False, np.float32, (8,), X.tolist())]
    for result in (lambda x: [arr(x)], lambda x: (x,), lambda x: [np.repeat(x, 2)[::2]]):
        run = make_program(tmp_path, CALL_HOST, heavy=heavy,
                           hosts=[(result, [SPEC8], [SPEC8], borrows)])
        assert np.array_equal(run([X])[0], X)
        assert np.array_equal(run([1.0 * X])[0], X)


@pytest.mark.parametrize("heavy", [False, True])
def test_what_a_host_call_may_not_return(tmp_path, heavy):
    def named(x):
        return result

    run = make_program(tmp_path, CALL_HOST, heavy=heavy, hosts=[(named, [SPEC8], [SPEC8])])
    for wrong, message in (
        (None, "named returned NoneType where the program expects a list"),
        (X, "named returned numpy.ndarray where"),
        ([], "named returned 0 arrays where the program expects 1"),
        ([X, X], "returned 2 arrays"),
        ([X.astype("f8")], r"named returned as result 0 float64\(8,\) .* float32\(8,\)"),
        ([X[:4]], r"result 0 float32\(4,\) where"),
        ([X[None]], r"result 0 float32\(1, 8\) where"),
        ([1.0], "result 0 float where an array"),
    ):
        result = wrong
        with pytest.raises(TypeError, match=message):
            run([X])
    result = [X + 1]
    assert np.array_equal(run([X])[0], X + 1)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("error", [ValueError("from here"), KeyboardInterrupt(), SystemExit(3)])
def test_exceptions_pass_through_a_program(tmp_path, heavy, error):
    def fails(x):
        raise error

    run = make_program(tmp_path, CALL_HOST, heavy=heavy, hosts=[(fails, [SPEC8], [SPEC8], True)])
    with pytest.raises(type(error)) as caught:
        run([X])
    assert caught.value is error
    assert [f.name for f in traceback.extract_tb(caught.value.__traceback__)][-1] == "fails"
    error.__traceback__ = None


@pytest.fixture
def ctrl_c():
    """Python's handler of Ctrl-C, which is not there where the caller ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("heavy", [False, True])
def test_ctrl_c_in_a_host_call(tmp_path, heavy):
    def interrupted(x):
        signal.raise_signal(signal.SIGINT)
        return [x]

    run = make_program(tmp_path, CALL_HOST, heavy=heavy, hosts=[(interrupted, [SPEC8], [SPEC8])])
    with pytest.raises(KeyboardInterrupt):
        run([X])
    assert np.array_equal(make_program(tmp_path, ADD_ONE)([X])[0], X + 1)


def test_failing_programs(tmp_path):
    with pytest.raises(MemoryError):
        make_program(tmp_path, "PROGRAM { return 2; }")([X])
    with pytest.raises(SystemError, match="status 5"):
        make_program(tmp_path, "PROGRAM { return 5; }")([X])
    with pytest.raises(SystemError, match="no host call 3"):
        make_program(tmp_path, "PROGRAM { return api->host(ctx, 3, 0, 0); }")([X])
    ignores = "PROGRAM { void *p[] = {b[0], b[1]}; api->host(ctx, 0, p, 0); return 0; }"
    with pytest.raises(ZeroDivisionError):
        make_program(tmp_path, ignores, hosts=[(lambda x: 1 / 0, [SPEC8], [SPEC8])])([X])


def test_sizes_of_host_calls(tmp_path):
    source = """
    void ft_shapes(const i64 *s, i64 *dims, i64 *arena) { dims[0] = s[0], *arena = 8 * s[0]; }
    PROGRAM {
      i64 dims[] = {sizes[0], sizes[0]};
      void *p[] = {b[0], arena}, *q[] = {arena, b[1]};
      return api->host(ctx, 0, p, sizes[0] == 9 ? 0 : dims) || api->host(ctx, 1, q, dims);
    }
    """
    spec = (np.float32, (None,))
    hosts = [(lambda x: [x * 2], [spec], [spec]), (lambda x: [x + 1], [spec], [spec], True)]
    run = make_program(tmp_path, source, [spec], [(*spec, -1)], sizes=[(0, 0)], hosts=hosts)
    for n in (0, 1, 8, 1000):
        assert np.array_equal(run([np.arange(n)])[0], 2 * np.arange(n) + 1)
    with pytest.raises(SystemError, match="without them"):
        run([np.zeros(9)])


@pytest.mark.parametrize("how", ["array", "view", "traceback"])
def test_borrowed_arguments_that_are_kept(tmp_path, how):
    source = """
    PROGRAM {
      void *p[] = {arena, b[1]};
      for (i64 i = 0; i < 1 << 20; i++) ((float *)arena)[i] = i;
      return api->host(ctx, 0, p, 0);
    }
    """
    kept = []

    def keep(x):
        if how == "traceback":
            view = x[1:]  # noqa: F841  (looked at below, through the frame)
            raise LookupError
        kept.append(x if how == "array" else x[1:])
        return [np.zeros(8, np.float32)]

    rt.clear_memory_cache()
    before = rt.memory_stats()["in_use"]
    run = make_program(tmp_path, source, arena_bytes=4 << 20,
                       hosts=[(keep, [(np.float32, (1 << 20,))], [SPEC8], True)])
    if how == "traceback":
        try:
            run([X])
        except LookupError as error:
            kept.append(error.__traceback__.tb_next.tb_frame.f_locals["view"])
    else:
        run([X])
    rt.clear_memory_cache()
    assert kept[0][-1] == (1 << 20) - 1
    assert rt.memory_stats()["in_use"] - before >= 4 << 20
    kept.clear()
    gc.collect()
    assert rt.memory_stats()["in_use"] - before < 1 << 20


def test_empty_arrays(tmp_path):
    run = make_program(tmp_path, "PROGRAM { return 0; }", [(np.float32, (0, 3))],
                       [(np.float32, (3, 0), -1), (np.float32, (0,), -1)], heavy=True)
    assert [o.shape for o in run([np.zeros((0, 3))])] == [(3, 0), (0,)]
    assert make_program(tmp_path, "PROGRAM { return 0; }", [], [])([]) == []


# --- shared objects that are none


def test_damaged_shared_objects(tmp_path):
    whole = pathlib.Path(compile_c(tmp_path, ADD_ONE)).read_bytes()
    bad = tmp_path / "bad.so"

    def load():
        return rt.Program(str(bad), [SPEC8], [], [OUT8], 0, [], [], [], False)

    with pytest.raises(OSError, match=r"cannot load .*bad.so: .*No such file"):
        load()
    for size in range(0, len(whole), len(whole) // 40):
        bad.write_bytes(whole[:size])
        with pytest.raises(OSError, match=r"cannot load .*bad.so"):
            load()
    bad.write_bytes(b"text" * 10000)
    with pytest.raises(OSError, match="invalid ELF header"):
        load()
    for source in ("int x;", "const long long ft_abi = 1;", "const long long ft_abi = 2;"):
        with pytest.raises(OSError, match=r"interface|no ft_program"):
            rt.Program(compile_c(tmp_path, source, head=""), [], [], [], 0, [], [], [], False)
    missing = compile_c(tmp_path, "int nowhere(void); PROGRAM { return nowhere(); }")
    with pytest.raises(OSError, match="undefined symbol: nowhere"):
        rt.Program(missing, [], [], [], 0, [], [], [], False)


def test_wrong_descriptions(tmp_path):
    good = {"inputs": [SPEC8], "outputs": [OUT8], "constants": [], "arena_bytes": 0, "sizes": [],
            "libs": [], "hosts": [], "heavy": False}
    path = compile_c(tmp_path, ADD_ONE)
    rt.Program(path, **good)
    for wrong, error in (
        ({"inputs": [(np.float32,)]}, TypeError),
        ({"inputs": [(object, ())]}, TypeError),
        ({"inputs": [(np.float32, (-1,))]}, ValueError),
        ({"inputs": [(np.float32, (1,) * 65)]}, ValueError),
        ({"inputs": 3}, TypeError),
        ({"outputs": [SPEC8]}, TypeError),
        ({"outputs": [(*SPEC8, 1)]}, ValueError),
        ({"outputs": [(*SPEC8, 0)] * 2}, ValueError),
        ({"arena_bytes": -1}, ValueError),
        ({"sizes": [(0, 1)]}, ValueError),
        ({"sizes": [(1, 0)]}, ValueError),
        ({"libs": [3]}, TypeError),
        ({"hosts": [(3, [], [])]}, TypeError),
        ({"hosts": [(len, [3], [])]}, TypeError),
        ({"donated": (1,)}, ValueError),
        ({"donated": (-1,)}, ValueError),
        ({"nothing": 1}, TypeError),
    ):
        with pytest.raises(error):
            rt.Program(path, **{**good, **wrong})


def test_lifetime(tmp_path):
    def host(x):
        return [box[0]([x])[0]] if x[0] > 0 else [x]

    box = []
    run = make_program(tmp_path, CALL_HOST, hosts=[(host, [SPEC8], [SPEC8])])
    box.append(make_program(tmp_path, ADD_ONE))
    assert np.array_equal(run([X + 1])[0], X + 2)  # a program inside a program
    box.append(run)  # a cycle: run -> host -> box -> run

    gone = weakref.ref(host)
    run = host = box = None
    gc.collect()
    assert gone() is None
    out = make_program(tmp_path, ADD_ONE)([X])[0]
    gc.collect()
    assert np.array_equal(out, X + 1)


def test_references_stay_balanced(tmp_path):
    calls = "PROGRAM { void *p[] = {b[0], b[1], b[3]}; return api->host(ctx, 0, p, 0); }"
    run = make_program(tmp_path, calls, [SPEC8, SPEC8], [OUT8], constants=[X.copy()],
                       hosts=[(lambda x, y: [x], [SPEC8, SPEC8], [SPEC8])])
    bad = make_program(tmp_path, CALL_HOST, hosts=[(lambda x: [x, x], [SPEC8], [SPEC8], True)])
    x, y = arr(X), X.copy()
    watched = [x, y, np.dtype(np.float32)]

    def once():
        run([x, y])
        run([x, y.astype("f8")])
        for wrong in ([x], [x, y[:3]], [x, "?"]):
            with pytest.raises((TypeError, ValueError)):
                run(wrong)
        with pytest.raises(TypeError):
            bad([x])

    for _ in range(5):
        once()
    gc.collect()
    before, memory = [sys.getrefcount(o) for o in watched], rt.memory_stats()["in_use"]
    for _ in range(100):
        once()
    gc.collect()
    assert [sys.getrefcount(o) for o in watched] == before
    assert rt.memory_stats()["in_use"] == memory


def test_eight_threads_run_one_program(tmp_path):
    source = """
    PROGRAM {
      void *p[] = {arena, b[1]};
      for (int i = 0; i < 8; i++) ((float *)arena)[i] = F32(0)[i] * 2;
      return api->host(ctx, 0, p, 0);
    }
    """

    def host(x):
        if x[0] == 14:
            raise LookupError(int(x[0]))
        return [x + 1]

    run = make_program(tmp_path, source, arena_bytes=64, heavy=True,
                       hosts=[(host, [SPEC8], [SPEC8], True)])
    failures = []

    def work(k):
        for _ in range(200):
            try:
                right = np.array_equal(run([X + k])[0], 2 * (X + k) + 1)
            except LookupError as error:
                right = k == 7 and error.args == (14,)
            if not right:
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_heavy_program_releases_the_gil(tmp_path):
    source = """
    PROGRAM { volatile int *go = *(volatile int **)b[0]; while (!*go) ; return 0; }
    """
    flag = ctypes.c_int(0)
    run = make_program(tmp_path, source, [(np.int64, ())], [], heavy=True)
    thread = threading.Thread(target=run, args=([np.int64(ctypes.addressof(flag))],))
    thread.start()
    flag.value = 1
    thread.join(60)
    assert not thread.is_alive()


# --- behind jit


def jit(program, structure=..., weak=(False,), bound=()):
    def miss(self, args, kwargs, key):
        self.insert(key, program, structure, weak, bound)
        return "missed"

    return rt.JitFunction(miss)


def test_jit_runs_a_program(tmp_path):
    run = make_program(tmp_path, ADD_ONE)
    f, g = jit(run), jit(run, {"a": (...,)}, [True])
    h = jit(run, lambda leaves: leaves)
    for function in (f, g, h):
        assert function(arr(X)) == "missed"
    out = f(arr(X))
    assert type(out) is Array
    assert not out.weak_type
    assert not out._np.flags.writeable
    assert np.array_equal(out._np, X + 1)
    assert g(arr(X))["a"][0].weak_type
    assert type(h(arr(X))) is list
    f(X.astype("f8")), f(X)
    assert np.array_equal(f(X.astype("f8"))._np, X + 1)
    assert np.array_equal(f(X)._np, X + 1)


def test_jit_with_bound_inputs(tmp_path):
    source = "PROGRAM { for (int i = 0; i < 8; i++) F32(2)[i] = F32(0)[i] - F32(1)[i]; return 0; }"
    run = make_program(tmp_path, source, [SPEC8, SPEC8])
    f = jit(run, bound=(arr(X * 3),))
    f(arr(X))
    assert np.array_equal(f(arr(X))._np, 2 * X)
    for wrong in (jit(run), jit(run, bound=(X, X)), jit(run, (..., ...), (False, False), (X,))):
        with pytest.raises(ValueError, match="the program has 2 inputs and 1 outputs"):
            wrong(arr(X))
    with pytest.raises(TypeError, match="only a Program"):
        jit(list, bound=(X,))(arr(X))
    gone = weakref.ref(bound := X.copy())
    f = jit(run, bound=(bound,))
    f(arr(X))
    del f, bound
    gc.collect()
    assert gone() is None


def test_jit_passes_exceptions_on(tmp_path):
    def fails(x):
        raise LookupError("here")

    f = jit(make_program(tmp_path, CALL_HOST, hosts=[(fails, [SPEC8], [SPEC8])]))
    f(arr(X))
    with pytest.raises(LookupError, match="here"):
        f(arr(X))
