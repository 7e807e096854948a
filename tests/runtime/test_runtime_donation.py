"""Donation: whose memory an output gets, and what is left of a donated array."""

import copy
import operator
import pickle
import threading

import numpy as np
import pytest
from program_helpers import SPEC8, make_program
from runtime_helpers import Array, arr

import functrans as ft
from functrans import _runtime as rt
from functrans.core.errors import DonatedArrayError

X = np.arange(8, dtype=np.float32)
IN_PLACE = "PROGRAM { for (int i = 0; i < 8; i++) F32(1)[i] += 1; return 0; }"


def donating(tmp_path, source=IN_PLACE, **options):
    return make_program(tmp_path, source, [SPEC8], [(np.float32, (8,), 0)], donated=(0,), **options)


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("heavy", [False, True])
def test_memory_of_a_donated_array_is_used_again(tmp_path, heavy):
    run = donating(tmp_path, heavy=heavy)
    x = arr(X)
    where = address(x._np)
    (out,) = run([x])
    assert address(out) == where
    assert out.base is None
    assert np.array_equal(out, X + 1)
    assert x._donated


def test_memory_that_others_see_is_left_alone(tmp_path):
    run = donating(tmp_path)
    for look in (lambda x: x._np, np.asarray, memoryview, np.from_dlpack, lambda x: x.reshape(2, 4),
                 lambda x: rt.transpose_view(x, (0,)),
                 lambda x: rt.broadcast_view(x, (2, 8), (1,))):
        x = arr(X)
        seen = look(x)
        (out,) = run([x])
        assert np.array_equal(out, X + 1)
        assert x._donated
        assert np.array_equal(np.broadcast_to(np.asarray(seen).reshape(-1)[:8], 8), X)
    base = np.arange(16, dtype=np.float32)
    x = rt.wrap(base[:8])  # memory of another array
    assert np.array_equal(run([x])[0], X + 1)
    assert np.array_equal(base, np.arange(16))
    assert np.array_equal(run([X])[0], X + 1)  # the user's own ndarray
    assert np.array_equal(X, np.arange(8))
    assert np.array_equal(run([arr(X, np.float64)])[0], X + 1)  # converted


def test_the_same_array_twice(tmp_path):
    source = "PROGRAM { for (int i = 0; i < 8; i++) F32(2)[i] += F32(0)[i] * F32(1)[i]; return 0; }"
    run = make_program(tmp_path, source, [SPEC8, SPEC8], [(np.float32, (8,), 0)], donated=(0,))
    x = arr(X)
    assert np.array_equal(run([x, x])[0], X + X * X)
    assert x._donated


def test_an_alias_without_donation_copies(tmp_path):
    run = make_program(tmp_path, IN_PLACE, [SPEC8], [(np.float32, (8,), 0)])
    x = arr(X)
    assert np.array_equal(run([x])[0], X + 1)
    assert not x._donated
    assert np.array_equal(x._np, X)


def test_a_failing_program_keeps_what_it_did_not_take(tmp_path):
    calls = make_program(tmp_path, "PROGRAM { return 5; }", [SPEC8], [(np.float32, (8,), -1)],
                         donated=(0,))
    x = arr(X)
    with pytest.raises(SystemError):
        calls([x])
    assert np.array_equal(x._np, X)
    taken = donating(tmp_path, "PROGRAM { return 5; }")
    with pytest.raises(SystemError):
        taken([x])
    assert x._donated


def test_a_donated_array_says_so(tmp_path):
    run = donating(tmp_path)
    x = arr(X)
    one = arr([1.0])
    run([x])
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((8,), np.float32, 1, 8, 8)
    assert (x.aval.shape, x.weak_type) == ((8,), False)
    uses = [
        lambda: x._np, lambda: x + 1, lambda: 1 + x, lambda: x + x, lambda: x + one, lambda: -x,
        lambda: x @ x, lambda: x[0], lambda: x[1:], lambda: x[::2], lambda: x[x > 0],
        lambda: list(x), lambda: x == x, lambda: x < 1, lambda: x**2, lambda: bool(x),
        lambda: np.asarray(x), lambda: np.array(x, copy=True), lambda: memoryview(x),
        lambda: np.from_dlpack(x), lambda: pickle.dumps(x), lambda: x.sum(), lambda: str(x),
        lambda: x.tolist(), lambda: x.reshape(2, 4), lambda: x.T + 1, lambda: ft.numpy.sin(x),
        lambda: ft.numpy.broadcast_to(x, (2, 8)), lambda: ft.numpy.sum(x, 0),
        lambda: run([x]), lambda: ft.jit(lambda v: v + 1)(x), lambda: ft.grad(lambda v: v.sum())(x),
        lambda: ft.vmap(lambda v: v + 1)(x), lambda: ft.numpy.concatenate([x, x]),
    ]
    for number, use in enumerate(uses):
        with pytest.raises(DonatedArrayError, match="is gone"):
            pytest.fail(f"use {number} gave {use()!r}")
    assert repr(x) == "Array(<donated>, shape=(8,), dtype=float32)"
    assert copy.copy(x)._donated
    scalar = make_program(tmp_path, "PROGRAM { return 0; }", [(np.float32, ())],
                          [(np.float32, (), 0)], donated=(0,))
    for convert in (bool, int, float, complex, operator.index):
        y = arr(1.0)
        scalar([y])
        with pytest.raises(DonatedArrayError):
            convert(y)


def test_a_jitted_call_with_a_donated_array(tmp_path):
    run = donating(tmp_path)

    def miss(self, args, kwargs, key):
        self.insert(key, run, ..., [False])
        return "missed"

    f = rt.JitFunction(miss)
    x = arr(X)
    assert f(x) == "missed"
    where = address(x._np)
    for k in range(10):
        y = f(x)
        assert x._donated
        assert type(y) is Array
        x = y
        assert np.array_equal(x._np, X + k + 1)
    assert address(x._np) == where
    f(x)
    with pytest.raises(DonatedArrayError):
        f(x)


def test_donating_what_another_thread_reads(tmp_path):
    big = np.ones(1 << 16, np.float32)
    source = "PROGRAM { for (int i = 0; i < 1 << 16; i++) F32(1)[i] = 7; return 0; }"
    run = make_program(tmp_path, source, [(np.float32, (1 << 16,))],
                       [(np.float32, (1 << 16,), 0)], donated=(0,), heavy=True)
    wrong = []
    box = [arr(big)]
    stop = threading.Event()

    def read():
        while not stop.is_set():
            x = box[0]
            try:
                total = (x + x)._np
            except DonatedArrayError:
                continue
            if not np.all(total == 2):
                wrong.append(total)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        x = box[0] = arr(big)
        run([x])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
