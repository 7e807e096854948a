"""Tracebacks show the user's frames alone, and places are found wherever code comes from."""

import doctest
import functools
import importlib
import inspect
import itertools
import linecache
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core import config
from functrans.core.errors import FunctransError, LeakedTracerError, ShapeError
from tests.docs.pages import reference_modules
from tests.errors.expect import caught, internal_frames

BAD = jnp.ones((5, 6))


class MyError(Exception):
    pass


def fails(a: Any) -> Any:
    raise MyError("mine")


def misfit(a: Any) -> Any:
    return a.reshape(-1) @ BAD


CALLS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "jit": lambda f, a: ft.jit(f)(a),
    "jit lower": lambda f, a: ft.jit(f).lower(a),
    "grad": lambda f, a: ft.grad(f)(a),
    "value_and_grad": lambda f, a: ft.value_and_grad(f)(a),
    "vmap": lambda f, a: ft.vmap(f)(a),
    "chunks": lambda f, a: ft.vmap(f, chunk_size=2)(a),
    "jvp": lambda f, a: ft.jvp(f, (a,), (a,)),
    "vjp": lambda f, a: ft.vjp(f, a),
    "linearize": lambda f, a: ft.linearize(f, a),
    "linear_transpose": lambda f, a: ft.linear_transpose(f, a)(a),
    "jacfwd": lambda f, a: ft.jacfwd(f)(a),
    "jacrev": lambda f, a: ft.jacrev(f)(a),
    "hessian": lambda f, a: ft.hessian(f)(a),
    "hvp": lambda f, a: ft.hvp(f, (a,), (a,)),
    "checkpoint": lambda f, a: ft.checkpoint(f)(a),
    "make_jaxpr": lambda f, a: ft.make_jaxpr(f)(a),
    "eval_shape": lambda f, a: ft.eval_shape(f, a),
    "closure_convert": lambda f, a: ft.closure_convert(f, a),
    "custom_jvp": lambda f, a: custom(f)(a),
    "scan": lambda f, a: lax.scan(lambda c, v: (c, f(v)), 0.0, a),
    "while_loop": lambda f, a: lax.while_loop(lambda c: True, f, a),
    "fori_loop": lambda f, a: lax.fori_loop(0, 3, lambda i, c: f(c), a),
    "cond": lambda f, a: lax.cond(True, f, f, a),
    "map": lambda f, a: lax.map(f, a),
    "associative_scan": lambda f, a: lax.associative_scan(lambda p, q: f(p), a),
    "tree.map": lambda f, a: ft.tree.map(f, [a]),
    "vectorize": lambda f, a: jnp.vectorize(f)(a),
    "apply_along_axis": lambda f, a: jnp.apply_along_axis(f, 0, a),
    "np.apply_along_axis": lambda f, a: np.apply_along_axis(f, 0, a),
    "at.apply": lambda f, a: a.at[0].apply(f),
    "nested": lambda f, a: ft.jit(ft.vmap(ft.grad(ft.checkpoint(f))))(a),
    "deeper": lambda f, a: ft.grad(lambda v: ft.jit(ft.vmap(f))(v).sum())(a),
}


def custom(f: Callable[..., Any]) -> Any:
    made = ft.custom_jvp(f)
    made.defjvp(lambda p, t: (made(*p), t[0]))
    return made


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_user_passes_unchanged_without_our_frames(name: str) -> None:
    with pytest.raises(MyError) as info:
        CALLS[name](fails, jnp.ones((4, 3)))
    assert str(info.value) == "mine"
    assert not internal_frames(info.value.__traceback__)
    assert traceback.extract_tb(info.value.__traceback__)[-1].name == "fails"


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_ours_ends_at_the_line_of_the_user(name: str) -> None:
    with pytest.raises((ShapeError, TypeError)) as info:
        CALLS[name](misfit, jnp.ones((4, 3)))
    assert not internal_frames(info.value.__traceback__)
    if name != "hvp":  # whose tangent may be the first to be refused
        assert f"{__file__}:{misfit.__code__.co_firstlineno + 1}, in misfit" in str(info.value)


@pytest.mark.parametrize("call", [
    lambda: BAD + jnp.ones((3, 4)), lambda: BAD @ BAD, lambda: BAD[7], lambda: BAD.sum(axis=9),
    lambda: BAD.at[9, 9, 9].set(1), lambda: jnp.concatenate([]), lambda: jnp.fft.fft(BAD, axis=7),
    lambda: jnp.linalg.inv(BAD), lambda: np.sum(BAD, axis=5), lambda: np.sin(BAD, out=BAD),
    lambda: lax.sin(jnp.arange(3)), lambda: ft.random.uniform(0), lambda: ft.nn.softmax("a"),
    lambda: ft.tree.map(jnp.add, [1], [1, 2]), lambda: ft.vjp(jnp.sin, 1.0)[1](BAD),
    lambda: jnp.einsum("ij,jk", BAD, BAD), lambda: ft.jit(jnp.sin, static_argnums=9)(1.0),
], ids=itertools.count())
def test_eager_errors_show_the_call_alone(call: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as info:
        call()
    assert len(internal_frames(info.value.__traceback__)) == 0


def test_the_cause_of_a_users_error_stays() -> None:
    def f(a: Any) -> Any:
        try:
            raise KeyError("first")
        except KeyError:
            raise MyError("second")  # noqa: B904  the implicit chain is the point

    with pytest.raises(MyError) as info:
        ft.jit(ft.grad(f))(1.0)
    assert isinstance(info.value.__context__, KeyError) and not info.value.__suppress_context__


def test_our_frames_are_shown_for_debugging() -> None:
    with config.debug_internal_frames(), pytest.raises(ShapeError) as info:
        ft.jit(misfit)(jnp.ones((4, 3)))
    assert len(internal_frames(info.value.__traceback__)) > 3


PROGRAM = """
    import functrans as ft, functrans.numpy as jnp
    ft.jit(lambda a: a @ jnp.ones((7, 7)))(jnp.ones(3))
"""


@pytest.mark.parametrize(("value", "shown"), [("", False), ("1", True)])
def test_the_debug_variable(value: str, shown: bool) -> None:
    import_path = {"FUNCTRANS_DEBUG": value, "PATH": ""}
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], env=import_path,
                         capture_output=True, text=True, check=False)
    assert "Where: <string>:3, in <lambda>" in out.stderr
    assert ("products.py" in out.stderr) == shown


def test_code_without_a_file() -> None:
    """As typed at a prompt, or run by exec."""
    scope: dict[str, Any] = {"a": jnp.ones((3, 4)), "BAD": BAD}
    with pytest.raises(ShapeError) as info:
        exec(compile("def f():\n    return a + BAD\nf()", "<input>", "exec"), scope)
    assert "Where: <input>:2, in f" in str(info.value)


def test_cells_of_a_notebook() -> None:
    """Kernels put the text of a cell into linecache under a made-up name."""
    name, code = "/tmp/ipykernel_1/42.py", "z = 1\na + BAD\n"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    with pytest.raises(ShapeError) as info:
        exec(compile(code, name, "exec"), {"a": jnp.ones((3, 4)), "BAD": BAD})
    assert "Where: cell:2, in <module>\n    a + BAD" in str(info.value)


def test_examples_in_docstrings() -> None:
    source = ">>> import functrans.numpy as jnp\n>>> jnp.ones(3) + jnp.ones(4)\n"
    test = doctest.DocTestParser().get_doctest(source, {}, "sample", None, None)
    output: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=output.append)
    assert "jnp.ones(3) + jnp.ones(4)" in "".join(output).split("Where: <doctest sample[1]>:1")[1]


def test_callables_without_code_of_their_own() -> None:
    partial = functools.partial(jnp.matmul, BAD)
    caught(lambda: ft.jit(partial)(jnp.ones((3, 4))), ShapeError, "(5, 6)")
    caught(lambda: ft.vmap(ft.jit(jnp.matmul))(BAD, jnp.ones((5, 4))), ShapeError, "(6,)", "(4,)")
    caught(lambda: list(map(partial, [BAD])), ShapeError)


def test_errors_in_threads_name_the_line_in_the_thread() -> None:
    from_thread: list[FunctransError] = []

    def work() -> None:
        try:
            misfit(jnp.ones(3))
        except FunctransError as error:
            from_thread.append(error)


    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "in misfit" in str(from_thread[0])


def test_a_leak_into_another_thread() -> None:
    kept: list[Any] = []
    ft.jit(lambda a: (kept.append(a), a)[1])(1.0)
    caught(lambda: kept[0] + 1.0, LeakedTracerError, "escaped")


@pytest.mark.parametrize("module", reference_modules())
def test_every_public_function_hides_the_frames_of_the_package(module):
    """But for policies, which the package calls and no user."""
    found = importlib.import_module(module)
    bare = [name for name in found.__all__ if module != "functrans.checkpoint_policies"
            and inspect.isfunction(value := getattr(found, name))
            and value.__module__.startswith("functrans") and not hasattr(value, "__wrapped__")]
    assert bare == []
