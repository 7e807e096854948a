"""Callbacks: how often and in which order they are called, what they get, and their exceptions."""

import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import CallbackError, NotDifferentiableError

SCALAR = ft.ShapeDtypeStruct((), "float64")
X = np.arange(3.0)


def recorder():
    seen = []

    def call(x):
        assert isinstance(x, (np.ndarray, np.generic))
        seen.append(x.tolist())
        return x * 2

    return call, seen


def test_pure_callback_runs_when_the_program_does():
    call, seen = recorder()
    jitted = ft.jit(lambda x: ft.pure_callback(call, x, x) + 1)
    jitted.lower(X)
    assert seen == []
    for i in range(3):
        np.testing.assert_allclose(jitted(X + i), 2 * (X + i) + 1)
    assert seen == [(X + i).tolist() for i in range(3)]


def test_vmap_methods():
    rows = {"sequential": [0.0, 1.0, 2.0], "expand_dims": [[0.0, 1.0, 2.0]],
            "broadcast_all": [[0.0, 1.0, 2.0]]}
    for method, expected in rows.items():
        for wrap in (lambda f: f, ft.jit):
            call, seen = recorder()
            mapped = ft.vmap(lambda x, m=method, c=call: ft.pure_callback(
                c, SCALAR, x, vmap_method=m))
            np.testing.assert_allclose(wrap(mapped)(X), 2 * X)
            assert seen == expected
    with pytest.raises(CallbackError, match="vmap_method"):
        ft.vmap(lambda x: ft.pure_callback(np.sin, SCALAR, x))(X)


def test_structures_and_wrong_results():
    out = ft.pure_callback(lambda d, k: {"sum": d["a"] + k, "n": np.int32(3)},
                           {"sum": SCALAR, "n": ft.ShapeDtypeStruct((), "int32")},
                           {"a": np.float64(1.0)}, k=np.float64(2.0))
    assert float(out["sum"]) == 3.0 and int(out["n"]) == 3
    for bad in (lambda x: np.ones(2), lambda x: (x, x), lambda x: None):
        for wrap in (lambda f: f, ft.jit):
            with pytest.raises(CallbackError):
                wrap(lambda x, b=bad: ft.pure_callback(b, SCALAR, x))(1.0)


def test_exceptions_come_out_as_they_are():
    def fail(x):
        raise ZeroDivisionError("in the callback")

    fun = lambda x: ft.pure_callback(fail, SCALAR, x)
    for wrap in (lambda f: f, ft.jit, lambda f: lambda x: lax.cond(x > 0, f, f, x)):
        with pytest.raises(ZeroDivisionError, match="in the callback"):
            wrap(fun)(np.float64(1.0))
    assert float(ft.jit(lambda x: x + 1)(1.0)) == 2.0


def test_callbacks_have_no_derivative_of_their_own():
    with pytest.raises(NotDifferentiableError, match="pure_callback"):
        ft.grad(lambda x: ft.pure_callback(np.sin, SCALAR, x))(np.float64(1.0))
    assert float(ft.grad(lambda x: x * ft.pure_callback(
        np.cos, SCALAR, ft.stop_gradient(x)))(np.float64(0.0))) == 1.0


def test_io_callbacks_keep_their_order_and_number():
    seen = []

    def note(tag):
        return lambda x: seen.append((tag, float(x)))

    def fun(x):
        ft.io_callback(note("a"), None, x, ordered=True)
        y = lax.fori_loop(0, 3, lambda i, s: (
            ft.io_callback(note("loop"), None, s, ordered=True), s + 1.0)[1], x)
        ft.io_callback(note("b"), None, y, ordered=True)
        return x

    expected = [("a", 1.0), ("loop", 1.0), ("loop", 2.0), ("loop", 3.0), ("b", 4.0)]
    for wrap in (lambda f: f, ft.jit, ft.jit):
        seen.clear()
        wrap(fun)(np.float64(1.0))
        assert seen == expected


def test_debug_callbacks_see_primals_and_elements():
    seen = []

    def fun(x):
        ft.debug.callback(lambda v: seen.append(float(v)), x * 10)
        return x ** 2

    assert float(ft.grad(fun)(np.float64(3.0))) == 6.0
    assert seen == [30.0]
    seen.clear()
    ft.vmap(fun)(X)
    assert seen == [0.0, 10.0, 20.0]
    seen.clear()
    jitted = ft.jit(ft.vmap(ft.grad(fun)))
    jitted(X)
    jitted(X)
    assert seen == [0.0, 10.0, 20.0] * 2


def test_debug_print(capsys):
    ft.jit(lambda x: ft.debug.print("x = {x}, {}", x + 1, x=x))(3)
    assert capsys.readouterr().out == "x = 3, 4\n"


def test_callbacks_in_branches_not_taken_are_not_called():
    call, seen = recorder()
    fun = lambda x: lax.cond(x > 0, lambda a: ft.pure_callback(call, SCALAR, a), jnp.sin, x)
    for wrap in (lambda f: f, ft.jit):
        wrap(fun)(np.float64(-1.0))
        assert seen == []


def test_breakpoints_of_compiled_programs_have_the_names_of_the_caller(monkeypatch):
    found = []

    def hook():
        frame = sys._getframe(1)
        found.append((dict(frame.f_locals), frame.f_code.co_filename, frame.f_globals["np"]))

    def f(params, x, scale=2):
        y = x @ params["w"]
        kept = {"both": [x, y]}
        ft.debug.breakpoint(extra=y + 1)
        return (y * scale + kept["both"][1]).sum()

    monkeypatch.setattr(sys, "breakpointhook", hook)
    x, params = np.ones((2, 3)), {"w": np.arange(6.0).reshape(3, 2)}
    ft.jit(ft.grad(f))(params, x)
    (there, file, module), = found
    np.testing.assert_array_equal(there["y"], x @ params["w"])
    np.testing.assert_array_equal(there["kept"]["both"][1], there["y"])
    np.testing.assert_array_equal(there["extra"], there["y"] + 1)
    np.testing.assert_array_equal(there["params"]["w"], params["w"])
    assert there["scale"] == 2 and file == __file__ and module is np
    assert {*there["values"]} == {"params", "x", "y", "kept", "extra"}
